//! The mixed model of a pair: log-ratio ~ state (fixed) + life (random) + block.
//!
//! `d = β(state) + u(life) + e(block)`, with variances τ² of u and σ² of e. The variances are
//! estimated by the fitting-constants method (Henderson, *Estimation of variance and covariance
//! components*, Biometrics 9, 1953, method 3; Searle, Casella and McCulloch, *Variance Components*,
//! 1992, section 5.5), which needs no iteration, is unbiased with unequal numbers of blocks, and
//! with one state and equal numbers is the one-way analysis of variance. β follows by generalised
//! least squares, solved with the sweep operator (Goodnight, *A tutorial on the SWEEP operator*, The
//! American Statistician 33, 1979).
//!
//! The variance of an estimate is written in the two mean squares, of lives and of blocks. In the
//! balanced case that of blocks drops out: the result is exactly that of Student's t on the means of
//! lives, also where τ² is estimated as negative. Setting such a τ² to zero would make the interval
//! one over blocks, which is too narrow.

use super::sweep::sweep;

/// Upper limit of ρm = τ²m/σ² in the weights. Beyond it they no longer change.
const LARGEST_RATIO: f64 = 1e4;

/// Sums of one life.
#[derive(Clone, Debug, PartialEq)]
struct Sums {
    /// Number of blocks in each state.
    counts: Vec<f64>,
    /// Sum of the log-ratios in each state.
    sums: Vec<f64>,
    /// Number of blocks.
    blocks: f64,
}

/// A mean square and its degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MeanSquare {
    pub value: f64,
    pub freedom: f64,
}

/// The fitted model.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fit {
    /// Mean log-ratio in each state.
    pub beta: Vec<f64>,
    /// Number of blocks in each state.
    pub blocks: Vec<u32>,
    /// That of lives: σ² + `blocks_per_life` × τ² is expected.
    pub between: MeanSquare,
    /// That of blocks within lives: σ² is expected. Zero if no life has a block to spare.
    pub within: MeanSquare,
    /// Mean number of blocks per life, as the mean square of lives counts them.
    pub blocks_per_life: f64,
    lives: Vec<Sums>,
    /// Share of the sum of a life that its random effect takes off: ρ/(1 + ρm), with ρ = τ²/σ².
    shares: Vec<f64>,
    /// Inverse of X′WX, with the weights W of generalised least squares.
    inverse: Vec<Vec<f64>>,
}

/// An estimate with its variance and degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Contrast {
    pub estimate: f64,
    pub variance: f64,
    pub freedom: f64,
}

impl Fit {
    /// Fits the log-ratios of lives, each with its state (below `states`). Lives without a block do
    /// not count. `None` if a state has no block, or too few lives remain to estimate the variance
    /// between them.
    pub fn of(lives: &[Vec<(usize, f64)>], states: usize) -> Option<Fit> {
        let all: Vec<f64> = lives.iter().flatten().map(|(_, d)| *d).collect();
        let n = all.len() as f64;
        // Distances from the overall mean, so that sums of squares keep their digits.
        let centre = crate::statistics::mean(&all)?;
        let squares = all.iter().map(|d| (d - centre).powi(2)).sum::<f64>();
        let lives: Vec<Sums> =
            lives.iter().filter(|l| !l.is_empty()).map(|l| sums(l, centre, states)).collect();
        let in_state = |state: usize| lives.iter().map(|life| life.counts[state]).sum::<f64>();
        let totals: Vec<f64> = (0..states).map(in_state).collect();
        if totals.contains(&0.0) {
            return None;
        }

        let by_state = solve(&lives, states, &vec![0.0; lives.len()], squares);
        let whole: Vec<f64> = lives.iter().map(|life| 1.0 / life.blocks).collect();
        let by_both = solve(&lives, states, &whole, squares);
        // The states that are compared within lives use no freedom of the lives.
        let freedom = lives.len() as f64 - (states - by_both.rank) as f64;
        if freedom < 1.0 {
            return None;
        }
        let square = (by_state.residual - by_both.residual).max(0.0);
        let between = MeanSquare { value: square / freedom, freedom };
        let freedom = n - lives.len() as f64 - by_both.rank as f64;
        let value = if freedom > 0.0 { by_both.residual / freedom } else { 0.0 };
        let within = MeanSquare { value, freedom };

        let own =
            |life: &Sums| life.counts.iter().zip(&totals).map(|(n, all)| n * n / all).sum::<f64>();
        let blocks_per_life = (n - lives.iter().map(own).sum::<f64>()) / between.freedom;
        let tau = ((between.value - within.value) / blocks_per_life).max(0.0);
        let share = |life: &Sums| {
            let ratio = tau * life.blocks / within.value;
            let ratio = if ratio.is_nan() { 0.0 } else { ratio.min(LARGEST_RATIO) };
            ratio / (1.0 + ratio) / life.blocks
        };
        let shares: Vec<f64> = lives.iter().map(share).collect();
        let Solution { inverse, beta, .. } = solve(&lives, states, &shares, squares);
        Some(Fit {
            beta: beta.iter().map(|beta| beta + centre).collect(),
            blocks: totals.iter().map(|n| *n as u32).collect(),
            between,
            within,
            blocks_per_life,
            lives,
            shares,
            inverse,
        })
    }

    /// Number of lives with a block.
    pub fn lives(&self) -> u32 {
        self.lives.len() as u32
    }

    /// Number of lives with a block in a state.
    pub fn lives_in(&self, state: usize) -> u32 {
        self.lives.iter().filter(|life| life.counts[state] > 0.0).count() as u32
    }

    /// A linear combination of the states' means. Its variance is a combination of the two mean
    /// squares, with the degrees of freedom of Satterthwaite (*An approximate distribution of
    /// estimates of variance components*, Biometrics Bulletin 2, 1946).
    pub fn contrast(&self, weights: &[f64]) -> Contrast {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let by: Vec<f64> = self.inverse.iter().map(|row| dot(row, weights)).collect();
        // β = (X′WX)⁻¹X′Wd, so its variance is (X′WX)⁻¹ X′W(σ² + τ²J)WX (X′WX)⁻¹.
        let (mut sigma, mut tau) = (0.0, 0.0);
        for (life, share) in self.lives.iter().zip(&self.shares) {
            let (m, sum) = (life.blocks, dot(&life.counts, &by));
            let each: f64 = life.counts.iter().zip(&by).map(|(n, by)| n * by * by).sum();
            sigma += each - (2.0 * share - share * share * m) * sum * sum;
            tau += (1.0 - share * m).powi(2) * sum * sum;
        }
        let of_lives = tau / self.blocks_per_life;
        let of_blocks = (sigma - of_lives).max(0.0);
        let parts = [(of_lives, self.between), (of_blocks, self.within)]
            .map(|(by, square)| (by * square.value, square.freedom));
        let variance = parts[0].0 + parts[1].0;
        let uncertain =
            |(part, freedom): (f64, f64)| if part > 0.0 { part * part / freedom } else { 0.0 };
        let freedom = variance * variance / parts.map(uncertain).iter().sum::<f64>();
        Contrast {
            estimate: dot(weights, &self.beta),
            variance,
            freedom: if freedom.is_finite() { freedom } else { self.between.freedom },
        }
    }
}

fn sums(life: &[(usize, f64)], centre: f64, states: usize) -> Sums {
    let mut sums =
        Sums { counts: vec![0.0; states], sums: vec![0.0; states], blocks: life.len() as f64 };
    for (state, d) in life {
        sums.counts[*state] += 1.0;
        sums.sums[*state] += d - centre;
    }
    sums
}

/// The normal equations, solved.
struct Solution {
    inverse: Vec<Vec<f64>>,
    beta: Vec<f64>,
    /// Weighted residual sum of squares.
    residual: f64,
    rank: usize,
}

/// Solves the normal equations with the weights `1 − share·J` within each life (J is all ones).
/// Shares of 0 are ordinary least squares on the states; shares of 1/m take off the mean of each
/// life.
fn solve(lives: &[Sums], states: usize, shares: &[f64], squares: f64) -> Solution {
    let mut matrix = vec![vec![0.0; states + 1]; states + 1];
    matrix[states][states] = squares;
    for (life, share) in lives.iter().zip(shares) {
        let all: f64 = life.sums.iter().sum();
        for (i, n) in life.counts.iter().enumerate() {
            matrix[i][i] += n;
            for (j, other) in life.counts.iter().enumerate() {
                matrix[i][j] -= share * n * other;
            }
            let right = life.sums[i] - share * n * all;
            matrix[i][states] += right;
            matrix[states][i] += right;
        }
        matrix[states][states] -= share * all * all;
    }
    let rank = sweep(&mut matrix, states);
    let beta = matrix[..states].iter().map(|row| row[states]).collect();
    let residual = matrix[states][states].max(0.0);
    matrix.truncate(states);
    matrix.iter_mut().for_each(|row| row.truncate(states));
    Solution { inverse: matrix, beta, residual, rank }
}
