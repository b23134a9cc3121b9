//! What signals do to a server: handlers that need no thread, so that a server may fork.

use crate::wake::Latch;
use rustix::net::{Shutdown, shutdown};
use signal_hook::{
    SigId,
    consts::{SIGCHLD, SIGINT, SIGTERM, SIGUSR1},
    low_level,
};
use std::{
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, Ordering::SeqCst},
    },
};

/// Sets `latch` on SIGTERM and SIGINT. A second one ends the process at once, with the status
/// 128 + signal. Gives what [`ignore`] takes back.
pub fn set_on_termination(latch: &Arc<Latch>) -> io::Result<[SigId; 2]> {
    let seen = Arc::new(AtomicBool::new(false));
    let register = |signal| {
        let (latch, seen) = (Arc::clone(latch), Arc::clone(&seen));
        let handler = move || {
            if seen.swap(true, SeqCst) {
                low_level::exit(128 + signal);
            }
            latch.set();
        };
        // SAFETY: the handler swaps an atomic, and calls _exit(2), or stores an atomic and calls
        // write(2): all async-signal-safe (signal-safety(7)). It neither locks nor allocates.
        unsafe { low_level::register(signal, handler) }
    };
    Ok([register(SIGTERM)?, register(SIGINT)?])
}

/// From now on these signals do nothing in this process.
pub fn ignore(signals: &[SigId]) {
    for &signal in signals {
        low_level::unregister(signal); // what is left is a handler that does nothing
    }
}

/// A stream that becomes readable when a child ends (SIGCHLD).
pub fn ended_children() -> io::Result<UnixStream> {
    let (told, tells) = UnixStream::pair()?;
    told.set_nonblocking(true)?;
    low_level::pipe::register(SIGCHLD, tells)?;
    Ok(told)
}

/// The connection whose input the signal of [`end_input_on_signal`] ends; negative: none. Stored by
/// [`while_served`] alone, which takes it back before the descriptor can be closed.
static SERVED: AtomicI32 = AtomicI32::new(NONE);
const NONE: RawFd = -1;

/// Makes SIGUSR1 end the input of the connection that [`while_served`] names, as shutdown(2) does.
pub fn end_input_on_signal() -> io::Result<()> {
    // SAFETY: the handler loads an atomic and calls shutdown(2), without errno: all of it
    // async-signal-safe (signal-safety(7)). A descriptor is named there only while it is open.
    unsafe {
        low_level::register(SIGUSR1, || {
            let fd = SERVED.load(SeqCst);
            if fd != NONE {
                let _ = shutdown(BorrowedFd::borrow_raw(fd), Shutdown::Read);
            }
        })
    }?;
    Ok(())
}

/// Calls `serve`. Meanwhile SIGUSR1 ends the input of `socket`. One at a time in a process: the
/// latest is named.
pub fn while_served<R>(socket: impl AsFd, serve: impl FnOnce() -> R) -> R {
    /// Takes the name back, also when `serve` panics. Nobody else gets hold of it, so it cannot be
    /// forgotten and leave the name to the descriptor's next owner.
    struct TakesBack;
    impl Drop for TakesBack {
        fn drop(&mut self) {
            SERVED.store(NONE, SeqCst);
        }
    }
    let _takes_back = TakesBack;
    SERVED.store(socket.as_fd().as_raw_fd(), SeqCst);
    serve()
}
