//! What a connection does after a reply.

/// What a connection does after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It continues with the next request.
    Continue,
    /// It closes once all replies are written. Later input is not interpreted.
    Close,
    /// Like [`Flow::Close`], but the client asked for it (`Connection: close`) and will send nothing
    /// more. The connection does not linger if its replies can be written at once.
    ClosedByClient,
}
