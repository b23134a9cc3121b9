//! epoll(7), level-triggered.

use crate::{Event, Interest, Readiness};
use rustix::{
    buffer::spare_capacity,
    event::{Timespec, epoll},
    io::Errno,
};
use std::{
    io,
    os::fd::{BorrowedFd, OwnedFd},
    time::Duration,
};

/// Most events taken in one call.
const BATCH: usize = 1024;

/// An epoll instance.
pub struct Epoll {
    fd: OwnedFd,
    ready: Vec<epoll::Event>,
}

impl Epoll {
    /// A new instance. Fails when the process or the system is out of descriptors.
    pub fn new() -> io::Result<Self> {
        let fd = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Epoll { fd, ready: Vec::with_capacity(BATCH) })
    }
}

fn flags(interest: Interest) -> epoll::EventFlags {
    match interest {
        Interest::Read => epoll::EventFlags::IN,
        Interest::Write => epoll::EventFlags::OUT,
    }
}

impl Readiness for Epoll {
    fn add(&mut self, fd: BorrowedFd<'_>, token: usize, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token as u64);
        Ok(epoll::add(&self.fd, fd, data, flags(interest))?)
    }

    fn modify(&mut self, fd: BorrowedFd<'_>, token: usize, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token as u64);
        Ok(epoll::modify(&self.fd, fd, data, flags(interest))?)
    }

    fn remove(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(&self.fd, fd)?)
    }

    fn closing(&mut self, _fd: BorrowedFd<'_>) -> io::Result<()> {
        Ok(()) // the kernel forgets a descriptor that is closed (epoll(7))
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
        events.extend(self.ready.iter().map(|e| Event { token: e.data.u64() as usize }));
        Ok(())
    }
}
