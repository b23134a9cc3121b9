//! Letters between the cores of a server: each core has a letterbox, and a descriptor that is
//! readable while the box has letters.

use crate::mail::Mail;
use regatta_sys::{Interest, Readiness};
use rustix::event::{EventfdFlags, eventfd};
use std::{
    io, mem,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};

/// The letterboxes of all cores, as seen by one core.
pub(crate) struct Letters<L> {
    all: Arc<[Letterbox<L>]>,
    own: usize,
}

struct Letterbox<L> {
    letters: Mutex<Vec<L>>,
    /// The box is not empty.
    any: AtomicBool,
    bell: OwnedFd,
}

impl<L> Letterbox<L> {
    fn lock(&self) -> MutexGuard<'_, Vec<L>> {
        // Nothing panics under the lock.
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<L: Clone> Letters<L> {
    /// Creates one value per core. Fails if out of descriptors.
    pub(crate) fn new(cores: usize) -> io::Result<Vec<Self>> {
        let letterbox = || {
            let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            Ok(Letterbox { letters: Mutex::default(), any: AtomicBool::new(false), bell })
        };
        let all = (0..cores).map(|_| letterbox()).collect::<io::Result<Arc<[_]>>>()?;
        Ok((0..cores).map(|own| Letters { all: Arc::clone(&all), own }).collect())
    }

    /// Posts to all other cores, with at most one wake-up per core for all letters.
    pub(crate) fn post(&self, letters: impl ExactSizeIterator<Item = L>) {
        if self.all.len() == 1 || letters.len() == 0 {
            return; // letters without a receiver are dropped
        }
        let letters: Vec<L> = letters.collect();
        for (_, other) in self.all.iter().enumerate().filter(|(core, _)| *core != self.own) {
            let mut inside = other.lock();
            let was_empty = inside.is_empty();
            inside.extend(letters.iter().cloned());
            other.any.store(true, Release);
            drop(inside);
            if was_empty {
                // It fails only if the counter is at 2^64 - 2.
                let _ = rustix::io::write(&other.bell, &1_u64.to_ne_bytes());
            }
        }
    }

    /// Whether other cores have posted something.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.all[self.own].any.load(Acquire)
    }

    /// Takes the letters that other cores have posted.
    pub(crate) fn take(&self) -> Vec<L> {
        let own = &self.all[self.own];
        // First reset the bell: letters added after this ring it again. The read fails if it was
        // not rung.
        let _ = rustix::io::read(&own.bell, &mut [0; 8]);
        let mut letters = own.lock();
        own.any.store(false, Relaxed);
        mem::take(&mut letters)
    }
}

impl<L: Clone> Mail<L> for Letters<L> {
    fn seat(&self) -> (u32, u32) {
        (self.own as u32, self.all.len() as u32)
    }

    fn watch(&self, readiness: &mut impl Readiness, token: u64) -> io::Result<()> {
        readiness.add(self.as_fd(), token, Interest::READ)
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
}

impl<L> AsFd for Letters<L> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.all[self.own].bell.as_fd()
    }
}
