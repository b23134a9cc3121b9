//! The last byte of a request that is held back: see `worker::holding`.

use crate::clock::Nanos;

/// Of a connection whose last byte is held back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// When it is to be written.
    pub until: Nanos,
    /// Requests that were asked for since then, and are not written at all.
    pub behind: u32,
}

impl Held {
    /// `k` more requests are asked for.
    pub fn asks(&mut self, k: u32) {
        self.behind += k;
    }
}
