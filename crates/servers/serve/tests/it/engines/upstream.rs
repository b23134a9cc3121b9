//! The upstream server, played by the test itself or by its threads.

use crate::{DEADLINE, client::Client};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with};
use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::OwnedFd,
    thread,
    time::{Duration, Instant},
};

/// An address that refuses connections until it listens. It stays reserved meanwhile.
pub struct Closed {
    socket: OwnedFd,
    pub addr: SocketAddr,
}

impl Closed {
    pub fn new() -> Closed {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
        bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let addr = getsockname(&socket).unwrap().try_into().unwrap();
        Closed { socket, addr }
    }

    /// Sets a small receive buffer on accepted connections, so that a writer soon has to wait.
    pub fn small(self) -> Closed {
        rustix::net::sockopt::set_socket_recv_buffer_size(&self.socket, 16 * 1024).unwrap();
        self
    }

    pub fn listen(self) -> Upstream {
        self.listen_with(128)
    }

    /// Listens with an accept queue for `backlog` connections, plus one.
    pub fn listen_with(self, backlog: i32) -> Upstream {
        listen(&self.socket, backlog).unwrap();
        Upstream { addr: self.addr, listener: self.socket.into() }
    }
}

/// A listening upstream.
pub struct Upstream {
    pub addr: SocketAddr,
    listener: TcpListener,
}

impl Upstream {
    pub fn new() -> Upstream {
        Closed::new().listen()
    }

    /// Accepts the next connection of the relay.
    pub fn accept(&self) -> Client {
        self.listener.set_nonblocking(true).unwrap();
        let start = Instant::now();
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).unwrap();
                    return Client::new(stream);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    assert!(start.elapsed() < DEADLINE, "no connection arrives");
                    thread::sleep(Duration::from_millis(1));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Answers every line with `reply` from now on, in a thread per connection.
    pub fn answer(self, reply: fn(&str) -> String) -> SocketAddr {
        let addr = self.addr;
        thread::spawn(move || {
            for stream in self.listener.incoming() {
                let stream = stream.expect("a connection");
                thread::spawn(move || answer(stream, reply));
            }
        });
        addr
    }

    /// Answers each line with `re` and the line. For the number of a connection, `until` returns
    /// after how many lines it closes inside the next reply, and whether by a reset.
    pub fn answer_until(self, until: fn(u64) -> (u64, bool)) -> SocketAddr {
        let addr = self.addr;
        thread::spawn(move || {
            for (number, stream) in (0..).zip(self.listener.incoming()) {
                let stream = stream.expect("a connection");
                thread::spawn(move || break_off(stream, until(number)));
            }
        });
        addr
    }
}

fn break_off(mut stream: TcpStream, (lines, reset): (u64, bool)) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for number in 0..=lines {
        let mut line = String::new();
        if !reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            return;
        }
        let reply = format!("re {line}");
        let part = if number < lines { &reply[..] } else { &reply[..reply.len() - 2] };
        if stream.write_all(part.as_bytes()).is_err() {
            return;
        }
    }
    if reset {
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    }
}

fn answer(stream: TcpStream, reply: fn(&str) -> String) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut out) = (String::new(), String::new());
    let mut stream = stream;
    // It ends when the relay closes the connection.
    while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
        out.push_str(&reply(line.trim_end()));
        out.push('\n');
        line.clear();
        if reader.buffer().is_empty() {
            if stream.write_all(out.as_bytes()).is_err() {
                return;
            }
            out.clear();
        }
    }
}
