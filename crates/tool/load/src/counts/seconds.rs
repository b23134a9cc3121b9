//! The counts of each second of the window, while the load runs. A load thread records latencies in the
//! histogram of the current second. At the end of a second it hands that histogram over and takes an
//! empty one, so a request costs the same as without this. Another thread merges the histograms
//! (`gatherer`).

use crate::histogram::new_histogram;
use hdrhistogram::Histogram;
use regatta_record::SecondCounted;
use std::{mem, sync::Mutex};

/// Slices of the window in a second.
pub(crate) const SLICES: usize = 10;

/// Seconds that one source, a thread or a load process, has handed over and nobody has taken yet.
#[derive(Default)]
pub(crate) struct Handed {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    seconds: Vec<SecondCounted>,
    /// Empty histograms for the source.
    spare: Vec<Histogram<u64>>,
}

impl Handed {
    /// Hands over a second. Each source does so in ascending order of their numbers.
    pub fn push(&self, second: SecondCounted) {
        self.lock().seconds.push(second);
    }

    /// Moves seconds here, and takes an empty histogram back if there is one.
    pub fn append(&self, seconds: &mut Vec<SecondCounted>, spare: &mut Option<Histogram<u64>>) {
        let mut inner = self.lock();
        inner.seconds.append(seconds);
        if spare.is_none() {
            *spare = inner.spare.pop();
        }
    }

    /// Takes what was handed over.
    pub fn take(&self) -> Vec<SecondCounted> {
        mem::take(&mut self.lock().seconds)
    }

    /// Gives the source an empty histogram.
    pub fn give(&self, empty: Histogram<u64>) {
        self.lock().spare.push(empty);
    }

    #[cfg(test)]
    pub fn spares(&self) -> usize {
        self.lock().spare.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().expect("no thread panics here")
    }
}

/// What a load thread has counted so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct SoFar {
    pub requests: u64,
    pub errors: u64,
    pub refused: u64,
}

/// The current second of one load thread.
pub(crate) struct Ticking {
    number: u32,
    /// What was counted before it.
    before: SoFar,
    /// Seconds that are over and not handed over.
    over: Vec<SecondCounted>,
    /// The histogram of the next second.
    spare: Option<Histogram<u64>>,
}

impl Ticking {
    pub fn new() -> Self {
        let spare = Some(new_histogram());
        Ticking { number: 0, before: SoFar::default(), over: Vec::with_capacity(4), spare }
    }

    /// The window opens, after this many errors.
    pub fn begin(&mut self, errors: u64) {
        self.before.errors = errors;
    }

    /// The current second is over, and `next` begins. `histogram` has the latencies of the second.
    pub fn next(&mut self, next: u32, so_far: SoFar, histogram: &mut Histogram<u64>) {
        let before = mem::replace(&mut self.before, so_far);
        let empty = self.spare.take().unwrap_or_else(new_histogram);
        self.over.push(SecondCounted {
            number: mem::replace(&mut self.number, next),
            requests: so_far.requests - before.requests,
            errors: so_far.errors - before.errors,
            refused: so_far.refused - before.refused,
            latency: mem::replace(histogram, empty),
        });
    }

    /// The number of the current second.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether seconds are over that are not handed over.
    pub fn has_over(&self) -> bool {
        !self.over.is_empty()
    }

    /// Hands over the seconds that are over.
    pub fn hand_over(&mut self, to: &Handed) {
        to.append(&mut self.over, &mut self.spare);
    }
}
