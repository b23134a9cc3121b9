//! poll(2): every call passes the whole list of descriptors to the kernel.

use crate::{Event, Interest, Readiness};
use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
    time::Duration,
};

/// The list of descriptors for poll.
#[derive(Default)]
pub struct Poll {
    watched: Vec<libc::pollfd>,
    /// The tokens of `watched`, in the same order.
    tokens: Vec<u64>,
    /// The index in `watched` of each descriptor; `NOWHERE` if it is not watched.
    places: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Poll {
    /// Creates an empty list.
    pub fn new() -> Self {
        Poll::default()
    }

    fn place(&self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        match self.places.get(fd.as_raw_fd() as usize) {
            Some(&place) if place != NOWHERE => Ok(place as usize),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

fn events(interest: Interest) -> libc::c_short {
    let read = if interest.read { libc::POLLIN } else { 0 };
    let write = if interest.write { libc::POLLOUT } else { 0 };
    read | write
}

impl Readiness for Poll {
    fn add(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        let fd = fd.as_raw_fd();
        if self.places.len() <= fd as usize {
            self.places.resize(fd as usize + 1, NOWHERE);
        }
        self.places[fd as usize] = self.watched.len() as u32;
        self.watched.push(libc::pollfd { fd, events: events(interest), revents: 0 });
        self.tokens.push(token);
        Ok(())
    }

    fn modify(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        let place = self.place(fd)?;
        self.watched[place].events = events(interest);
        self.tokens[place] = token;
        Ok(())
    }

    fn remove(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let place = self.place(fd)?;
        self.places[fd.as_raw_fd() as usize] = NOWHERE;
        self.watched.swap_remove(place);
        self.tokens.swap_remove(place);
        if let Some(moved) = self.watched.get(place) {
            self.places[moved.fd as usize] = place as u32;
        }
        Ok(())
    }

    fn closing(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        // A descriptor that was removed before is no longer watched.
        if self.place(fd).is_ok() { self.remove(fd) } else { Ok(()) }
    }

    fn wait(&mut self, ready: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        ready.clear();
        let timeout = timeout.map(|t| libc::timespec {
            tv_sec: t.as_secs() as libc::time_t,
            tv_nsec: t.subsec_nanos().into(),
        });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), |t| t as *const _);
        let list = self.watched.as_mut_ptr();
        // SAFETY: `list` points to as many entries as the count says, which live as long as `self`.
        // The timeout is null or points to a local that outlives the call. No signal mask is
        // passed.
        let found =
            unsafe { libc::ppoll(list, self.watched.len() as _, timeout, std::ptr::null()) };
        if found < 0 {
            let error = io::Error::last_os_error();
            let interrupted = error.kind() == io::ErrorKind::Interrupted;
            return if interrupted { Ok(()) } else { Err(error) };
        }
        let entries = self.watched.iter().zip(&self.tokens);
        let found_ready = entries.filter(|(entry, _)| entry.revents != 0);
        const GONE: libc::c_short = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
        ready.extend(found_ready.take(found as usize).map(|(entry, &token)| Event {
            token,
            readable: entry.revents & (libc::POLLIN | GONE) != 0,
            writable: entry.revents & (libc::POLLOUT | GONE) != 0,
            ended: false,
        }));
        Ok(())
    }
}
