//! Requests that are sent slowly and never end, to test how a server handles them.

/// A request that never ends.
#[derive(Clone, Debug)]
pub struct SlowRequest {
    /// Bytes sent at once, before the slow ones; may be empty.
    pub at_once: Vec<u8>,
    /// Bytes sent one at a time; not empty. The last byte is repeated.
    pub slowly: Vec<u8>,
    /// Parses the status of the server's answer, if it has one. Called with up to
    /// [`SlowRequest::SAID`] bytes.
    pub status: fn(&[u8]) -> Option<u16>,
}

impl SlowRequest {
    /// Maximum number of bytes of an answer that are read.
    pub const SAID: usize = 64;
}
