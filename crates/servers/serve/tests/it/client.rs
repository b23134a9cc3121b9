//! A test client, and the models that can be tested on this machine.
#![allow(dead_code)] // each test program uses only a part of it

use crate::DEADLINE;
use regatta_serve::Model;
use regatta_testkit::skip;
use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};
use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

/// Returns those of these models that the kernel can run.
pub fn that_run(models: impl IntoIterator<Item = Model>) -> impl Iterator<Item = Model> {
    models.into_iter().filter(|model| match model.refused() {
        Some(why) => {
            skip(&format!("{}: {why}", model.name()));
            false
        }
        None => {
            eprintln!("model: {}", model.name());
            true
        }
    })
}

/// A line-based client, with a deadline for each read and write.
pub struct Client {
    pub stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Client {
        Client::new(TcpStream::connect_timeout(&addr, DEADLINE).expect("a connection"))
    }

    /// Connects with a receive buffer of only a few KiB.
    pub fn connect_small(addr: SocketAddr) -> Client {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        sockopt::set_socket_recv_buffer_size(&socket, 4096).unwrap();
        connect(&socket, &addr).expect("a connection");
        Client::new(socket.into())
    }

    pub fn new(stream: TcpStream) -> Client {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        let reader = BufReader::with_capacity(64 * 1024, stream.try_clone().unwrap());
        Client { stream, reader }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).expect("sent in time");
    }

    /// Returns the next line, without its newline.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("a line in time");
        line.strip_suffix('\n').unwrap_or_else(|| panic!("closed after {line:?}")).into()
    }

    /// Returns the next `count` lines.
    pub fn lines(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.line()).collect()
    }

    pub fn expect(&mut self, line: &str) {
        assert_eq!(self.line(), line);
    }

    pub fn ask(&mut self, request: &str, reply: &str) {
        self.send(format!("{request}\n"));
        self.expect(reply);
    }

    pub fn join(&mut self) {
        self.ask("join", "joined");
    }

    /// Checks that nothing has arrived, and nothing arrives before the reply to the next line.
    pub fn expect_nothing(&mut self) {
        self.ask("ping", "pong");
    }

    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes).expect("bytes in time");
        bytes
    }

    /// Closes the sending side.
    pub fn end(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// Resets the connection.
    pub fn reset(self) {
        sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO)).unwrap();
    }

    /// Checks that the server has closed its side, and sent nothing more.
    pub fn expect_end(&mut self) {
        let mut rest = Vec::new();
        self.reader.read_to_end(&mut rest).expect("an orderly end in time");
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }

    /// Checks that the connection is closed, orderly or by a reset.
    pub fn expect_gone(&mut self) {
        match self.reader.read_to_end(&mut Vec::new()) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("still open: {error}"),
        }
    }
}
