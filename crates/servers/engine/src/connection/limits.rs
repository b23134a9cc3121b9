//! The limits of one connection. They are the same on every model.

use std::time::{Duration, Instant};

/// Limits of one connection. Buffers are bounded by constants beside the code that fills them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Idle timeout. A connection is closed when for this long its client neither sends anything
    /// nor acknowledges output, unless it waits for the server. A client whose output no longer
    /// fits into the kernel's send buffer must acknowledge some of it, whatever it sends.
    pub idle: Duration,
    /// Maximum time from the first byte of a request to its last.
    pub request: Duration,
}

impl Limits {
    /// Maximum time for which a connection that the server closed is still read, so that a reset
    /// does not overtake the last reply (RFC 1122, 4.2.2.13).
    pub const LINGER: Duration = Duration::from_secs(2);

    /// Maximum number of bytes read and discarded in that time.
    pub const LINGER_BYTES: usize = 1 << 20;

    /// Maximum time for which a session that closes may wait until its client takes the last output
    /// ([`Session::cut_at`](crate::Session::cut_at)).
    pub const LAST_OUTPUT: Duration = Duration::from_secs(10);

    /// Interval between checks that a peer is still connected while it is not read, or waits for a
    /// reply.
    pub const LIVENESS_INTERVAL: Duration = Duration::from_millis(250);

    /// Maximum time to open a connection to another server.
    pub const CONNECT: Duration = Duration::from_secs(5);

    /// Returns when a connection times out. It was last active at `active`; its incomplete request
    /// started at `inside`.
    pub fn due(&self, active: Instant, inside: Option<Instant>) -> Instant {
        let idle = active + self.idle;
        inside.map_or(idle, |inside| idle.min(inside + self.request))
    }

    /// Interval between checks of how much output a peer has acknowledged, while the kernel accepts
    /// no more. A timeout is late by at most two intervals, which is at most a quarter of any limit
    /// of 8 ms or more.
    pub fn progress_interval(&self) -> Duration {
        (self.idle / 8).clamp(Duration::from_millis(1), Duration::from_secs(1))
    }
}

impl Default for Limits {
    /// 60 s idle, 10 s for a request.
    fn default() -> Self {
        Limits { idle: Duration::from_secs(60), request: Duration::from_secs(10) }
    }
}
