//! Green threads: code that reads top to bottom and waits in its calls, at the cost of an event
//! loop.
//!
//! ```
//! use regatta_green as green;
//! use std::io::{Read, Write};
//!
//! green::run(green::Config::default(), || {
//!     let listener = green::TcpListener::bind("127.0.0.1:0").unwrap();
//!     let address = listener.local_addr().unwrap();
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
//! - [`stack`]: a coroutine is a stack of its own; [`corosensei`] switches between them. Stacks
//!   are cut from one reservation of address space, so a hundred thousand cost only what they touch.
//! - [`overflow`]: what happens when one is too small.
//! - [`mod@run`]: how a scheduler begins and ends; [`current`]: how code on its thread finds it.
//! - [`scheduler`]: the loop. One per OS thread, nothing shared: a coroutine stays where it was
//!   spawned, so neither locks nor `Send` are needed, and a switch is a function call.
//! - [`readiness`]: edge-triggered epoll, and how a read is known to be worth trying.
//! - [`timer`]: deadlines that cost two stores while they do not pass.
//! - [`net`]: the calls themselves.
//! - [`mod@mailbox`]: messages, also from other threads, whose wake-ups go through the [`inbox`].
//!
//! # What a request costs
//! `epoll_wait` (shared by all that are ready), one `recv`, one `send`, and two switches of stacks.
//! No allocation, no queue, no clock, no lookup by hash.
//!
//! # Limits
//! - Coroutines take turns only where they wait (or call [`yield_now`]): one that computes for a
//!   second holds up its thread for a second.
//! - A thread-local of `std` or of a library is shared by all coroutines of the thread. Do not
//!   hold a lock or a `RefCell` borrow across a call that waits.
//! - Nothing waits while it unwinds: a destructor that would have to (a `BufWriter` with much to
//!   flush) gets an error instead.
//! - A shutdown unwinds what is left. A coroutine that catches this gets an error from every call
//!   that would wait, and must end; one that only sleeps in a loop never does.
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

pub use mailbox::{Mailbox, SendError, Sender, Wake, mailbox, wait};
pub use net::{TcpListener, TcpStream, wait_fd_readable};
pub use run::{Config, run};
pub use stack::Guard;

use std::io;
use std::time::{Duration, Instant};

/// Starts a coroutine in this thread's scheduler. It first runs when the caller waits.
///
/// # Errors
/// When [`Config::max_coroutines`] live already, when no guard page can be made for one more, or
/// during shutdown. `body` is dropped then.
///
/// # Panics
/// Outside of [`run`]; so do all functions here.
pub fn spawn(body: impl FnOnce() + 'static) -> io::Result<()> {
    current::get().spawn(body)
}

/// Lets every other coroutine that can go on have its turn first.
pub fn yield_now() {
    current::get().yield_now();
}

/// Waits for a time: never shorter, longer by up to a millisecond and whatever the others take.
pub fn sleep(duration: Duration) {
    let core = current::get();
    // Read afresh: the turn's time may be long ago, and the sleep would be too short.
    let end = Instant::now().checked_add(duration);
    let deadline = end.map_or(timer::NEVER, |end| core.tick_at(end));
    while core.tick() < deadline && core.park(deadline).is_ok() {}
}

/// The time when this turn of the loop began. It costs no clock reading.
pub fn now() -> Instant {
    current::get().now()
}

/// Ends this thread's scheduler once the caller waits or ends: every coroutine left is unwound,
/// and [`run`] returns.
pub fn shutdown() {
    current::get().shutdown();
}
