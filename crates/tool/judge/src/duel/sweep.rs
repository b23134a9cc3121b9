//! The sweep operator: solves small symmetric systems, also singular ones.

/// A pivot below this share of its original value is zero except for rounding.
const ZERO: f64 = 1e-9;

/// Sweeps the first `columns` columns of a symmetric, positive semidefinite matrix in place, and
/// returns how many of them are linearly independent. Those that are not get zeros.
///
/// With `[X′WX, X′Wy; y′WX, y′Wy]` the result is `[(X′WX)⁻¹, β; −β′, residual sum of squares]`
/// (Goodnight, *A tutorial on the SWEEP operator*, The American Statistician 33, 1979).
pub(super) fn sweep(matrix: &mut [Vec<f64>], columns: usize) -> usize {
    let original: Vec<f64> = (0..columns).map(|k| matrix[k][k]).collect();
    let mut rank = 0;
    for k in 0..columns {
        let pivot = matrix[k][k];
        if pivot <= ZERO * original[k] {
            matrix[k].fill(0.0);
            matrix.iter_mut().for_each(|row| row[k] = 0.0);
            continue;
        }
        rank += 1;
        matrix[k].iter_mut().for_each(|value| *value /= pivot);
        let row = matrix[k].clone();
        for (_, other) in matrix.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let by = other[k];
            other.iter_mut().zip(&row).for_each(|(value, of_row)| *value -= by * of_row);
            other[k] = -by / pivot;
        }
        matrix[k][k] = 1.0 / pivot;
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_a_worked_example() {
        // A line through (0, 1), (1, 3), (2, 2): start 3/2, slope 1/2, residuals −1/2, 1, −1/2.
        let mut matrix = vec![vec![3.0, 3.0, 6.0], vec![3.0, 5.0, 7.0], vec![6.0, 7.0, 14.0]];
        assert_eq!(sweep(&mut matrix, 2), 2);
        let expected = [[5.0 / 6.0, -0.5, 1.5], [-0.5, 0.5, 0.5], [-1.5, -0.5, 1.5]];
        for (row, expected) in matrix.iter().zip(expected) {
            for (value, expected) in row.iter().zip(expected) {
                assert!((value - expected).abs() < 1e-12, "{matrix:?}");
            }
        }
    }

    #[test]
    fn leaves_out_a_column_that_depends_on_another() {
        let mut matrix = vec![vec![2.0, -2.0, 3.0], vec![-2.0, 2.0, -3.0], vec![3.0, -3.0, 5.0]];
        assert_eq!(sweep(&mut matrix, 2), 1);
        assert_eq!(matrix[0], [0.5, 0.0, 1.5]);
        assert_eq!(matrix[1], [0.0; 3]);
        assert_eq!(matrix[2][2], 0.5);
    }
}
