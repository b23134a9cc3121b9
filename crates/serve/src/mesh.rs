//! Letters between processes: a stream socket between each two of them, made before the fork.
//!
//! What a sibling does not take at once waits here. While more than [`FULL`] bytes wait for one of them,
//! the clients of this process are not read, so that no more is posted: a stalled process holds up those
//! who post, and nobody's memory grows. Letters are read all the same, so two processes that both wait
//! for room make room for each other. What is posted then is answers to letters that were read, and they
//! are shorter than these.
//!
//! Beside its sockets each process has a number in shared memory: the bytes that its siblings have written
//! to it. So it knows without a system call whether there are letters that it must hear before an event.

use crate::mail::Mail;
use regatta_engine::{Letter, LetterDecoder, Wire};
use regatta_sys::{Event, Interest, Readiness, net, shared::SharedCounter};
use std::{
    io,
    marker::PhantomData,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::Ordering::{Acquire, Release},
    },
};

/// Bytes that wait for one sibling, from which on clients are not read.
const FULL: usize = 256 * 1024;
/// Bytes that wait for each sibling at most when clients are read again.
const LOW: usize = FULL / 2;
/// Bytes of one read.
const READ: usize = 64 * 1024;
/// Reads of a sibling before others get their turn.
const READS: usize = 16;

/// The sockets of all processes, before the fork.
pub(crate) struct Sockets {
    /// By process, and by the sibling that they lead to.
    all: Vec<Vec<Option<OwnedFd>>>,
    written: Arc<[SharedCounter]>,
}

impl Sockets {
    /// For so many processes. Fails when out of descriptors or memory.
    pub(crate) fn new(processes: usize) -> io::Result<Sockets> {
        let mut all: Vec<Vec<Option<OwnedFd>>> = Vec::new();
        for _ in 0..processes {
            // To those before it; the first socket of each pair is theirs.
            let mut own = Vec::new();
            for other in &mut all {
                let (its, ours) = net::pair()?;
                other.push(Some(its));
                own.push(Some(ours));
            }
            own.push(None);
            all.push(own);
        }
        let written = (0..processes).map(|_| SharedCounter::new()).collect::<io::Result<_>>()?;
        Ok(Sockets { all, written })
    }

    /// Those of one process; the others are closed.
    pub(crate) fn of<P>(self, process: usize) -> Mesh<P> {
        self.each().swap_remove(process)
    }

    fn each<P>(self) -> Vec<Mesh<P>> {
        let mesh = |(own, siblings): (usize, Vec<Option<OwnedFd>>)| Mesh {
            own,
            siblings: siblings.into_iter().map(|socket| socket.map(Sibling::new)).collect(),
            written: Arc::clone(&self.written),
            read: 0,
            more: false,
            full: false,
            input: vec![0; READ].into_boxed_slice(),
            letter: Vec::new(),
            pushes: PhantomData,
        };
        self.all.into_iter().enumerate().map(mesh).collect()
    }
}

/// The siblings of a process.
pub(crate) struct Mesh<P> {
    own: usize,
    /// By process; `None` for this one.
    siblings: Vec<Option<Sibling>>,
    /// Bytes that were ever written to each process. Added after they are written.
    written: Arc<[SharedCounter]>,
    /// Bytes that were ever read here.
    read: usize,
    /// There may be more to read than was read in this turn.
    more: bool,
    full: bool,
    input: Box<[u8]>,
    /// Space for a letter that goes to several siblings.
    letter: Vec<u8>,
    pushes: PhantomData<P>,
}

/// Another process.
struct Sibling {
    socket: OwnedFd,
    /// What it has not taken, from `start` on.
    out: Vec<u8>,
    start: usize,
    /// Its socket had no room.
    blocked: bool,
    /// The socket is watched for room too.
    watches_room: bool,
    /// It takes nothing any more: it has ended.
    gone: bool,
    decoder: LetterDecoder,
}

impl Sibling {
    fn new(socket: OwnedFd) -> Sibling {
        Sibling {
            socket,
            out: Vec::new(),
            start: 0,
            blocked: false,
            watches_room: false,
            gone: false,
            decoder: LetterDecoder::default(),
        }
    }

    fn waiting(&self) -> usize {
        self.out.len() - self.start
    }

    fn add(&mut self, letter: &[u8]) {
        if !self.gone {
            self.out.extend_from_slice(letter);
        }
    }

    /// Writes what there is room for.
    fn flush(&mut self, written: &SharedCounter) {
        while self.waiting() > 0 && !self.blocked {
            match net::write(&self.socket, &self.out[self.start..]) {
                Ok(some) => {
                    written.fetch_add(some, Release);
                    self.start += some;
                    self.blocked = self.waiting() > 0;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.blocked = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    // It has ended, and the cluster ends with it.
                    self.gone = true;
                    self.start = self.out.len();
                }
            }
        }
        if self.waiting() == 0 {
            self.start = 0;
            if self.out.capacity() > FULL {
                self.out = Vec::new();
            }
            self.out.clear();
        } else if self.start > self.waiting() {
            self.out.drain(..self.start);
            self.start = 0;
        }
    }
}

impl<P> Mesh<P> {
    /// Writes to those that have room, and sees whether too much waits.
    fn flush(&mut self) {
        let mut most = 0;
        for (sibling, written) in self.siblings.iter_mut().zip(&*self.written) {
            let Some(sibling) = sibling else { continue };
            sibling.flush(written);
            most = most.max(sibling.waiting());
        }
        self.full = most > if self.full { LOW } else { FULL };
    }
}

impl<P: Wire> Mail<Letter<P>> for Mesh<P> {
    fn seat(&self) -> (u32, u32) {
        (self.own as u32, self.siblings.len() as u32)
    }

    fn watch(&self, readiness: &mut impl Readiness, token: u64) -> io::Result<()> {
        for (token, sibling) in (token..).zip(&self.siblings) {
            if let Some(sibling) = sibling {
                readiness.add(sibling.socket.as_fd(), token, Interest::READ)?;
            }
        }
        Ok(())
    }

    fn ready(&mut self, source: usize, event: &Event) {
        if let Some(Some(sibling)) = self.siblings.get_mut(source)
            && event.writable
        {
            sibling.blocked = false;
            self.flush();
        }
    }

    /// Room is watched for only where it is waited for: otherwise each read of a sibling would wake this
    /// process.
    fn settle(&mut self, readiness: &mut impl Readiness, token: u64) -> io::Result<()> {
        for (token, sibling) in (token..).zip(&mut self.siblings) {
            if let Some(sibling) = sibling
                && sibling.watches_room != sibling.blocked
            {
                sibling.watches_room = sibling.blocked;
                let interest = if sibling.blocked { Interest::BOTH } else { Interest::READ };
                readiness.modify(sibling.socket.as_fd(), token, interest)?;
            }
        }
        Ok(())
    }

    fn post(&mut self, letters: impl ExactSizeIterator<Item = Letter<P>>) {
        for letter in letters {
            self.letter.clear();
            letter.write(&mut self.letter);
            let to = letter.to().map(|core| core as usize);
            for (core, sibling) in self.siblings.iter_mut().enumerate() {
                if let Some(sibling) = sibling
                    && to.is_none_or(|to| to == core)
                {
                    sibling.add(&self.letter);
                }
            }
        }
        if self.letter.capacity() > FULL {
            self.letter = Vec::new();
        }
        self.flush();
    }

    #[inline]
    fn has_any(&self) -> bool {
        // A sibling may have written what it has not counted yet.
        let written = self.written[self.own].load(Acquire);
        self.more || written.wrapping_sub(self.read).cast_signed() > 0
    }

    fn take(&mut self) -> io::Result<Vec<Letter<P>>> {
        let written = self.written[self.own].load(Acquire);
        let mut letters = Vec::new();
        self.more = false;
        for sibling in self.siblings.iter_mut().flatten() {
            for reads in 1.. {
                match net::read(&sibling.socket, &mut self.input) {
                    Ok(some) => {
                        self.read = self.read.wrapping_add(some);
                        let decoded = sibling.decoder.decode(&self.input[..some], &mut letters);
                        decoded.map_err(io::Error::other)?;
                        // After a short read there is nothing more.
                        if some < self.input.len() {
                            break;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // Nothing more for now; or it has ended, and the cluster ends with it.
                    Err(_) => break,
                }
                if reads == READS {
                    self.more = true;
                    break;
                }
            }
        }
        if !self.more && written.wrapping_sub(self.read).cast_signed() > 0 {
            self.read = written; // what is missing was lost with a sibling
        }
        Ok(letters)
    }

    fn is_full(&self) -> bool {
        self.full
    }
}

#[cfg(test)]
mod tests;
