//! Curves over cells: one contender at loads that differ in a single number (method, rules 9 and
//! 10).

use crate::{Estimate, LoadShape};
use serde::{Deserialize, Serialize};

/// One contender at loads that differ only in their rate, only in their connections, only in their
/// silent connections, or only in their cores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Name of the contender.
    pub contender: String,
    /// The load of the first point; the others differ from it only in the number that the curve is
    /// over.
    pub load: LoadShape,
    /// The number that the curve is over, and the fit.
    pub over: Over,
    /// Restrictions and missing fits, with reasons; sentences.
    pub doubt: Option<String>,
}

/// The number that a curve is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Over {
    /// Open-loop rates.
    Rate {
        /// The points, in ascending order of the rate.
        points: Vec<RatePoint>,
        /// CPU(rate) = standing + marginal × rate; `None` e.g. with fewer than 3 rates that were held:
        /// [`Curve::doubt`] gives the reason.
        cost: Option<RateCost>,
        /// The rate at which latency leaves its plateau; `None` if that is outside the sweep, or with
        /// too few rates.
        knee: Option<Knee>,
    },
    /// Connections in closed loop.
    Connections {
        /// The points, in ascending order of the connections.
        points: Vec<ConnectionsPoint>,
        /// The Universal Scalability Law; `None` e.g. with fewer than 4 numbers of connections.
        usl: Option<Usl>,
    },
    /// Silent connections beside those that send, in closed loop.
    Idle {
        /// The points, in ascending order of the silent connections.
        points: Vec<IdlePoint>,
        /// cost(idle) = alone + each × idle; `None` e.g. with fewer than 3 costs.
        cost: Option<IdleCost>,
    },
    /// Cores of the server in closed loop.
    Cores {
        /// The points, in ascending order of the cores.
        points: Vec<CoresPoint>,
        /// The Universal Scalability Law; `None` e.g. with fewer than 4 numbers of cores.
        usl: Option<Usl>,
    },
}

/// A contender at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatePoint {
    /// Requested requests per second.
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

/// CPU(rate) = standing + marginal × rate, over the rates that were held. A line is fitted to each
/// pass (least squares on relative errors); the intervals are over the passes' lines, because the
/// points of a pass share the machine's drift.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateCost {
    /// CPU nanoseconds per second without any request.
    pub standing_ns_per_s: Estimate,
    /// CPU nanoseconds that one more request adds.
    pub marginal_ns: Estimate,
}

/// The rate at which latency leaves its plateau: the rate of the sweep with the highest *power*,
/// the rate over the 99th percentile of latency. Below it, latency grows more slowly than the rate;
/// above it, faster (Kleinrock, *Power and deterministic rules of thumb for probabilistic problems
/// in computer communications*, ICC 1979).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// Requests per second.
    pub rate: f64,
    /// Highest rate of the sweep below the knee, with 95% confidence; `None` if there is none.
    pub low: Option<f64>,
    /// Lowest rate of the sweep above the knee, with 95% confidence or because it was not held;
    /// `None` if there is none.
    pub high: Option<f64>,
}

/// A contender at a number of connections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectionsPoint {
    /// Open connections that send.
    pub connections: u32,
    /// Requests per second; `None` if void.
    pub rate_per_s: Option<Estimate>,
}

/// A contender at a number of silent connections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdlePoint {
    /// Silent connections.
    pub idle: u32,
    /// Server CPU per request, nanoseconds; `None` if void.
    pub cost_ns: Option<Estimate>,
}

/// cost(idle) = alone + each × idle: how much each silent connection adds to the cost of a request.
/// Fitted like [`RateCost`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdleCost {
    /// CPU nanoseconds of a request without silent connections.
    pub alone_ns: Estimate,
    /// CPU nanoseconds that each silent connection adds to a request.
    pub each_ns: Estimate,
}

/// A contender on a number of cores.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoresPoint {
    /// CPUs of the contender.
    pub cores: u32,
    /// Requests per second; `None` if void.
    pub rate_per_s: Option<Estimate>,
}

/// `X(N) = λN / (1 + σ(N−1) + κN(N−1))` (Gunther, *Guerrilla Capacity Planning*, 2007), fitted to
/// each pass by least squares on relative errors; the intervals are over the passes' fits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usl {
    /// λ: requests per second of one connection, or core, alone.
    pub lambda: Estimate,
    /// σ: contention, the share that is serial.
    pub sigma: Estimate,
    /// κ: coherency, the cost of synchronisation.
    pub kappa: Estimate,
    /// Connections, or cores, at which the rate is highest, √((1−σ)/κ); `None` if κ does not differ
    /// significantly from 0, or if the rounds differ too much.
    pub peak: Option<Estimate>,
    /// Share of the variance of the rates that the law explains.
    pub r2: f64,
}
