//! `green`: a green thread per connection, with one scheduler per core.

use crate::{
    between::{
        letters::Letters,
        membership::{Bell, Membership, PushSessionFactory, Registry},
    },
    blocking::shutdown_write,
    clock,
    host::{Host, PAUSE, Seat, ServeError, Stop},
    local,
    open::Open,
    work::{job, offload::Pool},
};
use regatta_engine::{Post, Push};
use regatta_green::{self as green, TcpListener, TcpStream};
use regatta_service::{
    Flow, Job, Limits, Locals, Never, Now, Program,
    style::{
        member::{BlockingMember as Member, PushEndpoint, Wake, serve_blocking},
        own_connections::{ConnectingProgram, ConnectingStream},
        sequential::Stream,
    },
};
use regatta_sys::{net, queue};
use std::{
    io::{self, Read, Write},
    net::SocketAddr,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    run_each(host, move |mut stream: Green<'_>, limits| program.sequential(&mut stream, limits))
}

/// Runs a program that opens its own connections.
pub(crate) fn run_straight<P: ConnectingProgram>(
    program: P,
    host: &Host,
) -> Result<(), ServeError> {
    run_each(host, move |mut stream: Green<'_>, limits| {
        net::detect_vanished_peers(stream.stream)?;
        program.serve(&mut stream, limits)
    })
}

/// Runs sessions that post to each other.
pub(crate) fn run_members<F: PushSessionFactory>(start: F, host: &Host) -> Result<(), ServeError> {
    let bounds = start.clone();
    let registry = Registry::new(move |room| bounds.bounds(room));
    run_each(host, move |stream: Green<'_>, limits| {
        let (bell, sender) = green::mailbox();
        let membership = Membership::new(Arc::clone(&registry), sender);
        let Green { stream, stop, pool, .. } = stream;
        let mut stream = Green { stream, stop, pool, member: InRoom { bell, membership, rung: 0 } };
        serve_blocking(start.session(clock::now()), &mut stream, limits)
    })
}

/// `serve` serves one connection until it closes.
fn run_each<S>(host: &Host, serve: S) -> Result<(), ServeError>
where
    S: Fn(Green<'_>, Limits) -> io::Result<()> + Clone + Send + Sync + 'static,
{
    host.on_each_core::<Never>(false, |seat| {
        let (serve, host) = (serve.clone(), host.clone());
        green::run(green::Config::default(), move || accept(serve, host, seat))
    })
}

/// The first green thread of a core. It accepts connections and spawns one green thread for each.
fn accept<S>(serve: S, host: Host, seat: Seat<Letters<Never>>)
where
    S: Fn(Green<'_>, Limits) -> io::Result<()> + Clone + 'static,
{
    let Seat { listener, places, pool, .. } = seat;
    let listener = listener.expect("a core starts with a listener");
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
                    // The drain may have missed it.
                    let _ = net::shutdown_read(&*entered.stream);
                }
                let (serve, limits, stop) = (serve.clone(), host.limits, host.stop.clone());
                let pool = pool.clone();
                let spawned = green::spawn(move || {
                    let stream = &*entered.stream;
                    // Neither is zero, so these cannot fail.
                    let _ = stream.set_read_timeout(Some(limits.idle));
                    let _ = stream.set_write_timeout(Some(limits.progress_interval()));
                    // An error closes only its own connection.
                    let _ = serve(Green { stream, stop: &stop, pool, member: () }, limits);
                    entered.before_close(&stop, green::sleep);
                    drop((entered, place));
                });
                if spawned.is_err() {
                    green::sleep(PAUSE); // out of stacks: the connection is closed
                }
            }
            Err(_) if host.stop.is_set() => break,
            Err(error) if net::is_transient(&error) => {}
            // Out of descriptors: clients wait in the accept queue.
            Err(_) => green::sleep(PAUSE),
        }
    }
}

/// Waits for the stop, wakes the acceptor, and drains.
fn stop(host: &Host, listener: &TcpListener, open: &Open<TcpStream>) {
    green::wait_fd_readable(&host.stop).expect("the stop can be waited for");
    // As with a thread, shutting down the listener's input wakes a waiting accept.
    let _ = net::shutdown_read(listener);
    open.drain(host, green::sleep);
    green::shutdown();
}

struct Green<'a, M = ()> {
    stream: &'a TcpStream,
    stop: &'a Stop,
    /// Runs the long jobs, if there is a pool.
    pool: Option<Pool>,
    /// The membership through which it receives pushes, if any.
    member: M,
}

impl Bell for green::Sender<()> {
    fn ring(&self) {
        // It is dropped if the bell has already rung, or if the member is gone.
        self.send(());
    }
}

/// How a member receives pushes.
struct InRoom<P> {
    bell: green::Mailbox<()>,
    membership: Membership<green::Sender<()>, P>,
    /// Number of consecutive pushes without a check for input.
    rung: u8,
}

/// Number of consecutive pushes after which input is checked, so that a flood of pushes does not
/// starve input.
const PUSHES: u8 = 16;

impl<P: Push> PushEndpoint<P> for Green<'_, InRoom<P>> {
    fn post(&mut self, post: Post<P>) -> u32 {
        self.member.membership.post(post)
    }

    fn next(&mut self) -> Option<P> {
        self.member.membership.next()
    }

    fn is_overrun(&self) -> bool {
        self.member.membership.is_overrun()
    }

    fn is_gone(&self) -> bool {
        net::is_gone(self.stream)
    }
}

impl<P: Push> Member<P> for Green<'_, InRoom<P>> {
    fn wait(&mut self, reads: bool, until: Instant) -> io::Result<Wake<P>> {
        loop {
            // The bell may have rung for pushes that were received meanwhile.
            if reads && self.member.rung >= PUSHES && net::is_readable(self.stream) {
                self.member.rung = 0;
                return Ok(Wake::Readable);
            }
            if let Some(wake) = self.member.membership.rung() {
                self.member.rung = self.member.rung.saturating_add(1);
                return Ok(wake);
            }
            self.member.rung = 0;
            if !reads {
                match self.member.bell.recv_until(until) {
                    Ok(()) => continue,
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                        return Ok(Wake::Deadline);
                    }
                    Err(error) => return Err(error),
                }
            }
            return Ok(match green::wait(self.stream, &self.member.bell, until)? {
                green::Wake::Readable => Wake::Readable,
                green::Wake::Message(()) => continue,
                // The event may still be queued in the kernel, behind others.
                green::Wake::Deadline if net::is_readable(self.stream) => Wake::Readable,
                green::Wake::Deadline => Wake::Deadline,
            });
        }
    }

    fn read_now(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.try_read(into)
    }
}

impl<M> ConnectingStream for Green<'_, M> {
    type Peer = TcpStream;

    fn connect(&self, addr: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
        let peer = TcpStream::connect_timeout(addr, limit)?;
        net::opened(&peer)?;
        peer.set_nodelay(true)?;
        net::detect_vanished_peers(&peer)?;
        peer.set_read_timeout(Some(limit))?;
        peer.set_write_timeout(Some(limit))?;
        Ok(peer)
    }

    fn set_read_timeout_of(&self, peer: &TcpStream, limit: Duration) -> io::Result<()> {
        peer.set_read_timeout(Some(limit))
    }

    fn is_readable(&self, peer: &TcpStream) -> bool {
        net::is_readable(peer)
    }

    fn has_ended(&self) -> bool {
        net::has_ended(self.stream)
    }
}

impl<M> Locals for Green<'_, M> {
    fn take<L: Default + Send + 'static>(&self) -> Box<L> {
        local::take()
    }

    fn give_back<L: Default + Send + 'static>(&self, local: Box<L>) {
        local::give_back(local);
    }
}

impl<M> Stream for Green<'_, M> {
    /// The time of the turn, so that the instant needs no clock reading.
    fn now(&self) -> Now {
        clock::at(green::now())
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

    fn shutdown_write(&mut self) -> io::Result<()> {
        shutdown_write(self.stream, self.stop)
    }

    fn defers<J: Job>(&self, job: &J) -> bool {
        self.pool.is_some() && !job.is_short()
    }

    fn run<J: Job>(&mut self, job: J, reply: &mut Vec<u8>) -> io::Result<Flow> {
        let Some(pool) = self.pool.as_ref().filter(|_| !job.is_short()) else {
            return Ok(job::run(job, reply));
        };
        let (mailbox, sender) = green::mailbox();
        let wanted = Arc::new(());
        pool.submit(job, Arc::downgrade(&wanted), move |reply, flow| {
            // It is dropped if the connection that waited for it is gone.
            sender.send((reply, flow));
        });
        loop {
            match mailbox.recv_until(Instant::now() + Limits::LIVENESS_INTERVAL) {
                Ok((done, flow)) => {
                    reply.extend_from_slice(&done);
                    return Ok(flow);
                }
                Err(error)
                    if error.kind() == io::ErrorKind::TimedOut && !net::is_gone(self.stream) => {}
                Err(error) => return Err(error), // also if the scheduler ends
            }
        }
    }
}
