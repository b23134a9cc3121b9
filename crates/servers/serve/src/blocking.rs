//! Blocking sockets for the sequential style, for `fork`, `prefork` and `threads`.

use crate::{clock, host::Stop, local, work::job};
use regatta_service::{
    Flow, Job, Locals, Now,
    style::{own_connections::ConnectingStream, sequential::Stream},
};
use regatta_sys::{net, queue};
use std::{
    io,
    net::{SocketAddr, TcpStream},
    os::fd::AsFd,
    time::Duration,
};

/// A blocking socket that has inherited its timeouts ([`crate::host::Host::listen_blocking`]).
pub(crate) struct Blocking<'a, S> {
    pub(crate) socket: &'a S,
    pub(crate) stop: &'a Stop,
    /// The current timeout of the socket, so that it is not set again to the same value.
    pub(crate) read_timeout: Duration,
}

impl<S> Locals for Blocking<'_, S> {
    fn take<L: Default + Send + 'static>(&self) -> Box<L> {
        local::take()
    }

    fn give_back<L: Default + Send + 'static>(&self, local: Box<L>) {
        local::give_back(local);
    }
}

impl<S: AsFd> Stream for Blocking<'_, S> {
    fn now(&self) -> Now {
        clock::now()
    }

    fn wait_readable(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        net::read(self.socket, into)
    }

    fn set_read_timeout(&mut self, limit: Duration) -> io::Result<()> {
        if limit != self.read_timeout {
            net::set_read_timeout(self.socket, limit)?;
            self.read_timeout = limit;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], last: bool) -> io::Result<usize> {
        if last { net::write_now(self.socket, bytes, true) } else { net::write(self.socket, bytes) }
    }

    fn unacknowledged(&self) -> usize {
        queue::unacknowledged(self.socket).unwrap_or(0)
    }

    fn shutdown_write(&mut self) -> io::Result<()> {
        shutdown_write(self.socket, self.stop)
    }

    fn run<J: Job>(&mut self, job: J, reply: &mut Vec<u8>) -> io::Result<Flow> {
        Ok(job::run(job, reply))
    }
}

impl<S: AsFd> ConnectingStream for Blocking<'_, S> {
    type Peer = TcpStream;

    fn connect(&self, addr: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
        let peer = TcpStream::connect_timeout(&addr, limit)?;
        net::opened(&peer)?;
        peer.set_nodelay(true)?;
        net::detect_vanished_peers(&peer)?;
        net::set_timeouts(&peer, limit, limit)?;
        Ok(peer)
    }

    fn set_read_timeout_of(&self, peer: &TcpStream, limit: Duration) -> io::Result<()> {
        net::set_read_timeout(peer, limit)
    }

    fn is_readable(&self, peer: &TcpStream) -> bool {
        net::is_readable(peer)
    }

    fn has_ended(&self) -> bool {
        net::has_ended(self.socket)
    }
}

/// Shuts down our sending side, except during a stop. The input is already shut down then, and a
/// socket with both directions shut down answers further input with a reset that overtakes the last
/// replies.
pub(crate) fn shutdown_write(socket: impl AsFd, stop: &Stop) -> io::Result<()> {
    if stop.is_set() { Ok(()) } else { net::shutdown_write(socket) }
}
