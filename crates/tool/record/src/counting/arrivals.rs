//! Arrival statistics of an open loop: integer sums, which merge without loss in any order. The crate
//! `load` evaluates them.

use crate::Mismatch;
use serde::{Deserialize, Serialize};

/// Arrivals of one or several load threads. A *stride* is a fixed number of consecutive gaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrivalsSeen {
    /// Gaps in a stride.
    pub gaps: u32,
    /// Number of strides by quantile of the requested distribution.
    pub places: Vec<u64>,
    /// Number of strides.
    pub strides: u64,
    /// Sum of their lengths, in units of the expected length divided by [`ArrivalsSeen::UNIT`].
    pub sum: u128,
    /// Sum of the squared lengths.
    pub squares: u128,
    /// Number of strides that followed another one.
    pub pairs: u64,
    /// Sum of the products of their lengths with those of their predecessors.
    pub products: u128,
    /// Number of requests that arrived in each tenth of the window.
    pub tenths: [u64; 10],
}

impl ArrivalsSeen {
    /// Fixed-point scale of the lengths: integer sums do not depend on the order.
    pub const UNIT: f64 = (1 << 20) as f64;

    /// Creates empty statistics with `gaps` gaps per stride and `places` quantiles.
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

    /// Adds the arrivals of another thread or process.
    ///
    /// # Errors
    /// If its strides differ in the number of gaps or quantiles. `self` is unchanged then.
    pub fn add(&mut self, other: &ArrivalsSeen) -> Result<(), Mismatch> {
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

    pub(crate) fn check_like(&self, other: &ArrivalsSeen) -> Result<(), Mismatch> {
        if (self.gaps, self.places.len()) == (other.gaps, other.places.len()) {
            return Ok(());
        }
        Err(Mismatch(format!("strides of {} gaps and of {}", self.gaps, other.gaps)))
    }
}
