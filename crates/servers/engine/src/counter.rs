//! A counter shared by the threads of a process, or by several processes in shared memory.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// A shared counter. Clones refer to the same counter.
#[derive(Clone)]
pub struct Counter(Arc<dyn AsRef<AtomicUsize> + Send + Sync>);

/// A counter in the memory of this process.
#[derive(Default)]
struct Own(AtomicUsize);

impl AsRef<AtomicUsize> for Own {
    fn as_ref(&self) -> &AtomicUsize {
        &self.0
    }
}

impl Default for Counter {
    /// A counter of this process, at 0.
    fn default() -> Self {
        Counter::new(Own::default())
    }
}

impl Counter {
    /// Creates a counter in this memory, e.g. memory shared between processes.
    pub fn new(memory: impl AsRef<AtomicUsize> + Send + Sync + 'static) -> Self {
        Counter(Arc::new(memory))
    }

    fn number(&self) -> &AtomicUsize {
        (*self.0).as_ref()
    }

    /// Adds `many`. Returns the previous value.
    pub fn add(&self, many: usize) -> usize {
        self.number().fetch_add(many, Relaxed)
    }

    /// Adds one if the value is below `most`. Returns whether it did.
    pub fn add_below(&self, most: usize) -> bool {
        let next = |number| (number < most).then_some(number + 1);
        self.number().fetch_update(Relaxed, Relaxed, next).is_ok()
    }

    /// Subtracts one.
    pub fn take_back(&self) {
        self.number().fetch_sub(1, Relaxed);
    }

    /// Returns the value.
    pub fn get(&self) -> usize {
        self.number().load(Relaxed)
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Counter({})", self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_one_counter_and_add_below_respects_its_limit() {
        let counter = Counter::default();
        let other = counter.clone();
        assert_eq!((counter.add(2), other.add(3), counter.get()), (0, 2, 5));
        assert!(other.add_below(6) && !other.add_below(6));
        counter.take_back();
        assert!(other.add_below(6));
        assert_eq!((format!("{counter:?}"), Counter::default().get()), ("Counter(6)".into(), 0));
    }
}
