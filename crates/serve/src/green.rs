//! `green`: a green thread per connection, a scheduler of them per core.

use crate::{
    host::{Host, PAUSE, Places, ServeError},
    offload::Pool,
    open::Open,
};
use regatta_green::{self as green, TcpListener, TcpStream};
use regatta_service::{Defer, Flow, Job, Limits, Program, run_job, style::Stream};
use regatta_sys::net;
use std::{
    io::{self, Read, Write},
    net::Shutdown,
    os::fd::OwnedFd,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    let pool = Pool::of(host)?;
    host.on_each_core(|places, listener| {
        let (program, host, pool) = (program.clone(), host.clone(), pool.clone());
        green::run(green::Config::default(), move || serve(program, host, places, listener, pool))
    })
}

/// The first green thread of a core: accepts, and starts one for each connection.
fn serve<P: Program>(
    program: P,
    host: Host,
    places: Places,
    listener: OwnedFd,
    pool: Option<Pool>,
) {
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
                let pool = pool.clone();
                let spawned = green::spawn(move || {
                    let mut stream = Green { stream: &entered.stream, pool };
                    // A connection's errors are its own end, and nobody else's business.
                    let _ = program.sequential(&mut stream, limits);
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

struct Green<'a> {
    stream: &'a TcpStream,
    /// Does the long jobs, if there is one.
    pool: Option<Pool>,
}

impl Read for Green<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.read(into)
    }
}

impl Write for Green<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Green<'_> {
    fn wait_readable(&mut self) -> io::Result<()> {
        self.stream.wait_readable()
    }

    fn set_read_timeout(&mut self, limit: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(limit))
    }

    fn set_write_timeout(&mut self, limit: Duration) -> io::Result<()> {
        self.stream.set_write_timeout(Some(limit))
    }

    fn finish_writing(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
    }

    fn defer(&self) -> Defer {
        if self.pool.is_some() { Defer::Long } else { Defer::Nothing }
    }

    fn do_deferred<J: Job>(&mut self, job: J, reply: &mut Vec<u8>) -> io::Result<Flow> {
        let Some(pool) = &self.pool else { return Ok(run_job(job, reply)) };
        let (mailbox, sender) = green::mailbox(1);
        let wanted = Arc::new(());
        pool.submit(job, Arc::downgrade(&wanted), move |reply, flow| {
            // Who waited for it may be gone.
            let _ = sender.send((reply, flow));
        });
        loop {
            match mailbox.recv_until(Instant::now() + Limits::LOOK) {
                Ok((done, flow)) => {
                    reply.extend_from_slice(&done);
                    return Ok(flow);
                }
                Err(error)
                    if error.kind() == io::ErrorKind::TimedOut && !net::is_gone(self.stream) => {}
                Err(error) => return Err(error), // also when the scheduler ends
            }
        }
    }
}
