//! A run as a whole: starts the load threads, has the director lead them, and merges their counts.

use crate::{
    Error, Phase, Plan, Split, Tally,
    clock::{self, MS, Nanos, SECOND},
    counts::tally,
    open_loop::schedule,
    running::{
        director::Director,
        gatherer::Gatherer,
        leads::Leads,
        observer::LoadObserver,
        shared::Shared,
        worker::{Done, Work},
    },
    sockets::{
        limits,
        tls::{self, Tls},
    },
};
use regatta_record::{Counted, Part, SecondCounted};
use regatta_script::{Dialect, Visitor};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::{
    mem,
    sync::{atomic::AtomicBool, mpsc},
    thread,
    time::{Duration, Instant},
};

/// Progress of a run.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The current phase.
    pub phase: Phase,
    /// Time since the load was started: after its requests were compiled.
    pub elapsed: Duration,
    /// Connections open now, excluding those of members that join and leave.
    pub open: usize,
    /// Replies so far, including those outside the window.
    pub replies: u64,
    /// Errors of all kinds so far.
    pub errors: u64,
    /// Seconds of the window that ended since the last report, with [`Plan::seconds`]: in order, without
    /// gaps, each a moment after its end. The last one, which may be shorter or longer than a second, is
    /// reported after the load has ended.
    pub seconds: Vec<SecondCounted>,
}

/// Interval between progress reports.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// The same inside the window, where reporting takes CPU from the measured server.
const PROGRESS_IN_WINDOW: Duration = Duration::from_secs(1);
/// Time after the end of a second in which all threads and processes hand over its counts.
const HANDED_OVER_WITHIN: Nanos = 150 * MS;

/// Carries out a plan. `progress` is called on the calling thread, about ten times a second before and
/// after the measured window, and once a second inside it. Meanwhile the calling thread runs on the
/// CPUs of the plan. Setting `stop` ends the run within milliseconds and returns the results so far.
/// Replies that could only be stored are verified first, which can take some seconds.
///
/// # Errors
/// Only if there is no result at all: see [`Error`]. Wrong replies, lost connections and a server that
/// dies under load are recorded in the tally.
pub fn run(
    plan: &Plan,
    observer: &mut dyn LoadObserver,
    progress: &mut dyn FnMut(&Progress),
    stop: &AtomicBool,
) -> Result<Tally, Error> {
    plan.check()?;
    let alpn = plan.workload.protocol().alpn;
    let tls = plan.tls.as_ref().map(|tls| tls.offering(alpn));
    let plan = &Plan { tls, ..plan.clone() };
    let run = Run { plan, observer, progress, stop };
    plan.compile(None)?.visit(run)
}

/// Like [`run`], with a dialect instead of the plan's workload. TLS offers no application protocol.
///
/// # Errors
/// Those of [`run`].
pub fn run_dialect<D: Dialect>(
    dialect: &D,
    plan: &Plan,
    observer: &mut dyn LoadObserver,
    progress: &mut dyn FnMut(&Progress),
    stop: &AtomicBool,
) -> Result<Tally, Error> {
    plan.check()?;
    Run { plan, observer, progress, stop }.visit(dialect)
}

/// A run that has not started yet.
struct Run<'a> {
    plan: &'a Plan,
    observer: &'a mut dyn LoadObserver,
    progress: &'a mut dyn FnMut(&Progress),
    stop: &'a AtomicBool,
}

impl Visitor for Run<'_> {
    type Out = Result<Tally, Error>;

    fn visit<D: Dialect>(self, dialect: &D) -> Self::Out {
        let Run { plan, observer, progress, stop } = self;
        carry_out(dialect, plan, observer, progress, stop)
    }
}

fn carry_out<D: Dialect>(
    dialect: &D,
    plan: &Plan,
    observer: &mut dyn LoadObserver,
    progress: &mut dyn FnMut(&Progress),
    stop: &AtomicBool,
) -> Result<Tally, Error> {
    let plan = &plan.needed();
    let threads = plan.threads.min(plan.most_threads());
    limits::make_room(plan.most_open(), threads)?;
    let _kept = KeptOn::cpus(&plan.cpus);
    let shared = Shared::new(threads, plan.most_opening(1));
    let mut director = Director::new(plan, &shared, stop, observer);
    let part = Part::whole(threads as u32);
    let mut gatherer = plan.seconds.then(|| Gatherer::new(threads));
    let done = work(dialect, plan, part, &shared, &mut director, |ended| {
        report_progress(&shared, ended, gatherer.as_mut(), progress)
    })?;
    let counts = done.into_iter().map(|done| done.count).collect();
    let outcome = director.outcome()?;
    let mut counted = tally::count(counts, dialect.operations(), part, outcome.window, plan);
    (counted.first_wrong, counted.tls) = (shared.first_wrong(), shared.spoken());
    add_counts_of(dialect, &mut counted);
    if let Some(gatherer) = gatherer {
        gatherer.add_to(&mut counted.histogram);
    }
    let tally = Tally::of(counted, &outcome, plan, Split { processes: 1, threads });
    reached(Tally { verified: dialect.verified(), ..tally }, plan, &shared)
}

/// Runs the threads of `part`, led by `leader`, until the load is over. `watch` runs meanwhile; its
/// channel disconnects when all threads have ended.
#[expect(clippy::too_many_arguments, reason = "the parts of a run")]
pub(crate) fn work<D: Dialect>(
    dialect: &D,
    plan: &Plan,
    part: Part,
    shared: &Shared,
    leader: &mut dyn Leads,
    watch: impl FnOnce(&mpsc::Receiver<()>),
) -> Result<Vec<Done>, Error> {
    let mut leads = Some(leader);
    let done = thread::scope(|scope| {
        let (alive, ended) = mpsc::channel::<()>();
        let mut joins = Vec::new();
        for (number, gauge) in part.numbers().zip(&shared.gauges) {
            let (leader, alive) = (leads.take(), alive.clone());
            let number = number as usize;
            let part = schedule::Part { thread: number, threads: part.threads as usize };
            let work = move || {
                let _alive = alive;
                let guard = EndAll(shared);
                pin(&plan.cpus, number)?;
                let done = Work { plan, dialect, shared, gauge, part }.run(leader)?;
                // A thread that finishes does not end the others: they still verify their replies.
                mem::forget(guard);
                Ok(done)
            };
            match thread::Builder::new().name(format!("load-{number}")).spawn_scoped(scope, work) {
                Ok(join) => joins.push(join),
                Err(error) => {
                    drop(EndAll(shared));
                    return Err(Error::Machine { what: "start its threads", error });
                }
            }
        }
        drop(alive);
        watch(&ended);
        joins.into_iter().map(|join| join.join().expect("a load thread panicked")).collect()
    });
    let done: Vec<_> = done?;
    match shared.no_tls() {
        Some(error) => {
            let from_file = plan.tls.as_ref().is_some_and(Tls::trusts_a_file);
            Err(Error::Tls(tls::explain(&error, from_file)))
        }
        None => Ok(done),
    }
}

/// Adds what the dialect itself counted in the whole run.
pub(crate) fn add_counts_of(dialect: &impl Dialect, counted: &mut Counted) {
    counted.announced = dialect.announced();
    counted.wrong_deliveries = dialect.wrong_deliveries();
    counted.broadcasts = dialect.broadcasts();
}

/// Returns [`Error::NotOpened`] instead of the tally if connections failed and no request reached the
/// server, unless the caller stopped the run.
pub(crate) fn reached(tally: Tally, plan: &Plan, shared: &Shared) -> Result<Tally, Error> {
    let was_reached = tally.connections_opened > 0 || tally.errors.total() > tally.errors.connect;
    if !tally.interrupted && tally.errors.connect > 0 && !was_reached {
        let wanted = plan.connections + plan.idle;
        return Err(Error::NotOpened { opened: 0, wanted, last: shared.last_trouble() });
    }
    Ok(tally)
}

/// Calls `progress` until all threads have ended.
pub(crate) fn report_progress(
    shared: &Shared,
    ended: &mpsc::Receiver<()>,
    mut gatherer: Option<&mut Gatherer>,
    progress: &mut dyn FnMut(&Progress),
) {
    let began = Instant::now();
    let mut report = |phase, seconds| {
        let sums = shared.sums();
        progress(&Progress {
            phase,
            elapsed: began.elapsed(),
            open: sums.open,
            replies: sums.replies,
            errors: sums.errors,
            seconds,
        });
    };
    let mut pause = PROGRESS_EVERY;
    while ended.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
        let phase = shared.phase();
        let seconds = gatherer.as_mut().map(|gatherer| gatherer.gather(shared));
        report(phase, seconds.unwrap_or_default());
        pause = match phase {
            Phase::Measuring if gatherer.is_some() => until_handed_over(shared.window_opened_at()),
            Phase::Measuring => PROGRESS_IN_WINDOW,
            _ => PROGRESS_EVERY,
        };
    }
    let rest = gatherer.map(|gatherer| gatherer.rest(shared)).unwrap_or_default();
    if !rest.is_empty() {
        report(shared.phase(), rest);
    }
}

/// Time until the counts of the current second of the window are handed over.
fn until_handed_over(opened: Nanos) -> Duration {
    let into = (clock::now() + SECOND).saturating_sub(opened + HANDED_OVER_WITHIN) % SECOND;
    Duration::from_nanos(SECOND - into)
}

/// Pins this thread to its CPU, if CPUs are given.
fn pin(cpus: &[u32], thread: usize) -> Result<(), Error> {
    if cpus.is_empty() {
        return Ok(());
    }
    let cpu = cpus[thread % cpus.len()];
    sched_setaffinity(None, &set_of(&[cpu])).map_err(|error| Error::Machine {
        what: "pin its threads to the CPUs given",
        error: error.into(),
    })
}

fn set_of(cpus: &[u32]) -> CpuSet {
    let mut set = CpuSet::new();
    cpus.iter().map(|cpu| *cpu as usize).filter(|cpu| *cpu < CpuSet::MAX_CPU).for_each(|cpu| {
        set.set(cpu);
    });
    set
}

/// Keeps the calling thread on the load's CPUs, so that drawing progress takes no CPU from the server.
/// Dropping this restores the CPUs that the thread could use before.
pub(crate) struct KeptOn(Option<CpuSet>);

impl KeptOn {
    /// Leaves the thread unchanged if it cannot be pinned; the load threads then report the error.
    pub fn cpus(cpus: &[u32]) -> Self {
        let before = sched_getaffinity(None).ok().filter(|_| !cpus.is_empty());
        KeptOn(before.filter(|_| sched_setaffinity(None, &set_of(cpus)).is_ok()))
    }
}

impl Drop for KeptOn {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// Ends the run for all threads when dropped, so that no thread waits for one that failed or panicked.
pub(crate) struct EndAll<'a>(pub &'a Shared);

impl Drop for EndAll<'_> {
    fn drop(&mut self) {
        self.0.end_all();
    }
}
