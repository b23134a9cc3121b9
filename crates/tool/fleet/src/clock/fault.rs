//! Why pings give no offset.

use std::fmt;

/// Why the pings of an agent give no offset, or a time cannot be converted. The round that needs it is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No ping was answered.
    #[error(
        "expected at least one answered clock ping, got none: check the connection to the agent"
    )]
    NoPings,
    /// There are more pings than are read at once.
    #[error("expected at most {limit} clock pings, got more: use those next to the round")]
    TooMany {
        /// The limit, [`MOST_PINGS`](super::MOST_PINGS).
        limit: usize,
    },
    /// A time is beyond [`LATEST_NS`](super::LATEST_NS).
    #[error(
        "the {side}'s clock reads {ns} ns, which is over 146 years: expected nanoseconds of CLOCK_MONOTONIC"
    )]
    TooLate {
        /// Whose clock it is.
        side: Side,
        /// What it reads.
        ns: u64,
    },
    /// Within a ping, a clock went backwards.
    #[error("the {side}'s clock went back from {from_ns} ns to {to_ns} ns within a ping")]
    Backwards {
        /// Whose clock it is.
        side: Side,
        /// The earlier reading.
        from_ns: u64,
        /// The later reading, which is smaller.
        to_ns: u64,
    },
    /// The pings are too far apart for a constant rate.
    #[error("the clock pings are {span_ns} ns apart: expected all of them within a day")]
    TooLong {
        /// Time between the first and the last one, of the leader's clock.
        span_ns: u64,
    },
    /// No offset with a constant and possible rate agrees with all pings.
    #[error(
        "the clock pings contradict each other: the agent's clock gained at least {least} and at most {most} of the \
         leader's clock; a clock was changed, a machine was suspended, or the agent reports wrong times: repeat the \
         round"
    )]
    Contradiction {
        /// The steepest gain that some pings need, or the lowest possible rate.
        least: Gain,
        /// The least steep gain that other pings permit, or the highest possible rate.
        most: Gain,
    },
    /// The time to convert is not near the pings.
    #[error(
        "{ns} ns of the {side}'s clock is over a day from the clock pings, or before the other clock started"
    )]
    Far {
        /// Whose clock it is.
        side: Side,
        /// The time to convert.
        ns: u64,
    },
}

/// One of the two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The leader's.
    Leader,
    /// The agent's.
    Agent,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Leader => "leader",
            Side::Agent => "agent",
        })
    }
}

/// How much the agent's clock gained on the leader's. A negative gain is a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gain {
    /// Nanoseconds that it gained.
    pub gained_ns: i64,
    /// Within this time of the leader's clock, in nanoseconds. 0: at once.
    pub over_ns: u64,
}

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns in {} ns", self.gained_ns, self.over_ns)
    }
}
