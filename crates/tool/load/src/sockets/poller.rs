//! The load's own thin wrapper around epoll. It does not share code with the servers' event loops: a
//! shared bug would stay hidden.

use crate::clock::{Nanos, SECOND};
use rustix::{
    buffer::spare_capacity,
    event::{
        Timespec,
        epoll::{self, CreateFlags, Event, EventData, EventFlags},
    },
    fd::{AsFd, OwnedFd},
    io,
};

/// The readiness that a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Bytes to read.
    Read,
    /// Bytes to read, or room to write: only after a partial write or while a connect is pending.
    ReadAndWrite,
}

/// A readiness event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// The token passed to [`Poller::add`].
    pub token: u32,
    /// There is something to read: bytes, end of input, or an error.
    pub read: bool,
    /// This includes end of input or an error.
    pub end: bool,
    /// There is room to write, or an error.
    pub write: bool,
}

/// The flags of the end that wakes a poller: an event with them is neither readable nor writable for
/// [`Poller::ready`], so it ends a wait, and the path of a request does not test for it.
const WAKES: EventFlags = EventFlags::RDNORM.union(EventFlags::ET);

/// An epoll instance and the events of one wait.
pub(crate) struct Poller {
    epoll: OwnedFd,
    trigger: EventFlags,
    events: Vec<Event>,
}

/// Maximum number of events per wait: enough to need few waits, and few enough that a turn of the loop
/// stays around a millisecond.
pub(crate) const EVENTS: usize = 256;

impl Poller {
    /// Creates a level-triggered poller: it reports readiness in every wait until it is handled.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let trigger = EventFlags::empty();
        Ok(Poller { epoll, trigger, events: Vec::with_capacity(EVENTS) })
    }

    /// Creates an edge-triggered poller: it reports new readiness once. A caller that leaves bytes
    /// unread or unwritten must call [`Poller::change`], with the same interest if need be, to be
    /// notified again. This saves the kernel from checking every socket that was ready before.
    pub fn new_edge_triggered() -> io::Result<Self> {
        Ok(Poller { trigger: EventFlags::ET, ..Self::new()? })
    }

    /// From now on, bytes that arrive at this socket end a wait. It is not reported as ready.
    pub fn woken_by(&self, socket: impl AsFd) -> io::Result<()> {
        epoll::add(&self.epoll, socket, EventData::new_u64(0), WAKES)
    }

    /// Starts to watch a socket, until it is closed.
    pub fn add(&self, socket: impl AsFd, token: u32, interest: Interest) -> io::Result<()> {
        epoll::add(&self.epoll, socket, EventData::new_u64(token.into()), self.flags(interest))
    }

    /// Changes what a watched socket waits for.
    pub fn change(&self, socket: impl AsFd, token: u32, interest: Interest) -> io::Result<()> {
        epoll::modify(&self.epoll, socket, EventData::new_u64(token.into()), self.flags(interest))
    }

    /// Stops watching a socket.
    pub fn remove(&self, socket: impl AsFd) -> io::Result<()> {
        epoll::delete(&self.epoll, socket)
    }

    /// Waits until something is ready, or for at most `longest`, with nanosecond resolution. Returns the
    /// number of events; 0 also after a signal.
    pub fn wait(&mut self, longest: Nanos) -> usize {
        let timeout = Timespec {
            tv_sec: (longest / SECOND) as i64,
            tv_nsec: (longest % SECOND) as rustix::time::Nsecs,
        };
        self.events.clear();
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timeout));
        self.events.len()
    }

    /// Returns event number `i` of the last wait.
    #[inline]
    pub fn ready(&self, i: usize) -> Ready {
        let Event { flags, data } = self.events[i];
        let error = EventFlags::ERR | EventFlags::HUP;
        Ready {
            token: data.u64() as u32,
            read: flags.intersects(EventFlags::IN | error),
            end: flags.intersects(EventFlags::RDHUP | error),
            write: flags.intersects(EventFlags::OUT | error),
        }
    }

    fn flags(&self, interest: Interest) -> EventFlags {
        let read = EventFlags::IN | EventFlags::RDHUP | self.trigger;
        match interest {
            Interest::Read => read,
            Interest::ReadAndWrite => read | EventFlags::OUT,
        }
    }
}
