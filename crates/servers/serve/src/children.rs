//! The child processes of `fork`, `prefork` and `cluster`: forked, watched, drained and reaped.
//! Also how a child serves a connection.

use crate::{
    blocking::Blocking,
    host::{Host, PAUSE, ServeError, Stop},
};
use regatta_service::{
    Limits, Program,
    style::{own_connections::ConnectingProgram, sequential::read_timeout},
};
use regatta_sys::{
    Event, Interest, Readiness,
    fork::{Fork, Forked},
    net,
    poll::Poll,
    signal::{self, while_served},
};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};
use std::{
    collections::HashSet,
    error::Error,
    io::{self, Read, Write},
    net::TcpStream,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
    time::Instant,
};

/// The children of this process. They are killed when it ends.
pub(crate) struct Children {
    fork: Fork,
    alive: HashSet<Pid>,
    /// Becomes readable when a child has ended.
    pub(crate) ended: UnixStream,
}

/// In which of the two processes a fork returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Parent,
    /// It continues in [`leave`].
    Child,
}

impl Children {
    pub(crate) fn new() -> io::Result<Self> {
        // Before the first fork, because SIGUSR1 would kill a child without this handler.
        signal::end_input_on_signal()?;
        let ended = signal::ended_children()?;
        Ok(Children { fork: Fork::new()?, alive: HashSet::new(), ended })
    }

    pub(crate) fn len(&self) -> usize {
        self.alive.len()
    }

    pub(crate) fn fork(&mut self, host: &Host) -> io::Result<Side> {
        match self.fork.fork()? {
            Forked::Parent(child) => {
                self.alive.insert(child);
                Ok(Side::Parent)
            }
            Forked::Child => {
                host.stop.leave_signals_to_parent();
                Ok(Side::Child)
            }
        }
    }

    /// Reaps the children that have ended. Returns the last one that has failed, otherwise the last one. Process 1 of a container also
    /// inherits the orphans of other programs there. They are reaped, but are no children.
    pub(crate) fn reap(&mut self) -> io::Result<Option<(Pid, WaitStatus)>> {
        let mut last = None;
        let mut discard = [0; 64];
        while matches!((&self.ended).read(&mut discard), Ok(1..)) {}
        while !self.alive.is_empty()
            && let Some((child, status)) = wait(WaitOptions::NOHANG)?
        {
            let is_first = last.is_none_or(|(_, before)| !has_failed(before));
            if self.alive.remove(&child) && (is_first || has_failed(status)) {
                last = Some((child, status));
            }
        }
        Ok(last)
    }

    /// Waits until the host stops or a child has ended. Returns the child.
    pub(crate) fn wait(&mut self, host: &Host) -> io::Result<Option<(Pid, WaitStatus)>> {
        let mut readiness = Poll::new();
        readiness.add(host.stop.as_fd(), 0, Interest::READ)?;
        readiness.add(self.ended.as_fd(), 0, Interest::READ)?;
        let mut events: Vec<Event> = Vec::new();
        readiness.wait(&mut events, None)?;
        self.reap()
    }

    /// Waits until the host stops. A child that ends before is an error, which ends the server.
    pub(crate) fn watch(&mut self, host: &Host) -> Result<(), ServeError> {
        while !host.stop.is_set() {
            if let Some((child, status)) = self.wait(host)?
                && (!host.stop.is_set() || has_failed(status))
            {
                return Err(ended(child, status, self.len() + 1).into());
            }
        }
        Ok(())
    }

    /// Lets every child answer the input that has arrived and exit, within the host's times to drain and of grace.
    /// Kills the rest.
    pub(crate) fn drain(mut self, host: &Host) -> Result<(), ServeError> {
        self.signal(Signal::USR1);
        let until = Instant::now() + host.drain_time() + host.grace;
        self.reap()?;
        while self.len() > 0 && Instant::now() < until {
            thread::sleep(PAUSE / 4);
            self.reap()?;
        }
        self.kill()
    }

    /// Like [`Children::drain`], for children that are parts of one server: if one fails, the drain of the others ends,
    /// and that is an error.
    pub(crate) fn drain_parts(mut self, host: &Host) -> Result<(), ServeError> {
        self.signal(Signal::USR1);
        let (count, mut failure) = (self.len(), None);
        let mut until = Instant::now() + host.drain_time() + host.grace;
        loop {
            if let Some((child, status)) = self.reap()?
                && has_failed(status)
                && failure.is_none()
            {
                host.stop.fail();
                until = until.min(Instant::now() + host.grace);
                failure = Some(ended(child, status, count));
            }
            if self.len() == 0 || Instant::now() >= until {
                break;
            }
            thread::sleep(PAUSE / 4);
        }
        self.kill()?;
        failure.map_or(Ok(()), |failure| Err(failure.into()))
    }

    /// Kills the children that remain.
    fn kill(&mut self) -> Result<(), ServeError> {
        self.signal(Signal::KILL);
        while self.len() > 0
            && let Some((child, _)) = wait(WaitOptions::empty()).map_err(io::Error::from)?
        {
            self.alive.remove(&child);
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        for &child in &self.alive {
            // A child that has ended is not reaped yet, so its pid is not reused.
            let _ = kill_process(child, signal);
        }
    }
}

/// Whether a child has ended by a signal or with an error.
fn has_failed(status: WaitStatus) -> bool {
    status.exit_status() != Some(0)
}

/// The error for a child that has ended, one of so many.
fn ended(child: Pid, status: WaitStatus, count: usize) -> io::Error {
    let how = match (status.terminating_signal(), status.exit_status()) {
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, status) => format!("ended with status {}", status.unwrap_or_default()),
    };
    let pid = child.as_raw_nonzero();
    io::Error::other(format!("process {pid} (one of {count}) {how}"))
}

/// Runs the rest of a child's life. It never returns to the parent's code.
pub(crate) fn leave(work: impl FnOnce() -> Result<(), ServeError>) -> ! {
    let status = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            // If stderr is closed, the exit status alone reports the error.
            let _ = writeln!(io::stderr(), "regatta: {error}{cause}");
            1
        }
        Err(_) => 101, // the panic has been reported already
    };
    std::process::exit(status)
}

/// Serves one connection until it closes.
pub(crate) trait Converse:
    Fn(&mut Blocking<'_, TcpStream>, Limits) -> io::Result<()>
{
}

impl<F: Fn(&mut Blocking<'_, TcpStream>, Limits) -> io::Result<()>> Converse for F {}

/// Serves a program's connections.
pub(crate) fn each_connection<P: Program>(program: P) -> impl Converse {
    move |stream: &mut Blocking<'_, TcpStream>, limits| program.sequential(stream, limits)
}

/// Serves the connections of a program that opens its own.
pub(crate) fn each_straight<P: ConnectingProgram>(program: P) -> impl Converse {
    move |stream: &mut Blocking<'_, TcpStream>, limits| {
        net::detect_vanished_peers(stream.socket)?;
        program.serve(stream, limits)
    }
}

/// Serves one connection until it closes, alone in this process. A stop shuts down its input.
pub(crate) fn converse(
    serve: &impl Converse,
    socket: OwnedFd,
    host: &Host,
) -> Result<(), ServeError> {
    let stream = TcpStream::from(socket);
    while_served(&stream, || {
        if host.stop.is_set() {
            // The signal may have arrived before the connection was registered.
            let _ = net::shutdown_read(&stream);
        }
        let mut blocking =
            Blocking { socket: &stream, stop: &host.stop, read_timeout: read_timeout(host.limits) };
        // An error closes only its own connection.
        let _ = serve(&mut blocking, host.limits);
        before_close(&host.stop, &stream);
    });
    Ok(())
}

fn before_close(stop: &Stop, stream: &TcpStream) {
    while !stop.may_close(stream) {
        thread::sleep(PAUSE / 4);
    }
}
