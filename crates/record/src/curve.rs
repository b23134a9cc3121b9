//! Curves over cells: one contender under loads that differ in a single number.

use crate::{Estimate, LoadShape};
use serde::{Deserialize, Serialize};

/// One contender under loads that differ in their rate alone, or in their connections alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Name of the contender.
    pub contender: String,
    /// The load of the first point; the others differ from it in what the curve is over.
    pub load: LoadShape,
    /// What it is over, and what was found.
    pub over: Over,
}

/// What a curve is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Over {
    /// Open-loop rates.
    Rate {
        /// The points, in rising order of the rate.
        points: Vec<RatePoint>,
        /// CPU(rate) = standing + marginal × rate; `None` with fewer than 3 rates that were held.
        cost: Option<RateCost>,
        /// Where latency leaves its plateau; `None` where it does not, or too few rates.
        knee: Option<Knee>,
    },
    /// Connections in closed loop.
    Connections {
        /// The points, in rising order of the connections.
        points: Vec<ConnectionsPoint>,
        /// The Universal Scalability Law; `None` with fewer than 4 numbers of connections.
        usl: Option<Usl>,
    },
}

/// A contender at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatePoint {
    /// Requests per second asked for.
    pub rate: u32,
    /// Whether the rate was held.
    pub held: bool,
    /// Median latency from the intended send, nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99th percentile of it, nanoseconds.
    pub p99_ns: Option<u64>,
    /// Server CPU, nanoseconds per second.
    pub cpu_ns_per_s: Option<Estimate>,
}

/// CPU(rate) = standing + marginal × rate, by least squares over rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateCost {
    /// CPU nanoseconds per second without any request.
    pub standing_ns_per_s: Estimate,
    /// CPU nanoseconds of one more request.
    pub marginal_ns: Estimate,
}

/// Where latency leaves its plateau.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// Requests per second.
    pub rate: f64,
    /// Highest rate of the sweep that lies before it, with certainty.
    pub low: f64,
    /// Lowest rate of the sweep that lies beyond it, with certainty.
    pub high: f64,
}

/// A contender at a number of connections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionsPoint {
    /// Open connections that send.
    pub connections: u32,
    /// Requests per second.
    pub rate_per_s: Option<Estimate>,
}

/// `X(N) = λN / (1 + σ(N−1) + κN(N−1))` (Gunther, *Guerrilla Capacity Planning*, 2007).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usl {
    /// λ: requests per second of one connection alone.
    pub lambda: Estimate,
    /// σ: contention, the share that is serial.
    pub sigma: Estimate,
    /// κ: coherency, the cost of keeping in step.
    pub kappa: Estimate,
    /// Connections at which the rate is highest, √((1−σ)/κ); `None` where κ is not told from 0.
    pub peak: Option<Estimate>,
    /// Share of the variance of the rates that the law explains.
    pub r2: f64,
}
