//! Limits of rates.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

/// A token bucket as a single time: the generic cell rate algorithm (ITU-T I.371, A.2). It admits a second's worth at
/// once, and on average the rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    /// When it will be full again; `None`: it is full.
    full_at: Option<Instant>,
}

impl Bucket {
    /// Takes one token, and returns true, unless there is none. `rate`: tokens per second.
    pub(super) fn take(&mut self, rate: NonZeroU32, now: Instant) -> bool {
        let full_at =
            self.full_at.map_or(now, |at| at.max(now)) + Duration::from_secs(1) / rate.get();
        let has_one = full_at - now <= Duration::from_secs(1);
        if has_one {
            self.full_at = Some(full_at);
        }
        has_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `asked` tokens it gives at once.
    fn given(bucket: &mut Bucket, rate: u32, now: Instant, asked: u32) -> u32 {
        let rate = NonZeroU32::new(rate).unwrap();
        (0..asked).map(|_| u32::from(bucket.take(rate, now))).sum()
    }

    #[test]
    fn it_gives_a_second_of_tokens_at_once_and_then_the_rate() {
        let start = Instant::now();
        for rate in [1, 4, 1000] {
            let mut bucket = Bucket::default();
            assert_eq!(given(&mut bucket, rate, start, 2 * rate), rate);
            let half = start + Duration::from_millis(500);
            assert_eq!(given(&mut bucket, rate, half, rate), rate / 2, "{rate}");
            let later = half + Duration::from_secs(60);
            assert_eq!(given(&mut bucket, rate, later, 2 * rate), rate, "no more than a second's");
            assert_eq!(given(&mut bucket, rate, start, rate), 0, "time does not go back");
        }
    }

    #[test]
    fn refused_ones_cost_nothing() {
        let start = Instant::now();
        let mut bucket = Bucket::default();
        for tenth in 0..100 {
            let now = start + Duration::from_millis(100) * tenth;
            let expected = if tenth == 0 { 10 } else { 1 };
            assert_eq!(given(&mut bucket, 10, now, 50), expected, "{tenth}");
        }
    }
}
