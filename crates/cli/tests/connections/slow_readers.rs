//! A client that reads slowly but steadily gets every reply. A client that reads nothing is closed
//! after the idle timeout, counted from the last byte that its kernel took, not from the last byte
//! that the server wrote to its own socket.

use crate::{
    client::{Gets, Lines, Pipeline, Receives, Replies, STUCK, Sender, is_closed, serve, unread},
    support::{Server, on_every_model, on_every_shared},
};
use std::{
    env,
    io::{ErrorKind, Write},
    net::Shutdown,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

/// Whether the tests run with the default limits (`REGATTA_LONG`).
fn is_long() -> bool {
    env::var_os("REGATTA_LONG").is_some()
}

/// An idle timeout, and the arguments that set it.
fn idle_timeout(short: &'static str) -> (Duration, Vec<&'static str>) {
    if is_long() {
        (Duration::from_secs(60), vec![])
    } else {
        let limit = short.strip_suffix('s').unwrap().parse().unwrap();
        (Duration::from_secs(limit), vec!["--idle-timeout", short])
    }
}

/// Bytes of replies that exceed all socket buffers, in addition to what the client reads slowly. The
/// kernel grows the server's send buffer up to 4 MB (tcp_wmem, tcp(7)); the receive buffer of a client
/// that reads slowly stays small.
const MORE_THAN_BUFFERS: usize = 9 << 19;

/// Waits until the caller's connection may be filled: two at a time, so that no server is slow because
/// all others are busy.
fn turn() -> MutexGuard<'static, ()> {
    static TURNS: [Mutex<()>; 2] = [const { Mutex::new(()) }; 2];
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let turn = &TURNS[NEXT.fetch_add(1, Relaxed) % TURNS.len()];
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until the server is blocked by a full socket, reads at a steady rate for `length`, then reads
/// the rest at full speed.
fn read_steadily<P: Pipeline>(
    server: &Server,
    receives: Receives,
    pipeline: P,
    rate: u64,
    length: Duration,
) {
    let leisurely = rate as usize * length.as_millis() as usize / 1000;
    let count = (leisurely + MORE_THAN_BUFFERS) / P::REPLY;
    let turn = turn();
    let stream = server.connect_with(receives);
    let sender = Sender::start(&stream, pipeline, count);
    sender.wait_until_stuck();
    drop(turn);
    let mut replies = Replies::new(&stream, pipeline);
    replies.read_steadily(rate, length);
    replies.read_until(count);
    sender.finish();
}

#[test]
fn a_client_that_reads_steadily_gets_every_reply() {
    let (limit, args) = idle_timeout("2s");
    let rate = if is_long() { 15_000 } else { 300_000 };
    on_every_model(|model, more| {
        let server = &serve("double", model, &[more, &args].concat());
        at_once([Receives::ByDefault, Receives::AtMost(16 * 1024)], |receives| {
            read_steadily(server, receives, Lines, rate, limit.mul_f64(3.1));
        });
    });
}

/// The same number of bytes per timeout as 15 KB/s under the default limits.
#[test]
fn a_client_that_reads_fifteen_kilobytes_a_second_gets_every_reply() {
    let (limit, args) = idle_timeout("3s");
    let rate = if is_long() { 15_000 } else { 300_000 };
    on_every_shared(|model| {
        let server = serve("hello", model, &args);
        read_steadily(&server, Receives::ByDefault, Gets, rate, limit.mul_f64(3.1));
    });
}

/// A client that reads 20 KB/s with a receive buffer of a few kilobytes.
#[test]
fn a_client_that_reads_in_tiny_steps_is_not_cut_off() {
    let (limit, args) = idle_timeout("1s");
    on_every_model(|model, more| {
        let server = serve("double", model, &[more, &args].concat());
        let turn = turn();
        let stream = server.connect_with(Receives::AtMost(4096));
        let sender = Sender::start(&stream, Lines, usize::MAX); // until the connection is closed
        sender.wait_until_stuck();
        drop(turn);
        Replies::new(&stream, Lines).read_steadily(20_000, 5 * limit);
        stream.shutdown(Shutdown::Both).unwrap();
    });
}

#[test]
fn a_client_that_reads_nothing_is_closed_in_time() {
    let (limit, args) = idle_timeout("3s");
    on_every_model(|model, more| {
        let server = &serve("double", model, &[more, &args].concat());
        at_once([Receives::ByDefault, Receives::Little], |receives| {
            let took = closed_after(server, receives, limit);
            assert!(took >= limit.mul_f64(0.9), "closed after {took:?}, limit {limit:?}");
        });
    });
}

/// Sends as much as the server accepts and reads nothing. Returns the time from the last byte that the
/// client's kernel received to the server's close.
fn closed_after(server: &Server, receives: Receives, limit: Duration) -> Duration {
    let requests = Lines.requests(0, 1000);
    let mut turn = Some(turn());
    let stream = server.connect_with(receives);
    stream.set_nonblocking(true).unwrap();
    let start = Instant::now();
    let (mut sent, mut sent_last) = (0, start);
    let (mut came, mut came_last) = (0, start);
    let mut filled = start;
    // A close is a reset, since the server has not read all that was sent.
    while !is_closed(&stream) {
        match (&stream).write(&requests[sent % requests.len()..]) {
            Ok(wrote) => (sent, sent_last) = (sent + wrote, Instant::now()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(5)); // nothing fits: look again
            }
            Err(_) => {} // the next `is_closed` reports it
        }
        let unread = unread(&stream);
        if unread != came && !is_closed(&stream) {
            (came, came_last) = (unread, Instant::now());
        }
        if sent_last.elapsed() > STUCK {
            turn = None;
        }
        // On a busy machine a server goes on filling its socket when the client's is full. Writes that
        // succeed much later, into space left over, must not extend the timeout.
        if sent_last < came_last + limit / 2 {
            filled = sent_last.max(came_last);
        }
        let late = filled.elapsed();
        assert!(late < limit.mul_f64(1.5), "still open {late:.1?} after the last byte was taken");
    }
    drop(turn);
    came_last.elapsed()
}

/// Runs `test` with each of these at once, in threads that are named after them and their model.
fn at_once(ways: [Receives; 2], test: impl Fn(Receives) + Sync) {
    let test = &test;
    thread::scope(|scope| {
        for receives in ways {
            let model = thread::current().name().unwrap_or_default().to_owned();
            let thread = thread::Builder::new().name(format!("{model}, {receives:?}"));
            thread.spawn_scoped(scope, move || test(receives)).unwrap();
        }
    });
}
