//! What slow clients are asked to do.

use crate::Error;
use regatta_script::{Unending, Workload};
use std::{net::SocketAddr, time::Duration};

/// What slow clients do.
#[derive(Clone, Debug)]
pub struct SlowPlan {
    /// The server.
    pub target: SocketAddr,
    /// The host that requests of new clients name, where they do.
    pub host: String,
    /// What a new client asks, and what must come back: its first exchange, on a connection that
    /// serves no other.
    pub workload: Workload,
    /// What is sent slowly.
    pub request: Unending,
    /// Slow connections, opened within the first interval or second.
    pub connections: usize,
    /// Between two bytes of a connection.
    pub every: Duration,
    /// After this long it ends; sooner, when the server has closed all slow connections.
    pub longest: Duration,
    /// How long a new client waits for its reply.
    pub timeout: Duration,
}

impl SlowPlan {
    /// Between the begins of two new clients.
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
