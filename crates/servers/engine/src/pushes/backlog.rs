//! The queue of pushes for a slow consumer: bounds, and the policy when they are exceeded.

use crate::{Counter, Memory, Push};
use std::{collections::VecDeque, mem, sync::Arc};

/// Bytes that may be queued for a consumer even while memory is scarce: it may be about to take them.
const SPARED: usize = 16 * 1024;

/// What happens to a slow consumer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// It is closed.
    #[default]
    Close,
    /// New pushes are dropped until there is room again.
    Skip,
    /// All queued pushes are dropped, except those that [must arrive](Push::must_arrive), and the newest is
    /// queued.
    Conflate,
}

/// How much may be queued for a consumer, and the policy beyond that. One push may always be
/// queued, whatever its size.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Maximum sum of the sizes of queued pushes, in bytes.
    pub bytes: usize,
    /// Maximum number of queued pushes.
    pub pushes: usize,
    /// What happens beyond that.
    pub policy: Policy,
    /// How often that has happened, over all consumers.
    pub counts: Arc<PolicyCounts>,
    /// The memory of the process. When it is scarce, a consumer for which more than 16 KiB are queued is
    /// closed, whatever the policy.
    pub memory: Arc<Memory>,
}

/// How often a policy has acted.
#[derive(Debug, Default)]
pub struct PolicyCounts {
    closed: Counter,
    skipped: Counter,
    conflated: Counter,
    /// Consumers that were closed because the memory of the process was used up.
    pub starved: Counter,
}

impl PolicyCounts {
    /// Creates counts in the counters that `counter` returns. Fails if `counter` fails.
    pub fn counting<E>(mut counter: impl FnMut() -> Result<Counter, E>) -> Result<Self, E> {
        Ok(PolicyCounts {
            closed: counter()?,
            skipped: counter()?,
            conflated: counter()?,
            starved: counter()?,
        })
    }

    /// Consumers that were closed.
    pub fn closed(&self) -> u64 {
        self.closed.get() as u64
    }

    /// Pushes that were skipped.
    pub fn skipped(&self) -> u64 {
        self.skipped.get() as u64
    }

    /// Pushes that were replaced by newer ones.
    pub fn conflated(&self) -> u64 {
        self.conflated.get() as u64
    }
}

/// The outcome of a push to one consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushOutcome {
    /// It is in the output, or queued.
    Queued,
    /// It was dropped.
    Missed,
    /// The consumer is closed.
    Close,
}

/// The pushes queued for one consumer.
#[derive(Clone, Debug)]
pub struct Backlog<P> {
    waiting: VecDeque<P>,
    bytes: usize,
}

impl<P> Default for Backlog<P> {
    fn default() -> Self {
        Backlog { waiting: VecDeque::new(), bytes: 0 }
    }
}

impl<P: Push> Backlog<P> {
    /// Whether no push is queued.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The memory that it uses, except that of the pushes, which it shares with others, in bytes.
    pub fn footprint(&self) -> usize {
        self.waiting.capacity() * mem::size_of::<P>()
    }

    /// Queues a push, or applies the policy if it does not fit.
    pub fn add(&mut self, push: P, bounds: &Bounds) -> PushOutcome {
        let bytes = self.bytes.saturating_add(push.size());
        if bytes > SPARED && !self.waiting.is_empty() && bounds.memory.is_scarce() {
            self.clear();
            bounds.counts.starved.add(1);
            return PushOutcome::Close;
        }
        let fits = self.waiting.len() < bounds.pushes && bytes <= bounds.bytes;
        // Twice as many, so that they are bounded, too.
        let is_kept = push.must_arrive() && self.waiting.len() / 2 < bounds.pushes;
        if fits || self.waiting.is_empty() || is_kept && bounds.policy != Policy::Close {
            self.bytes = bytes;
            self.waiting.push_back(push);
            return PushOutcome::Queued;
        }
        match bounds.policy {
            _ if push.must_arrive() => {
                self.clear();
                bounds.counts.closed.add(1);
                PushOutcome::Close
            }
            Policy::Close => {
                self.clear();
                bounds.counts.closed.add(1);
                PushOutcome::Close
            }
            Policy::Skip => {
                bounds.counts.skipped.add(1);
                PushOutcome::Missed
            }
            Policy::Conflate => {
                let before = self.waiting.len();
                self.waiting.retain(P::must_arrive);
                bounds.counts.conflated.add(before - self.waiting.len());
                self.bytes = self.waiting.iter().map(P::size).sum::<usize>() + push.size();
                self.waiting.push_back(push);
                PushOutcome::Queued
            }
        }
    }

    /// Removes and returns the oldest push.
    pub fn take(&mut self) -> Option<P> {
        let push = self.waiting.pop_front()?;
        self.bytes -= push.size();
        if self.waiting.is_empty() {
            // A consumer that has caught up keeps no memory.
            self.clear();
        }
        Some(push)
    }

    /// Discards all queued pushes, and returns their number.
    pub fn clear(&mut self) -> usize {
        mem::take(self).waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Charge;

    /// A push of this size. One of [`ORDER`] must arrive.
    #[derive(Clone, Debug, PartialEq)]
    struct Sized(usize);

    const ORDER: usize = 77;

    impl Push for Sized {
        fn size(&self) -> usize {
            self.0
        }

        fn must_arrive(&self) -> bool {
            self.0 == ORDER
        }
    }

    fn bounds(policy: Policy) -> Bounds {
        let (counts, memory) = (Arc::default(), Arc::default());
        Bounds { bytes: 100, pushes: 3, policy, counts, memory }
    }

    fn all(backlog: &mut Backlog<Sized>) -> Vec<usize> {
        std::iter::from_fn(|| backlog.take()).map(|push| push.0).collect()
    }

    /// A backlog with pushes of these sizes, all of which are queued.
    fn filled(sizes: &[usize], bounds: &Bounds) -> Backlog<Sized> {
        let mut backlog = Backlog::default();
        for size in sizes {
            assert_eq!(backlog.add(Sized(*size), bounds), PushOutcome::Queued);
        }
        backlog
    }

    #[test]
    fn when_memory_is_scarce_a_slow_consumer_is_closed_under_every_policy() {
        for policy in [Policy::Close, Policy::Skip, Policy::Conflate] {
            let memory = Arc::new(Memory::new(400));
            let mut charge = Charge::new(Arc::clone(&memory));
            charge.set(299);
            let bounds = Bounds { bytes: usize::MAX, memory, ..bounds(policy) };
            let mut backlog = filled(&[SPARED - 1], &bounds);
            charge.set(300);
            assert_eq!(
                backlog.add(Sized(1), &bounds),
                PushOutcome::Queued,
                "it may be about to take them"
            );
            assert_eq!(backlog.add(Sized(1), &bounds), PushOutcome::Close);
            assert_eq!(
                backlog.add(Sized(SPARED + 1), &bounds),
                PushOutcome::Queued,
                "one is always queued"
            );
            backlog.clear();
            let counts = &bounds.counts;
            let acted = counts.closed() + counts.skipped() + counts.conflated();
            assert!(backlog.is_empty() && acted == 0 && counts.starved.get() == 1);
        }
    }

    #[test]
    fn pushes_wait_in_their_order_up_to_both_bounds() {
        let bounds = bounds(Policy::Skip);
        let mut backlog = filled(&[60, 40], &bounds);
        assert_eq!(backlog.add(Sized(1), &bounds), PushOutcome::Missed, "100 bytes");
        assert_eq!(all(&mut backlog), [60, 40]);
        assert!(backlog.is_empty() && backlog.waiting.capacity() == 0, "no memory is kept");
        let mut backlog = filled(&[1, 2, 3], &bounds);
        assert_eq!(backlog.add(Sized(4), &bounds), PushOutcome::Missed, "three pushes");
        assert_eq!(backlog.take(), Some(Sized(1)));
        assert_eq!(backlog.add(Sized(95), &bounds), PushOutcome::Queued);
        assert_eq!(backlog.take(), Some(Sized(2)));
        assert_eq!(backlog.add(Sized(3), &bounds), PushOutcome::Missed, "3 + 95 + 3 bytes");
        assert_eq!(all(&mut backlog), [3, 95]);
        assert_eq!(bounds.counts.skipped(), 3);
        assert_eq!((bounds.counts.closed(), bounds.counts.conflated()), (0, 0));
    }

    #[test]
    fn one_push_may_wait_whatever_its_size() {
        let bounds = bounds(Policy::Close);
        let mut backlog = filled(&[1000], &bounds);
        assert_eq!(all(&mut backlog), [1000]);
        assert_eq!(bounds.counts.closed(), 0);
    }

    #[test]
    fn a_closed_consumer_keeps_no_pushes() {
        let bounds = bounds(Policy::Close);
        let mut backlog = filled(&[1, 1, 1], &bounds);
        assert_eq!(backlog.add(Sized(1), &bounds), PushOutcome::Close);
        assert!(backlog.is_empty());
        assert_eq!(bounds.counts.closed(), 1);
    }

    #[test]
    fn what_must_arrive_is_dropped_by_no_policy_but_close() {
        for (policy, outcome, kept) in [
            (Policy::Skip, PushOutcome::Missed, &[90, ORDER][..]),
            (Policy::Conflate, PushOutcome::Queued, &[ORDER, 1]),
        ] {
            let bounds = bounds(policy);
            let mut backlog = filled(&[90], &bounds);
            assert_eq!(backlog.add(Sized(ORDER), &bounds), PushOutcome::Queued, "{policy:?}");
            assert_eq!(backlog.add(Sized(1), &bounds), outcome, "{policy:?}");
            assert_eq!(bounds.counts.skipped() + bounds.counts.conflated(), 1, "{policy:?}");
            assert_eq!(backlog.bytes, kept.iter().sum::<usize>(), "{policy:?}");
            assert_eq!(all(&mut backlog), kept, "{policy:?}");
            let mut backlog = filled(&[90], &bounds);
            let mut added = (0..).map(|_| backlog.add(Sized(ORDER), &bounds));
            let queued = added.by_ref().take_while(|added| *added == PushOutcome::Queued).count();
            assert_eq!(queued, 5, "{policy:?}: twice the bound, and then the consumer is closed");
            assert_eq!(bounds.counts.closed(), 1, "{policy:?}");
        }
        let bounds = bounds(Policy::Close);
        let mut backlog = filled(&[90], &bounds);
        assert_eq!(backlog.add(Sized(ORDER), &bounds), PushOutcome::Close);
    }

    #[test]
    fn a_conflated_consumer_gets_the_newest_push() {
        let bounds = bounds(Policy::Conflate);
        let mut backlog = filled(&[1, 2, 3], &bounds);
        assert_eq!(backlog.add(Sized(4), &bounds), PushOutcome::Queued);
        assert_eq!(backlog.add(Sized(500), &bounds), PushOutcome::Queued);
        assert_eq!(backlog.add(Sized(5), &bounds), PushOutcome::Queued);
        assert_eq!(all(&mut backlog), [5]);
        assert_eq!(bounds.counts.conflated(), 5);
        assert_eq!(filled(&[96], &bounds).bytes, 96);
    }
}
