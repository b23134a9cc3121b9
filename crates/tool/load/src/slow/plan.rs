//! The plan of a run of slow clients.

use crate::Error;
use regatta_script::{SlowRequest, Workload};
use std::{net::SocketAddr, time::Duration};

/// The plan of a run of slow clients.
#[derive(Clone, Debug)]
pub struct SlowPlan {
    /// The server.
    pub target: SocketAddr,
    /// The host that requests of new clients name, in protocols that have one.
    pub host: String,
    /// The workload of the new clients. Each sends the first request of it, on a connection of its own,
    /// and checks the reply.
    pub workload: Workload,
    /// The request that is sent slowly.
    pub request: SlowRequest,
    /// Number of slow connections. They are opened within the first interval, or within a second if that
    /// is shorter.
    pub connections: usize,
    /// Interval between two bytes of a connection.
    pub every: Duration,
    /// Time after which no further client connects. The run ends when the last new client has its
    /// reply, or its timeout. It ends earlier if the server has closed all slow connections.
    pub longest: Duration,
    /// Maximum time that a new client waits for its reply.
    pub timeout: Duration,
}

impl SlowPlan {
    /// Minimum interval between the starts of two new clients.
    pub const PROBE_EVERY: Duration = Duration::from_millis(100);

    pub(super) fn check(&self) -> Result<(), Error> {
        let refuse = |what: &str| Err(Error::Plan(what.into()));
        match () {
            () if self.connections == 0 => refuse("there must be at least 1 slow connection"),
            () if self.every < Duration::from_millis(1) => {
                refuse("the time between two bytes must be at least 1 ms")
            }
            () if self.longest.is_zero() || self.timeout.is_zero() => {
                refuse("the duration and the timeout must be above 0")
            }
            () if self.request.slowly.is_empty() => refuse("there is nothing to send slowly"),
            () => Ok(()),
        }
    }
}
