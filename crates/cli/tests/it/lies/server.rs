//! Test servers with a thread per connection.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread::{self, JoinHandle},
};

/// A server on a free port, which stops when this value is dropped.
pub struct Server {
    pub addr: SocketAddr,
    /// Connections that were accepted.
    pub accepted: Arc<AtomicUsize>,
    closing: Arc<AtomicBool>,
    streams: Arc<Mutex<HashMap<usize, TcpStream>>>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Passes each connection to `serve`, with its number, counted from 0.
    pub fn start(serve: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let (accepted, closing) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let streams: Arc<Mutex<HashMap<usize, TcpStream>>> = Arc::default();
        let serve = Arc::new(serve);
        let acceptor = thread::spawn({
            let (accepted, closing) = (accepted.clone(), closing.clone());
            let streams = streams.clone();
            move || {
                let mut serving = Vec::new();
                loop {
                    let (stream, _) = listener.accept().unwrap();
                    if closing.load(SeqCst) {
                        break;
                    }
                    stream.set_nodelay(true).unwrap();
                    let (serve, number) = (serve.clone(), accepted.fetch_add(1, SeqCst));
                    streams.lock().unwrap().insert(number, stream.try_clone().unwrap());
                    let streams = streams.clone();
                    serving.push(thread::spawn(move || {
                        serve(number, stream);
                        // The copy would keep the connection open.
                        streams.lock().unwrap().remove(&number);
                    }));
                }
                serving.into_iter().for_each(|one| one.join().unwrap());
            }
        });
        Server { addr, accepted, closing, streams, acceptor: Some(acceptor) }
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

impl Drop for Server {
    fn drop(&mut self) {
        self.closing.store(true, SeqCst);
        drop(TcpStream::connect(self.addr));
        for (_, stream) in self.streams.lock().unwrap().drain() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let joined = self.acceptor.take().unwrap().join();
        assert!(thread::panicking() || joined.is_ok(), "the server panicked");
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
