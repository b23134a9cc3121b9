//! Readiness: what is known about each descriptor, and the one epoll set that tells.
//!
//! A descriptor is added once, edge-triggered, for reading and writing. From then on epoll reports
//! *changes*, and the rest follows from what the system calls return (epoll(7), questions 9 and
//! 10 of its list): a read that returned fewer bytes than it was offered has emptied the socket,
//! so the next one need not be tried before the next edge. Hence no call here ever returns EAGAIN
//! just to learn that there is nothing to do.
//!
//! Why no wake-up is lost: the flags change only on the scheduler's own thread. What arrives after
//! a short read makes a new edge, which `epoll_wait` keeps until the loop asks. The end of input is
//! remembered for good (`READ_ENDED`), since no edge follows it. The one stream for which a short
//! read says too little is one with TCP urgent data: the read stops at the mark. Such a
//! connection stalls until its next segment; no protocol here uses urgent data.

use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

/// A coroutine's number, while it lives.
pub(crate) type TaskId = u32;

/// In the place of a waiting coroutine: none waits.
const NOBODY: TaskId = TaskId::MAX;

const READABLE: u8 = 1;
const WRITABLE: u8 = 2;
/// The peer has closed its side or the connection is gone: reading never waits again.
const READ_ENDED: u8 = 4;

/// What a coroutine waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    Read,
    Write,
}

/// What is known about one descriptor, and who waits for it.
pub(crate) struct Source {
    ready: Cell<u8>,
    reader: Cell<TaskId>,
    writer: Cell<TaskId>,
    /// Tells events of this source from late ones of an earlier source with the same number.
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

    /// Reading, or writing, has just used up all there was.
    #[inline]
    pub(crate) fn used_up(&self, interest: Interest) {
        let gone = match interest {
            Interest::Read => READABLE,
            Interest::Write => WRITABLE,
        };
        self.ready.set(self.ready.get() & !gone);
    }

    /// The system call said EAGAIN, which outweighs what events said before.
    #[cold]
    pub(crate) fn would_block(&self, interest: Interest) {
        if interest == Interest::Read {
            self.ready.set(self.ready.get() & !READ_ENDED);
        }
        self.used_up(interest);
    }

    /// A read met the end of input.
    pub(crate) fn read_ended(&self) {
        self.ready.set(self.ready.get() | READ_ENDED);
    }

    /// Enters `task` as the one to wake; false if another already waits.
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

    /// Notes an event and returns the coroutines that it lets go on: the reader, the writer.
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

/// What an event asks of the scheduler.
pub(crate) enum Woken {
    /// To let these coroutines go on.
    Tasks([Option<TaskId>; 2]),
    /// To look into the inbox: another thread rang the bell.
    Bell,
}

/// The epoll set and the sources in it.
pub(crate) struct Poller {
    epoll: OwnedFd,
    sources: RefCell<Slab<Rc<Source>>>,
    generation: Cell<u32>,
}

/// The bell's number in the epoll set. No source has it: descriptors are fewer.
const BELL: u64 = u64::MAX;

impl Poller {
    /// A set that holds only a bell: an eventfd that other threads write to.
    pub(crate) fn new() -> io::Result<(Poller, OwnedFd)> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Edge-triggered, so every write is an event and nobody needs to read the counter down.
        let edges = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), edges)?;
        let poller = Poller { epoll, sources: RefCell::new(Slab::new()), generation: Cell::new(0) };
        Ok((poller, bell))
    }

    /// Adds a descriptor. Nothing is taken to be readable yet: if something is, the kernel says so
    /// with the next wait. `writable` is true for a connected socket, whose buffer is empty.
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

    /// Forgets a source whose descriptor is about to be closed, which takes it out of the set.
    pub(crate) fn forget(&self, number: usize) {
        self.sources.borrow_mut().remove(number);
    }

    /// Forgets a source whose descriptor lives on.
    pub(crate) fn remove(&self, fd: impl AsFd, number: usize) {
        self.forget(number);
        // It fails only if the descriptor was closed or replaced meanwhile, and then it is out
        // of the set already.
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Waits until something happens or the timeout passes, and fills in the events. A signal
    /// ends the wait with none.
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

    /// Notes an event. One for a source that was forgotten in the meantime wakes nobody.
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
