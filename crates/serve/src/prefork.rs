//! `prefork`: a fixed pool of processes, each with one connection at a time and blocking accepts,
//! reads and writes.

use crate::{
    blocking::Blocking,
    children::{Children, Side, converse, leave},
    host::{Host, PAUSE, ServeError},
};
use regatta_service::{Limits, Program, style::straight::SequentialProgram};
use regatta_sys::net;
use std::{io, net::TcpStream, os::fd::OwnedFd, thread};

/// Maximum number of processes in the pool, and therefore of concurrent connections. Further
/// connections wait in the accept queue.
pub(crate) const WORKERS: u32 = 256;

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
    net::finish_reading(&listener)?;
    drop(listener);
    children.drain(host)
}

/// Runs a worker.
fn work(
    serve: &impl Fn(&mut Blocking<'_, TcpStream>, Limits) -> io::Result<()>,
    listener: &OwnedFd,
    host: &Host,
) -> Result<(), ServeError> {
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
