//! How much of the output of a connection is written.

/// How much of the output of a connection is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputState {
    /// Bytes that the kernel has accepted since the connection was opened.
    pub accepted: u64,
    /// Bytes that it has not accepted yet.
    pub pending: usize,
    /// Of a model that hands a whole buffer of output to the kernel, and gets it back when all of it is written:
    /// the bytes of the buffer that is there now, 0 if none.
    pub taken: usize,
}
