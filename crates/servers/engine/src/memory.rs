//! The memory that clients make a process hold: how much it is, and its limit.

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// A limit on what all clients of a process make it hold, and the sum of that. What a holder has is in its
/// [`Charge`].
#[derive(Debug)]
pub struct Memory {
    limit: usize,
    held: AtomicUsize,
}

impl Default for Memory {
    /// Without a limit.
    fn default() -> Self {
        Memory::new(usize::MAX)
    }
}

impl Memory {
    /// With a limit in bytes.
    pub fn new(limit: usize) -> Memory {
        Memory { limit, held: AtomicUsize::new(0) }
    }

    /// The limit, in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// What is held, in bytes.
    pub fn held(&self) -> usize {
        self.held.load(Relaxed)
    }

    /// Whether the limit is reached.
    pub fn is_full(&self) -> bool {
        self.held() >= self.limit
    }

    /// Whether three quarters are used. The last quarter is for those that keep up.
    pub fn is_scarce(&self) -> bool {
        self.held() >= self.limit / 4 * 3
    }
}

/// What one holder is charged for. It is returned on drop.
#[derive(Debug, Default)]
pub struct Charge {
    memory: Arc<Memory>,
    bytes: usize,
}

impl Charge {
    /// Nothing yet.
    pub fn new(memory: Arc<Memory>) -> Charge {
        Charge { memory, bytes: 0 }
    }

    /// Replaces the charge. Returns false if it has grown and there is no room for it: it may not be larger
    /// than what is still free. So a few holders may have much, many have less each, and a part of the limit
    /// always remains for those that have little (Choudhury and Hahne, *Dynamic queue length thresholds for
    /// shared-memory packet switches*, IEEE/ACM Transactions on Networking, 1998, with α = 1). The charge
    /// is replaced in any case, because the holder has that much until it is closed.
    pub fn set(&mut self, bytes: usize) -> bool {
        let before = mem::replace(&mut self.bytes, bytes);
        if bytes <= before {
            self.memory.held.fetch_sub(before - bytes, Relaxed);
            return true;
        }
        let held = self.memory.held.fetch_add(bytes - before, Relaxed) + (bytes - before);
        bytes <= self.memory.limit.saturating_sub(held)
    }

    /// What is charged, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_has_at_most_half_and_many_leave_room_for_others() {
        let memory = Arc::new(Memory::new(1_000));
        let new = || Charge::new(Arc::clone(&memory));
        let mut one = new();
        assert!(one.set(500) && memory.held() == 500 && !memory.is_scarce());
        assert!(!one.set(501), "499 are free");
        assert_eq!((one.bytes(), memory.held()), (501, 501), "it has them until it is closed");
        assert!(one.set(100), "less is always allowed");
        let mut others: Vec<Charge> = (0..8).map(|_| new()).collect();
        assert!(others.iter_mut().all(|other| other.set(100)), "100 are free beside nine with 100");
        assert!(!memory.is_full() && memory.held() == 900 && memory.limit() == 1_000);
        assert!(memory.is_scarce());
        let mut small = new();
        assert!(small.set(50));
        assert!(!one.set(101) && one.set(101), "what has not grown is not refused");
        assert!(!new().set(49) && !memory.is_full(), "{memory:?}");
        small.set(99);
        assert!(memory.is_full());
        drop((one, others, small));
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn without_a_limit_nothing_is_refused() {
        let mut charge = Charge::default();
        assert!(charge.set(usize::MAX / 4) && charge.set(usize::MAX / 3));
        assert!(!charge.memory.is_full());
    }
}
