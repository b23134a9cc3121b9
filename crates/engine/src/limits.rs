//! The limits of one connection, the same on every model.

use std::time::{Duration, Instant};

/// Limits of one connection. Buffers are bounded by constants beside the code that fills them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest silence. A connection is closed when its client sends nothing, or acknowledges
    /// nothing of what was sent to it, for this long.
    pub idle: Duration,
    /// Longest time from the first byte of a request to its last.
    pub request: Duration,
}

impl Limits {
    /// How long a connection that the server closed is still read, so that a reset does not overtake
    /// the last reply (RFC 1122, 4.2.2.13).
    pub const LINGER: Duration = Duration::from_secs(2);

    /// How many bytes are read and discarded in that time.
    pub const LINGER_BYTES: usize = 1 << 20;

    /// Interval between checks that a client waiting for a job is still connected.
    pub const LOOK: Duration = Duration::from_millis(250);

    /// Longest time that a connection to another server may take to open.
    pub const CONNECT: Duration = Duration::from_secs(5);

    /// When a connection times out that was last active at `active` and is inside a request since
    /// `inside`.
    pub fn due(&self, active: Instant, inside: Option<Instant>) -> Instant {
        let idle = active + self.idle;
        inside.map_or(idle, |inside| idle.min(inside + self.request))
    }

    /// Interval between looks at how much of its output a peer has acknowledged: a timeout is late
    /// by at most two of them, a quarter of the limit.
    pub fn look(&self) -> Duration {
        (self.idle / 8).clamp(Duration::from_millis(1), Duration::from_secs(1))
    }
}

impl Default for Limits {
    /// 60 s of silence, 10 s for a request.
    fn default() -> Self {
        Limits { idle: Duration::from_secs(60), request: Duration::from_secs(10) }
    }
}
