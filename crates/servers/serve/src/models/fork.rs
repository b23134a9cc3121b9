//! `fork`: a process per connection, blocking reads and writes.

use crate::{
    children::{Children, Converse, Side, converse, leave},
    host::{Host, PAUSE, ServeError},
};
use regatta_sys::{Event, Interest, Readiness, net, poll::Poll};
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    thread,
};

/// Maximum number of processes. Further connections wait in the accept queue.
pub(crate) const CONNECTIONS: u32 = 8_000;

/// `serve` serves one connection until it closes.
pub(crate) fn run(serve: impl Converse, host: &Host) -> Result<(), ServeError> {
    let mut children = Children::new()?;
    let listener = host.listen()?;
    host.limit_connections_of(&listener)?;
    let most = host.connections.min(CONNECTIONS as usize);
    let mut readiness = Poll::new(); // for the parent only; a child waits only in its read
    readiness.add(host.stop.as_fd(), 0, Interest::READ)?;
    readiness.add(children.ended.as_fd(), 0, Interest::READ)?;
    readiness.add(listener.as_fd(), 0, Interest::READ)?;
    host.ready(&listener)?;
    let mut events: Vec<Event> = Vec::new();
    while !host.stop.is_set() {
        readiness.wait(&mut events, None)?;
        children.reap()?;
        if children.len() >= most {
            thread::sleep(PAUSE);
            continue;
        }
        let socket = match accept(&listener) {
            Ok(Some(socket)) => socket,
            Ok(None) => continue,
            Err(_) => {
                thread::sleep(PAUSE); // out of descriptors: clients wait in the accept queue
                continue;
            }
        };
        match children.fork(host) {
            Ok(Side::Parent) => {} // the child has the connection; the parent's copy is closed here
            Ok(Side::Child) => {
                drop(listener);
                leave(|| converse(&serve, socket, host));
            }
            Err(_) => thread::sleep(PAUSE), // out of processes or memory: the connection is closed
        }
    }
    drop(listener);
    children.drain(host)
}

/// Accepts the next connection as a blocking socket. Returns `None` if there is none, e.g. because
/// the client gave up.
fn accept(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    match net::accept_blocking(listener) {
        Ok(socket) => Ok(Some(socket)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) if net::is_transient(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
