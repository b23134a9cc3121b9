//! A straight line through points.

/// `y = start + slope × x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// y where x is 0.
    pub start: f64,
    /// Growth of y per unit of x.
    pub slope: f64,
}

impl Line {
    /// y at `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.start + self.slope * x
    }

    /// The line with the least weighted sum of squared distances from the points (weighted least
    /// squares in closed form, about the weighted means). `None` unless the points are finite and
    /// lie at two different x at least, with positive weights.
    pub fn through(x: &[f64], y: &[f64], weights: &[f64]) -> Option<Line> {
        let sum = |of: &dyn Fn(usize) -> f64| (0..x.len()).map(|i| weights[i] * of(i)).sum::<f64>();
        let (all, x_sum, y_sum) = (sum(&|_| 1.0), sum(&|i| x[i]), sum(&|i| y[i]));
        let (x_mean, y_mean) = (x_sum / all, y_sum / all);
        let spread = sum(&|i| (x[i] - x_mean).powi(2));
        let slope = sum(&|i| (x[i] - x_mean) * (y[i] - y_mean)) / spread;
        let line = Line { start: y_mean - slope * x_mean, slope };
        (spread > 0.0 && line.start.is_finite() && slope.is_finite()).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_a_line_give_that_line_with_any_weights() {
        let x = [1.0, 2.0, 5.0, 9.0];
        let y = x.map(|x| 3.0 + 2.0 * x);
        for weights in [[1.0; 4], [1.0, 0.5, 0.1, 0.01]] {
            let line = Line::through(&x, &y, &weights).unwrap();
            assert!((line.start - 3.0).abs() < 1e-12 && (line.slope - 2.0).abs() < 1e-12);
            assert!((line.at(10.0) - 23.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_worked_example() {
        // y of 1, 3, 2 at x of 0, 1, 2: slope 1/2, start 3/2.
        let line = Line::through(&[0.0, 1.0, 2.0], &[1.0, 3.0, 2.0], &[1.0; 3]).unwrap();
        assert_eq!(line, Line { start: 1.5, slope: 0.5 });
        // The last one counts twice: means 5/4 and 2, slope 1/(11/4).
        let line = Line::through(&[0.0, 1.0, 2.0], &[1.0, 3.0, 2.0], &[1.0, 1.0, 2.0]).unwrap();
        assert!((line.slope - 4.0 / 11.0).abs() < 1e-12, "{line:?}");
    }

    #[test]
    fn one_place_has_no_line() {
        assert_eq!(Line::through(&[], &[], &[]), None);
        assert_eq!(Line::through(&[2.0, 2.0], &[1.0, 3.0], &[1.0; 2]), None);
        assert_eq!(Line::through(&[1.0, 2.0], &[1.0, f64::INFINITY], &[1.0; 2]), None);
    }
}
