//! epoll(7), level-triggered or edge-triggered.

use crate::{Event, Interest, Readiness};
use rustix::{
    buffer::spare_capacity,
    event::{
        Timespec,
        epoll::{self, EventFlags},
    },
    io::Errno,
};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

/// Maximum number of events per call.
const BATCH: usize = 1024;

/// An epoll instance.
pub struct Epoll {
    fd: OwnedFd,
    ready: Vec<epoll::Event>,
    edge_triggered: bool,
}

impl Epoll {
    /// Creates a level-triggered instance. Fails if the process or the system is out of
    /// descriptors.
    pub fn new() -> io::Result<Self> {
        let fd = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Epoll { fd, ready: Vec::with_capacity(BATCH), edge_triggered: false })
    }

    /// Creates an edge-triggered instance. A level-triggered instance polls each descriptor that it
    /// has reported again in the next wait (epoll(7)); this one does not. Fails like
    /// [`Epoll::new`].
    pub fn edge_triggered() -> io::Result<Self> {
        Ok(Epoll { edge_triggered: true, ..Epoll::new()? })
    }

    fn flags(&self, interest: Interest) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, interest.read);
        flags.set(EventFlags::OUT, interest.write);
        flags.set(EventFlags::RDHUP | EventFlags::ET, self.edge_triggered);
        flags
    }
}

impl AsFd for Epoll {
    /// The epoll descriptor. It is readable while a watched descriptor is ready.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Readiness for Epoll {
    fn is_edge_triggered(&self) -> bool {
        self.edge_triggered
    }

    fn add(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.fd, fd, epoll::EventData::new_u64(token), self.flags(interest))?)
    }

    fn modify(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.fd, fd, epoll::EventData::new_u64(token), self.flags(interest))?)
    }

    fn remove(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(&self.fd, fd)?)
    }

    fn closing(&mut self, _fd: BorrowedFd<'_>) -> io::Result<()> {
        Ok(()) // the kernel removes a descriptor when it is closed (epoll(7))
    }

    fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        events.clear();
        self.ready.clear();
        let timeout =
            timeout.map(|t| Timespec { tv_sec: t.as_secs() as _, tv_nsec: t.subsec_nanos() as _ });
        match epoll::wait(&self.fd, spare_capacity(&mut self.ready), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        events.extend(self.ready.iter().map(|event| {
            let (flags, data) = (event.flags, event.data);
            let gone = flags.intersects(EventFlags::HUP | EventFlags::ERR);
            let ended = gone || flags.contains(EventFlags::RDHUP);
            Event {
                token: data.u64(),
                readable: ended || flags.contains(EventFlags::IN),
                writable: gone || flags.contains(EventFlags::OUT),
                ended,
            }
        }));
        Ok(())
    }
}
