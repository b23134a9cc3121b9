//! Requests that are sent slowly and never end, to see what a server does with them.

/// A request that never ends.
#[derive(Clone, Debug)]
pub struct Unending {
    /// What is sent at once, with the first byte.
    pub at_once: Vec<u8>,
    /// What is sent a byte at a time, at least one; the last byte again and again.
    pub slowly: Vec<u8>,
    /// The status in how the server answers it, if there is one. It is handed up to
    /// [`Unending::SAID`] bytes.
    pub status: fn(&[u8]) -> Option<u16>,
}

impl Unending {
    /// As much of an answer as is looked at, in bytes.
    pub const SAID: usize = 64;
}
