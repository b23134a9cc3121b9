//! The counts of one second of the measured window.

use crate::{Mismatch, counting::hdr};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The counts of one second of the measured window, of a thread, a process or a whole load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecondCounted {
    /// The number of the second, counted from 0.
    pub number: u32,
    /// Correct replies that arrived in it.
    pub requests: u64,
    /// Errors of all kinds that occurred in it.
    pub errors: u64,
    /// Refusals that arrived in it: see [`crate::Counted::refused`].
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub refused: u64,
    /// Latencies of the replies that arrived in it, in nanoseconds. The last second also has those of
    /// replies that arrived after the window.
    #[serde(with = "hdr")]
    pub latency: Histogram<u64>,
}

impl SecondCounted {
    /// A second without replies; its histogram has the range and precision of `empty`.
    pub fn nothing(number: u32, empty: Histogram<u64>) -> SecondCounted {
        SecondCounted { number, requests: 0, errors: 0, refused: 0, latency: empty }
    }

    /// Adds the counts of the same second of another thread or process.
    ///
    /// # Errors
    /// If the seconds have different numbers, or the histograms differ in range or precision. `self` is
    /// unchanged then.
    pub fn add(&mut self, other: &SecondCounted) -> Result<(), Mismatch> {
        if self.number != other.number {
            let (ours, theirs) = (self.number, other.number);
            return Err(Mismatch(format!("seconds {ours} and {theirs}")));
        }
        hdr::add(&mut self.latency, &other.latency)?;
        self.requests += other.requests;
        self.errors += other.errors;
        self.refused += other.refused;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u32, requests: u64) -> SecondCounted {
        let mut latency = Histogram::new_with_bounds(1, 1_000_000, 3).unwrap();
        latency.record_n(500, requests).unwrap();
        SecondCounted { number, requests, errors: 1, refused: 3, latency }
    }

    #[test]
    fn seconds_of_one_number_are_added_without_loss_and_others_are_refused() {
        let mut sum = second(3, 40);
        sum.add(&second(3, 2)).unwrap();
        assert_eq!((sum.requests, sum.errors, sum.refused), (42, 2, 6));
        assert_eq!(sum.latency.count_at(500), 42);
        let before = sum.clone();
        assert_eq!(sum.add(&second(4, 1)).unwrap_err().to_string(), "seconds 3 and 4");
        let other = Histogram::new_with_bounds(1, 1_000_000, 2).unwrap();
        assert!(sum.add(&SecondCounted::nothing(3, other)).is_err());
        assert_eq!(sum, before);
    }

    #[test]
    fn a_second_survives_a_message() {
        let text = serde_json::to_string(&second(7, 9)).unwrap();
        assert_eq!(serde_json::from_str::<SecondCounted>(&text).unwrap(), second(7, 9));
    }
}
