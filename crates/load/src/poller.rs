//! The load's own thin epoll. It shares nothing with the servers' event loops: a bug in one would
//! hide in the other.

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

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Bytes to read.
    Read,
    /// Bytes to read, or room to write: only while a write was cut short or a connect is pending.
    ReadAndWrite,
}

/// A readiness event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// As given to [`Poller::add`].
    pub token: u32,
    /// There is something to read: bytes, the end, or an error.
    pub read: bool,
    /// The end, or an error, is among it.
    pub end: bool,
    /// There is room to write, or an error.
    pub write: bool,
}

/// An epoll instance and the events of one wait.
pub(crate) struct Poller {
    epoll: OwnedFd,
    trigger: EventFlags,
    events: Vec<Event>,
}

/// Events taken by one wait: enough that few waits are needed, few enough that a turn of the loop
/// stays around a millisecond.
const EVENTS: usize = 256;

impl Poller {
    /// Level-triggered: tells again and again of what is still there.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let trigger = EventFlags::empty();
        Ok(Poller { epoll, trigger, events: Vec::with_capacity(EVENTS) })
    }

    /// Edge-triggered: tells once of what has come. Who leaves something unread, or unwritten, must
    /// [`Poller::change`] what it waits for, the same again if need be. It spares the kernel a look
    /// at every socket that was ready before.
    pub fn new_edge_triggered() -> io::Result<Self> {
        Ok(Poller { trigger: EventFlags::ET, ..Self::new()? })
    }

    /// Watches a socket. Closing the socket ends that.
    pub fn add(&self, socket: impl AsFd, token: u32, interest: Interest) -> io::Result<()> {
        epoll::add(&self.epoll, socket, EventData::new_u64(token.into()), self.flags(interest))
    }

    /// Changes what a watched socket waits for.
    pub fn change(&self, socket: impl AsFd, token: u32, interest: Interest) -> io::Result<()> {
        epoll::modify(&self.epoll, socket, EventData::new_u64(token.into()), self.flags(interest))
    }

    /// Watches a socket no longer.
    pub fn remove(&self, socket: impl AsFd) -> io::Result<()> {
        epoll::delete(&self.epoll, socket)
    }

    /// Waits until something is ready or the time is over, to the nanosecond. Returns how many
    /// are ready; none also when a signal came.
    pub fn wait(&mut self, longest: Nanos) -> usize {
        let timeout = Timespec {
            tv_sec: (longest / SECOND) as i64,
            tv_nsec: (longest % SECOND) as rustix::time::Nsecs,
        };
        self.events.clear();
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timeout));
        self.events.len()
    }

    /// One of the events of the last wait.
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
