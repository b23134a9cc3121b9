//! `threads`: a thread per connection, blocking reads and writes.

use crate::{
    blocking::Blocking,
    host::{Host, PAUSE, ServeError},
    open::Open,
};
use regatta_service::Program;
use regatta_sys::net;
use std::{net::TcpListener, sync::Arc, thread};

/// Stack of a connection's thread in bytes; only what is used costs memory.
const STACK: usize = 128 * 1024;

/// Connections that it holds for certain: each thread has four mappings, of which a process may
/// have 65,530 by default (`vm.max_map_count`).
pub(crate) const CONNECTIONS: u32 = 16_000;

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    let listener = host.listen_blocking()?;
    host.ready(&listener)?;
    let listener = Arc::new(TcpListener::from(listener));
    let open = Open::new();
    let stopper = {
        let (listener, stop) = (Arc::clone(&listener), host.stop.clone());
        // An accept that blocks in another thread is woken by ending the listener's input.
        thread::spawn(move || stop.wait().and_then(|()| net::finish_reading(&*listener)))
    };
    while !host.stop.is_set() {
        if open.len() >= host.connections {
            thread::sleep(PAUSE);
            continue;
        }
        match listener.accept() {
            Ok((stream, _)) => {
                let entered = open.enter(stream);
                let (program, limits, stop) = (program.clone(), host.limits, host.stop.clone());
                let spawned = thread::Builder::new().stack_size(STACK).spawn(move || {
                    let (socket, stop) = (&*entered.stream, &stop);
                    let mut stream = Blocking { socket, stop, read_timeout: limits.idle };
                    // A connection's errors are its own end, and nobody else's business.
                    let _ = program.sequential(&mut stream, limits);
                    entered.before_close(stop, thread::sleep);
                });
                if spawned.is_err() {
                    thread::sleep(PAUSE); // out of threads: the connection is closed
                }
            }
            Err(_) if host.stop.is_set() => break,
            Err(error) if net::is_transient(&error) => {}
            Err(_) => thread::sleep(PAUSE), // out of descriptors: who waits stays queued
        }
    }
    open.drain(host, thread::sleep);
    stopper.join().expect("the stopper does not panic")?;
    Ok(())
}
