//! What the network between load and contender carried.

use serde::{Deserialize, Serialize};

/// What both ends of the network saw in some slices. Absent: not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkUse {
    /// Length of the slices, nanoseconds.
    pub ns: u64,
    /// The load's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Carried>,
    /// The contender's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Carried>,
}

/// What one end saw: everything on its interface, and the TCP of its network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// The interface.
    pub interface: String,
    /// Its speed, bits per second. Absent: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_bits_per_s: Option<u64>,
    /// Bytes that came, with those that a frame takes on the line beside its contents.
    pub received_bytes: u64,
    /// Bytes that were sent.
    pub sent_bytes: u64,
    /// TCP segments that were sent for the first time.
    pub segments: u64,
    /// TCP segments that were sent again.
    pub resent: u64,
}

impl NetworkUse {
    /// Adds what was seen later.
    pub fn add(&mut self, other: &NetworkUse) {
        self.ns += other.ns;
        add(&mut self.load, other.load.as_ref());
        add(&mut self.server, other.server.as_ref());
    }
}

fn add(sum: &mut Option<Carried>, other: Option<&Carried>) {
    match (sum, other) {
        (_, None) => {}
        (sum @ None, Some(other)) => *sum = Some(other.clone()),
        (Some(sum), Some(other)) => {
            sum.received_bytes += other.received_bytes;
            sum.sent_bytes += other.sent_bytes;
            sum.segments += other.segments;
            sum.resent += other.resent;
        }
    }
}
