//! What every model gets: where to listen, its limits, and when to stop.

mod error;
mod places;

pub use error::ServeError;
pub(crate) use places::{Place, Places};

use crate::{
    between::{letters::Letters, mail::Mail},
    clock,
    work::offload::Pool,
};
use regatta_engine::{Core, Engine, Posted};
use regatta_service::{Limits, admission::Admission, style::sequential::read_timeout};
use regatta_sys::{
    net::{self, PortSharing},
    queue::unacknowledged,
    signal,
    wake::Latch,
};
use signal_hook::SigId;
use std::{
    io,
    net::SocketAddr,
    num::NonZeroUsize,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

/// The address, limits and lifetime of a server.
#[derive(Clone)]
pub struct Host {
    /// Where to listen; port 0 lets the system choose. Not used with [`Host::inherited`].
    pub listen: SocketAddr,
    /// A listening TCP socket that a service manager keeps open: connections wait in its queue while the server
    /// restarts. Not on `threads`, `green` and `prefork`, which shut their listener down to end a blocking accept.
    pub inherited: Option<Arc<OwnedFd>>,
    /// Number of threads or processes, for models that have one per core.
    pub cores: NonZeroUsize,
    /// Limits of each connection.
    pub limits: Limits,
    /// Maximum number of open connections. Further connections wait in the accept queue.
    pub connections: usize,
    /// Refuses clients beyond its limits. Only where an engine serves, and not on `cluster`.
    pub admission: Option<Arc<Admission>>,
    /// A listening Unix socket, whose clients a thread of their own serves. Only on `percore` and `uring`.
    pub unix: Option<Arc<OwnedFd>>,
    /// Number of additional threads per process for the long jobs of a service. `None`: the serving
    /// threads run them.
    pub offload: Option<NonZeroUsize>,
    /// Over how much time a stop closes the clients one after the other; zero: all at once. Only where an engine
    /// serves: not on `threads`, `green`, `async`, `fork` and `prefork`.
    pub drain: Duration,
    /// How long connections may finish pending replies after a stop, and after the drain.
    pub grace: Duration,
    /// Called once with the address, when the server accepts connections.
    pub on_ready: fn(SocketAddr),
    /// Set to stop the server.
    pub stop: Stop,
}

/// Printed on SIGHUP, with which many servers reload their configuration.
const NOTHING_TO_RELOAD: &str =
    "regatta: received SIGHUP, but there is nothing to reload; the server continues\n";

/// How long accepting pauses if the server is out of descriptors or at its connection limit. A
/// connection must close first, so retrying at once gains nothing.
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

impl Host {
    /// Returns a host with one core, the default limits of a connection, any number of connections, and no time for a
    /// drain or for pending replies.
    pub fn new(listen: SocketAddr, stop: Stop) -> Host {
        Host {
            listen,
            inherited: None,
            cores: NonZeroUsize::MIN,
            limits: Limits::default(),
            connections: usize::MAX,
            admission: None,
            unix: None,
            offload: None,
            drain: Duration::ZERO,
            grace: Duration::ZERO,
            on_ready: |_| (),
            stop,
        }
    }

    /// Listens exclusively: a port in use is an error.
    pub(crate) fn listen(&self) -> Result<OwnedFd, ServeError> {
        self.listen_as(self.listen, PortSharing::Exclusive, false)
    }

    /// Like [`Host::listen`], for blocking accepts. Connections inherit the listener's timeouts.
    pub(crate) fn listen_blocking(&self) -> Result<OwnedFd, ServeError> {
        let listener = self.listen_as(self.listen, PortSharing::Exclusive, true)?;
        self.limit_connections_of(&listener)?;
        Ok(listener)
    }

    /// Sets the timeouts that connections of `listener` inherit: those with which a sequential
    /// program starts.
    pub(crate) fn limit_connections_of(&self, listener: &OwnedFd) -> io::Result<()> {
        net::set_timeouts(listener, read_timeout(self.limits), self.limits.progress_interval())
    }

    /// Creates the seat of a single-threaded model.
    pub(crate) fn alone<M>(&self) -> Result<Seat<M>, ServeError> {
        let listener = self.listen()?;
        let places = Places::new(self.connections)?;
        self.ready(&listener)?;
        Ok(Seat { listener: Some(listener), places, pool: self.pool()?, letters: None })
    }

    /// Creates one listener per core on the same port (SO_REUSEPORT), or on the inherited socket, from which all cores
    /// accept.
    pub(crate) fn listen_per_core(&self) -> Result<Vec<OwnedFd>, ServeError> {
        if self.inherited.is_some() {
            return (0..self.cores.get()).map(|_| self.listen()).collect();
        }
        // Another program may take a port that the system chose before it is listened on.
        let mut others = if self.listen.port() == 0 { 16 } else { 0 };
        loop {
            // A socket that shares its port would not detect another server that also shares it.
            let addr = net::free_addr(self.listen)
                .map_err(|error| ServeError::Listen { addr: self.listen, error })?;
            let all =
                (0..self.cores.get()).map(|_| self.listen_as(addr, PortSharing::Shared, false));
            match all.collect() {
                Err(ServeError::Listen { error, .. })
                    if others > 0 && error.kind() == io::ErrorKind::AddrInUse =>
                {
                    others -= 1;
                }
                listeners => return listeners,
            }
        }
    }

    /// Serves with a thread per core, each with its own listener. If one core ends with an error or
    /// a panic, the others stop too.
    pub(crate) fn on_each_core<L: Posted>(
        &self,
        posts: bool,
        serve: impl Fn(Seat<Letters<L>>) -> io::Result<()> + Sync,
    ) -> Result<(), ServeError> {
        let mut listeners = self.listen_per_core()?;
        let unix = self.unix.iter().map(|socket| net::share(socket, false));
        listeners.extend(unix.collect::<io::Result<Vec<_>>>()?);
        let places = Places::new(self.connections)?;
        let pool = self.pool()?;
        let mut letters = if posts { Letters::new(listeners.len())? } else { Vec::new() };
        self.ready(&listeners[0])?;
        thread::scope(|scope| {
            if let Some(unix) = &self.unix {
                // Its descriptors stay open. From a stop on, clients are refused as on the port.
                scope.spawn(move || self.stop.wait().and_then(|()| net::shutdown_read(unix)));
            }
            let core = |listener| {
                let (serve, places, pool) = (&serve, places.clone(), pool.clone());
                let seat = Seat { listener: Some(listener), places, pool, letters: letters.pop() };
                scope.spawn(move || {
                    let part = Part(&self.stop);
                    let ended = serve(seat);
                    if ended.is_ok() && self.stop.is_set() {
                        part.finish();
                    }
                    ended
                })
            };
            let cores: Vec<_> = listeners.into_iter().map(core).collect();
            cores
                .into_iter()
                .try_for_each(|core| Ok(core.join().expect("a core does not panic")?))
        })
    }

    /// Over how much time the stop that is set closes the clients one after the other.
    pub(crate) fn drain_time(&self) -> Duration {
        if self.stop.has_failed() { Duration::ZERO } else { self.drain }
    }

    /// Admits a client that was accepted. `None`: a limit is reached; the client gets an error, and its connection must
    /// be closed.
    pub(crate) fn admit(&self, place: Place, socket: impl AsFd) -> Option<Place> {
        let Some(admission) = &self.admission else { return Some(place) };
        match admission.admit(net::peer_ip(&socket)) {
            Ok(guest) => Some(place.of(guest)),
            Err(reply) => {
                // It fits into the empty buffer of a new socket. A client that has vanished gets nothing.
                if !reply.is_empty() {
                    let _ = net::write_now(&socket, reply, false);
                }
                None
            }
        }
    }

    /// Starts the threads for jobs, if any are requested. Must not be called before a fork.
    pub(crate) fn pool(&self) -> io::Result<Option<Pool>> {
        self.offload.map(Pool::new).transpose()
    }

    fn listen_as(
        &self,
        addr: SocketAddr,
        port: PortSharing,
        blocking: bool,
    ) -> Result<OwnedFd, ServeError> {
        match &self.inherited {
            Some(socket) => Ok(net::adopt(socket, blocking)?),
            None => net::listen(addr, port, blocking)
                .map_err(|error| ServeError::Listen { addr, error }),
        }
    }

    /// Reports that connections on `listener` are accepted.
    pub(crate) fn ready(&self, listener: &OwnedFd) -> io::Result<()> {
        self.stop.0.is_listening.store(true, Relaxed);
        (self.on_ready)(net::local_addr(listener)?);
        Ok(())
    }
}

/// The resources of a core.
pub(crate) struct Seat<M> {
    /// `None` once the server stops, or the driver has taken it.
    pub(crate) listener: Option<OwnedFd>,
    pub(crate) places: Places,
    /// Runs the long jobs. If there is none, the core runs them itself.
    pub(crate) pool: Option<Pool>,
    /// Letters to and from the other cores, for engines that post.
    pub(crate) letters: Option<M>,
}

impl<M> Seat<M> {
    /// Creates the core that serves an engine with these resources.
    pub(crate) fn core<E: Engine>(&self, engine: E, limits: Limits) -> Core<E>
    where
        M: Mail<E::Letter>,
    {
        let mut core = Core::new(engine, limits, clock::now());
        if let Some(letters) = &self.letters {
            let (own, cores) = letters.seat();
            core.set_core(own, cores);
        }
        core
    }

    /// Sends the engine's letters to the other cores.
    #[inline]
    pub(crate) fn post<E: Engine>(&mut self, core: &mut Core<E>)
    where
        M: Mail<E::Letter>,
    {
        if E::POSTS && core.has_letters() {
            let letters = core.letters();
            match &mut self.letters {
                Some(others) => others.post(letters),
                None => drop(letters),
            }
        }
    }
}

/// Stops a server. Its descriptor becomes readable for every loop, in every thread and every
/// process forked since, and stays readable.
#[derive(Clone)]
pub struct Stop(Arc<Inner>);

struct Inner {
    latch: Arc<Latch>,
    signals: OnceLock<[SigId; 5]>,
    /// The server that it stops has begun to listen.
    is_listening: AtomicBool,
    /// Set once a part of the server has failed.
    failed: Latch,
}

impl Stop {
    /// Creates a stop that is not set.
    pub fn new() -> io::Result<Self> {
        let latch = Arc::new(Latch::new()?);
        let (is_listening, failed) = (AtomicBool::new(false), Latch::new()?);
        Ok(Stop(Arc::new(Inner { latch, signals: OnceLock::new(), is_listening, failed })))
    }

    /// Sets the stop on SIGTERM and SIGINT, after `delay`, during which [`Stop::readiness`] already
    /// reports it. A second signal ends the process at once. SIGHUP, SIGUSR1 and SIGUSR2 do not end
    /// it.
    pub fn on_signals(&self, delay: Duration) -> io::Result<()> {
        let signals = signal::handle(&self.0.latch, delay, Some(NOTHING_TO_RELOAD))?;
        self.0.signals.get_or_init(|| signals);
        Ok(())
    }

    /// Like [`Stop::on_signals`]. Returns a stream that becomes readable at SIGHUP.
    pub fn on_signals_but_hangups(&self, delay: Duration) -> io::Result<UnixStream> {
        let signals = signal::handle(&self.0.latch, delay, None)?;
        self.0.signals.get_or_init(|| signals);
        signal::hangups()
    }

    /// Makes this child process ignore the signals. Its parent forwards the stop.
    pub(crate) fn leave_signals_to_parent(&self) {
        signal::ignore(self.0.signals.get().map_or(&[], |signals| signals));
    }

    /// Stops the server.
    pub fn set(&self) {
        self.0.latch.set();
    }

    /// Stops the server because a part of it has failed: at once, because what remains cannot serve
    /// its clients for the time of a drain. A drain that has begun ends.
    pub(crate) fn fail(&self) {
        self.0.failed.set();
        self.set();
    }

    /// Whether a part of the server has failed.
    pub fn has_failed(&self) -> bool {
        self.0.failed.is_set()
    }

    /// A descriptor that becomes readable once a part of the server has failed, in every thread and process.
    pub(crate) fn failure(&self) -> BorrowedFd<'_> {
        self.0.failed.as_fd()
    }

    /// Whether the stop is set.
    pub fn is_set(&self) -> bool {
        self.0.latch.is_set()
    }

    /// Whether the server should get new clients. If not, returns the reason, for `/ready`.
    ///
    /// # Errors
    /// The server does not listen yet, or a stop is requested.
    pub fn readiness(&self) -> Result<(), &'static str> {
        if self.is_set() {
            Err("stopping: no more clients are accepted")
        } else if self.0.latch.is_requested() {
            Err("stopping: clients are accepted until the drain delay is over")
        } else if !self.0.is_listening.load(Relaxed) {
            Err("starting: the server does not listen yet")
        } else {
            Ok(())
        }
    }

    /// Whether a connection may be closed. During a stop, it is kept until its peer has
    /// acknowledged all output. Closing it while the peer still sends would cause a reset, which
    /// discards that output.
    pub(crate) fn may_close(&self, socket: impl AsFd) -> bool {
        !self.is_set() || unacknowledged(socket).is_ok_and(|bytes| bytes == 0)
    }

    /// Blocks until the stop is set.
    pub fn wait(&self) -> io::Result<()> {
        self.0.latch.wait()
    }
}

/// A part of a server. The server has failed when it is dropped before it is done: without a stop, a core ends only by
/// an error or a panic.
struct Part<'s>(&'s Stop);

impl Part<'_> {
    /// It has ended as it should, after a stop.
    fn finish(self) {
        std::mem::forget(self);
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.0.fail();
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.latch.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    fn host() -> Host {
        Host::new("127.0.0.1:0".parse().unwrap(), Stop::new().unwrap())
    }

    #[test]
    fn a_server_is_ready_from_when_it_listens_until_a_stop() {
        let host = host();
        assert!(host.stop.readiness().unwrap_err().starts_with("starting"));
        let listener = host.listen().unwrap();
        host.ready(&listener).unwrap();
        assert_eq!(host.stop.readiness(), Ok(()));
        host.stop.set();
        assert!(host.stop.readiness().unwrap_err().starts_with("stopping"));
    }

    #[test]
    fn a_server_of_which_a_part_has_failed_does_not_drain() {
        let mut host = host();
        host.drain = Duration::from_secs(60);
        assert_eq!(host.drain_time(), host.drain);
        drop(Part(&host.stop));
        assert!(host.stop.is_set() && host.drain_time().is_zero());
        host.stop = Stop::new().unwrap();
        host.stop.set();
        Part(&host.stop).finish();
        assert_eq!(host.drain_time(), host.drain, "the end of a core that has drained is none");
        drop(Part(&host.stop));
        assert!(host.drain_time().is_zero(), "a core fails during the drain");
    }

    #[test]
    fn connections_inherit_the_timeouts_of_reads_and_of_writes() {
        let host = host();
        let limits = host.limits;
        assert_ne!(read_timeout(limits), limits.progress_interval());
        let listener = TcpListener::from(host.listen_blocking().unwrap());
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        assert_eq!(stream.read_timeout().unwrap(), Some(read_timeout(limits)));
        assert_eq!(stream.write_timeout().unwrap(), Some(limits.progress_interval()));
    }
}
