//! `prefork`: a fixed pool of processes, each with one connection at a time; blocking accepts, reads
//! and writes.

use crate::{
    blocking::Blocking,
    children::{Children, Side, converse, leave},
    host::{Host, PAUSE, ServeError},
};
use regatta_service::{Limits, Program, style::straight::Straight};
use regatta_sys::net;
use std::{io, net::TcpStream, os::fd::OwnedFd, thread};

/// Processes of the pool, and so connections at a time; more wait unaccepted.
pub(crate) const WORKERS: u32 = 256;

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    run_each(host, |stream, limits| program.sequential(stream, limits))
}

/// Runs a program that opens connections of its own.
pub(crate) fn run_straight<P: Straight>(program: P, host: &Host) -> Result<(), ServeError> {
    run_each(host, |stream, limits| program.serve(stream, limits))
}

/// `serve` serves one connection to its end.
fn run_each(
    host: &Host,
    serve: impl Fn(&mut Blocking<'_, TcpStream>, Limits) -> io::Result<()>,
) -> Result<(), ServeError> {
    let mut children = Children::new()?;
    let listener = host.listen_blocking()?;
    let workers = host.connections.min(WORKERS as usize);
    let mut told = false;
    while !host.stop.is_set() {
        // One that panicked is replaced: a panic ends its connection, not the server.
        while children.len() < workers {
            match children.fork(host) {
                Ok(Side::Parent) => {}
                Ok(Side::Child) => leave(|| work(&serve, &listener, host)),
                Err(error) if children.len() == 0 => return Err(error.into()),
                Err(_) => break, // out of processes or memory: those that there are serve
            }
        }
        if !std::mem::replace(&mut told, true) {
            host.ready(&listener)?;
        }
        children.wait(host)?;
    }
    // Accepts that block in the children are woken by ending the listener's input.
    net::finish_reading(&listener)?;
    drop(listener);
    children.drain(host)
}

/// A worker's life.
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
            Err(_) => thread::sleep(PAUSE), // out of descriptors: who waits stays queued
        }
    }
    Ok(())
}
