//! Mailboxes: bounded queues of messages for one coroutine. Also [`wait`], which waits for a
//! readable stream, a message or a deadline, whichever comes first.
//!
//! One type of sender serves this scheduler and other threads: the queue is behind a lock that is
//! almost never contended. Only waking differs. On the same scheduler, the coroutine is queued
//! directly. From other threads, its number goes into the scheduler's [`Inbox`].

use crate::current;
use crate::inbox::Inbox;
use crate::net::TcpStream;
use crate::readiness::{Interest, TaskId};
use crate::scheduler::Core;
use crate::timer::NEVER;
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The receiving end of a bounded queue, for one coroutine of the scheduler that created it.
pub struct Mailbox<T> {
    core: Rc<Core>,
    shared: Arc<Shared<T>>,
    /// Whether [`wait`] reports the stream first when both are ready. They alternate.
    stream_first: Cell<bool>,
}

/// The sending end of a bounded queue, for any number of holders on any thread.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

/// Why a message was not accepted. It returns the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError<T> {
    /// The mailbox is full.
    Full(T),
    /// The mailbox was dropped.
    Closed(T),
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendError::Full(_) => "the mailbox is full: its receiver is too slow",
            SendError::Closed(_) => "the mailbox is closed: its receiver has ended",
        })
    }
}

impl<T: fmt::Debug> std::error::Error for SendError<T> {}

struct Shared<T> {
    queue: Mutex<Queue<T>>,
    capacity: usize,
    senders: AtomicUsize,
    home: Arc<Inbox>,
}

struct Queue<T> {
    messages: VecDeque<T>,
    /// The owner, while it waits.
    waiting: Option<TaskId>,
    closed: bool,
}

/// Creates a mailbox for up to `capacity` messages, and its first sender.
///
/// # Panics
/// Panics outside of [`run`](crate::run).
pub fn mailbox<T>(capacity: usize) -> (Mailbox<T>, Sender<T>) {
    let core = current::get();
    let queue = Queue { messages: VecDeque::new(), waiting: None, closed: false };
    let shared = Arc::new(Shared {
        queue: Mutex::new(queue),
        capacity,
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
/// whichever comes first. The deadline is rounded up to the next millisecond; `None` means no
/// deadline. If both the stream and the mailbox are ready, they alternate.
///
/// # Errors
/// `ResourceBusy` if another coroutine already waits to read the stream. `Other` during unwinding.
pub fn wait<T>(
    stream: &TcpStream,
    mailbox: &Mailbox<T>,
    deadline: Option<Instant>,
) -> io::Result<Wake<T>> {
    let (core, source) = (stream.core(), stream.source());
    let deadline = deadline.map_or(NEVER, |deadline| core.tick_at(deadline));
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
    /// Waits for the next message. Returns `None` once all senders are gone and no message remains,
    /// and during unwinding, where waiting is impossible.
    pub fn recv(&self) -> Option<T> {
        self.core.count_operation();
        loop {
            if let Some(message) = self.shared.next(Some(self.core.current_task())) {
                return Some(message);
            }
            if self.shared.senders.load(Ordering::Acquire) == 0 {
                // The last sender may have sent between the two checks.
                return self.shared.next(None);
            }
            self.core.park(NEVER).ok()?;
        }
    }

    /// Like [`Mailbox::recv`], until the deadline, which is rounded up to the next millisecond.
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
                // As above.
                return self.shared.next(None).ok_or_else(|| io::ErrorKind::BrokenPipe.into());
            }
            if self.core.tick() >= deadline {
                self.shared.lock().waiting = None;
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.core.park(deadline)?;
        }
    }

    /// Returns the next message, if there is one.
    pub fn try_recv(&self) -> Option<T> {
        self.shared.next(None)
    }
}

impl<T> Drop for Mailbox<T> {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.closed = true;
        let messages = std::mem::take(&mut queue.messages);
        // Outside of the lock: a message's destructor may send.
        drop(queue);
        drop(messages);
    }
}

impl<T> Sender<T> {
    /// Sends without waiting, and wakes the receiver if it waits.
    ///
    /// # Errors
    /// Returns the message if the mailbox is full or gone.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        let mut queue = self.shared.lock();
        if queue.closed {
            return Err(SendError::Closed(message));
        }
        if queue.messages.len() >= self.shared.capacity {
            return Err(SendError::Full(message));
        }
        queue.messages.push_back(message);
        let waiting = queue.waiting.take();
        drop(queue);
        if let Some(task) = waiting {
            current::wake(&self.shared.home, task);
        }
        Ok(())
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
        let mut queue = self.lock();
        let message = queue.messages.pop_front();
        if message.is_none() {
            queue.waiting = waiting;
        }
        message
    }

    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        // No foreign code runs under the lock, so a panic cannot have left the queue inconsistent.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
