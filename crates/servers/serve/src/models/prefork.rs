//! `prefork`: a fixed pool of processes, each with one connection at a time and blocking accepts,
//! reads and writes.

use crate::{
    children::{Children, Converse, Side, converse, leave},
    host::{Host, PAUSE, ServeError},
};
use regatta_sys::net;
use std::{io, os::fd::OwnedFd, thread};

/// Maximum number of processes in the pool, and therefore of concurrent connections. Further
/// connections wait in the accept queue.
pub(crate) const WORKERS: u32 = 256;

/// `serve` serves one connection until it closes.
pub(crate) fn run(serve: impl Converse, host: &Host) -> Result<(), ServeError> {
    let mut children = Children::new()?;
    let listener = host.listen_blocking()?;
    let workers = host.connections.min(WORKERS as usize);
    let mut announced = false;
    while !host.stop.is_set() {
        // A child that panicked is replaced: a panic closes its connection, not the server.
        while children.len() < workers {
            match children.fork(host) {
                Ok(Side::Parent) => {}
                Ok(Side::Child) => leave(|| work(&serve, &listener, host)),
                Err(error) if children.len() == 0 => return Err(error.into()),
                Err(_) => break, // out of processes or memory: the existing ones serve
            }
        }
        if !std::mem::replace(&mut announced, true) {
            host.ready(&listener)?;
        }
        children.wait(host)?;
    }
    // Shutting down the listener's input wakes the accepts that block in the children.
    net::shutdown_read(&listener)?;
    drop(listener);
    children.drain(host)
}

/// Runs a worker.
fn work(serve: &impl Converse, listener: &OwnedFd, host: &Host) -> Result<(), ServeError> {
    while !host.stop.is_set() {
        match net::accept_blocking(listener) {
            Ok(socket) => converse(serve, socket, host)?,
            Err(_) if host.stop.is_set() => break,
            Err(error)
                if net::is_transient(&error) || error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => thread::sleep(PAUSE), // out of descriptors: clients wait in the accept queue
        }
    }
    Ok(())
}
