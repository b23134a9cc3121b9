//! The histograms of a load.

use crate::Plan;
use hdrhistogram::Histogram;

/// Creates a histogram of nanoseconds with three significant digits. It covers the maximum time that a
/// request can queue and then wait for its reply.
pub(crate) fn new_histogram() -> Histogram<u64> {
    let longest = 2 * Plan::MAX_TIMEOUT.as_nanos() as u64;
    Histogram::new_with_bounds(1, longest, 3).expect("the bounds are valid")
}
