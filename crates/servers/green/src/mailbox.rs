//! Mailboxes: one message at a time for one coroutine. Also [`wait`], which waits for a readable
//! stream, a message or a deadline, whichever comes first.
//!
//! One type of sender serves this scheduler and other threads: the message is behind a lock that is
//! almost never contended. Only waking differs. On the same scheduler, the coroutine is queued
//! directly. From other threads, its number goes into the scheduler's [`Inbox`].

use crate::current;
use crate::inbox::Inbox;
use crate::net::TcpStream;
use crate::readiness::{Interest, TaskId};
use crate::scheduler::Core;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The receiving end, for one coroutine of the scheduler that created it.
pub struct Mailbox<T> {
    core: Rc<Core>,
    shared: Arc<Shared<T>>,
    /// Whether [`wait`] reports the stream first when both are ready. They alternate.
    stream_first: Cell<bool>,
}

/// The sending end, for any number of holders on any thread.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    slot: Mutex<Slot<T>>,
    senders: AtomicUsize,
    home: Arc<Inbox>,
}

struct Slot<T> {
    message: Option<T>,
    /// The owner, while it waits.
    waiting: Option<TaskId>,
    closed: bool,
}

/// Creates an empty mailbox, and its first sender.
///
/// # Panics
/// Panics outside of [`run`](crate::run).
pub fn mailbox<T>() -> (Mailbox<T>, Sender<T>) {
    let core = current::get();
    let shared = Arc::new(Shared {
        slot: Mutex::new(Slot { message: None, waiting: None, closed: false }),
        senders: AtomicUsize::new(1),
        home: core.inbox().clone(),
    });
    let mailbox = Mailbox { core, shared: shared.clone(), stream_first: Cell::new(false) };
    (mailbox, Sender { shared })
}

/// The result of [`wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake<T> {
    /// A read of the stream would not block.
    Readable,
    /// This message arrived.
    Message(T),
    /// The deadline passed before both.
    Deadline,
}

/// Waits until a read of `stream` would not block, a message arrives, or the deadline passes,
/// whichever comes first. The deadline is rounded up to the next millisecond. If both the stream and
/// the mailbox are ready, they alternate.
///
/// # Errors
/// `ResourceBusy` if another coroutine already waits to read the stream. `Other` during unwinding.
pub fn wait<T>(stream: &TcpStream, mailbox: &Mailbox<T>, deadline: Instant) -> io::Result<Wake<T>> {
    let (core, source) = (stream.core(), stream.source());
    let deadline = core.tick_at(deadline);
    core.count_operation();
    loop {
        let readable = source.is_ready(Interest::Read);
        if readable && mailbox.stream_first.replace(false) {
            return Ok(Wake::Readable);
        }
        let waiting = (!readable).then(|| core.current_task());
        if let Some(message) = mailbox.shared.next(waiting) {
            mailbox.stream_first.set(true);
            return Ok(Wake::Message(message));
        }
        if readable {
            return Ok(Wake::Readable);
        }
        let outcome = if core.tick() >= deadline {
            Some(Ok(Wake::Deadline))
        } else if source.enter(Interest::Read, core.current_task()) {
            let parked = core.park(deadline);
            source.leave(Interest::Read);
            parked.err().map(|error| Err(error.into()))
        } else {
            Some(Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "green: another coroutine already waits to read this stream",
            )))
        };
        mailbox.shared.lock().waiting = None;
        if let Some(outcome) = outcome {
            return outcome;
        }
    }
}

impl<T> Mailbox<T> {
    /// Waits for the next message until the deadline, which is rounded up to the next millisecond.
    ///
    /// # Errors
    /// `TimedOut` if no message arrives in time. `BrokenPipe` if all senders are gone. `Other`
    /// during unwinding.
    pub fn recv_until(&self, deadline: Instant) -> io::Result<T> {
        let deadline = self.core.tick_at(deadline);
        self.core.count_operation();
        loop {
            if let Some(message) = self.shared.next(Some(self.core.current_task())) {
                return Ok(message);
            }
            if self.shared.senders.load(Ordering::Acquire) == 0 {
                // The last sender may have sent between the two checks.
                return self.shared.next(None).ok_or_else(|| io::ErrorKind::BrokenPipe.into());
            }
            if self.core.tick() >= deadline {
                self.shared.lock().waiting = None;
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.core.park(deadline)?;
        }
    }
}

impl<T> Drop for Mailbox<T> {
    fn drop(&mut self) {
        let mut slot = self.shared.lock();
        slot.closed = true;
        let message = slot.message.take();
        // Outside of the lock: a message's destructor may send.
        drop(slot);
        drop(message);
    }
}

impl<T> Sender<T> {
    /// Sends without waiting, and wakes the receiver if it waits. Returns `false`, and drops the message,
    /// if the last one was not received yet, or the mailbox is gone.
    pub fn send(&self, message: T) -> bool {
        let mut slot = self.shared.lock();
        if slot.closed || slot.message.is_some() {
            return false;
        }
        slot.message = Some(message);
        let waiting = slot.waiting.take();
        drop(slot);
        if let Some(task) = waiting {
            current::wake(&self.shared.home, task);
        }
        true
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.shared.senders.fetch_add(1, Ordering::Relaxed);
        Sender { shared: self.shared.clone() }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.shared.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            let waiting = self.shared.lock().waiting.take();
            if let Some(task) = waiting {
                current::wake(&self.shared.home, task);
            }
        }
    }
}

impl<T> Shared<T> {
    /// Returns the next message. If there is none, registers `waiting` to be woken.
    fn next(&self, waiting: Option<TaskId>) -> Option<T> {
        let mut slot = self.lock();
        let message = slot.message.take();
        if message.is_none() {
            slot.waiting = waiting;
        }
        message
    }

    fn lock(&self) -> MutexGuard<'_, Slot<T>> {
        // No foreign code runs under the lock, so a panic cannot have left it inconsistent.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
