//! The jackknife: how precise a figure of all units together is, of which no unit alone says anything.

/// What each of `n` units contributes to a figure: pseudo-values, whose arithmetic mean is the figure without most of
/// its bias, and whose spread is its error (Tukey, *Bias and confidence in not quite large samples*, Annals of
/// Mathematical Statistics 29, 1958). They mean something only in sum, so no function of each, such as a logarithm, may
/// be taken. `figure` gets the unit that is left out. `None` with fewer than 2 units, or if it has no finite figure.
pub fn pseudo_values(n: usize, figure: impl Fn(Option<usize>) -> f64) -> Option<Vec<f64>> {
    let (all, units) = (figure(None), n as f64);
    let values = (0..n).map(|nth| units * all - (units - 1.0) * figure(Some(nth)));
    let values: Vec<f64> = values.collect();
    (n > 1 && values.iter().all(|value| value.is_finite())).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pseudo_values_of_a_mean_are_the_values() {
        let values = [3.0, 5.0, 10.0];
        let mean = |without: Option<usize>| {
            let kept = values.iter().enumerate().filter(|(nth, _)| Some(*nth) != without);
            let kept: Vec<f64> = kept.map(|(_, value)| *value).collect();
            kept.iter().sum::<f64>() / kept.len() as f64
        };
        let found = pseudo_values(3, mean).unwrap();
        assert!(found.iter().zip(values).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    }

    #[test]
    fn one_unit_or_a_figure_that_is_not_finite_has_none() {
        assert_eq!(pseudo_values(1, |_| 1.0), None);
        assert_eq!(pseudo_values(3, |without| without.map_or(1.0, |_| f64::NAN)), None);
    }
}
