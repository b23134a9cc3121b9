//! Shared by the tests: a scheduler and clients that must finish within a limit.

#![allow(dead_code)] // each test file uses its part

use regatta_green as green;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time limit of each test. A lost wake-up shows as a timeout.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Runs a scheduler on its own thread, and fails if it does not end within the limit.
pub fn run(main: impl FnOnce() + Send + 'static) {
    run_with(green::Config::default(), main);
}

pub fn run_with(config: green::Config, main: impl FnOnce() + Send + 'static) {
    let (ended, end) = mpsc::channel();
    let scheduler = std::thread::spawn(move || {
        let outcome = green::run(config, main);
        // After a panic in `main` this is not reached; the sender is dropped.
        let _ = ended.send(());
        outcome
    });
    if let Err(mpsc::RecvTimeoutError::Timeout) = end.recv_timeout(LIMIT) {
        panic!("the scheduler did not end within {LIMIT:?}");
    }
    match scheduler.join() {
        Ok(outcome) => outcome.expect("green::run"),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// A listener, and a blocking client on another thread, connected to it.
pub fn listen_and<T: Send + 'static>(
    client: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (green::TcpListener, JoinHandle<T>) {
    let (listener, address) = listen();
    (listener, std::thread::spawn(move || client(connect(address))))
}

/// A listener, and its address.
pub fn listen() -> (green::TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (green::TcpListener::from_std(listener).unwrap(), address)
}

/// The next message; `None` once all senders are gone.
pub fn receive<T>(mailbox: &green::Mailbox<T>) -> Option<T> {
    let received = mailbox.recv_until(Instant::now() + LIMIT);
    received.map_err(|error| assert_eq!(error.kind(), ErrorKind::BrokenPipe)).ok()
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Joins a thread from a coroutine without blocking the scheduler, which the thread may need.
pub fn join<T>(thread: JoinHandle<T>) -> T {
    let end = Instant::now() + LIMIT;
    while !thread.is_finished() {
        assert!(Instant::now() < end, "the client did not end within {LIMIT:?}");
        green::sleep(Duration::from_millis(1));
    }
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A small reproducible sequence of numbers.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}
