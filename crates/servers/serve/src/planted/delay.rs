//! Delays that are known by construction: how long a server waits before it answers, to test the
//! measurement. These functions are pure; [`crate::planted::delayed`] does the waiting.

use std::time::Duration;

/// How long requests are delayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Delay {
    /// Every request is delayed by this time.
    Fixed(Duration),
    /// Most requests are delayed by `usual`, a share of them by `rare`. The choice depends only on
    /// the request's number, without a pattern that a load could synchronise with.
    Bimodal {
        /// The delay of most requests.
        usual: Duration,
        /// The delay of the other requests.
        rare: Duration,
        /// The share of `rare` delays, from 0 to 1.
        share: f64,
    },
    /// The server answers at once, but sleeps for `length` at the start of each period. Requests
    /// that arrive meanwhile stay unread in the sockets.
    Stall {
        /// How long it sleeps.
        length: Duration,
        /// The period, longer than `length`.
        every: Duration,
    },
}

impl Delay {
    /// Returns the delay of the server's `n`th request, counted from 0.
    pub fn of_request(&self, n: u64) -> Duration {
        match *self {
            Delay::Fixed(delay) => delay,
            Delay::Bimodal { rare, share, .. } if is_within(n, share) => rare,
            Delay::Bimodal { usual, .. } => usual,
            Delay::Stall { .. } => Duration::ZERO,
        }
    }

    /// Returns how much longer a server of this `age` sleeps; `None` if it does not sleep now.
    pub fn rest(&self, age: Duration) -> Option<Duration> {
        let Delay::Stall { length, every } = *self else { return None };
        let phase = Duration::from_nanos((age.as_nanos() % every.as_nanos()) as u64);
        length.checked_sub(phase).filter(|rest| !rest.is_zero())
    }
}

/// Whether a hash of `n`, spread evenly over 0 to 1, lies below `share` (the finaliser of
/// splitmix64: Steele, Lea and Flood, *Fast splittable pseudorandom number generators*, 2014).
fn is_within(n: u64, share: f64) -> bool {
    let mut hash = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    (hash as f64) < share * u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_rare_delay_has_its_share_and_no_pattern() {
        let delay = Delay::Bimodal { usual: ms(1), rare: ms(20), share: 0.1 };
        let is_rare: Vec<bool> = (0..100_000).map(|n| delay.of_request(n) == ms(20)).collect();
        let count = |step: usize, first| {
            is_rare.iter().skip(first).step_by(step).filter(|rare| **rare).count()
        };
        assert!((9_700..10_300).contains(&count(1, 0)), "{}", count(1, 0));
        for first in 0..64 {
            let rare = count(64, first); // of 1562 or 1563: 156 are expected, give or take 12
            assert!((106..206).contains(&rare), "connection {first} of 64 in turn gets {rare}");
        }
        assert!((0..1_000).all(|n| delay.of_request(n) == delay.of_request(n)));
        assert_eq!(delay.rest(ms(1)), None);
    }

    #[test]
    fn a_stall_is_at_the_start_of_each_period() {
        let delay = Delay::Stall { length: ms(100), every: ms(1_000) };
        assert_eq!(delay.rest(ms(0)), Some(ms(100)));
        assert_eq!(delay.rest(ms(99)), Some(ms(1)));
        assert_eq!(delay.rest(ms(100)), None);
        assert_eq!(delay.rest(ms(999)), None);
        assert_eq!(delay.rest(ms(7_030)), Some(ms(70)));
        assert_eq!(delay.of_request(5), ms(0));
        assert_eq!(Delay::Fixed(ms(2)).of_request(5), ms(2));
    }
}
