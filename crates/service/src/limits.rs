//! The limits of one connection, the same on every model.

use std::time::{Duration, Instant};

/// Limits of one connection. Buffers are bounded by constants beside the code that fills them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest silence: a connection that sends nothing, or takes nothing of what it is owed, for
    /// so long is closed.
    pub idle: Duration,
    /// Longest time from the first byte of a request to its last.
    pub request: Duration,
}

impl Limits {
    /// How long a connection that was ended by the server is read on, so that a reset does not
    /// overtake the last reply (RFC 1122, 4.2.2.13).
    pub const LINGER: Duration = Duration::from_secs(2);

    /// How many bytes are read on, and thrown away, in that time.
    pub const LINGER_BYTES: usize = 1 << 20;

    /// How often it is looked whether a client is still there whose connection is not read while a
    /// job is done for it.
    pub const LOOK: Duration = Duration::from_millis(250);

    /// When a connection is due: last heard of at `heard`, inside a request since `began`.
    pub fn due(&self, heard: Instant, began: Option<Instant>) -> Instant {
        let idle = heard + self.idle;
        began.map_or(idle, |began| idle.min(began + self.request))
    }
}

impl Default for Limits {
    /// A minute of silence, ten seconds for a request.
    fn default() -> Self {
        Limits { idle: Duration::from_secs(60), request: Duration::from_secs(10) }
    }
}
