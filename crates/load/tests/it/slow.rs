//! Slow clients against servers with a known behaviour.

use crate::common::{Server, asks};
use regatta_load::{SlowPlan, SlowTally, run_slow};
use regatta_script::dialects::http::{HttpRequest, SlowPart, slow_request};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
const TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n";

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Twenty slow clients that each send a byte every 20 ms, for a second. New clients have a long timeout,
/// so that a busy machine is not mistaken for a blocked server.
fn plan(server: &Server) -> SlowPlan {
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

fn run(plan: &SlowPlan) -> SlowTally {
    run_slow(plan, &mut |_| {}, &AtomicBool::new(false)).unwrap()
}

/// Reads the head of one request; `None` if it is not complete within the limit.
fn request(stream: &TcpStream, limit: Duration) -> Option<String> {
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

/// Closes connections whose request takes longer than `limit`, after sending `word`.
fn closing(limit: Duration, word: &'static [u8]) -> Server {
    Server::start(move |mut stream, _| {
        let reply = if request(&stream, limit).is_some() { OK } else { word };
        let _ = stream.write_all(reply);
        let _ = stream.shutdown(Shutdown::Write);
        // Reads further bytes, so that no reset overtakes the reply.
        let _ = stream.set_read_timeout(Some(ms(1_000)));
        while matches!(stream.read(&mut [0; 1024]), Ok(1..)) {}
        let _ = stream.shutdown(Shutdown::Both);
    })
}

#[test]
fn closed_slow_connections_are_reported_with_age_and_status() {
    const LIMIT: u64 = 1_000;
    for (word, status) in [(TOO_SLOW, Some(408)), (&b""[..], None)] {
        let server = closing(ms(LIMIT), word);
        let tally = run(&SlowPlan { longest: ms(20_000), ..plan(&server) });
        assert_eq!((tally.opened, tally.refused, tally.alive), (20, 0, 0));
        assert_eq!(tally.statuses.into_iter().collect::<Vec<_>>(), [(status, 20)]);
        assert_eq!(tally.closed_ns.len(), 20);
        assert!(tally.closed_ns.is_sorted() && tally.closed_ns[0] >= (LIMIT - 20) * 1_000_000);
        assert!(!tally.served.is_empty() && tally.failed == 0, "{:?}", tally.first_failure);
        assert!(tally.took_ns < 20_000_000_000, "it ends when all are closed");
    }
}

#[test]
fn a_server_that_never_closes_keeps_all_slow_connections() {
    let server = closing(ms(60_000), b"");
    let tally = run(&plan(&server));
    assert_eq!((tally.opened, tally.alive, tally.closed_ns.len()), (20, 20, 0));
    assert!(!tally.served.is_empty() && tally.failed == 0, "{:?}", tally.first_failure);
    assert!(tally.took_ns >= 1_000_000_000);
}

#[test]
fn a_server_that_serves_one_at_a_time_serves_no_new_client() {
    let turn = Mutex::new(());
    let server = Server::start(move |mut stream, _| {
        let _mine = turn.lock();
        if request(&stream, ms(60_000)).is_some() {
            let _ = stream.write_all(OK);
        }
        let _ = stream.shutdown(Shutdown::Both);
    });
    // The first new client may connect before the first slow one.
    let tally = run(&SlowPlan { longest: ms(1_500), timeout: ms(300), ..plan(&server) });
    assert!(tally.served.len() <= 1 && tally.failed > 0, "{} served", tally.served.len());
    assert!(tally.first_failure.unwrap().contains("no complete reply within 300ms"));
}

#[test]
fn a_client_with_a_wrong_reply_is_not_served() {
    for (reply, expected) in [
        (&b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"[..], "got HTTP/1.1 503"),
        (
            &b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi"[..],
            "closed the connection before a complete reply",
        ),
        (&b"220 mail\r\n\r\n"[..], "malformed"),
    ] {
        let server = Server::start(move |mut stream, _| {
            if request(&stream, ms(60_000)).is_some() {
                let _ = stream.write_all(reply);
            }
            let _ = stream.shutdown(Shutdown::Both);
        });
        let tally = run(&SlowPlan { connections: 1, ..plan(&server) });
        let failure = tally.first_failure.unwrap_or_default();
        assert!(tally.served.is_empty() && failure.contains(expected), "{failure}");
    }
}

/// The time of the first bytes of a connection, and all its bytes.
type Seen = (Instant, Vec<u8>);

/// Records what a server receives from slow clients. New clients are served.
fn seen(of: impl Fn(&Server) -> SlowPlan) -> (SlowTally, Vec<Seen>) {
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

#[test]
fn bytes_are_sent_one_at_a_time_and_not_in_bursts() {
    const EVERY: u64 = 200;
    for part in [SlowPart::Headers, SlowPart::Body] {
        // A busy machine may bunch them, but not in every attempt.
        let spread = (0..10).any(|_| {
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
            seen[9].0.duration_since(seen[0].0) >= ms(EVERY / 2)
        });
        assert!(spread, "the first bytes lie less than {} ms apart", EVERY / 2);
    }
}

#[test]
fn a_stop_ends_the_run_at_once_with_the_results_so_far() {
    let server = closing(ms(60_000), b"");
    let stop = AtomicBool::new(false);
    let plan = SlowPlan { longest: ms(60_000), ..plan(&server) };
    let began = Instant::now();
    let tally = thread::scope(|scope| {
        let (plan, stop_it) = (&plan, &stop);
        let mut on_progress = |progress: &regatta_load::SlowProgress| {
            if progress.alive == 20 && progress.served > 0 {
                stop_it.store(true, SeqCst);
            }
        };
        scope.spawn(move || run_slow(plan, &mut on_progress, stop_it)).join().unwrap().unwrap()
    });
    assert!(tally.interrupted && tally.alive == 20 && began.elapsed() < ms(30_000));
}

#[test]
fn a_missing_server_is_reported_and_an_invalid_plan_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = listener.local_addr().unwrap();
    drop(listener);
    let server = closing(ms(60_000), b"");
    let tally = run(&SlowPlan { target: gone, ..plan(&server) });
    assert_eq!((tally.opened, tally.refused, tally.served.len()), (0, 20, 0));
    assert!(tally.failed > 0);
    let nothing = SlowPlan { connections: 0, ..plan(&server) };
    let error = run_slow(&nothing, &mut |_| {}, &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("at least 1"), "{error}");
    let many = SlowPlan { connections: 50_000_000, ..plan(&server) };
    let error = run_slow(&many, &mut |_| {}, &AtomicBool::new(false)).unwrap_err();
    assert!(error.to_string().contains("more descriptors"), "{error}");
}
