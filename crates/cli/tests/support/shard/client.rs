//! A Redis client that returns the exact bytes of replies.

use regatta_proto::resp::{Replies, write_command};
use std::{
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// Maximum time to wait for a reply.
const DEADLINE: Duration = Duration::from_secs(20);

/// A connection to a server or to the proxy.
pub struct Client {
    pub stream: TcpStream,
    replies: Replies,
    bytes: Vec<u8>,
    /// What was sent last.
    sent: Vec<u8>,
}

impl Client {
    pub fn connect(addr: SocketAddr) -> Client {
        Client::try_connect(addr).expect("a connection")
    }

    /// Like [`Client::connect`]. Fails if no server listens.
    pub fn try_connect(addr: SocketAddr) -> io::Result<Client> {
        let stream = TcpStream::connect(addr)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        stream.set_nodelay(true)?;
        Ok(Client { stream, replies: Replies::default(), bytes: Vec::new(), sent: Vec::new() })
    }

    /// Sends a command.
    pub fn send<T: AsRef<[u8]>>(&mut self, args: &[T]) {
        self.try_send(args).expect("the server reads");
    }

    /// Like [`Client::send`]. Fails if the connection is closed.
    pub fn try_send<T: AsRef<[u8]>>(&mut self, args: &[T]) -> io::Result<()> {
        let mut request = Vec::new();
        write_command(args.iter().map(AsRef::as_ref).collect::<Vec<&[u8]>>(), &mut request);
        self.try_raw(&request)
    }

    /// Sends bytes.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.try_raw(bytes).expect("the server reads");
    }

    fn try_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sent = bytes[..bytes.len().min(1000)].to_vec();
        self.stream.write_all(bytes)
    }

    /// Returns the bytes of the next reply, or `None` if the connection is closed.
    pub fn next(&mut self) -> Option<Vec<u8>> {
        let sent = &self.sent.escape_ascii().to_string();
        self.try_next().unwrap_or_else(|error| panic!("no reply in time to {sent}: {error}"))
    }

    /// Like [`Client::next`]. The error says that the reply is not valid, or that there was none in time.
    pub fn try_next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut taken = 0;
        let mut buffer = [0; 65536];
        loop {
            let found = self.replies.next(&self.bytes[taken..]);
            let found = found
                .map_err(|error| io::Error::new(ErrorKind::InvalidData, format!("{error:?}")))?;
            taken += found.bytes;
            if found.whole {
                // Copied at once: element by element, without optimization, megabytes take long.
                let reply = self.bytes[..taken].to_vec();
                self.bytes.drain(..taken);
                return Ok(Some(reply));
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(None),
                Ok(read) => self.bytes.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a command and returns the bytes of its reply.
    pub fn ask<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Vec<u8> {
        self.send(args);
        self.next().expect("a reply")
    }

    /// Sends a line of words as a command and returns its reply as text.
    pub fn say(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        String::from_utf8_lossy(&self.ask(&words)).into_owned()
    }
}
