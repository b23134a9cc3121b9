//! The effect of a contender on the machine: probe readings after it, over those before it.

use super::{Series, median};

/// Returns, by contender and pass, the logarithm of the reading after the contender over the
/// reading before it, minus the median of this over the contenders of the pass. `readings` are the
/// logarithms before and after, by pass.
///
/// An effect that all contenders have (a CPU that was just busy) is harmless, because contenders
/// are compared with each other; it cancels out. One contender with a large effect does not move
/// the median of all. Under the hypothesis "this contender leaves the machine as others do" each
/// list has the mean zero; Student's test decides. Readings before a contender cannot depend on it,
/// so a difference is caused by the contender, or by chance. Passes with readings of fewer than two
/// contenders are left out.
pub fn aftermath(readings: &[(&Series, &Series)]) -> Vec<Vec<f64>> {
    let changes: Vec<Series> = readings
        .iter()
        .map(|(before, after)| {
            before.iter().zip(*after).map(|(before, after)| Some((*after)? - (*before)?)).collect()
        })
        .collect();
    let passes = changes.iter().map(Vec::len).max().unwrap_or(0);
    let of_pass = |pass: usize| -> Option<f64> {
        let all: Vec<f64> = changes.iter().filter_map(|c| c.get(pass).copied().flatten()).collect();
        (all.len() > 1).then(|| median(all)).flatten()
    };
    let medians: Vec<Option<f64>> = (0..passes).map(of_pass).collect();
    let less_median = |change: &Series| {
        change
            .iter()
            .zip(&medians)
            .filter_map(|(change, median)| Some((*change)? - (*median)?))
            .collect()
    };
    changes.iter().map(less_median).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{geometric, holm, p_value};
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    /// Six contenders, the third of which changes the reading by `effect`; all of them change it by
    /// -3%.
    fn accused(effect: f64, seed: u64) -> Vec<usize> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut of = |contender: usize| -> (Series, Series) {
            (0..12)
                .map(|_| {
                    let mut noise = || random.random_range(-0.02..0.02);
                    let own = if contender == 2 { effect } else { 0.0 };
                    (Some(noise()), Some(noise() - 0.03 + own))
                })
                .unzip()
        };
        let each: Vec<_> = (0..6).map(&mut of).collect();
        let each: Vec<_> = each.iter().map(|(before, after)| (before, after)).collect();
        let changes = aftermath(&each);
        let p: Vec<f64> = changes.iter().map(|c| p_value(c).unwrap()).collect();
        let found = holm(&p, 0.05);
        (0..6).filter(|i| found[*i] && geometric(&changes[*i], 1).unwrap().mean > 1.02).collect()
    }

    #[test]
    fn finds_only_the_contender_that_leaves_the_machine_slower() {
        assert!((0..50).all(|seed| accused(0.06, seed) == [2]));
        let falsely = (0..200).filter(|seed| !accused(0.0, *seed).is_empty()).count();
        assert!(falsely <= 16, "{falsely} of 200, at 5%");
    }

    #[test]
    fn a_pass_with_one_reading_is_ignored() {
        let (before, after) = (vec![Some(0.0), Some(0.0)], vec![Some(0.1), Some(0.1)]);
        let other = (vec![Some(0.0), None], vec![Some(0.0), Some(0.0)]);
        let changes = aftermath(&[(&before, &after), (&other.0, &other.1)]);
        assert_eq!(changes, [vec![0.05], vec![-0.05]]);
        assert!(aftermath(&[(&before, &after)])[0].is_empty());
    }
}
