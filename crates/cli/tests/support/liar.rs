//! A proxy in front of a hub that changes one delivery.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread::{self, JoinHandle},
};

/// The delivery of its first connection that the proxy changes.
const VICTIM: usize = 20;

/// What a message has that is a delivery, and no result.
const COPY: &[u8] = b"\"type\":\"broadcast\"";

/// What it does with the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    Drops,
    Doubles,
    /// Sends the next one before it.
    Swaps,
}

/// The proxy. Its connections end with those of the clients.
pub struct Liar {
    pub addr: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Liar {
    pub fn start(hub: SocketAddr, lie: Lie) -> Liar {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let serve = move || {
            for (number, client) in listener.incoming().enumerate() {
                if over.load(SeqCst) {
                    return;
                }
                let (client, hub) = (client.unwrap(), TcpStream::connect(hub).unwrap());
                let lie = (number == 0).then_some(lie);
                let (from, to) = (client.try_clone().unwrap(), hub.try_clone().unwrap());
                thread::spawn(move || passes(&from, &to));
                thread::spawn(move || match lie {
                    None => passes(&hub, &client),
                    Some(lie) => {
                        // Ends with an error when the client closes its connection.
                        _ = lies(&hub, &client, lie);
                        _ = client.shutdown(Shutdown::Both);
                        _ = hub.shutdown(Shutdown::Both);
                    }
                });
            }
        };
        Liar { addr, is_over, thread: Some(thread::spawn(serve)) }
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.is_over.store(true, SeqCst);
        _ = TcpStream::connect(self.addr);
        _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Passes all bytes on, and the end of them.
fn passes(mut from: &TcpStream, mut to: &TcpStream) {
    _ = io::copy(&mut from, &mut to);
    _ = to.shutdown(Shutdown::Write);
}

/// Passes the messages of the hub on, and lies once.
fn lies(from: &TcpStream, mut to: &TcpStream, lie: Lie) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while line != b"\r\n" {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        to.write_all(&line)?;
    }
    let (mut copies, mut late) = (0, Vec::new());
    loop {
        let frame = frame(&mut from)?;
        let is_copy = frame.windows(COPY.len()).any(|text| text == COPY);
        copies += usize::from(is_copy);
        if !(is_copy && copies == VICTIM) {
            to.write_all(&frame)?;
            if is_copy {
                to.write_all(&std::mem::take(&mut late))?;
            }
            continue;
        }
        match lie {
            Lie::Drops => {}
            Lie::Doubles => to.write_all(&frame.repeat(2))?,
            Lie::Swaps => late = frame,
        }
    }
}

/// Reads a frame of a server, which is not masked (RFC 6455, section 5.2).
fn frame(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 2];
    from.read_exact(&mut frame)?;
    let more = match frame[1] {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    frame.resize(2 + more, 0);
    from.read_exact(&mut frame[2..])?;
    let length = match more {
        0 => usize::from(frame[1]),
        _ => frame[2..].iter().fold(0, |length, byte| length << 8 | usize::from(*byte)),
    };
    let head = frame.len();
    frame.resize(head + length, 0);
    from.read_exact(&mut frame[head..])?;
    Ok(frame)
}
