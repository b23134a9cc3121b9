//! Readiness: what is known about each descriptor, and the epoll set that reports it.
//!
//! A descriptor is added once, edge-triggered, for reading and writing. From then on epoll reports
//! *changes*, and the results of system calls give the rest (epoll(7), questions 9 and 10). A read
//! that returned fewer bytes than its buffer holds has emptied the socket, so the next read waits
//! for the next edge. Hence calls rarely return EAGAIN.
//!
//! Why no wake-up is lost: the flags change only on the scheduler's own thread. Data that arrives
//! after a short read causes a new edge, which the kernel keeps until the next `epoll_wait`. The
//! end of input is remembered (`READ_ENDED`), because no edge follows it; only EAGAIN clears it. The
//! only exception is TCP urgent data: a read stops at the mark, so a short read does not prove that
//! the socket is empty. Such a connection stalls until its next segment. No protocol here uses
//! urgent data.

use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

/// The number of a coroutine. It is reused after the coroutine ends.
pub(crate) type TaskId = u32;

/// Marks that no coroutine waits.
const NOBODY: TaskId = TaskId::MAX;

const READABLE: u8 = 1;
const WRITABLE: u8 = 2;
/// The peer has closed its side or the connection is gone: reads do not wait.
const READ_ENDED: u8 = 4;

/// What a coroutine waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    Write,
}

/// What is known about one descriptor, and which coroutines wait for it.
pub(crate) struct Source {
    ready: Cell<u8>,
    reader: Cell<TaskId>,
    writer: Cell<TaskId>,
    /// Distinguishes events of this source from late events of an earlier source with the same
    /// number.
    generation: u32,
}

impl Source {
    #[inline]
    pub(crate) fn is_ready(&self, interest: Interest) -> bool {
        let enough = match interest {
            Interest::Read => READABLE | READ_ENDED,
            Interest::Write => WRITABLE,
        };
        self.ready.get() & enough != 0
    }

    /// A read has emptied the socket, or a write has filled its buffer.
    #[inline]
    pub(crate) fn used_up(&self, interest: Interest) {
        let gone = match interest {
            Interest::Read => READABLE,
            Interest::Write => WRITABLE,
        };
        self.ready.set(self.ready.get() & !gone);
    }

    /// The system call returned EAGAIN, which overrides earlier events.
    #[cold]
    pub(crate) fn would_block(&self, interest: Interest) {
        if interest == Interest::Read {
            self.ready.set(self.ready.get() & !READ_ENDED);
        }
        self.used_up(interest);
    }

    /// A read returned the end of input.
    pub(crate) fn read_ended(&self) {
        self.ready.set(self.ready.get() | READ_ENDED);
    }

    /// Registers `task` to be woken. Returns false if another coroutine already waits.
    #[inline]
    pub(crate) fn enter(&self, interest: Interest, task: TaskId) -> bool {
        let place = self.place(interest);
        let free = place.get() == NOBODY;
        if free {
            place.set(task);
        }
        free
    }

    #[inline]
    pub(crate) fn leave(&self, interest: Interest) {
        self.place(interest).set(NOBODY);
    }

    #[inline]
    fn place(&self, interest: Interest) -> &Cell<TaskId> {
        match interest {
            Interest::Read => &self.reader,
            Interest::Write => &self.writer,
        }
    }

    /// Records an event. Returns the coroutines that it wakes: the reader and the writer.
    #[inline]
    fn note(&self, flags: EventFlags) -> [Option<TaskId>; 2] {
        let mut ready = self.ready.get();
        if flags.contains(EventFlags::IN) {
            ready |= READABLE;
        }
        if flags.contains(EventFlags::OUT) {
            ready |= WRITABLE;
        }
        if flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
            ready |= READ_ENDED;
        }
        if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            ready |= WRITABLE;
        }
        self.ready.set(ready);
        [(Interest::Read, &self.reader), (Interest::Write, &self.writer)].map(
            |(interest, waiting)| {
                (waiting.get() != NOBODY && self.is_ready(interest)).then(|| waiting.get())
            },
        )
    }
}

/// What the scheduler does after an event.
pub(crate) enum Woken {
    /// Resume these coroutines.
    Tasks([Option<TaskId>; 2]),
    /// Check the inbox: another thread has signalled the eventfd.
    Bell,
}

/// The epoll set and the sources in it.
pub(crate) struct Poller {
    epoll: OwnedFd,
    sources: RefCell<Slab<Rc<Source>>>,
    generation: Cell<u32>,
}

/// The bell's number in the epoll set. No source has it, because there are fewer descriptors.
const BELL: u64 = u64::MAX;

impl Poller {
    /// Creates a set that contains only the bell, an eventfd that other threads write to.
    pub(crate) fn new() -> io::Result<(Poller, OwnedFd)> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Edge-triggered: every write is an event, so the counter never needs to be read.
        let edges = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), edges)?;
        let poller = Poller { epoll, sources: RefCell::new(Slab::new()), generation: Cell::new(0) };
        Ok((poller, bell))
    }

    /// Adds a descriptor. It is assumed to be not readable; if it is, the next wait reports it.
    /// `writable` is true for a connected socket, whose send buffer is empty.
    pub(crate) fn add(
        &self,
        fd: BorrowedFd<'_>,
        writable: bool,
    ) -> io::Result<(Rc<Source>, usize)> {
        let generation = self.generation.get().wrapping_add(1);
        self.generation.set(generation);
        let source = Rc::new(Source {
            ready: Cell::new(if writable { WRITABLE } else { 0 }),
            reader: Cell::new(NOBODY),
            writer: Cell::new(NOBODY),
            generation,
        });
        let number = self.sources.borrow_mut().insert(source.clone());
        let data = EventData::new_u64(u64::from(generation) << 32 | number as u64);
        let changes = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        match epoll::add(&self.epoll, fd, data, changes) {
            Ok(()) => Ok((source, number)),
            Err(error) => {
                self.forget(number);
                Err(error.into())
            }
        }
    }

    /// Removes a source whose descriptor is about to be closed. Closing removes the descriptor from
    /// the set.
    pub(crate) fn forget(&self, number: usize) {
        self.sources.borrow_mut().remove(number);
    }

    /// Removes a source whose descriptor stays open.
    pub(crate) fn remove(&self, fd: impl AsFd, number: usize) {
        self.forget(number);
        // This fails only if the descriptor was closed or replaced meanwhile. It is no longer in
        // the set then.
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Waits for events until the timeout, and stores them in `events`. A signal ends the wait
    /// without events.
    pub(crate) fn wait(
        &self,
        events: &mut Vec<Event>,
        timeout: Option<Timespec>,
    ) -> io::Result<()> {
        events.clear();
        let room = rustix::buffer::spare_capacity(events);
        match epoll::wait(&self.epoll, room, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Records an event. An event for a source that was removed meanwhile wakes no coroutine.
    #[inline]
    pub(crate) fn note(&self, event: Event) -> Woken {
        let (flags, data) = (event.flags, event.data);
        let data = data.u64();
        if data == BELL {
            return Woken::Bell;
        }
        let sources = self.sources.borrow();
        match sources.get(data as u32 as usize) {
            Some(source) if source.generation == (data >> 32) as u32 => {
                Woken::Tasks(source.note(flags))
            }
            _ => Woken::Tasks([None, None]),
        }
    }
}
