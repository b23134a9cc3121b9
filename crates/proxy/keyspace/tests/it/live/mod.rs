//! A live redis-server, and a client for it.

pub mod table;

use regatta_proto::resp::{Replies, Value, write_command};
use regatta_testkit::{
    child::Killed,
    deadline::{DEADLINE, until},
};
use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// A running redis-server with empty data. It stops when dropped.
pub struct Redis {
    child: Killed,
    folder: TempDir,
}

impl Redis {
    /// Starts the server on a socket in a new directory, and waits until it listens.
    pub fn start() -> Redis {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let mut command = Command::new("redis-server");
        command
            .args(["--port", "0", "--unixsocket", "redis.sock", "--save", ""])
            .args(["--appendonly", "no", "--logfile", "redis.log"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut redis = Redis { child: Killed::start(&mut command), folder };
        until("redis-server listens", || {
            let ended = redis.child.try_wait().expect("its state");
            assert!(ended.is_none(), "redis-server exited: {ended:?}");
            redis.stream().is_ok()
        });
        redis
    }

    fn stream(&self) -> std::io::Result<UnixStream> {
        UnixStream::connect(self.folder.path().join("redis.sock"))
    }

    /// Connects a client.
    pub fn connect(&self) -> Client {
        let stream = self.stream().expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_write_timeout(Some(DEADLINE)).expect("a timeout");
        Client { stream }
    }
}

/// A client of the server. It sends one request at a time.
pub struct Client {
    stream: UnixStream,
}

impl Client {
    /// Sends a request and returns the reply.
    pub fn ask<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Reply {
        Reply::read(&self.bytes(args)).0
    }

    /// Sends a request and returns the bytes of the reply.
    pub fn bytes<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Vec<u8> {
        let mut request = Vec::new();
        let args: Vec<&[u8]> = args.iter().map(AsRef::as_ref).collect();
        write_command(args, &mut request);
        self.stream.write_all(&request).expect("the server reads");
        let (mut replies, mut bytes, mut buffer) = (Replies::default(), Vec::new(), [0; 4096]);
        let mut taken = 0;
        loop {
            let found = replies.next(&bytes[taken..]).expect("a reply");
            taken += found.bytes;
            if found.whole {
                assert_eq!(taken, bytes.len(), "one reply for one request");
                return bytes;
            }
            let read = self.stream.read(&mut buffer).expect("a reply in time");
            assert!(read > 0, "the server closed the connection");
            bytes.extend_from_slice(&buffer[..read]);
        }
    }
}

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A string.
    Text(String),
    /// An error.
    Error(Vec<u8>),
    /// A number.
    Integer(i64),
    /// An array.
    List(Vec<Reply>),
    /// Null.
    Null,
}

impl Reply {
    /// Parses a reply. Returns it with its length in bytes.
    fn read(bytes: &[u8]) -> (Reply, usize) {
        let (value, mut taken) = Value::read(bytes).expect("a reply");
        let text = |text: &[u8]| String::from_utf8(text.to_vec()).expect("UTF-8");
        let reply = match value {
            Value::Simple(bytes) | Value::Bulk(bytes) => Reply::Text(text(bytes)),
            Value::Error(bytes) => Reply::Error(bytes.to_vec()),
            Value::Integer(number) => Reply::Integer(number),
            Value::Null => Reply::Null,
            Value::Elements(_, count, _) => {
                let elements = (0..count).map(|_| {
                    let (element, length) = Reply::read(&bytes[taken..]);
                    taken += length;
                    element
                });
                Reply::List(elements.collect())
            }
            other => panic!("{other:?} in RESP2"),
        };
        (reply, taken)
    }

    /// Returns the elements of an array.
    pub fn list(&self) -> &[Reply] {
        let Reply::List(elements) = self else { panic!("{self:?} is not an array") };
        elements
    }

    /// Returns the text of a string.
    pub fn text(&self) -> &str {
        let Reply::Text(text) = self else { panic!("{self:?} is not a string") };
        text
    }

    /// Returns the value of an integer.
    pub fn integer(&self) -> i64 {
        let Reply::Integer(number) = self else { panic!("{self:?} is not a number") };
        *number
    }

    /// Returns the value for a name, in an array of names and values.
    pub fn value(&self, name: &str) -> &Reply {
        let mut pairs = self.list().chunks_exact(2);
        let pair = pairs.find(|pair| pair[0].text() == name);
        &pair.unwrap_or_else(|| panic!("{name} is missing in {self:?}"))[1]
    }
}
