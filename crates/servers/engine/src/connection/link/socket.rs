//! What a link asks about its socket.

use crate::Conn;

/// What only the kernel knows about a connection. Queried rarely, never once per request.
pub trait SocketProbe {
    /// Bytes that were written but not acknowledged by the peer; 0 once the connection is gone.
    fn unacknowledged(&self, conn: Conn) -> usize;

    /// Whether a read would return something now.
    fn is_readable(&self, conn: Conn) -> bool;

    /// Whether the connection was reset, or both directions are closed.
    fn is_gone(&self, conn: Conn) -> bool;

    /// Whether the peer has closed its sending side, or the connection is gone. Earlier input may
    /// still be unread.
    fn has_ended(&self, conn: Conn) -> bool;
}

/// For drivers without sockets: everything is acknowledged, and no peer sends more or goes.
impl SocketProbe for () {
    fn unacknowledged(&self, _: Conn) -> usize {
        0
    }

    fn is_readable(&self, _: Conn) -> bool {
        false
    }

    fn is_gone(&self, _: Conn) -> bool {
        false
    }

    fn has_ended(&self, _: Conn) -> bool {
        false
    }
}
