//! Letters between processes: a stream socket between each pair of processes, created before the
//! fork.
//!
//! Bytes that a sibling does not accept at once are queued here. While more than [`FULL`] bytes are
//! pending for one of them, the clients of this process are not read, so that they cause no more
//! letters. A stalled process thus slows down those that post to it, and memory stays bounded.
//! Letters are still read, so two processes that both wait for room make room for each other.
//! Meanwhile only answers to these letters, which are shorter than the letters, and the last posts
//! of sessions that close are added.
//!
//! In addition, each process has a counter in shared memory: the bytes that its siblings have
//! written to it. So it knows without a system call whether there are letters that it must receive
//! before an event.

use crate::between::mail::Mail;
use regatta_engine::{Letter, LetterDecoder, Posted, Wire};
use regatta_sys::{Event, Interest, Readiness, net, shared::SharedCounter};
use std::{
    io,
    marker::PhantomData,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::Ordering::{Acquire, Release, SeqCst},
    },
};

/// Bytes pending for one sibling, above which clients are not read.
const FULL: usize = 256 * 1024;
/// Maximum bytes pending for each sibling before clients are read again.
const LOW: usize = FULL / 2;
/// Bytes of one read.
const READ: usize = 64 * 1024;
/// Maximum reads from a sibling before others are served.
const READS: usize = 16;

/// The sockets of all processes, before the fork.
pub(crate) struct Sockets {
    /// Indexed by process, then by sibling.
    all: Vec<Vec<Option<OwnedFd>>>,
    written: Arc<[SharedCounter]>,
    done: Arc<[SharedCounter]>,
}

impl Sockets {
    /// Creates sockets for this many processes. Fails if out of descriptors or memory.
    pub(crate) fn new(processes: usize) -> io::Result<Sockets> {
        let mut all: Vec<Vec<Option<OwnedFd>>> = Vec::new();
        for _ in 0..processes {
            // To the processes before it, which get the first socket of each pair.
            let mut own = Vec::new();
            for other in &mut all {
                let (its, ours) = net::pair()?;
                other.push(Some(its));
                own.push(Some(ours));
            }
            own.push(None);
            all.push(own);
        }
        let counters = || (0..processes).map(|_| SharedCounter::new()).collect::<io::Result<_>>();
        Ok(Sockets { all, written: counters()?, done: counters()? })
    }

    /// Returns the sockets of one process, and closes the others.
    pub(crate) fn of<P>(self, process: usize) -> Mesh<P> {
        self.each().swap_remove(process)
    }

    fn each<P>(self) -> Vec<Mesh<P>> {
        let mesh = |(own, siblings): (usize, Vec<Option<OwnedFd>>)| Mesh {
            own,
            siblings: siblings.into_iter().map(|socket| socket.map(Sibling::new)).collect(),
            written: Arc::clone(&self.written),
            done: Arc::clone(&self.done),
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
    /// Indexed by process; `None` for this one.
    siblings: Vec<Option<Sibling>>,
    /// Total bytes written to each process. They are added after they are written.
    written: Arc<[SharedCounter]>,
    /// 1 for each process that has no clients and accepts none.
    done: Arc<[SharedCounter]>,
    /// Total bytes read by this process.
    read: usize,
    /// There may be more to read after this turn.
    more: bool,
    full: bool,
    input: Box<[u8]>,
    /// Scratch buffer for a letter to several siblings.
    letter: Vec<u8>,
    pushes: PhantomData<P>,
}

/// Another process.
struct Sibling {
    socket: OwnedFd,
    /// Pending output, from index `start`.
    out: Vec<u8>,
    start: usize,
    /// Its socket is full.
    blocked: bool,
    /// The socket is also watched for writability.
    watches_room: bool,
    /// The process has ended and accepts nothing more.
    gone: bool,
    /// The socket has reported that the process has ended.
    ended: bool,
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
            ended: false,
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

    /// Writes as much as fits.
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
                    // The process has ended, and the cluster ends with it.
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
    /// Writes to all siblings that have room, and checks whether too many bytes are pending.
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
        let Some(Some(sibling)) = self.siblings.get_mut(source) else { return };
        sibling.ended |= event.ended;
        // Its letters may be taken later, and it counts them only after it has written them.
        self.more |= event.readable;
        if event.writable {
            sibling.blocked = false;
            self.flush();
        }
    }

    /// Sockets are watched for writability only while output is blocked. Otherwise each read of a
    /// sibling would wake this process.
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
        // A sibling may have written bytes that it has not counted yet.
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
                        // After a short read the socket is empty.
                        if some < self.input.len() {
                            break;
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // Nothing more for now, or the process has ended, and the cluster ends with it.
                    Err(_) => break,
                }
                if reads == READS {
                    self.more = true;
                    break;
                }
            }
        }
        if !self.more && written.wrapping_sub(self.read).cast_signed() > 0 {
            self.read = written; // the missing bytes were lost with a sibling
        }
        Ok(letters)
    }

    fn is_full(&self) -> bool {
        self.full
    }

    /// The last process ends at once, which is an event for its siblings.
    fn is_needed(&mut self) -> bool {
        self.done[self.own].store(1, SeqCst);
        let mut siblings = self.siblings.iter().zip(&*self.done);
        siblings.any(|(sibling, done)| {
            sibling.as_ref().is_some_and(|sibling| !sibling.ended) && done.load(SeqCst) == 0
        })
    }
}

#[cfg(test)]
mod tests;
