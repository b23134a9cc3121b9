//! A client that only counts bytes: the lowest possible cost of an HTTP load generator. It sends one
//! fixed request on each connection again and again, assumes that all replies are as long as the first,
//! and checks nothing else. It waits with epoll, like `regatta load`, or with io_uring.

use anyhow::{Context, ensure};
use regatta_sys::uring::{Completion, Received, Ring};
use rustix::event::{
    Timespec,
    epoll::{self, CreateFlags, Event, EventData, EventFlags},
};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::OwnedFd,
    rc::Rc,
    time::{Duration, Instant},
};

/// How the client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Wait {
    /// Edge-triggered epoll: one wait, and a receive and a send for each reply.
    Epoll,
    /// io_uring: multishot receives into provided buffers, one system call for each turn of the loop.
    Ring,
}

/// Sends requests over `connections` connections for the time `lasts`, and returns the number of replies.
pub fn run(
    target: SocketAddr,
    connections: u32,
    lasts: Duration,
    wait: Wait,
) -> anyhow::Result<u64> {
    let request = format!("GET / HTTP/1.1\r\nHost: {target}\r\n\r\n").into_bytes();
    let mut sockets = Vec::new();
    for _ in 0..connections {
        let socket = TcpStream::connect(target).context("cannot connect")?;
        socket.set_nodelay(true)?;
        sockets.push(socket);
    }
    let first = sockets.first_mut().context("at least one connection is needed")?;
    let length = reply_length(first, &request)?;
    match wait {
        Wait::Epoll => over_epoll(sockets, &request, length, lasts),
        Wait::Ring => over_ring(sockets, &request, length, lasts),
    }
}

/// Returns the length of a reply in bytes: its head, and the content length that the head announces.
fn reply_length(socket: &mut TcpStream, request: &[u8]) -> anyhow::Result<usize> {
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    socket.write_all(request)?;
    let mut reply = Vec::new();
    loop {
        let mut some = [0; 4096];
        let read = socket.read(&mut some).context("no first reply")?;
        ensure!(read > 0, "the server closed");
        reply.extend_from_slice(&some[..read]);
        let text = String::from_utf8_lossy(&reply).to_ascii_lowercase();
        let Some((head, _)) = text.split_once("\r\n\r\n") else { continue };
        let field = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let content: usize = field.context("the reply gives no length")?.trim().parse()?;
        let length = head.len() + 4 + content;
        if reply.len() >= length {
            ensure!(reply.len() == length, "received more than one reply");
            return Ok(length);
        }
    }
}

/// The bytes received of each connection's pending reply, and the number of complete replies.
struct Count {
    received: Vec<usize>,
    length: usize,
    replies: u64,
}

impl Count {
    fn new(connections: usize, length: usize) -> Self {
        Count { received: vec![0; connections], length, replies: 0 }
    }

    /// Adds bytes that were received on a connection. Returns whether its reply is complete.
    fn add(&mut self, at: usize, bytes: usize) -> anyhow::Result<bool> {
        self.received[at] += bytes;
        ensure!(self.received[at] <= self.length, "received more than one reply to a request");
        if self.received[at] < self.length {
            return Ok(false);
        }
        self.received[at] = 0;
        self.replies += 1;
        Ok(true)
    }
}

fn over_epoll(
    sockets: Vec<TcpStream>,
    request: &[u8],
    length: usize,
    lasts: Duration,
) -> anyhow::Result<u64> {
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut count = Count::new(sockets.len(), length);
    for (at, socket) in sockets.iter().enumerate() {
        socket.set_nonblocking(true)?;
        let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&poll, socket, EventData::new_u64(at as u64), flags)?;
        send(socket, request)?;
    }
    let (ends, mut buffer) = (Instant::now() + lasts, vec![0; 64 * 1024]);
    let mut events: Vec<Event> = Vec::with_capacity(256);
    let longest = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    while Instant::now() < ends {
        events.clear();
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), Some(&longest))?;
        for event in &events {
            let at = event.data.u64() as usize;
            let socket = &sockets[at];
            let (read, _) =
                rustix::net::recv(socket, &mut buffer[..], rustix::net::RecvFlags::empty())?;
            ensure!(read > 0, "the server closed");
            if count.add(at, read)? {
                send(socket, request)?;
            }
        }
    }
    Ok(count.replies)
}

fn send(socket: &TcpStream, request: &[u8]) -> anyhow::Result<()> {
    let sent = rustix::net::send(socket, request, rustix::net::SendFlags::NOSIGNAL)?;
    ensure!(sent == request.len(), "the send buffer has no room for a request");
    Ok(())
}

fn over_ring(
    sockets: Vec<TcpStream>,
    request: &[u8],
    length: usize,
    lasts: Duration,
) -> anyhow::Result<u64> {
    let mut ring = Ring::new()?;
    let mut count = Count::new(sockets.len(), length);
    let sockets: Vec<Rc<OwnedFd>> =
        sockets.into_iter().map(|socket| Rc::new(OwnedFd::from(socket))).collect();
    for (at, socket) in sockets.iter().enumerate() {
        ring.receive(socket, at as u32, true)?;
        ring.send(socket, at as u32, request.to_vec(), 0, false)?;
    }
    let ends = Instant::now() + lasts;
    let mut spare: Vec<Vec<u8>> = Vec::new();
    while Instant::now() < ends {
        ring.wait(Some(Duration::from_millis(100)))?;
        while let Some(completion) = ring.completion() {
            match completion {
                Completion::Received { token, result: Received::Bytes(mut buffer), more } => {
                    let bytes = ring.bytes(&mut buffer).len();
                    ring.give_back(buffer);
                    let at = token as usize;
                    if !more {
                        ring.receive(&sockets[at], token, true)?;
                    }
                    if count.add(at, bytes)? {
                        let request = spare.pop().unwrap_or_else(|| request.to_vec());
                        ring.send(&sockets[at], token, request, 0, false)?;
                    }
                }
                Completion::Received { token, result: Received::Starved, .. } => {
                    ring.receive(&sockets[token as usize], token, true)?;
                }
                Completion::Received { result, .. } => {
                    anyhow::bail!("a connection closed or failed: {result:?}")
                }
                Completion::Sent { result, bytes, .. } => {
                    ensure!(result? == bytes.len(), "the send buffer has no room for a request");
                    spare.push(bytes);
                }
                _ => {}
            }
        }
    }
    Ok(count.replies)
}
