//! The statistics of a race: plain functions from figures per round to intervals and relations.
//!
//! The unit is the round, a fresh start of the contender; never the single request. Means of costs,
//! rates and latencies are geometric and their intervals are computed on natural logarithms, because
//! they vary by factors (the interval of `a/b` is then the reciprocal of that of `b/a`). Coefficients
//! of curves may be zero or negative: their means are arithmetic. This module does not know loads,
//! verdicts or files; `judge` does.

mod compare;
mod difference;
mod drift;
mod interval;
mod jackknife;
mod known;
mod line;
mod needed_rounds;
mod percentiles;
mod series;
mod starts;
mod usl;

pub use compare::{Margins, bands, holm, noise_floor, relation};
pub use difference::Difference;
pub use drift::drift;
pub use interval::{
    BOOTSTRAP_SAMPLES, CONFIDENCE, STUDENT_UP_TO, arithmetic, geometric, geometric_each, p_value,
    student, t_quantile,
};
pub use jackknife::pseudo_values;
pub use known::{MOST_APART, is_known, known, known_floor};
pub use line::Line;
pub use needed_rounds::{Needed, rounds_needed};
pub use percentiles::{percentiles, unknown_percentiles};
pub use series::{DEVIATION, Series, log, mean, median, paired, present, robust};
pub use starts::{TwoKinds, fisher_exact, two_kinds};
pub use usl::{Free, Law};
