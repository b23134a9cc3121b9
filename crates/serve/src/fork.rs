//! `fork`: a process per connection, blocking reads and writes.

use crate::{
    blocking::Blocking,
    children::{Children, Side, converse, leave},
    host::{Host, PAUSE, ServeError},
};
use regatta_service::{Limits, Program, style::straight::SequentialProgram};
use regatta_sys::{Event, Interest, Readiness, net, poll::Poll};
use std::{
    io,
    net::TcpStream,
    os::fd::{AsFd, OwnedFd},
    thread,
};

/// Maximum number of processes. Further connections wait in the accept queue.
pub(crate) const CONNECTIONS: u32 = 8_000;

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    run_each(host, |stream, limits| program.sequential(stream, limits))
}

/// Runs a program that opens its own connections.
pub(crate) fn run_straight<P: SequentialProgram>(
    program: P,
    host: &Host,
) -> Result<(), ServeError> {
    run_each(host, |stream, limits| {
        net::detect_vanished_peers(stream.socket)?;
        program.serve(stream, limits)
    })
}

/// `serve` serves one connection until it closes.
fn run_each(
    host: &Host,
    serve: impl Fn(&mut Blocking<'_, TcpStream>, Limits) -> io::Result<()>,
) -> Result<(), ServeError> {
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
