//! `threads`: a thread per connection, blocking reads and writes.

pub(crate) mod members;

use crate::{
    blocking::Blocking,
    host::{Host, PAUSE, ServeError, Stop},
    open::{Entered, Open},
};
use regatta_service::{
    Limits, Program,
    style::{own_connections::ConnectingProgram, sequential::read_timeout},
};
use regatta_sys::net;
use std::{
    io,
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

/// Stack size of a connection's thread in bytes. Only used pages cost memory.
const STACK: usize = 128 * 1024;

/// Number of connections that are always supported: each thread has four mappings, and a process
/// may have 65,530 by default (`vm.max_map_count`).
pub(crate) const CONNECTIONS: u32 = 16_000;

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    run_each(host, move |stream, limits| program.sequential(stream, limits))
}

/// Runs a program that opens its own connections.
pub(crate) fn run_straight<P: ConnectingProgram>(
    program: P,
    host: &Host,
) -> Result<(), ServeError> {
    run_each(host, move |stream, limits| {
        net::detect_vanished_peers(stream.socket)?;
        program.serve(stream, limits)
    })
}

/// `serve` serves one connection until it closes.
fn run_each(
    host: &Host,
    serve: impl Fn(&mut Blocking<'_, TcpStream>, Limits) -> io::Result<()> + Clone + Send + 'static,
) -> Result<(), ServeError> {
    accept(host, move |entered, limits, stop| {
        let socket = &*entered.stream;
        let mut stream = Blocking { socket, stop, read_timeout: read_timeout(limits) };
        // An error closes only its own connection.
        let _ = serve(&mut stream, limits);
    })
}

/// Accepts connections until the host stops and they have drained. `serve` serves one connection
/// until it closes, in its own thread.
fn accept(
    host: &Host,
    serve: impl Fn(&Entered<TcpStream>, Limits, &Stop) + Clone + Send + 'static,
) -> Result<(), ServeError> {
    let listener = host.listen_blocking()?;
    host.ready(&listener)?;
    let listener = Arc::new(TcpListener::from(listener));
    let open = Open::new();
    let stopper = {
        let (listener, stop) = (Arc::clone(&listener), host.stop.clone());
        // Shutting down the listener's input wakes an accept that blocks in another thread.
        thread::spawn(move || stop.wait().and_then(|()| net::shutdown_read(&*listener)))
    };
    while !host.stop.is_set() {
        if open.len() >= host.connections {
            thread::sleep(PAUSE);
            continue;
        }
        match listener.accept() {
            Ok((stream, _)) => {
                let entered = open.enter(stream);
                let (serve, limits, stop) = (serve.clone(), host.limits, host.stop.clone());
                let spawned = thread::Builder::new().stack_size(STACK).spawn(move || {
                    serve(&entered, limits, &stop);
                    entered.before_close(&stop, thread::sleep);
                });
                if spawned.is_err() {
                    thread::sleep(PAUSE); // out of threads: the connection is closed
                }
            }
            Err(_) if host.stop.is_set() => break,
            Err(error) if net::is_transient(&error) => {}
            // Out of descriptors: clients wait in the accept queue.
            Err(_) => thread::sleep(PAUSE),
        }
    }
    open.drain(host, thread::sleep);
    stopper.join().expect("the stopper does not panic")?;
    Ok(())
}
