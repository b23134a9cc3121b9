//! select(2): every call passes one bit set per kind of readiness to the kernel, which modifies the
//! sets.

use crate::{Event, Interest, Readiness};
use rustix::{
    event::{
        FdSetElement, FdSetIter, Timespec, fd_set_bound, fd_set_insert, fd_set_num_elements,
        fd_set_remove, select,
    },
    io::Errno,
};
use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    time::Duration,
};

/// Number of descriptors in a set: 0 to 1,023 (`FD_SETSIZE`, select(2)).
pub const SET: usize = libc::FD_SETSIZE;

type Bits = Vec<FdSetElement>;

/// The sets for select.
pub struct Select {
    /// Watched for input.
    read: Bits,
    /// Watched for free space for output.
    write: Bits,
    /// Copies of both sets, which the kernel modifies.
    ready: (Bits, Bits),
    /// The tokens, indexed by descriptor.
    tokens: Vec<u64>,
}

impl Select {
    /// Creates empty sets.
    pub fn new() -> Self {
        let bits = || vec![FdSetElement::default(); fd_set_num_elements(SET, SET as RawFd)];
        Select { read: bits(), write: bits(), ready: (bits(), bits()), tokens: vec![0; SET] }
    }

    fn place(&mut self, fd: RawFd, interest: Option<Interest>) {
        fd_set_remove(&mut self.read, fd);
        fd_set_remove(&mut self.write, fd);
        let Some(Interest { read, write }) = interest else { return };
        if read {
            fd_set_insert(&mut self.read, fd);
        }
        if write {
            fd_set_insert(&mut self.write, fd);
        }
    }
}

impl Default for Select {
    fn default() -> Self {
        Select::new()
    }
}

impl Readiness for Select {
    fn refusal(&self, fd: BorrowedFd<'_>) -> Option<&'static str> {
        (fd.as_raw_fd() as usize >= SET).then_some("select supports only descriptors below 1024")
    }

    fn add(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        if let Some(because) = self.refusal(fd) {
            return Err(io::Error::other(because));
        }
        self.tokens[fd.as_raw_fd() as usize] = token;
        self.place(fd.as_raw_fd(), Some(interest));
        Ok(())
    }

    fn modify(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.add(fd, token, interest)
    }

    fn remove(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.place(fd.as_raw_fd(), None);
        Ok(())
    }

    fn closing(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.remove(fd)
    }

    fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        events.clear();
        let (read, write) = &mut self.ready;
        read.copy_from_slice(&self.read);
        write.copy_from_slice(&self.write);
        let timeout =
            timeout.map(|t| Timespec { tv_sec: t.as_secs() as _, tv_nsec: t.subsec_nanos() as _ });
        let bound = fd_set_bound(read).max(fd_set_bound(write));
        // SAFETY: the sets contain only watched descriptors. A caller that closes one removes it
        // first (`closing`). A number that is not open would only make the call fail (EBADF).
        match unsafe { select(bound, Some(read), Some(write), None, timeout.as_ref()) } {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()), // the sets are undefined
            Err(error) => return Err(error.into()),
        }
        let (read, write): (&Bits, &Bits) = (read, write);
        let event = |fd: RawFd, readable, writable| Event {
            token: self.tokens[fd as usize],
            readable,
            writable,
            ended: false,
        };
        events.extend(FdSetIter::new(read).map(|fd| event(fd, true, false)));
        events.extend(FdSetIter::new(write).map(|fd| event(fd, false, true)));
        Ok(())
    }
}
