//! Slow clients, and servers that record what these send.

use super::{Server, asks};
use regatta_load::{SlowPlan, SlowTally, run_slow};
use regatta_script::dialects::http::{HttpRequest, SlowPart, slow_request};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpStream},
    sync::{Arc, Mutex, atomic::AtomicBool},
    time::{Duration, Instant},
};

pub const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Twenty slow clients that each send a byte every 20 ms, for a second. New clients have a long timeout,
/// so that a busy machine is not mistaken for a blocked server.
pub fn plan(server: &Server) -> SlowPlan {
    let host = server.address.to_string();
    SlowPlan {
        target: server.address,
        request: slow_request(SlowPart::Headers, &host, "/", 50),
        host,
        workload: asks(HttpRequest::get("/")),
        connections: 20,
        every: ms(20),
        longest: ms(1_000),
        timeout: ms(20_000),
    }
}

pub fn run(plan: &SlowPlan) -> SlowTally {
    run_slow(plan, &mut |_| {}, &AtomicBool::new(false)).unwrap()
}

/// Reads the head of one request; `None` if it is not complete within the limit.
pub fn request(stream: &TcpStream, limit: Duration) -> Option<String> {
    let ends = Instant::now() + limit;
    let (mut reader, mut head) = (BufReader::new(stream), Vec::new());
    while !head.ends_with(b"\r\n\r\n") {
        let left = ends.saturating_duration_since(Instant::now());
        stream.set_read_timeout((!left.is_zero()).then_some(left)).ok()?;
        let came = reader.fill_buf().ok().filter(|came| !came.is_empty() && !left.is_zero())?;
        head.push(came[0]);
        reader.consume(1);
    }
    String::from_utf8(head).ok()
}

/// The time of the first bytes of a connection, and all its bytes.
pub type Seen = (Instant, Vec<u8>);

/// Records what a server receives from slow clients. New clients are served.
pub fn seen(of: impl Fn(&Server) -> SlowPlan) -> (SlowTally, Vec<Seen>) {
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let server = {
        let seen = seen.clone();
        Server::start(move |mut stream, _| {
            let (mut buffer, mut all, mut first) = ([0; 1024], Vec::new(), None);
            while let Ok(n @ 1..) = stream.read(&mut buffer) {
                first.get_or_insert_with(Instant::now);
                all.extend_from_slice(&buffer[..n]);
                if all.starts_with(b"GET") && all.ends_with(b"\r\n\r\n") {
                    let _ = stream.write_all(OK);
                    let _ = stream.shutdown(Shutdown::Both);
                    return;
                }
            }
            seen.lock().unwrap().extend(first.map(|first| (first, all)));
        })
    };
    let tally = run(&of(&server));
    drop(server);
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    seen.sort_unstable();
    (tally, seen)
}

/// The pause between two bytes of a slow client, in milliseconds.
pub const EVERY: u64 = 200;

/// Runs ten slow clients, checks what each sends, and returns when each began.
pub fn bytes_sent(part: SlowPart) -> Vec<Seen> {
    let every = ms(EVERY);
    let (tally, seen) = seen(|server| SlowPlan {
        request: slow_request(part, "h", "/", 1_000 / EVERY),
        connections: 10,
        every,
        ..plan(server)
    });
    assert_eq!((tally.opened, tally.alive, seen.len()), (10, 10, 10));
    let most = tally.took_ns / (EVERY * 1_000_000) + 1;
    for (_, bytes) in &seen {
        let came = match part {
            SlowPart::Headers => {
                let mut both = bytes.iter().zip(b"GET / HTTP/1.1\r\n");
                assert!(both.all(|(came, due)| came == due), "{seen:?}");
                bytes.len() as u64
            }
            // Bytes for the one second of the plan, and two more.
            SlowPart::Body => {
                let text = std::str::from_utf8(bytes).unwrap();
                let (head, content) = text.split_once("\r\n\r\n").unwrap();
                assert!(head.starts_with("POST / HTTP/1.1\r\n"), "{head}");
                assert!(head.ends_with("\r\nContent-Length: 7"), "{head}");
                assert!(content.bytes().all(|byte| byte == b's'), "{content}");
                content.len() as u64
            }
        };
        assert!(came <= most, "{came} bytes, at most {most}");
    }
    seen
}
