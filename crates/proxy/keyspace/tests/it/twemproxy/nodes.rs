//! Small servers instead of redis-servers. Each answers a GET with its number and the key, so that
//! the client sees which server the proxy chose.

use regatta_proto::resp::{CommandLimits, Commands};
use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

/// A server. It stops when dropped.
pub struct Node {
    /// Its address in twemproxy's configuration, without the weight.
    pub address: String,
    wake: Wake,
    stops: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

/// How to wake the accepting thread so that it ends.
enum Wake {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Node {
    /// Starts a server at this address; port 0 means any.
    pub fn tcp(number: usize, (host, port): (Ipv4Addr, u16)) -> std::io::Result<Node> {
        let listener = TcpListener::bind((host, port))?;
        let address = listener.local_addr()?;
        let accept = move || listener.accept().map(|(stream, _)| stream);
        Ok(Node::start(number, address.to_string(), Wake::Tcp(address), accept))
    }

    /// Starts a server at this path, which must not exist.
    pub fn unix(number: usize, path: &Path) -> std::io::Result<Node> {
        let listener = UnixListener::bind(path)?;
        let accept = move || listener.accept().map(|(stream, _)| stream);
        let address = path.to_str().expect("a path in UTF-8").to_owned();
        Ok(Node::start(number, address, Wake::Unix(path.to_owned()), accept))
    }

    fn start<S: Read + Write + Send + 'static>(
        number: usize,
        address: String,
        wake: Wake,
        accept: impl Fn() -> std::io::Result<S> + Send + 'static,
    ) -> Node {
        let stops = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stops);
        let accepting = thread::spawn(move || {
            while let Ok(stream) = accept() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                // Ends when the proxy closes the connection: the proxy is dropped before the nodes.
                thread::spawn(move || answer(stream, number));
            }
        });
        Node { address, wake, stops, accepting: Some(accepting) }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::SeqCst);
        let woken = match &self.wake {
            Wake::Tcp(address) => TcpStream::connect(address).is_ok(),
            Wake::Unix(path) => UnixStream::connect(path).is_ok(),
        };
        if let Some(accepting) = self.accepting.take()
            && woken
        {
            let _ = accepting.join();
        }
    }
}

/// Answers all GETs of a connection.
fn answer(mut stream: impl Read + Write, number: usize) {
    let mut commands = Commands::new(CommandLimits::default());
    let (mut held, mut replies) = (Vec::new(), Vec::new());
    let mut buffer = vec![0; 1 << 16];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(bytes) => held.extend_from_slice(&buffer[..bytes]),
        }
        loop {
            let taken = match commands.next(&held) {
                Ok((0, None)) => break,
                Ok((taken, None)) => taken,
                Ok((taken, Some(command))) => {
                    match (command.arg(0), command.arg(1), command.len()) {
                        (Some(b"GET"), Some(key), 2) => {
                            let number = number.to_string();
                            let length = number.len() + 1 + key.len();
                            replies.extend_from_slice(format!("${length}\r\n{number} ").as_bytes());
                            replies.extend_from_slice(key);
                            replies.extend_from_slice(b"\r\n");
                        }
                        _ => replies.extend_from_slice(b"-ERR this server only answers GET\r\n"),
                    }
                    taken
                }
                Err(_) => return,
            };
            held.drain(..taken);
        }
        if stream.write_all(&replies).is_err() {
            return;
        }
        replies.clear();
    }
}
