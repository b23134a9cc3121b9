//! Groups of numbers on a line.

/// Splits ascending values into `k` groups with the least sum of squared distances from the means of
/// their groups, and returns where each group starts and ends. `None` if there are fewer values than
/// groups.
///
/// Optimal, by dynamic programming over the first i values and j groups (Fisher, *On grouping for
/// maximum homogeneity*, Journal of the American Statistical Association 53, 1958; Wang and Song,
/// *Ckmeans.1d.dp*, The R Journal 3/2, 2011).
pub(super) fn groups(ascending: &[f64], k: usize) -> Option<Vec<std::ops::Range<usize>>> {
    let n = ascending.len();
    if k == 0 || n < k {
        return None;
    }
    let squares = Squares::of(ascending);
    // least[i]: of the first i values in j groups; starts[j][i]: where the last of these groups
    // starts.
    let mut least: Vec<f64> = (0..=n).map(|i| squares.of_range(0, i)).collect();
    let mut starts = vec![vec![0; n + 1]];
    for groups in 2..=k {
        let mut next = vec![f64::INFINITY; n + 1];
        let mut start = vec![0; n + 1];
        for i in groups..=n {
            for (from, so_far) in least.iter().enumerate().take(i).skip(groups - 1) {
                let sum = so_far + squares.of_range(from, i);
                if sum < next[i] {
                    (next[i], start[i]) = (sum, from);
                }
            }
        }
        least = next;
        starts.push(start);
    }
    let (mut found, mut end) = (Vec::new(), n);
    for start in starts.iter().rev() {
        found.push(start[end]..end);
        end = start[end];
    }
    found.reverse();
    Some(found)
}

/// Sums over the first values, from which those of any range follow.
struct Squares {
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Squares {
    fn of(values: &[f64]) -> Squares {
        let mut all = Squares { sums: vec![0.0], squares: vec![0.0] };
        let (mut sum, mut square) = (0.0, 0.0);
        for value in values {
            (sum, square) = (sum + value, square + value * value);
            all.sums.push(sum);
            all.squares.push(square);
        }
        all
    }

    /// Sum of squared distances from the mean of the values `from..to`.
    fn of_range(&self, from: usize, to: usize) -> f64 {
        let n = (to - from).max(1) as f64;
        let sum = self.sums[to] - self.sums[from];
        (self.squares[to] - self.squares[from] - sum * sum / n).max(0.0)
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "one cluster is expected")]
mod tests {
    use super::*;

    #[test]
    fn finds_the_groups_of_worked_examples() {
        assert_eq!(groups(&[1.0, 1.1, 5.0, 5.1, 5.2], 2), Some(vec![0..2, 2..5]));
        assert_eq!(groups(&[1.0, 1.1, 5.0, 5.1, 9.0], 3), Some(vec![0..2, 2..4, 4..5]));
        assert_eq!(groups(&[1.0, 1.1, 5.0], 1), Some(vec![0..3]));
        assert_eq!(groups(&[1.0, 2.0, 3.0], 3), Some(vec![0..1, 1..2, 2..3]));
        assert_eq!(groups(&[1.0], 2), None);
        assert_eq!(groups(&[], 0), None);
    }

    #[test]
    fn is_as_good_as_trying_all_splits() {
        let mut values: Vec<f64> = (0..14).map(|i| f64::from(i * i % 17) / 10.0).collect();
        values.sort_by(f64::total_cmp);
        let cost = |ranges: &[std::ops::Range<usize>]| -> f64 {
            let squares = Squares::of(&values);
            ranges.iter().map(|range| squares.of_range(range.start, range.end)).sum()
        };
        let all = (1..13).flat_map(|a| (a + 1..14).map(move |b| [0..a, a..b, b..14]));
        let best = all.map(|ranges| cost(&ranges)).fold(f64::INFINITY, f64::min);
        assert!((cost(&groups(&values, 3).unwrap()) - best).abs() < 1e-12);
    }
}
