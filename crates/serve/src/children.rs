//! Child processes of the models that have them: made, watched, drained and reaped; and what a child
//! does with a connection.

use crate::{
    blocking::Blocking,
    host::{Host, PAUSE, ServeError, Stop},
};
use regatta_service::{Limits, style::sequential::read_timeout};
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
    io::{self, Read},
    net::TcpStream,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
    time::Instant,
};

/// The children of this process. All are gone when it is.
pub(crate) struct Children {
    fork: Fork,
    alive: HashSet<Pid>,
    /// Becomes readable when one has ended.
    pub(crate) ended: UnixStream,
}

/// Which of the two processes goes on after a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Parent,
    /// Goes on in [`leave`].
    Child,
}

impl Children {
    pub(crate) fn new() -> io::Result<Self> {
        // Before the first fork: SIGUSR1 would end a child that does not expect it yet.
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

    /// Takes the exits of those that have ended; gives the last of them.
    pub(crate) fn reap(&mut self) -> io::Result<Option<(Pid, WaitStatus)>> {
        let mut last = None;
        let mut told = [0; 64];
        while matches!((&self.ended).read(&mut told), Ok(1..)) {}
        while !self.alive.is_empty()
            && let Some((child, status)) = wait(WaitOptions::NOHANG)?
        {
            self.alive.remove(&child);
            last = Some((child, status));
        }
        Ok(last)
    }

    /// Waits until the host stops or a child has ended, which it gives.
    pub(crate) fn wait(&mut self, host: &Host) -> io::Result<Option<(Pid, WaitStatus)>> {
        let mut readiness = Poll::new();
        readiness.add(host.stop.as_fd(), 0, Interest::READ)?;
        readiness.add(self.ended.as_fd(), 0, Interest::READ)?;
        let mut events: Vec<Event> = Vec::new();
        readiness.wait(&mut events, None)?;
        self.reap()
    }

    /// Waits until the host stops. A child that ends before is the end of the server.
    pub(crate) fn watch(&mut self, host: &Host) -> Result<(), ServeError> {
        while !host.stop.is_set() {
            if let Some((child, status)) = self.wait(host)?
                && !host.stop.is_set()
            {
                let how = match (status.terminating_signal(), status.exit_status()) {
                    (Some(signal), _) => format!("was killed by signal {signal}"),
                    (None, status) => format!("ended with status {}", status.unwrap_or_default()),
                };
                let pid = child.as_raw_nonzero();
                let because = format!("process {pid}, one of its {}, {how}", self.len() + 1);
                return Err(io::Error::other(because).into());
            }
        }
        Ok(())
    }

    /// Lets every child answer what has arrived and end, up to the host's grace; kills the rest.
    pub(crate) fn drain(mut self, host: &Host) -> Result<(), ServeError> {
        let until = Instant::now() + host.grace;
        self.tell(Signal::USR1);
        self.reap()?;
        while self.len() > 0 && Instant::now() < until {
            thread::sleep(PAUSE / 4);
            self.reap()?;
        }
        self.tell(Signal::KILL);
        while self.len() > 0
            && let Some((child, _)) = wait(WaitOptions::empty()).map_err(io::Error::from)?
        {
            self.alive.remove(&child);
        }
        Ok(())
    }

    fn tell(&self, signal: Signal) {
        for &child in &self.alive {
            // One that has ended is not reaped yet, so its number is not another's.
            let _ = kill_process(child, signal);
        }
    }
}

/// The rest of a child's life; it never returns into what its parent does.
pub(crate) fn leave(work: impl FnOnce() -> Result<(), ServeError>) -> ! {
    let status = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            eprintln!("regatta: {error}");
            1
        }
        Err(_) => 101, // the panic has told itself
    };
    std::process::exit(status)
}

/// Serves one connection to its end, alone in this process. A stop ends its input.
pub(crate) fn converse(
    serve: impl Fn(&mut Blocking<'_, TcpStream>, Limits) -> io::Result<()>,
    socket: OwnedFd,
    host: &Host,
) -> Result<(), ServeError> {
    let stream = TcpStream::from(socket);
    while_served(&stream, || {
        if host.stop.is_set() {
            // Its signal may have come before the connection was named.
            let _ = net::finish_reading(&stream);
        }
        let mut blocking =
            Blocking { socket: &stream, stop: &host.stop, read_timeout: read_timeout(host.limits) };
        // A connection's errors are its own end, and nobody else's business.
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
