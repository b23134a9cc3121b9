//! Sequential programs that open connections of their own, as a proxy does.

use super::sequential::Stream;
use crate::Limits;
use std::{
    io::{self, Read, Write},
    net::SocketAddr,
    time::Duration,
};

/// A program that serves each connection with calls that wait, and opens other connections for it.
pub trait Straight: Clone + Send + Sync + 'static {
    /// Serves a connection to its end.
    ///
    /// # Errors
    /// Those of the connection: it is closed then.
    fn serve<T: Connects>(&self, stream: &mut T, limits: Limits) -> io::Result<()>;
}

/// A client's connection, on a model that can open connections that wait in the same way.
pub trait Connects: Stream {
    /// A connection that was opened. Its calls wait.
    type Peer: Read + Write;

    /// Opens a connection. No call of it, nor this one, waits longer than `limit`: `TimedOut` or
    /// `WouldBlock` is the error then.
    ///
    /// # Errors
    /// Those of connect(2).
    fn connect(&self, addr: SocketAddr, limit: Duration) -> io::Result<Self::Peer>;

    /// From now on reads of this connection wait for `limit` at most.
    ///
    /// # Errors
    /// Those of setsockopt(2).
    fn set_read_timeout_of(&self, peer: &Self::Peer, limit: Duration) -> io::Result<()>;

    /// Whether a read of this connection would not wait: something has come, or its end.
    fn is_readable(&self, peer: &Self::Peer) -> bool;

    /// Whether the client sends nothing more: it has ended its direction, or is gone. What it has sent
    /// before may still be there to read.
    fn has_ended(&self) -> bool;
}
