//! Which estimates say something.

use regatta_record::Estimate;

/// How far an end of an interval may be from the figure, as a factor. An interval that reaches below a
/// tenth of its figure, or above ten times of it, does not even tell the figure's order of magnitude, so
/// a reader learns less from the figure than from none. With two rounds this takes rounds that differ by
/// a third (Student's t is 12.7 there), with five rounds a spread by a factor of six.
pub const MOST_APART: f64 = 10.0;

/// Whether the interval tells at least the order of magnitude of a figure that is above zero.
pub fn is_known(e: &Estimate) -> bool {
    e.low >= e.mean / MOST_APART && e.high <= e.mean * MOST_APART
}

/// The estimate, if it is known.
pub fn known(estimate: Option<Estimate>) -> Option<Estimate> {
    estimate.filter(is_known)
}

/// The noise floor, if it is known: the ratio of a contender to itself lies within a factor of ten of 1.
pub fn known_floor(floor: Option<f64>) -> Option<f64> {
    floor.filter(|floor| 1.0 + floor <= MOST_APART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_beyond_ten_times_its_figure_says_nothing() {
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
