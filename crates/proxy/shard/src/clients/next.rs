//! What happens after a command.

/// What happens after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Read the next command.
    Go,
    /// Pause until all replies have arrived.
    Stop,
    /// Repeat the command once all replies have arrived.
    Again,
    /// Repeat the command once there is room.
    Full,
    /// Close the connection after the last reply.
    End,
}
