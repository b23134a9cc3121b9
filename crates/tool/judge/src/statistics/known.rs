//! Which estimates are meaningful.

use regatta_record::Estimate;

/// Maximum distance of an interval's end from the figure, as a factor. An interval that extends
/// below a tenth of its figure, or above ten times the figure, does not even show the order of
/// magnitude, so such a figure would mislead. With two rounds this occurs if the rounds differ by a
/// factor of 1.44 (Student's t is 12.7 there), with five rounds if they vary by a factor of six.
pub const MOST_APART: f64 = 10.0;

/// Whether the interval shows at least the order of magnitude of a positive figure.
pub fn is_known(e: &Estimate) -> bool {
    e.low >= e.mean / MOST_APART && e.high <= e.mean * MOST_APART
}

/// The estimate; `None` if it is not known ([`is_known`]).
pub fn known(estimate: Option<Estimate>) -> Option<Estimate> {
    estimate.filter(is_known)
}

/// The noise floor, if known: the ratio of a contender to itself lies within a factor of ten of 1.
pub fn known_floor(floor: Option<f64>) -> Option<f64> {
    floor.filter(|floor| 1.0 + floor <= MOST_APART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_with_an_interval_beyond_ten_times_is_not_known() {
        let e = |mean, low, high| Estimate { mean, low, high };
        assert!(is_known(&e(196.0, 19.7, 1_950.0)));
        assert!(!is_known(&e(196.0, 19.5, 300.0)));
        assert!(!is_known(&e(196.0, 100.0, 1_961.0)));
        assert!(!is_known(&e(196_000.0, 0.1, 363_915_000_000.0)));
        assert!(!is_known(&e(1.0, f64::NAN, 2.0)) && !is_known(&e(1.0, 0.5, f64::INFINITY)));
        assert_eq!(known_floor(Some(0.5)), Some(0.5));
        assert_eq!(known_floor(Some(26_691.0)), None);
        assert_eq!(known_floor(None), None);
    }
}
