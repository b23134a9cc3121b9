//! The broadcasts of a member whose results are pending.

use std::collections::VecDeque;

/// Maximum number of broadcasts of a member whose result is pending, and bytes of their payloads.
/// Beyond either, the member is not read. What was already read is still handled.
pub(super) const IN_FLIGHT: usize = 256;
pub(super) const IN_FLIGHT_BYTES: usize = 1 << 20;

/// The payloads of a member's broadcasts that are not yet queued on every core, by ticket. Results
/// arrive in the order of the broadcasts.
#[derive(Debug, Default)]
pub(super) struct Results {
    payloads: VecDeque<(u64, Box<str>)>,
    bytes: usize,
}

impl Results {
    /// Adds the payload of a broadcast.
    pub(super) fn add(&mut self, ticket: u64, payload: &str) {
        self.bytes += payload.len();
        self.payloads.push_back((ticket, payload.into()));
    }

    /// Takes the payload of a broadcast whose result is known.
    pub(super) fn take(&mut self, ticket: u64) -> Option<Box<str>> {
        let at = self.payloads.iter().position(|(own, _)| *own == ticket)?;
        let (_, payload) = self.payloads.remove(at)?;
        self.bytes -= payload.len();
        Some(payload)
    }

    /// The memory that it uses, in bytes.
    pub(super) fn footprint(&self) -> usize {
        self.bytes + self.payloads.len() * size_of::<(u64, Box<str>)>()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.payloads.is_empty()
    }

    /// Whether its member must not be read.
    pub(super) fn is_full(&self) -> bool {
        self.payloads.len() >= IN_FLIGHT || self.bytes >= IN_FLIGHT_BYTES
    }
}
