//! Signal handlers of a server. They need no thread, so that a server may fork.

use crate::wake::Latch;
use rustix::net::{Shutdown, shutdown};
use signal_hook::{
    SigId,
    consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2},
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
    time::Duration,
};

/// Sets `latch` on SIGTERM and SIGINT, after `delay`. A second one ends the process at once, with status 128 +
/// signal. SIGHUP prints `on_hangup`, if anything; SIGUSR1 and SIGUSR2 do nothing. None of these three ends the
/// process. Returns the handlers' ids, for [`ignore`].
pub fn handle(
    latch: &Arc<Latch>,
    delay: Duration,
    on_hangup: Option<&'static str>,
) -> io::Result<[SigId; 5]> {
    let seen = Arc::new(AtomicBool::new(false));
    let register = |signal| {
        let (latch, seen) = (Arc::clone(latch), Arc::clone(&seen));
        let handler = move || match signal {
            SIGHUP => {
                if let Some(text) = on_hangup {
                    let _ = rustix::io::write(io::stderr(), text.as_bytes());
                }
            }
            SIGTERM | SIGINT if seen.swap(true, SeqCst) => low_level::exit(128 + signal),
            SIGTERM | SIGINT => latch.set_after(delay),
            _ => {}
        };
        // SAFETY: the handler swaps an atomic, then calls _exit(2), or changes an atomic and calls
        // timerfd_settime(2), or only calls write(2). The latter two are async-signal-safe
        // (signal-safety(7)), and so is timerfd_settime, a system call that is made directly and
        // does not touch errno. It neither locks nor allocates.
        unsafe { low_level::register(signal, handler) }
    };
    Ok([
        register(SIGTERM)?,
        register(SIGINT)?,
        register(SIGHUP)?,
        register(SIGUSR1)?,
        register(SIGUSR2)?,
    ])
}

/// Ignores these signals in this process from now on.
pub fn ignore(signals: &[SigId]) {
    for &signal in signals {
        low_level::unregister(signal); // the remaining handler does nothing
    }
}

/// Returns a stream that becomes readable at SIGHUP. Reading from it blocks.
pub fn hangups() -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    low_level::pipe::register(SIGHUP, writer)?;
    Ok(reader)
}

/// Returns a stream that becomes readable when a child ends (SIGCHLD).
pub fn ended_children() -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    low_level::pipe::register(SIGCHLD, writer)?;
    Ok(reader)
}

/// The connection whose input is shut down by the signal of [`end_input_on_signal`]; negative if
/// none. Only [`while_served`] sets it, and resets it before the descriptor can be closed.
static SERVED: AtomicI32 = AtomicI32::new(NONE);
const NONE: RawFd = -1;

/// Makes SIGUSR1 shut down the input of the current connection of [`while_served`] (shutdown(2)).
pub fn end_input_on_signal() -> io::Result<()> {
    // SAFETY: the handler loads an atomic and calls shutdown(2) without touching errno. Both are
    // async-signal-safe (signal-safety(7)). The atomic contains a descriptor only while that is
    // open.
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

/// Calls `serve`. Meanwhile SIGUSR1 shuts down the input of `socket`. Only one call at a time per
/// process is supported: the latest socket counts.
pub fn while_served<R>(socket: impl AsFd, serve: impl FnOnce() -> R) -> R {
    /// Resets `SERVED`, even if `serve` panics. No other code can access this guard, so it cannot
    /// be forgotten, which would leave `SERVED` to the next owner of the descriptor.
    struct ResetOnDrop;
    impl Drop for ResetOnDrop {
        fn drop(&mut self) {
            SERVED.store(NONE, SeqCst);
        }
    }
    let _reset = ResetOnDrop;
    SERVED.store(socket.as_fd().as_raw_fd(), SeqCst);
    serve()
}
