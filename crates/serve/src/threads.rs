//! `threads`: a thread per connection, blocking reads and writes.

use crate::{
    host::{Host, PAUSE, ServeError},
    open::Open,
};
use regatta_service::{Program, style::Stream};
use regatta_sys::net;
use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

/// Stack of a connection's thread in bytes; only what is used costs memory.
const STACK: usize = 128 * 1024;

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    let listener = host.listen(true)?;
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
                    // A connection's errors are its own end, and nobody else's business.
                    let _ = program.sequential(&mut Blocking(&entered.stream), limits);
                    entered.before_close(&stop, thread::sleep);
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

struct Blocking<'a>(&'a TcpStream);

impl Read for Blocking<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Blocking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Blocking<'_> {
    fn wait_readable(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn set_read_timeout(&mut self, limit: Duration) -> io::Result<()> {
        self.0.set_read_timeout(Some(limit))
    }

    fn set_write_timeout(&mut self, limit: Duration) -> io::Result<()> {
        self.0.set_write_timeout(Some(limit))
    }

    fn finish_writing(&mut self) -> io::Result<()> {
        self.0.shutdown(Shutdown::Write)
    }
}
