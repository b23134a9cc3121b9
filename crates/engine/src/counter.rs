//! A number that many add to: the threads of a process, or several processes where its memory is shared.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// A counter; its clones are the same one.
#[derive(Clone)]
pub struct Counter(Arc<dyn AsRef<AtomicUsize> + Send + Sync>);

/// Memory of this process.
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
    /// A counter in this memory, e.g. one that processes share.
    pub fn new(memory: impl AsRef<AtomicUsize> + Send + Sync + 'static) -> Self {
        Counter(Arc::new(memory))
    }

    fn number(&self) -> &AtomicUsize {
        (*self.0).as_ref()
    }

    /// Adds so many. Returns the number before.
    pub fn add(&self, many: usize) -> usize {
        self.number().fetch_add(many, Relaxed)
    }

    /// Adds one, unless the number is `most` or more. Returns whether it did.
    pub fn add_below(&self, most: usize) -> bool {
        let next = |number| (number < most).then_some(number + 1);
        self.number().fetch_update(Relaxed, Relaxed, next).is_ok()
    }

    /// Takes one away that was added.
    pub fn take_back(&self) {
        self.number().fetch_sub(1, Relaxed);
    }

    /// The number.
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
    fn clones_are_one_number_and_a_limit_is_never_exceeded() {
        let counter = Counter::default();
        let other = counter.clone();
        assert_eq!((counter.add(2), other.add(3), counter.get()), (0, 2, 5));
        assert!(other.add_below(6) && !other.add_below(6));
        counter.take_back();
        assert!(other.add_below(6));
        assert_eq!((format!("{counter:?}"), Counter::default().get()), ("Counter(6)".into(), 0));
    }
}
