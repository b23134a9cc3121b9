//! Sequential programs that open connections themselves, e.g. a proxy.

use super::sequential::Stream;
use crate::Limits;
use std::{
    io::{self, Read, Write},
    net::SocketAddr,
    time::Duration,
};

/// A program that serves each connection with blocking calls, and opens other connections for it.
pub trait ConnectingProgram: Clone + Send + Sync + 'static {
    /// Serves a connection until it closes.
    ///
    /// # Errors
    /// Returns errors of the connection, which is then closed.
    fn serve<T: ConnectingStream>(&self, stream: &mut T, limits: Limits) -> io::Result<()>;
}

/// A client's connection, on a model that can also open blocking connections.
pub trait ConnectingStream: Stream {
    /// An opened connection with blocking calls.
    type Peer: Read + Write;

    /// Opens a connection. Neither this call nor those on the connection block longer than `limit`;
    /// after that they return `TimedOut` or `WouldBlock`.
    ///
    /// # Errors
    /// Returns errors of connect(2).
    fn connect(&self, addr: SocketAddr, limit: Duration) -> io::Result<Self::Peer>;

    /// Sets the read timeout of a connection.
    ///
    /// # Errors
    /// Returns errors of setsockopt(2).
    fn set_read_timeout_of(&self, peer: &Self::Peer, limit: Duration) -> io::Result<()>;

    /// Returns whether a read would not block, because of input or its end.
    fn is_readable(&self, peer: &Self::Peer) -> bool;

    /// Returns whether the client sends nothing more: it has closed its sending direction, or is
    /// gone. Earlier input may still be unread.
    fn has_ended(&self) -> bool;
}
