//! Test servers with a thread per connection.

use regatta_testkit::server;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpStream},
    ops::Deref,
};

/// A server, which stops when this value is dropped.
pub struct Server(server::Server);

impl Deref for Server {
    type Target = server::Server;

    fn deref(&self) -> &server::Server {
        &self.0
    }
}

impl Server {
    /// Passes each connection to `serve`, with its number, counted from 0.
    pub fn start(serve: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Server {
        Server(server::Server::start(serve))
    }

    /// Answers each line with `answer(connection, number of the line, line)`, which may also write to
    /// the connection itself. Closes the connection on `None`.
    pub fn lines(
        answer: impl Fn(&TcpStream, u64, &str) -> Option<String> + Send + Sync + 'static,
    ) -> Server {
        Server::start(move |_, stream| {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            for i in 0.. {
                line.clear();
                if !matches!(reader.read_line(&mut line), Ok(1..)) {
                    return;
                }
                let Some(reply) = answer(&stream, i, line.trim_end()) else { return };
                if (&stream).write_all(reply.as_bytes()).is_err() {
                    return;
                }
            }
        })
    }

    /// Answers the i-th HTTP request of each connection with `answer(i, head)`. Closes the connection
    /// after the reply on `false`.
    pub fn http(answer: impl Fn(u64, &str) -> (String, bool) + Send + Sync + 'static) -> Server {
        Server::start(move |_, stream| {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            for i in 0.. {
                let Some(head) = read_head(&mut reader) else { return };
                let (reply, stays) = answer(i, &head);
                if (&stream).write_all(reply.as_bytes()).is_err() {
                    return;
                }
                if !stays {
                    let _ = stream.shutdown(Shutdown::Write);
                    // Closing with unread bytes would be a reset.
                    let _ = reader.read_to_end(&mut Vec::new());
                    return;
                }
            }
        })
    }

    pub fn line_url(&self) -> String {
        format!("line://{}", self.addr)
    }

    pub fn http_url(&self) -> String {
        format!("http://{}/", self.addr)
    }
}

/// Reads the head of a request that has no content. Returns `None` at the end of the connection.
pub fn read_head(reader: &mut impl BufRead) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if !matches!(reader.read_line(&mut head), Ok(1..)) {
            return None;
        }
    }
    Some(head)
}

/// The correct reply to a line of the workload `double`.
pub fn double(line: &str) -> String {
    format!("{}\n", line.parse::<i128>().unwrap() * 2)
}

/// A reply with this status and content.
pub fn reply(status: u16, content: &str) -> String {
    format!("HTTP/1.1 {status} -\r\nContent-Length: {}\r\n\r\n{content}", content.len())
}

/// Resets the connection, even if bytes are still unsent.
pub fn reset(stream: &TcpStream) {
    // connect(2) with AF_UNSPEC resets a connection, however many descriptors refer to it.
    rustix::net::connect_unspec(stream).unwrap();
}
