//! What was seen of the arrivals of an open loop: sums that are put together without loss, whatever
//! the order. What they say is judged by the load.

use crate::Unlike;
use serde::{Deserialize, Serialize};

/// Arrivals of one load thread, or of several together. A *stride* is so many gaps in a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrivalsSeen {
    /// Gaps in a stride.
    pub gaps: u32,
    /// Strides by their place in the distribution that was asked for.
    pub places: Vec<u64>,
    /// Strides.
    pub strides: u64,
    /// Sum of their lengths, a stride's expected length being [`ArrivalsSeen::UNIT`].
    pub sum: u128,
    /// Sum of the squares of these.
    pub squares: u128,
    /// Strides that followed another one.
    pub pairs: u64,
    /// Sum of the products of each of those with the one before.
    pub products: u128,
    /// Requests that arrived in each tenth of the window.
    pub tenths: [u64; 10],
}

impl ArrivalsSeen {
    /// What the length of a stride is counted in: integers add up to the same in any order.
    pub const UNIT: f64 = (1 << 20) as f64;

    /// Nothing yet: strides of so many gaps, told apart by so many places.
    pub fn nothing(gaps: u32, places: usize) -> ArrivalsSeen {
        ArrivalsSeen {
            gaps,
            places: vec![0; places],
            strides: 0,
            sum: 0,
            squares: 0,
            pairs: 0,
            products: 0,
            tenths: [0; 10],
        }
    }

    /// Adds what another thread or process has seen.
    ///
    /// # Errors
    /// Where its strides are others. Nothing is added then.
    pub fn add(&mut self, other: &ArrivalsSeen) -> Result<(), Unlike> {
        self.check_like(other)?;
        self.places.iter_mut().zip(&other.places).for_each(|(sum, n)| *sum += n);
        self.strides += other.strides;
        self.sum += other.sum;
        self.squares += other.squares;
        self.pairs += other.pairs;
        self.products += other.products;
        self.tenths.iter_mut().zip(other.tenths).for_each(|(sum, n)| *sum += n);
        Ok(())
    }

    pub(crate) fn check_like(&self, other: &ArrivalsSeen) -> Result<(), Unlike> {
        if (self.gaps, self.places.len()) == (other.gaps, other.places.len()) {
            return Ok(());
        }
        Err(Unlike(format!("strides of {} gaps and of {}", self.gaps, other.gaps)))
    }
}
