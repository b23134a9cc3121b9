//! What a connection does after a reply.

/// What a connection does after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It continues with the next request.
    Continue,
    /// It closes once all replies are written. Later input is not interpreted.
    Close,
    /// As [`Flow::Close`], because the client asked for it and sends nothing more
    /// (`Connection: close`): the connection does not linger, if its replies can be written at once.
    Part,
}
