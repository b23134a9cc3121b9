//! Drives: when a load sends its requests.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// When a load sends its requests. Files have its name as `drive`, and its parameters beside that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "drive", rename_all = "kebab-case")]
pub enum Drive {
    /// Closed loop: a connection sends its next request when a reply arrives.
    Closed,
    /// Closed loop, with at most `in_flight` requests in flight over all connections. The
    /// connections take turns; the one that has been free longest is next.
    Bounded {
        /// Maximum number of requests in flight.
        in_flight: NonZeroU32,
    },
    /// Open loop: requests are sent on a schedule, whether or not earlier ones were answered.
    Open {
        /// Requests per second, over all connections.
        rate: NonZeroU32,
        /// The distribution of the gaps between requests.
        #[serde(default)]
        arrivals: Arrivals,
    },
    /// Closed loop with a new connection for every request, or for every conversation where the
    /// workload has conversations.
    Churn,
    /// Every connection sends a fixed number of requests and closes.
    Burst(#[serde(with = "in_burst")] Burst),
}

impl Drive {
    /// Requested requests per second, in open loop.
    pub fn rate(self) -> Option<NonZeroU32> {
        match self {
            Drive::Open { rate, .. } => Some(rate),
            _ => None,
        }
    }

    /// How requests arrive, in open loop.
    pub fn arrivals(self) -> Option<Arrivals> {
        match self {
            Drive::Open { arrivals, .. } => Some(arrivals),
            _ => None,
        }
    }

    /// The burst, if it is one.
    pub fn burst(self) -> Option<Burst> {
        match self {
            Drive::Burst(burst) => Some(burst),
            _ => None,
        }
    }

    /// Whether every request or conversation has its own connection.
    pub fn churns(self) -> bool {
        self == Drive::Churn
    }
}

/// How the requests of an open loop arrive.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Independently of each other, as from many users: the gaps are exponentially distributed.
    #[default]
    Poisson,
    /// Evenly spaced.
    Constant,
}

impl Arrivals {
    /// All of them.
    pub const ALL: [Arrivals; 2] = [Arrivals::Poisson, Arrivals::Constant];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Arrivals::Poisson => "poisson",
            Arrivals::Constant => "constant",
        }
    }

    /// As part of a sentence.
    pub fn in_words(self) -> &'static str {
        match self {
            Arrivals::Poisson => "Poisson arrivals",
            Arrivals::Constant => "evenly spaced",
        }
    }
}

/// A part of the window of an open loop, with its own rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Its length, in nanoseconds.
    pub ns: u64,
    /// Requests per second, over all load threads.
    pub rate: NonZeroU32,
}

/// A burst: several load instances at once, each with its share of the connections; every
/// connection connects, sends its requests, reads its replies and closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Burst {
    /// Load instances; each has `connections / instances` connections.
    pub instances: u32,
    /// Requests of each connection.
    pub requests: u32,
}

/// A burst has a key of its own: a load has `requests`, too.
mod in_burst {
    use super::Burst;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Key {
        burst: Burst,
    }

    pub fn serialize<S: Serializer>(burst: &Burst, serializer: S) -> Result<S::Ok, S::Error> {
        Key { burst: *burst }.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Burst, D::Error> {
        Key::deserialize(deserializer).map(|key| key.burst)
    }
}
