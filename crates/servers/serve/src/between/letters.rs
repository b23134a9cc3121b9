//! Letters between the cores of a server: each core has a letterbox, and a descriptor that is
//! readable while the box has letters, or when another box has room again.
//!
//! While a box has more than [`FULL`] bytes, the cores that post to it do not read their clients, so
//! that these cause no more letters. A busy core thus slows down those that post to it, and memory
//! stays bounded. Every core still takes its own letters, so two cores whose boxes are full of each
//! other's letters make room for each other. Meanwhile only answers to these letters, and the last
//! posts of sessions that close are added.

use crate::between::mail::Mail;
use regatta_engine::Posted;
use regatta_sys::{Interest, Readiness};
use rustix::event::{EventfdFlags, eventfd};
use std::{
    io, mem,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Relaxed, Release, SeqCst},
        },
    },
};

/// Bytes of the letters in a box from which on the clients of the cores that post to it are not
/// read.
const FULL: usize = 1 << 20;

/// The letterboxes of all cores, as seen by one core.
pub(crate) struct Letters<L> {
    all: Arc<[Letterbox<L>]>,
    own: usize,
    /// The boxes that were full after this core had posted to them. Their cores ring when they have
    /// emptied them.
    full: Vec<usize>,
}

struct Letterbox<L> {
    inside: Mutex<Inside<L>>,
    /// The box is not empty.
    any: AtomicBool,
    full: AtomicBool,
    /// Its core has no clients and accepts none.
    done: AtomicBool,
    bell: OwnedFd,
}

struct Inside<L> {
    letters: Vec<L>,
    bytes: usize,
    /// The cores that wait for room.
    waiting: Vec<usize>,
    /// Its core has ended and takes no more letters.
    closed: bool,
}

impl<L> Letterbox<L> {
    fn new() -> io::Result<Self> {
        Ok(Letterbox {
            inside: Mutex::new(Inside {
                letters: Vec::new(),
                bytes: 0,
                waiting: Vec::new(),
                closed: false,
            }),
            any: AtomicBool::new(false),
            full: AtomicBool::new(false),
            done: AtomicBool::new(false),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inside<L>> {
        // Nothing panics under the lock.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        // It fails only if the counter is at 2^64 - 2.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

impl<L: Posted> Letters<L> {
    /// Creates one value per core. Fails if out of descriptors.
    pub(crate) fn new(cores: usize) -> io::Result<Vec<Self>> {
        let all = (0..cores).map(|_| Letterbox::new()).collect::<io::Result<Arc<[_]>>>()?;
        Ok((0..cores).map(|own| Letters { all: Arc::clone(&all), own, full: Vec::new() }).collect())
    }

    /// Posts to other cores, with at most one wake-up per core for all letters.
    pub(crate) fn post(&mut self, letters: impl ExactSizeIterator<Item = L>) {
        if self.all.len() == 1 || letters.len() == 0 {
            return; // letters without a receiver are dropped
        }
        let letters: Vec<L> = letters.collect();
        for (core, other) in self.all.iter().enumerate().filter(|(core, _)| *core != self.own) {
            let mut inside = other.lock();
            if inside.closed {
                continue;
            }
            let was_empty = inside.letters.is_empty();
            for letter in &letters {
                if letter.to().is_none_or(|to| to as usize == core) {
                    inside.bytes += letter.size();
                    inside.letters.push(letter.clone());
                }
            }
            if inside.letters.is_empty() {
                continue;
            }
            other.any.store(true, Release);
            if inside.bytes > FULL && !inside.waiting.contains(&self.own) {
                other.full.store(true, Release);
                inside.waiting.push(self.own);
                if !self.full.contains(&core) {
                    self.full.push(core);
                }
            }
            drop(inside);
            if was_empty {
                other.ring();
            }
        }
    }

    /// Whether other cores have posted something.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.all[self.own].any.load(Acquire)
    }

    /// Takes the letters that other cores have posted, and wakes those that wait for room.
    pub(crate) fn take(&mut self) -> Vec<L> {
        let own = &self.all[self.own];
        // First reset the bell: letters added after this ring it again. The read fails if it was
        // not rung.
        let _ = rustix::io::read(&own.bell, &mut [0; 8]);
        let mut inside = own.lock();
        own.any.store(false, Relaxed);
        inside.bytes = 0;
        let letters = mem::take(&mut inside.letters);
        if !inside.waiting.is_empty() {
            let waiting = mem::take(&mut inside.waiting);
            own.full.store(false, Release);
            drop(inside);
            waiting.into_iter().for_each(|core| self.all[core].ring());
        }
        letters
    }

    /// Whether a box has so many letters that clients must not be read.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.full.iter().any(|core| self.all[*core].full.load(Acquire))
    }

    /// Called before each wait.
    #[inline]
    pub(crate) fn settle(&mut self) {
        self.full.retain(|core| self.all[*core].full.load(Acquire));
    }

    /// Reports that this core has no clients and accepts none. Returns whether another core still
    /// has clients. The last one wakes all others.
    pub(crate) fn is_needed(&self) -> bool {
        let own = &self.all[self.own];
        let is_news = !own.done.swap(true, SeqCst);
        let is_needed = !self.all.iter().all(|core| core.done.load(SeqCst));
        if is_news && !is_needed {
            self.all.iter().for_each(Letterbox::ring);
        }
        is_needed
    }
}

/// The core has ended, perhaps with an error.
impl<L> Drop for Letters<L> {
    fn drop(&mut self) {
        let own = &self.all[self.own];
        let mut inside = own.lock();
        let letters = mem::take(&mut inside.letters);
        inside.closed = true;
        own.full.store(false, Release);
        own.done.store(true, SeqCst);
        drop(inside);
        drop(letters);
        self.all.iter().for_each(Letterbox::ring);
    }
}

impl<L: Posted> Mail<L> for Letters<L> {
    fn seat(&self) -> (u32, u32) {
        (self.own as u32, self.all.len() as u32)
    }

    fn watch(&self, readiness: &mut impl Readiness, token: u64) -> io::Result<()> {
        readiness.add(self.as_fd(), token, Interest::READ)
    }

    fn settle(&mut self, _: &mut impl Readiness, _: u64) -> io::Result<()> {
        Letters::settle(self);
        Ok(())
    }

    fn post(&mut self, letters: impl ExactSizeIterator<Item = L>) {
        Letters::post(self, letters);
    }

    #[inline]
    fn has_any(&self) -> bool {
        Letters::has_any(self)
    }

    fn take(&mut self) -> io::Result<Vec<L>> {
        Ok(Letters::take(self))
    }

    #[inline]
    fn is_full(&self) -> bool {
        Letters::is_full(self)
    }

    fn is_needed(&mut self) -> bool {
        Letters::is_needed(self)
    }
}

impl<L> AsFd for Letters<L> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.all[self.own].bell.as_fd()
    }
}

#[cfg(test)]
mod tests;
