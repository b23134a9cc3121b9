//! A load process: carries out its part of a load and follows the leader's orders.

use super::{
    ask::{Ask, Order},
    memory,
    wire::{self, Inbox},
};
use crate::{
    Error, Plan, Until,
    clock::{self, Nanos},
    counts::tally,
    running::{
        gatherer::Gatherer,
        leads::Leads,
        run::{add_counts_of, work},
        shared::{Phase, Shared},
    },
    sockets::limits,
};
use regatta_record::{
    AcrossProgress, AcrossSeen, Counted, Failure, LeaderCommand, LoadProgress, Part,
    ProcessMessage, SecondCounted,
};
use regatta_script::{Dialect, Visitor};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::{
    io::{self, Read},
    os::fd::OwnedFd,
    process::{self, ExitCode},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// Interval between two checks of the load threads: the maximum age of the progress that the leader
/// gets.
const CHECK_EVERY: Duration = Duration::from_millis(20);
/// The same inside a window of a fixed length, where checks take CPU from the measured server.
const CHECK_IN_WINDOW: Duration = Duration::from_millis(100);
/// Maximum time between two reports to the leader.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// Runs a load process: reads an [`Ask`] from stdin, carries out its part, follows the orders from
/// stdin, and writes reports to stdout. It ends at once when stdin closes or the leader dies, and keeps
/// its connections open until then, unless it fails. Not meant to be started by users.
pub fn load_process() -> ExitCode {
    follow(|plan, shared, run| plan.compile(shared)?.visit(run))
}

/// Like [`load_process`], with a dialect instead of the plan's workload.
pub fn load_process_dialect<D: Dialect>(dialect: impl FnOnce(&Plan) -> D) -> ExitCode {
    follow(|plan, _, run| run.visit(&dialect(plan)))
}

/// Memory that all load processes share.
type Shares = Option<&'static [AtomicU64]>;

/// The counts of a part of a load, and its connections that are still open.
type Outcome = Result<(Counted, Vec<OwnedFd>), Error>;

fn follow(begin: impl FnOnce(&Plan, Shares, Run<'_>) -> Outcome) -> ExitCode {
    // If this fails, the end of stdin has the same effect, only later.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let mut inbox = Inbox::new(io::stdin());
    let failure = match inbox.receive::<Ask>() {
        Ok(None) => return ExitCode::FAILURE,
        Err(error) => Failure::Other(format!("cannot read its part: {error}")),
        Ok(Some(ask)) => match carry_out(&ask, inbox, begin) {
            Ok((counted, _open)) => {
                if wire::send(io::stdout(), &ProcessMessage::Counted(Box::new(counted))).is_err() {
                    return ExitCode::FAILURE;
                }
                // Other processes may still be reading. The leader kills this one when all have
                // reported.
                loop {
                    thread::park();
                }
            }
            Err(Error::Tls(because)) => Failure::Tls(because),
            Err(error) => Failure::Other(format!("failed: {error}")),
        },
    };
    let _ = wire::send(io::stdout(), &ProcessMessage::Failed(failure));
    ExitCode::FAILURE
}

fn carry_out(
    ask: &Ask,
    orders: Inbox<io::Stdin>,
    begin: impl FnOnce(&Plan, Shares, Run<'_>) -> Outcome,
) -> Outcome {
    let plan = &ask.plan()?;
    let alpn = plan.workload.protocol().alpn;
    let tls = plan.tls.as_ref().map(|tls| tls.offering(alpn));
    let plan = &Plan { tls, ..plan.clone() };
    let map = |path: &String| memory::map(path, plan.workload.shared_words());
    let shared = ask.shared.as_ref().map(map).transpose();
    let shared = shared.map_err(|error| Error::Machine { what: "map its shared memory", error })?;
    begin(plan, shared, Run { plan, part: ask.part, orders })
}

/// A part of a load that has not started yet.
struct Run<'a> {
    plan: &'a Plan,
    part: Part,
    orders: Inbox<io::Stdin>,
}

impl Visitor for Run<'_> {
    type Out = Outcome;

    fn visit<D: Dialect>(self, dialect: &D) -> Self::Out {
        let Run { plan, part, orders } = self;
        let threads = part.numbers().count();
        limits::make_room(plan.connections_of(part), threads)?;
        let shared = Shared::new(threads, plan.most_opening(part.processes as usize));
        let follower = Arc::new(Follower::new(plan, shared));
        let obeying = follower.clone();
        thread::Builder::new()
            .name("orders".into())
            .spawn(move || obey(orders, &obeying))
            .map_err(|error| Error::Machine { what: "start its threads", error })?;
        let shared = &follower.shared;
        let leader = &mut Turns(&follower);
        let mut gatherer = plan.seconds.then(|| Gatherer::new(threads));
        let done = work(dialect, plan, part, shared, leader, |ended| {
            report(&follower, &|| dialect.across(), ended, gatherer.as_mut())
        })?;
        let (counts, open): (_, Vec<_>) =
            done.into_iter().map(|done| (done.count, done.open)).unzip();
        let mut counted = tally::count(counts, dialect.operations(), part, follower.window(), plan);
        if let Some(across) = &mut counted.across {
            across.seen = dialect.across().unwrap_or_default();
        }
        add_counts_of(dialect, &mut counted);
        (counted.first_wrong, counted.tls) = (shared.first_wrong(), shared.spoken());
        if let Some(gatherer) = gatherer {
            gatherer.add_to(&mut counted.histogram);
        }
        Ok((counted, open.into_iter().flatten().collect()))
    }
}

/// Follows the leader's orders. Ends the process when the leader is gone, or sends anything else.
fn obey(mut orders: Inbox<impl Read>, follower: &Follower) {
    while let Ok(Some(order)) = orders.receive() {
        follower.take(order);
    }
    process::exit(1);
}

/// Reports the progress of the threads until all of them have ended. `across` returns what the
/// connections sent to other machines and received from them.
fn report(
    follower: &Follower,
    across: &dyn Fn() -> Option<AcrossSeen>,
    ended: &mpsc::Receiver<()>,
    mut gatherer: Option<&mut Gatherer>,
) {
    let shared = &follower.shared;
    let mut pause = CHECK_EVERY;
    let mut progress = LoadProgress::default();
    let mut reported: Option<(LoadProgress, Instant)> = None;
    while ended.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
        let phase = shared.phase();
        pause = follower.until_check(phase);
        if let Some(gatherer) = &mut gatherer {
            send_seconds(gatherer.gather(shared));
        }
        let sums = shared.sums();
        let are_up = reported.is_some() || sums.all_entered;
        let entered = match phase_of_all(shared, phase, sums.all_entered) {
            Some(phase) => order_of(phase),
            None => progress.entered,
        };
        progress = LoadProgress {
            entered,
            replies: sums.replies,
            active_replies: sums.active_replies,
            settled: sums.settled,
            awaited: sums.awaited,
            refused: sums.refused,
            dropped: sums.dropped,
            owed_ends: sums.owed_ends,
            opened: shared.opened() as u64,
            errors: sums.errors,
            open: sums.open as u64,
            opening: shared.is_opening(),
            over: shared.ends_early(),
            late_ns: follower.late_ns.load(Relaxed),
            // Read after the sums: if nothing is awaited, nothing more is sent.
            across: across().map(|seen| AcrossProgress {
                sent: seen.sent,
                copies: seen.from.iter().map(|from| from.copies).sum(),
                left: seen.left,
            }),
            trouble: shared.trouble(),
        };
        let is_news = reported
            .as_ref()
            .is_none_or(|(before, at)| *before != progress || at.elapsed() >= HEARTBEAT);
        if are_up && is_news {
            if wire::send(io::stdout(), &ProcessMessage::Progress(progress.clone())).is_err() {
                process::exit(1);
            }
            reported = Some((progress.clone(), Instant::now()));
        }
    }
    if let Some(gatherer) = gatherer {
        send_seconds(gatherer.rest(shared));
    }
}

fn send_seconds(seconds: Vec<SecondCounted>) {
    for second in seconds {
        if wire::send(io::stdout(), &ProcessMessage::Second(Box::new(second))).is_err() {
            process::exit(1);
        }
    }
}

/// The phase that all threads are in; `None` if they are not all in one, or it changed while they were
/// checked.
fn phase_of_all(shared: &Shared, phase: Phase, all_entered: bool) -> Option<Phase> {
    (all_entered && shared.phase() == phase).then_some(phase)
}

/// The order that leads into a phase; none leads into the first.
pub(super) fn order_of(phase: Phase) -> Option<LeaderCommand> {
    match phase {
        // Only a lane rests, and it is a single process.
        Phase::Starting | Phase::Resting => None,
        Phase::Connecting => Some(LeaderCommand::Connect),
        Phase::WarmingUp => Some(LeaderCommand::WarmUp),
        Phase::Measuring => Some(LeaderCommand::OpenWindow),
        Phase::Draining => Some(LeaderCommand::StopSending),
        Phase::Ended => Some(LeaderCommand::End),
    }
}

/// The phase that an order leads into, or in which it is given.
pub(super) fn phase_of(order: Option<LeaderCommand>) -> Phase {
    match order {
        None => Phase::Starting,
        Some(LeaderCommand::Connect) => Phase::Connecting,
        Some(LeaderCommand::WarmUp) => Phase::WarmingUp,
        Some(LeaderCommand::OpenWindow | LeaderCommand::AllOpened) => Phase::Measuring,
        Some(
            LeaderCommand::StopSending | LeaderCommand::ClosesOverdue | LeaderCommand::CutShort,
        ) => Phase::Draining,
        Some(LeaderCommand::End) => Phase::Ended,
    }
}

/// Leads the threads of this process, as ordered by the leader of all processes. A window of a fixed
/// length ends by the clock of this process, so that it is equally long in all processes.
struct Follower {
    shared: Shared,
    /// Number of connections over all processes.
    connections: usize,
    length: Option<Nanos>,
    /// Start and end of the window, once it opened.
    window: Mutex<Option<(Nanos, Nanos)>>,
    /// When the window ends by itself; [`Nanos::MAX`] before it opened, and without a fixed length.
    ends_at: AtomicU64,
    /// When the window opens; [`Nanos::MAX`] if no time was ordered.
    opens_at: AtomicU64,
    /// How long after that it opened.
    late_ns: AtomicU64,
}

impl Follower {
    fn new(plan: &Plan, shared: Shared) -> Self {
        let length = match plan.until {
            Until::Elapsed(window) => Some(window.as_nanos() as Nanos),
            Until::Requests(_) | Until::Done => None,
        };
        let (window, ends_at) = (Mutex::new(None), AtomicU64::new(Nanos::MAX));
        let (opens_at, late_ns) = (AtomicU64::new(Nanos::MAX), AtomicU64::new(0));
        let connections = plan.connections;
        Follower { shared, connections, length, window, ends_at, opens_at, late_ns }
    }

    fn window(&self) -> Option<(Nanos, Nanos)> {
        *self.window.lock().expect("no thread panics here")
    }

    /// Carries out an order, or keeps it until its time: [`Follower::check`] then opens the window.
    fn take(&self, order: Order) {
        match order {
            Order { order: LeaderCommand::OpenWindow, at_ns: Some(at) } => {
                self.opens_at.store(at, Relaxed);
            }
            Order { order, .. } => self.obey(order),
        }
    }

    fn obey(&self, order: LeaderCommand) {
        match order {
            LeaderCommand::AllOpened => return self.shared.set_opened(self.connections),
            LeaderCommand::ClosesOverdue => return self.shared.set_closes_overdue(),
            LeaderCommand::CutShort => return self.shared.cut_short(),
            _ => {}
        }
        // Held throughout, because the window may end by itself meanwhile.
        let mut window = self.window.lock().expect("no thread panics here");
        let (phase, current) = (phase_of(Some(order)), self.shared.phase());
        let ends_by_itself = order == LeaderCommand::StopSending && self.length.is_some();
        if phase <= current || ends_by_itself {
            return;
        }
        let now = clock::now();
        if order == LeaderCommand::OpenWindow {
            *window = Some((now, now));
            self.ends_at.store(now.saturating_add(self.length.unwrap_or(Nanos::MAX)), Relaxed);
            self.late_ns.store(now.saturating_sub(self.opens_at.load(Relaxed)), Relaxed);
            return self.shared.open_window(now);
        }
        if let Some((_, end)) = window.as_mut().filter(|_| current == Phase::Measuring) {
            *end = now;
        }
        self.shared.set_phase(phase);
    }

    /// Time until the next check of the threads. Inside a window of a fixed length it is longer, but the
    /// check is at most a millisecond later than the end of the window.
    fn until_check(&self, phase: Phase) -> Duration {
        if phase != Phase::Measuring || self.length.is_none() {
            return CHECK_EVERY;
        }
        let left = self.ends_at.load(Relaxed).saturating_sub(clock::now());
        Duration::from_nanos(left).clamp(Duration::from_millis(1), CHECK_IN_WINDOW)
    }

    /// Opens the window if its time has come, and ends it if its time is up.
    fn check(&self, now: Nanos) {
        if now >= self.opens_at.load(Relaxed) && self.shared.phase() < Phase::Measuring {
            self.obey(LeaderCommand::OpenWindow);
        }
        if now < self.ends_at.load(Relaxed) || self.shared.phase() != Phase::Measuring {
            return;
        }
        let mut window = self.window.lock().expect("no thread panics here");
        if let Some((_, end)) = window.as_mut().filter(|_| self.shared.phase() == Phase::Measuring)
        {
            *end = clock::now();
            self.shared.set_phase(Phase::Draining);
        }
    }
}

/// The follower, called once per turn of the first load thread.
struct Turns<'a>(&'a Follower);

impl Leads for Turns<'_> {
    fn next_check(&self) -> Nanos {
        match self.0.shared.phase() {
            Phase::Measuring => self.0.ends_at.load(Relaxed),
            phase if phase < Phase::Measuring => self.0.opens_at.load(Relaxed),
            _ => Nanos::MAX,
        }
    }

    fn turn(&mut self, now: Nanos) {
        self.0.check(now);
    }
}

#[cfg(test)]
mod tests;
