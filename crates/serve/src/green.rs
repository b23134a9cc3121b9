//! `green`: a green thread per connection, a scheduler of them per core.

use crate::{
    blocking::finish_writing,
    clock,
    host::{Host, PAUSE, Seat, ServeError, Stop},
    job, local,
    offload::Pool,
    open::Open,
};
use regatta_green::{self as green, TcpListener, TcpStream};
use regatta_service::{Flow, Job, Limits, Locals, Never, Now, Program, style::sequential::Stream};
use regatta_sys::{net, queue};
use std::{
    io::{self, Read, Write},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    host.on_each_core::<Never>(false, |seat| {
        let (program, host) = (program.clone(), host.clone());
        green::run(green::Config::default(), move || serve(program, host, seat))
    })
}

/// The first green thread of a core: accepts, and starts one for each connection.
fn serve<P: Program>(program: P, host: Host, seat: Seat<Never>) {
    let Seat { listener, places, pool, .. } = seat;
    let listener = listener.expect("a core that begins has a listener");
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
                if host.stop.is_set() {
                    // The drain has not seen it.
                    let _ = net::finish_reading(&*entered.stream);
                }
                let (program, limits, stop) = (program.clone(), host.limits, host.stop.clone());
                let pool = pool.clone();
                let spawned = green::spawn(move || {
                    let mut stream = Green { stream: &entered.stream, stop: &stop, pool };
                    let _ = stream.stream.set_read_timeout(Some(limits.idle));
                    let _ = stream.stream.set_write_timeout(Some(limits.look()));
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
    stop: &'a Stop,
    /// Does the long jobs, if there is one.
    pool: Option<Pool>,
}

impl Locals for Green<'_> {
    fn take<L: Default + Send + 'static>(&self) -> Box<L> {
        local::take()
    }

    fn give_back<L: Default + Send + 'static>(&self, local: Box<L>) {
        local::give_back(local);
    }
}

impl Stream for Green<'_> {
    fn now(&self) -> Now {
        clock::now()
    }

    fn wait_readable(&mut self) -> io::Result<()> {
        self.stream.wait_readable()
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        { self.stream }.read(into)
    }

    fn set_read_timeout(&mut self, limit: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(limit))
    }

    fn write(&mut self, bytes: &[u8], last: bool) -> io::Result<usize> {
        if last { self.stream.write_last(bytes) } else { { self.stream }.write(bytes) }
    }

    fn unacknowledged(&self) -> usize {
        queue::unacknowledged(self.stream).unwrap_or(0)
    }

    fn finish_writing(&mut self) -> io::Result<()> {
        finish_writing(self.stream, self.stop)
    }

    fn defers<J: Job>(&self, job: &J) -> bool {
        self.pool.is_some() && !job.is_short()
    }

    fn run<J: Job>(&mut self, job: J, reply: &mut Vec<u8>) -> io::Result<Flow> {
        let Some(pool) = self.pool.as_ref().filter(|_| !job.is_short()) else {
            return Ok(job::run(job, reply));
        };
        let (mailbox, sender) = green::mailbox(1);
        let wanted = Arc::new(());
        pool.submit(job, Arc::downgrade(&wanted), move |reply, flow| {
            // The connection that waited for it may be gone.
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
