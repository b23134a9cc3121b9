//! What follows a command.

/// What follows a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The next command.
    Go,
    /// Nothing, until all replies are there.
    Stop,
    /// The same command again, once all replies are there.
    Again,
    /// The same command again, once there is room.
    Full,
    /// The end of the connection, after the last reply.
    End,
}
