//! Slow clients, to test whether they can block a server. Many connections each send the start of a
//! request, then single bytes, and never complete it. Meanwhile new clients connect, one after the
//! other, and each sends a complete request. This has a separate event loop, in which no client delays
//! another: who is served is up to the server.
//!
//! The bytes of all connections are spread evenly over the interval, so that bursts do not add load. A
//! connection that the server closes is not reopened.

mod drip;
mod plan;
mod probe;

use crate::{
    Error,
    clock::{self, MS, Nanos, SECOND},
    histogram::new_histogram,
    sockets::{
        limits,
        poller::{Interest, Poller},
    },
};
use drip::{After, Drip};
use hdrhistogram::Histogram;
pub use plan::SlowPlan;
use probe::Probe;
use regatta_script::{CompileOptions, Destination, Dialect, Pushes, Visitor};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

/// The result of a run of slow clients.
#[derive(Clone, Debug)]
pub struct SlowTally {
    /// Slow connections that were opened, i.e. sent at least one byte.
    pub opened: u64,
    /// Slow connections that could not be opened.
    pub refused: u64,
    /// Ages at which the server closed slow connections, in nanoseconds, in ascending order.
    pub closed_ns: Vec<u64>,
    /// Number of closed slow connections by the status that the server sent, if any.
    pub statuses: BTreeMap<Option<u16>, u64>,
    /// Slow connections that were open at the end, including any that have not sent a byte.
    pub alive: u64,
    /// Times of the new clients that were served, in nanoseconds: from before the connect to the end of
    /// a correct reply.
    pub served: Histogram<u64>,
    /// New clients that were not served.
    pub failed: u64,
    /// Why the first of these was not served.
    pub first_failure: Option<String>,
    /// Duration of the run in nanoseconds.
    pub took_ns: u64,
    /// Whether the caller stopped the run.
    pub interrupted: bool,
}

/// Progress of slow clients.
#[derive(Clone, Copy, Debug)]
pub struct SlowProgress {
    /// Time since the start.
    pub elapsed: Duration,
    /// Slow connections that are open, including those that have not sent a byte yet.
    pub alive: usize,
    /// New clients that were served.
    pub served: u64,
    /// New clients that were not served.
    pub failed: u64,
}

/// Runs slow clients against a server. `progress` is called about ten times a second. Setting `stop`
/// ends the run within milliseconds and returns the results so far.
///
/// # Errors
/// If the plan contradicts itself, the descriptor limit is too low, or a system call fails that the load
/// needs.
pub fn run_slow(
    plan: &SlowPlan,
    progress: &mut dyn FnMut(&SlowProgress),
    stop: &AtomicBool,
) -> Result<SlowTally, Error> {
    plan.check()?;
    // One more for the new client.
    limits::make_room(plan.connections + 1, 1)?;
    let poller = Poller::new()
        .map_err(|error| Error::Machine { what: "create its poller", error: error.into() })?;
    let place = Destination { host: &plan.host, path: None, closes: true, timeout: None };
    let compiled = plan.workload.compile(&CompileOptions {
        seed: 1,
        pipeline: 1,
        place,
        shared: None,
        machines: None,
        pushes: Pushes::default(),
    });
    let compiled = compiled.map_err(|too_long| Error::Plan(too_long.to_string()))?;
    Ok(compiled.visit(Run { plan, poller, progress, stop }))
}

/// A run of slow clients that has not started yet.
struct Run<'a> {
    plan: &'a SlowPlan,
    poller: Poller,
    progress: &'a mut dyn FnMut(&SlowProgress),
    stop: &'a AtomicBool,
}

impl Visitor for Run<'_> {
    type Out = SlowTally;

    fn visit<D: Dialect>(self, dialect: &D) -> SlowTally {
        Slow::new(self.plan, dialect, self.poller).run(self.progress, self.stop)
    }
}

/// The token of the new client.
const PROBE: u32 = u32::MAX;
/// Maximum wait for events: the delay with which a stop is noticed.
const TURN: Nanos = 20 * MS;

struct Slow<'a, D: Dialect> {
    plan: &'a SlowPlan,
    /// The dialect of the new clients.
    dialect: &'a D,
    desk: D::ThreadState,
    poller: Poller,
    began: Nanos,
    now: Nanos,
    ends: Nanos,
    drips: Vec<Option<Drip>>,
    /// Number of connections that were opened or refused; they are opened in order.
    attempted: usize,
    /// Number of bytes that fell due, over all connections in turn.
    bytes_due: u64,
    alive: usize,
    probe: Option<Probe<D>>,
    next_probe: Nanos,
    count: SlowTally,
}

impl<'a, D: Dialect> Slow<'a, D> {
    fn new(plan: &'a SlowPlan, dialect: &'a D, poller: Poller) -> Self {
        let began = clock::now();
        let count = SlowTally {
            opened: 0,
            refused: 0,
            closed_ns: Vec::new(),
            statuses: BTreeMap::new(),
            alive: 0,
            served: new_histogram(),
            failed: 0,
            first_failure: None,
            took_ns: 0,
            interrupted: false,
        };
        Slow {
            plan,
            dialect,
            desk: dialect.desk(clock::wall),
            poller,
            began,
            now: began,
            ends: began + plan.longest.as_nanos() as Nanos,
            drips: (0..plan.connections).map(|_| None).collect(),
            attempted: 0,
            bytes_due: 0,
            alive: 0,
            probe: None,
            next_probe: began,
            count,
        }
    }

    fn run(mut self, progress: &mut dyn FnMut(&SlowProgress), stop: &AtomicBool) -> SlowTally {
        let mut next_progress = self.began;
        loop {
            self.now = clock::now();
            self.count.interrupted = stop.load(Relaxed);
            if self.count.interrupted || (self.is_over() && self.probe.is_none()) {
                break;
            }
            if self.now >= next_progress {
                next_progress = self.now + 100 * MS;
                progress(&self.progress());
            }
            self.open_due();
            self.send_due();
            self.probe_due();
            let ready = self.poller.wait(self.next_due().saturating_sub(self.now).min(TURN));
            self.now = clock::now();
            for i in 0..ready {
                match self.poller.ready(i).token {
                    PROBE => self.read_probe(),
                    slot => self.read(slot),
                }
            }
        }
        self.count.alive = self.alive as u64;
        self.count.closed_ns.sort_unstable();
        self.count.took_ns = self.now - self.began;
        self.count
    }

    /// Whether no further new client connects. The last one may still be waiting for its reply.
    fn is_over(&self) -> bool {
        let all_closed = self.attempted == self.drips.len() && self.alive == 0;
        all_closed || self.now >= self.ends
    }

    fn progress(&self) -> SlowProgress {
        SlowProgress {
            elapsed: Duration::from_nanos(self.now - self.began),
            alive: self.alive,
            served: self.count.served.len(),
            failed: self.count.failed,
        }
    }

    /// Interval between two bytes of a connection, in nanoseconds.
    fn every(&self) -> Nanos {
        self.plan.every.as_nanos() as Nanos
    }

    /// When connection number `i` is opened.
    fn opens_at(&self, i: usize) -> Nanos {
        self.began + self.every().min(SECOND) * i as Nanos / self.drips.len() as Nanos
    }

    /// When byte number `i`, counted over all connections, falls due. Each connection sends one byte per
    /// interval, and none before it is opened.
    fn byte_due_at(&self, i: u64) -> Nanos {
        let n = self.drips.len() as u64;
        self.began + self.every() * (i / n) + self.every() * (i % n) / n
    }

    fn next_due(&self) -> Nanos {
        let none = Nanos::MAX;
        let is_next = self.attempted < self.drips.len();
        let opens = if is_next { self.opens_at(self.attempted) } else { none };
        let probe = self.probe.as_ref().map_or(self.next_probe, Probe::gives_up_at);
        opens.min(probe).min(self.byte_due_at(self.bytes_due))
    }

    fn open_due(&mut self) {
        while self.attempted < self.drips.len() && self.opens_at(self.attempted) <= self.now {
            let slot = self.attempted;
            self.attempted += 1;
            let opened = Drip::open(self.plan.target, self.now).and_then(|drip| {
                self.poller.add(drip.socket(), slot as u32, Interest::Read).map(|()| drip)
            });
            match opened {
                Ok(drip) => {
                    self.drips[slot] = Some(drip);
                    self.alive += 1;
                }
                Err(_) => self.count.refused += 1,
            }
        }
    }

    /// Sends the bytes that are due. After a stall, each connection sends only one byte, not all missed
    /// ones.
    fn send_due(&mut self) {
        let n = self.drips.len() as u64;
        let mut most = n;
        while self.byte_due_at(self.bytes_due) <= self.now {
            let slot = (self.bytes_due % n) as usize;
            self.bytes_due += 1;
            if most == 0 {
                continue;
            }
            most -= 1;
            let Some(drip) = &mut self.drips[slot] else { continue };
            let first = !drip.is_open();
            let sent = drip.send(&self.plan.request);
            self.count.opened += u64::from(first && drip.is_open());
            if let After::Gone = sent {
                self.gone(slot);
            }
        }
    }

    fn read(&mut self, slot: u32) {
        let Some(drip) = &mut self.drips[slot as usize] else { return };
        if let After::Gone = drip.read() {
            self.gone(slot as usize);
        }
    }

    /// Records a slow connection that the server closed, or that could not be opened.
    fn gone(&mut self, slot: usize) {
        let Some(drip) = self.drips[slot].take() else { return };
        self.alive -= 1;
        if drip.is_open() {
            self.count.closed_ns.push(self.now - drip.opened_at());
            let status = drip.status(&self.plan.request);
            *self.count.statuses.entry(status).or_default() += 1;
        } else {
            self.count.refused += 1;
        }
    }

    fn probe_due(&mut self) {
        if let Some(probe) = &self.probe
            && probe.gives_up_at() <= self.now
        {
            let timeout = self.plan.timeout;
            self.probe_ends(Err(format!("no complete reply within {timeout:?}")));
        }
        if self.probe.is_some() || self.next_probe > self.now || self.is_over() {
            return;
        }
        self.next_probe = self.now + SlowPlan::PROBE_EVERY.as_nanos() as Nanos;
        match Probe::open(self.plan, self.dialect, self.now) {
            Ok(probe) => match self.poller.add(probe.socket(), PROBE, Interest::ReadAndWrite) {
                Ok(()) => self.probe = Some(probe),
                Err(error) => self.probe_ends(Err(format!("cannot watch its socket: {error}"))),
            },
            Err(error) => self.probe_ends(Err(format!("cannot connect: {error}"))),
        }
    }

    fn read_probe(&mut self) {
        let Some(probe) = &mut self.probe else { return };
        let finished = probe.go_on(self.dialect, &mut self.desk);
        if probe.has_asked(self.dialect) {
            let _ = self.poller.change(probe.socket(), PROBE, Interest::Read);
        }
        if let Some(outcome) = finished {
            self.probe_ends(outcome);
        }
    }

    fn probe_ends(&mut self, outcome: Result<(), String>) {
        let probe = self.probe.take();
        match (outcome, probe) {
            (Ok(()), Some(probe)) => {
                let took = clock::now() - probe.began();
                self.count.served.saturating_record(took);
            }
            (Ok(()), None) => {}
            (Err(because), _) => {
                self.count.failed += 1;
                self.count.first_failure.get_or_insert(because);
            }
        }
    }
}
