//! The Universal Scalability Law, fitted to rates.

/// `X(N) = λN / (1 + σ(N−1) + κN(N−1))` (Gunther, *Guerrilla Capacity Planning*, 2007, chapter 6):
/// the rate of N units together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    /// λ: the rate of one unit alone.
    pub lambda: f64,
    /// σ: contention.
    pub sigma: f64,
    /// κ: coherency.
    pub kappa: f64,
}

/// Which of the two losses a fit may estimate; the other one is held at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    /// σ.
    pub sigma: bool,
    /// κ.
    pub kappa: bool,
}

impl Free {
    /// Both.
    pub const BOTH: Free = Free { sigma: true, kappa: true };

    /// Chooses the free losses so that none is negative: of the fits whose losses are all 0 or
    /// above, the one with the least error. `None` if there is no such fit.
    pub fn within_bounds(points: &[(f64, f64)]) -> Option<Free> {
        let all = [(true, true), (true, false), (false, true), (false, false)];
        let fits = all.map(|(sigma, kappa)| Free { sigma, kappa }).map(|free| {
            let law = Law::fit(points, free).filter(|l| l.sigma >= 0.0 && l.kappa >= 0.0)?;
            Some((free, law.squares(points)))
        });
        let nearest = fits.into_iter().flatten().min_by(|(_, a), (_, b)| a.total_cmp(b));
        nearest.map(|(free, _)| free)
    }
}

impl Law {
    /// The rate of `n`.
    pub fn at(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }

    /// N with the highest rate, √((1−σ)/κ); `None` if the rate only grows, or only falls.
    pub fn peak(&self) -> Option<f64> {
        let square = (1.0 - self.sigma) / self.kappa;
        (self.kappa > 0.0 && square > 0.0).then(|| square.sqrt())
    }

    /// The law nearest to `points` of N and rate, by least squares on relative errors. Pure noise
    /// may make losses negative.
    ///
    /// `N/X = 1/λ + σ/λ (N−1) + κ/λ N(N−1)` is linear in its three coefficients, and a relative
    /// error of N/X is one of X: so the fit has a closed form, with weights `(X/N)²`. `None` with
    /// fewer different N than coefficients, with N below 1, with rates that are not positive, or if λ
    /// is not positive.
    pub fn fit(points: &[(f64, f64)], free: Free) -> Option<Law> {
        let columns: Vec<fn(f64) -> f64> = [
            Some((|_| 1.0) as fn(f64) -> f64),
            free.sigma.then_some(|n| n - 1.0),
            free.kappa.then_some(|n| n * (n - 1.0)),
        ]
        .into_iter()
        .flatten()
        .collect();
        if points.iter().any(|&(n, rate)| n < 1.0 || rate.is_nan() || rate <= 0.0) {
            return None;
        }
        let rows: Vec<Vec<f64>> = points
            .iter()
            .map(|(n, rate)| columns.iter().map(|column| column(*n) * rate / n).collect())
            .collect();
        let mut found = least_squares(&rows)?.into_iter();
        let per_one = found.next().filter(|c| *c > 0.0)?;
        let mut loss =
            |free: bool| free.then(|| found.next()).flatten().map_or(0.0, |c| c / per_one);
        let (sigma, kappa) = (loss(free.sigma), loss(free.kappa));
        Some(Law { lambda: 1.0 / per_one, sigma, kappa })
    }

    /// Share of the variance of the rates that the law explains; negative if their mean fits better
    /// than the law.
    pub fn r2(&self, points: &[(f64, f64)]) -> f64 {
        let mean = points.iter().map(|(_, rate)| rate).sum::<f64>() / points.len() as f64;
        let unexplained: f64 = points.iter().map(|(n, rate)| (rate - self.at(*n)).powi(2)).sum();
        let all: f64 = points.iter().map(|(_, rate)| (rate - mean).powi(2)).sum();
        1.0 - unexplained / all
    }

    /// Sum of the squared relative errors of N/X, which a fit minimises.
    fn squares(&self, points: &[(f64, f64)]) -> f64 {
        points.iter().map(|(n, rate)| (rate / self.at(*n) - 1.0).powi(2)).sum()
    }
}

/// The coefficients for which the columns of `rows` are nearest to 1: the normal equations, with
/// columns scaled to length 1 (they differ by six powers of ten), by Gaussian elimination with
/// pivoting. `None` with fewer rows than columns, or if columns are linearly dependent.
fn least_squares(rows: &[Vec<f64>]) -> Option<Vec<f64>> {
    let k = rows.first()?.len();
    if rows.len() < k {
        return None;
    }
    let length = |c: usize| rows.iter().map(|row| row[c] * row[c]).sum::<f64>().sqrt();
    let lengths: Vec<f64> = (0..k).map(length).collect();
    let scaled = |row: &[f64], c: usize| row[c] / lengths[c];
    let mut m: Vec<Vec<f64>> = (0..k)
        .map(|a| {
            let with = |b| rows.iter().map(|row| scaled(row, a) * scaled(row, b)).sum::<f64>();
            let mut line: Vec<f64> = (0..k).map(with).collect();
            line.push(rows.iter().map(|row| scaled(row, a)).sum());
            line
        })
        .collect();
    for c in 0..k {
        let pivot = (c..k).max_by(|&a, &b| m[a][c].abs().total_cmp(&m[b][c].abs()))?;
        // With columns of length 1, the remainder of a linearly dependent column is noise.
        if m[pivot][c].is_nan() || m[pivot][c].abs() < 1e-12 {
            return None;
        }
        m.swap(c, pivot);
        for r in (0..k).filter(|r| *r != c) {
            let factor = m[r][c] / m[c][c];
            let line = m[c].clone();
            m[r].iter_mut().zip(line).for_each(|(v, by)| *v -= factor * by);
        }
    }
    Some((0..k).map(|c| m[c][k] / m[c][c] / lengths[c]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: [f64; 7] = [1.0, 2.0, 8.0, 32.0, 128.0, 512.0, 1000.0];

    fn on(law: Law) -> Vec<(f64, f64)> {
        COUNTS.iter().map(|&n| (n, law.at(n))).collect()
    }

    #[test]
    fn rates_on_the_law_give_that_law() {
        for (sigma, kappa) in [(0.02, 1e-5), (0.5, 0.0), (0.0, 1e-3), (0.0, 0.0)] {
            let law = Law { lambda: 9_000.0, sigma, kappa };
            let found = Law::fit(&on(law), Free::BOTH).unwrap();
            assert!((found.lambda / 9_000.0 - 1.0).abs() < 1e-6, "{found:?}");
            assert!((found.sigma - sigma).abs() < 1e-6 && (found.kappa - kappa).abs() < 1e-9);
            assert!((found.r2(&on(law)) - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn the_peak_of_the_book() {
        // √((1 − 0.02)/0.0005) = 44.27.
        let law = Law { lambda: 995.6, sigma: 0.02, kappa: 0.0005 };
        assert!((law.peak().unwrap() - 44.27).abs() < 0.01);
        assert!(law.at(44.0) > law.at(30.0) && law.at(44.0) > law.at(60.0));
        assert_eq!(Law { kappa: 0.0, ..law }.peak(), None);
        assert_eq!(Law { sigma: 1.5, ..law }.peak(), None);
    }

    #[test]
    fn a_loss_below_zero_is_held_at_zero() {
        // Faster than in proportion, then slower: σ would be below 0.
        let law = Law { lambda: 1_000.0, sigma: -0.001, kappa: 1e-5 };
        assert!(Law::fit(&on(law), Free::BOTH).unwrap().sigma < 0.0);
        let free = Free::within_bounds(&on(law)).unwrap();
        assert_eq!(free, Free { sigma: false, kappa: true });
        let bent_up = Law { lambda: 1_000.0, sigma: 0.1, kappa: -1e-5 };
        assert_eq!(Free::within_bounds(&on(bent_up)).unwrap(), Free { sigma: true, kappa: false });
        assert_eq!(Free::within_bounds(&on(Law { kappa: 1e-5, ..bent_up })), Some(Free::BOTH));
    }

    #[test]
    fn refuses_points_that_cannot_be_fitted() {
        let law = Law { lambda: 9_000.0, sigma: 0.02, kappa: 1e-5 };
        let points = on(law);
        assert_eq!(Law::fit(&points[..2], Free::BOTH), None, "fewer points than coefficients");
        assert_eq!(Law::fit(&[points[3]; 5], Free::BOTH), None, "all at one place");
        assert_eq!(Law::fit(&[], Free::BOTH), None);
        for rate in [0.0, -1.0, f64::NAN] {
            let mut points = points.clone();
            points[2].1 = rate;
            assert_eq!(Law::fit(&points, Free::BOTH), None, "{rate}");
            assert_eq!(Free::within_bounds(&points), None);
        }
    }
}
