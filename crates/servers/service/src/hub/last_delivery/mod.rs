//! How long messages take until the last member of their room on this hub has them: a sample of them.
//!
//! A sampled message carries a [`Sample`]. Whatever still has to bring it to a member holds the message, and with it
//! the sample: a letter to another core, the queue of a slow member, and a member whose output with the message is not
//! written yet. So the sample is dropped with the last of them, wherever that is, and its time is recorded then. Nothing
//! counts members, and nothing is kept for messages that are not sampled.

mod unwritten;

pub(super) use unwritten::Unwritten;

use crate::prometheus::Histogram;
use regatta_engine::Now;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
    },
    time::Instant,
};

/// Whether the message with this number is sampled: one of 64. The multiplier is 2^64 divided by the golden ratio, so
/// the choice has no period that senders could share: each of 64 rooms in turn is sampled.
fn is_sampled(number: usize) -> bool {
    (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58 == 0
}

/// The longest duration of each bucket except the last, in microseconds.
pub(super) const BOUNDS_US: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 10_000_000, 60_000_000,
];

/// The durations so far.
#[derive(Debug, Default)]
pub(super) struct LastDeliveries {
    /// Publications of backends.
    publications: AtomicUsize,
    /// For each bucket, the number of durations that are in no earlier one.
    counts: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
    /// Samples that are not recorded yet.
    pending: AtomicU64,
}

impl LastDeliveries {
    /// The sample of a member's message that arrived `now`, if it is one. `number`: how many came before it. `clock`:
    /// reads the time when it is recorded; without one, nothing is sampled.
    pub fn message(
        self: &Arc<Self>,
        number: usize,
        now: Now,
        clock: Option<fn() -> Instant>,
    ) -> Option<Sample> {
        let clock = clock.filter(|_| is_sampled(number))?;
        self.pending.fetch_add(1, Relaxed);
        let (arrived, has_receiver) = (now.instant, AtomicBool::new(false));
        Some(Sample { arrived, clock, has_receiver, all: Arc::clone(self) })
    }

    /// Like [`LastDeliveries::message`], for a publication of a backend.
    pub fn publication(
        self: &Arc<Self>,
        now: Now,
        clock: Option<fn() -> Instant>,
    ) -> Option<Sample> {
        self.message(self.publications.fetch_add(1, Relaxed), now, clock)
    }

    /// The durations, for the metrics.
    pub fn histogram(&self) -> Histogram {
        let counts = self.counts.iter().map(|count| count.load(Relaxed)).collect();
        Histogram { labels: String::new(), counts, sum_us: self.sum_us.load(Relaxed) }
    }

    /// The number of samples that a member has not received yet.
    pub fn pending(&self) -> u64 {
        self.pending.load(Relaxed)
    }

    fn record(&self, us: u64) {
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.sum_us.fetch_add(us, Relaxed);
    }
}

/// A sampled message that is on its way. Its time is recorded when it is dropped, if a member was to receive it.
pub(super) struct Sample {
    /// The start of the turn of the loop that read it.
    arrived: Instant,
    clock: fn() -> Instant,
    has_receiver: AtomicBool,
    all: Arc<LastDeliveries>,
}

impl Sample {
    /// Notes that it is queued for a member.
    pub fn is_received(&self) {
        self.has_receiver.store(true, SeqCst);
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        self.all.pending.fetch_sub(1, Relaxed);
        if *self.has_receiver.get_mut() {
            let took = (self.clock)().saturating_duration_since(self.arrived);
            self.all.record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        }
    }
}

impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sample").field("arrived", &self.arrived).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn all(deliveries: &LastDeliveries) -> u64 {
        deliveries.histogram().counts.iter().sum()
    }

    #[test]
    fn one_message_of_64_is_sampled_and_recorded_when_it_is_dropped() {
        let deliveries = Arc::new(LastDeliveries::default());
        let now = Now { instant: Instant::now(), unix_s: 0 };
        let samples: Vec<_> = (0..640)
            .filter_map(|number| deliveries.message(number, now, Some(Instant::now)))
            .collect();
        assert_eq!((samples.len(), deliveries.pending(), all(&deliveries)), (11, 11, 0));
        samples[0].is_received();
        drop(samples);
        assert_eq!((deliveries.pending(), all(&deliveries)), (0, 1), "the others had no receiver");
        assert!(deliveries.message(0, now, None).is_none());
        let published = (0..128).filter_map(|_| deliveries.publication(now, Some(Instant::now)));
        assert_eq!(published.count(), 3);
    }

    #[test]
    fn each_of_64_rooms_in_turn_is_sampled() {
        for room in 0..64 {
            let sampled = (0..64 * 64).filter(|turn| is_sampled(64 * turn + room)).count();
            assert!((32..=96).contains(&sampled), "{sampled} of room {room}");
        }
    }

    #[test]
    fn a_duration_is_in_the_first_bucket_that_is_not_shorter() {
        let deliveries = LastDeliveries::default();
        for us in [0, 100, 101, 60_000_000, 60_000_001] {
            deliveries.record(us);
        }
        let Histogram { counts, sum_us, .. } = deliveries.histogram();
        assert_eq!((counts[0], counts[1], counts[15], counts[16]), (2, 1, 1, 1));
        assert_eq!(sum_us, 120_000_202);
    }

    #[test]
    fn the_time_is_that_of_the_last_holder() {
        let deliveries = Arc::new(LastDeliveries::default());
        let now = Now { instant: Instant::now() - Duration::from_secs(3), unix_s: 0 };
        let sample = Arc::new(deliveries.message(0, now, Some(Instant::now)).unwrap());
        let other = Arc::clone(&sample);
        sample.is_received();
        drop(sample);
        assert_eq!(all(&deliveries), 0);
        drop(other);
        assert_eq!(deliveries.histogram().counts[14], 1, "from 2.5 to 10 s");
    }
}
