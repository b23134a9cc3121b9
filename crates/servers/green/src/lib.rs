//! Green threads: sequential code with blocking calls, at the cost of an event loop.
//!
//! ```
//! use regatta_green as green;
//! use std::io::{Read, Write};
//!
//! green::run(green::Config::default(), || {
//!     let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
//!     let address = listener.local_addr().unwrap();
//!     let listener = green::TcpListener::from_std(listener).unwrap();
//!     let client = std::thread::spawn(move || {
//!         let mut stream = std::net::TcpStream::connect(address).unwrap();
//!         stream.write_all(b"hello").unwrap();
//!         stream.shutdown(std::net::Shutdown::Write).unwrap();
//!         std::io::read_to_string(stream).unwrap()
//!     });
//!     let (mut stream, _) = listener.accept().unwrap();
//!     let mut buffer = [0; 1024];
//!     loop {
//!         match stream.read(&mut buffer).unwrap() {
//!             0 => break,
//!             length => stream.write_all(&buffer[..length]).unwrap(),
//!         }
//!     }
//!     drop(stream);
//!     assert_eq!(client.join().unwrap(), "hello");
//! })
//! .unwrap();
//! ```
//!
//! # A tour
//! - [`stack`]: where stacks come from. They are slices of one reservation of address space, so 100,000 stacks
//!   cost only the memory they touch.
//! - [`overflow`]: how a stack overflow is reported.
//! - [`mod@run`]: how a scheduler starts and ends; [`current`]: how code on its thread finds it.
//! - [`scheduler`]: the loop: which coroutine runs next, and the switch to its stack and back (by
//!   [`corosensei`]). One per OS thread, nothing shared. A coroutine stays on its thread, so it needs neither
//!   locks nor `Send`, and a switch is a function call.
//! - [`readiness`]: edge-triggered epoll, and how the scheduler knows whether a read can succeed.
//! - [`timer`]: deadlines that cost two stores unless they expire.
//! - [`net`]: the TCP calls.
//! - [`mod@mailbox`]: messages. Wake-ups from other threads go through the [`inbox`].
//!
//! # What a request costs
//! One `recv`, one `send`, two stack switches, and a share of the turn's `epoll_wait` and clock
//! reading. No allocation, no queue, no hash lookup.
//!
//! # Limits
//! - Scheduling is cooperative: coroutines switch only inside calls of this crate. One that computes
//!   for a second blocks its thread for a second.
//! - Thread-locals of `std` and of libraries are shared by all coroutines of a thread. Do not hold a
//!   lock or a `RefCell` borrow across a call that waits.
//! - Nothing waits during unwinding: a destructor that would have to wait (e.g. a `BufWriter` with much
//!   to flush) gets an error instead.
//! - A shutdown unwinds the remaining coroutines. A coroutine that catches the unwinding gets an error
//!   from every call that would wait, and must end. One that only sleeps in a loop never ends.
//! - Linux on x86-64 or AArch64.

#![deny(unsafe_code)]
#![allow(rustdoc::private_intra_doc_links)]

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("regatta-green needs Linux on x86_64 or aarch64");

mod current;
mod inbox;
mod mailbox;
mod net;
#[allow(unsafe_code)] // signal handlers
mod overflow;
mod readiness;
mod run;
#[allow(unsafe_code)] // a pointer to the running coroutine's yielder
mod scheduler;
#[allow(unsafe_code)] // memory mappings
mod stack;
mod timer;

pub use mailbox::{Mailbox, Sender, Wake, mailbox, wait};
pub use net::{TcpListener, TcpStream, wait_fd_readable};
pub use run::{Config, run};
pub use stack::Guard;

use std::io;
use std::time::{Duration, Instant};

/// Spawns a coroutine in this thread's scheduler. It first runs when the caller waits or ends.
///
/// # Errors
/// Fails if [`Config::max_coroutines`] are alive, if no guard page can be created, or while a
/// shutdown unwinds the coroutines. `body` is dropped then.
///
/// # Panics
/// Panics outside of [`run`], like all functions here.
pub fn spawn(body: impl FnOnce() + 'static) -> io::Result<()> {
    current::get().spawn(body)
}

/// Yields to every other coroutine that is ready.
pub fn yield_now() {
    current::get().yield_now();
}

/// Sleeps for at least `duration`. It may sleep up to two milliseconds longer, plus the time that
/// other coroutines take. During unwinding it returns at once.
pub fn sleep(duration: Duration) {
    let core = current::get();
    // Reads the clock anew. The turn may have started long ago, and the sleep would be too short.
    let end = Instant::now().checked_add(duration);
    let deadline = end.map_or(timer::NEVER, |end| core.tick_at(end));
    while core.tick() < deadline && core.park(deadline).is_ok() {}
}

/// Returns the start time of this turn of the loop. It does not read the clock.
pub fn now() -> Instant {
    current::get().now()
}

/// Ends this thread's scheduler once the caller waits or ends: the remaining coroutines are
/// unwound, and [`run`] returns.
pub fn shutdown() {
    current::get().shutdown();
}
