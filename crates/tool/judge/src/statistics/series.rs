//! A figure by pass, and its preparation for intervals.

/// The natural logarithm of one figure by pass over the cells. `None` if the pass has no valid
/// figure: not run, not finished, not observed, or not above zero.
pub type Series = Vec<Option<f64>>;

/// The logarithm of a figure, if it has one.
pub fn log(figure: f64) -> Option<f64> {
    (figure.is_finite() && figure > 0.0).then(|| figure.ln())
}

/// The figures that exist.
pub fn present(series: &[Option<f64>]) -> Vec<f64> {
    series.iter().flatten().copied().collect()
}

/// `ln(a/b)` of each pass in which both have a valid figure. Effects on both (e.g. drift of the
/// machine) cancel out.
pub fn paired(a: &[Option<f64>], b: &[Option<f64>]) -> Vec<f64> {
    a.iter().zip(b).filter_map(|(a, b)| Some((*a)? - (*b)?)).collect()
}

/// Arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Median; `None` without values.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (n > 0).then(|| values[(n - 1) / 2].midpoint(values[n / 2]))
}

/// The factor from the median absolute deviation to the standard deviation of a normal distribution.
pub const DEVIATION: f64 = 1.4826;

/// Median, and the standard deviation that follows from the median absolute deviation; `None` without
/// values. A few outliers affect neither.
pub fn robust(values: Vec<f64>) -> Option<(f64, f64)> {
    let centre = median(values.clone())?;
    let away = median(values.into_iter().map(|value| (value - centre).abs()).collect())?;
    Some((centre, DEVIATION * away))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passes_where_both_have_a_figure_are_paired() {
        let a = [Some(3.0), None, Some(5.0), Some(1.0)];
        let b = [Some(1.0), Some(9.0), None, Some(4.0)];
        assert_eq!(paired(&a, &b), [2.0, -3.0]);
    }

    #[test]
    fn values_without_a_logarithm_are_no_figures() {
        assert_eq!(log(1.0), Some(0.0));
        assert_eq!([log(0.0), log(-1.0), log(f64::NAN), log(f64::INFINITY)], [None; 4]);
    }

    #[test]
    fn an_outlier_affects_neither_the_centre_nor_the_deviation() {
        assert_eq!(robust(vec![1.0, 2.0, 3.0, 4.0, 1e9]), Some((3.0, DEVIATION)));
        assert_eq!(robust(Vec::new()), None);
    }
}
