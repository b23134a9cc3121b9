//! `green`: a green thread per connection, a scheduler of them per core.

use crate::{
    host::{Host, PAUSE, Places, ServeError},
    open::Open,
};
use regatta_green::{self as green, TcpListener, TcpStream};
use regatta_service::{Program, style::Stream};
use regatta_sys::net;
use std::{
    io::{self, Read, Write},
    net::Shutdown,
    os::fd::OwnedFd,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    host.on_each_core(|places, listener| {
        let (program, host) = (program.clone(), host.clone());
        green::run(green::Config::default(), move || serve(program, host, places, listener))
    })
}

/// The first green thread of a core: accepts, and starts one for each connection.
fn serve<P: Program>(program: P, host: Host, places: Places, listener: OwnedFd) {
    let listener = TcpListener::from_std(listener.into()).map(Rc::new);
    let listener = listener.expect("a fresh scheduler watches its listener");
    let open = Open::new();
    {
        let (host, listener, open) = (host.clone(), Rc::clone(&listener), Arc::clone(&open));
        green::spawn(move || stop(&host, &listener, &open))
            .expect("the second green thread starts");
    }
    while !host.stop.is_set() {
        if places.are_full() {
            green::sleep(PAUSE);
            continue;
        }
        match listener.accept() {
            Ok((stream, _)) => {
                // Another core may have taken the last place meanwhile.
                let mut place = places.take();
                while place.is_none() && !host.stop.is_set() {
                    green::sleep(PAUSE);
                    place = places.take();
                }
                let entered = open.enter(stream);
                let (program, limits, stop) = (program.clone(), host.limits, host.stop.clone());
                let spawned = green::spawn(move || {
                    // A connection's errors are its own end, and nobody else's business.
                    let _ = program.sequential(&mut Green(&entered.stream), limits);
                    entered.before_close(&stop, green::sleep);
                    drop((entered, place));
                });
                if spawned.is_err() {
                    green::sleep(PAUSE); // out of stacks: the connection is closed
                }
            }
            Err(_) if host.stop.is_set() => break,
            Err(error) if net::is_transient(&error) => {}
            Err(_) => green::sleep(PAUSE), // out of descriptors: who waits stays queued
        }
    }
}

/// Waits for the stop, wakes the accept, and drains.
fn stop(host: &Host, listener: &TcpListener, open: &Open<TcpStream>) {
    green::wait_fd_readable(&host.stop).expect("the stop can be waited for");
    // As for a thread: an accept that waits is woken by ending the listener's input.
    let _ = net::finish_reading(listener);
    open.drain(host, green::sleep);
    green::shutdown();
}

struct Green<'a>(&'a TcpStream);

impl Read for Green<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Green<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Green<'_> {
    fn wait_readable(&mut self) -> io::Result<()> {
        self.0.wait_readable()
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
