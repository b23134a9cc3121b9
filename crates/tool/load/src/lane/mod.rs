//! A lane: a load that stays alive with all of its connections while others are driven, and drives its
//! server in short slices on demand.
//!
//! In a duel there is a lane for each contender, and one of them is driven at a time. The others rest:
//! their threads block, nothing is sent, awaited or read on their connections, and no time passes for
//! them. So their servers may be frozen meanwhile.
//!
//! A slice lasts from the first send until every reply is there. It is a small run: each thread counts
//! it separately, and hands its counts over when the slice is drained.

mod compiled;
mod counts;
mod leader;

pub use compiled::Compiled;
pub use counts::{Over, SliceCounts, SliceLatency, SliceOperation};

use crate::{
    Error, Moment, Phase, Plan, SliceKind, Tally, Until, clock,
    counts::tally::{Count, RunOutcome},
    running::{
        director::Director,
        orders::{Order, Slice, SliceBarrier},
        run::{add_counts_of, reached, work},
        shared::Shared,
    },
    sockets::limits,
};
use counts::{Total, Use};
use leader::Leader;
use regatta_record::{Drive, Part, Verified};
use regatta_script::{self as script, Dialect, Visitor};
use std::{
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// How often the calling thread looks whether it should stop, while a slice runs.
const LOOKS_EVERY: Duration = Duration::from_millis(10);

/// A load that is driven in slices. Dropping it ends it without the last checks.
pub struct Lane<'a> {
    shared: Arc<Shared>,
    plan: Arc<Plan>,
    stop: &'a AtomicBool,
    stopped: Arc<AtomicBool>,
    /// Waits for the load threads. `None` when they have ended.
    waits: Option<JoinHandle<Result<Ended, Error>>>,
    total: Total,
    /// How it ended.
    ended: Option<(Over, Result<End, Error>)>,
}

/// What is known when all load threads have ended.
struct Ended {
    counts: Vec<Count>,
    end: End,
}

struct End {
    outcome: RunOutcome,
    verified: Option<Verified>,
}

impl<'a> Lane<'a> {
    /// Starts the load threads, opens all connections and checks one exchange on each (with a connection
    /// per request, none is opened before the first slice). The lane then rests.
    ///
    /// The length of the plan's window, its warm-up and [`Plan::seconds`] have no effect.
    ///
    /// # Errors
    /// Those of [`crate::run()`], and [`Error::Plan`] for a load that cannot be divided into slices: a burst,
    /// a number of requests, stages, and members that join and leave.
    pub fn open(plan: &Plan, compiled: &Compiled, stop: &'a AtomicBool) -> Result<Lane<'a>, Error> {
        check(plan)?;
        let exchanges = compiled.for_lane(plan)?;
        let alpn = plan.workload.protocol().alpn;
        let tls = plan.tls.as_ref().map(|tls| tls.offering(alpn));
        let plan = Arc::new(Plan { tls, seconds: false, ..plan.clone() });
        let threads = plan.threads.min(plan.most_threads());
        limits::make_room(plan.most_open(), threads)?;
        let shared = Arc::new(Shared::of_lane(threads, plan.most_opening(1)));
        let stopped = Arc::new(AtomicBool::new(false));
        let run = Run { plan: plan.clone(), shared: shared.clone(), stopped: stopped.clone() };
        let waits = thread::Builder::new()
            .name("lane".into())
            .spawn(move || run.carry_out(&exchanges))
            .map_err(|error| Error::Machine { what: "start its threads", error })?;
        let total = Total::new(&plan, compiled.kinds(), threads);
        let waits = Some(waits);
        let mut lane = Lane { shared, plan, stop, stopped, waits, total, ended: None };
        match lane.until_rested() {
            Some(counts) => {
                lane.add(counts, Use::Errors, 0);
                Ok(lane)
            }
            None => match lane.join(Use::Errors, 0).is_over {
                // It was stopped, or a first reply was wrong: the tally says so.
                Some(Over::Stopped | Over::WrongReply(_) | Over::ServerDied) => Ok(lane),
                _ => Err(lane.end().expect_err("it failed")),
            },
        }
    }

    /// The lowest number of requests in flight that the server permitted on a connection so far, if it was
    /// below that of the plan.
    pub fn in_flight_limit(&mut self) -> Option<u32> {
        self.total.counted().in_flight_limit
    }

    /// Drives the server for `length`: from the first send until every reply is there and checked.
    /// Blocks meanwhile. `seed` determines the arrivals of an open loop.
    pub fn slice(&mut self, length: Duration, kind: SliceKind, seed: u64) -> SliceCounts {
        if let Some((over, _)) = &self.ended {
            return SliceCounts::over(over.clone());
        }
        self.pass_stop();
        let length = length.as_nanos() as u64;
        let used = match kind {
            SliceKind::WarmUp => Use::WarmUp,
            SliceKind::Counted => Use::Total,
            SliceKind::Uncounted => Use::Errors,
        };
        let begins = clock::now();
        let slice = Slice { begins, length, seed };
        let was_given = self.rest().give(Order::Slice(slice), || match kind {
            SliceKind::WarmUp => self.shared.set_phase(Phase::WarmingUp),
            SliceKind::Counted | SliceKind::Uncounted => self.shared.open_window(begins),
        });
        match was_given.then(|| self.until_rested()).flatten() {
            Some(counts) => self.add(counts, used, length),
            None => self.join(used, length),
        }
    }

    /// Ends the lane: checks once more that nothing is answered before it is sent, if the plan withholds
    /// bytes, and that nothing unsolicited comes; closes the connections. The server must run meanwhile.
    /// Returns the tally over all counted slices.
    ///
    /// # Errors
    /// If the lane ended early because of one: see [`Error`].
    pub fn end(mut self) -> Result<Tally, Error> {
        if self.ended.is_none() {
            self.rest().give(Order::End, || self.shared.set_phase(Phase::Draining));
            while self.until_rested().is_some() {}
            self.join(Use::Errors, 0);
        }
        let (_, end) = self.ended.take().expect("it has ended");
        let End { outcome, verified } = end?;
        let tally = Tally { verified, ..self.total.tally(outcome) };
        reached(tally, &self.plan, &self.shared)
    }

    /// Adds what the threads counted.
    fn add(&mut self, counts: Vec<Count>, used: Use, length: u64) -> SliceCounts {
        let (counts, empty) = self.total.add(counts, clock::now(), length, used);
        self.rest().keep(empty);
        counts
    }

    fn rest(&self) -> &SliceBarrier {
        self.shared.rest.as_ref().expect("the threads of a lane rest")
    }

    /// Waits until all threads rest. `None` if they have ended.
    fn until_rested(&self) -> Option<Vec<Count>> {
        self.rest().until_rested(LOOKS_EVERY, || self.pass_stop())
    }

    /// Stops the threads if the caller is to stop.
    fn pass_stop(&self) {
        if self.stop.load(Relaxed) && !self.stopped.swap(true, Relaxed) {
            self.shared.wake(0);
        }
    }

    /// The threads have ended, or end: waits for them, and records how.
    fn join(&mut self, used: Use, length: u64) -> SliceCounts {
        let waits = self.waits.take().expect("it ends once");
        let ended = waits.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
        let wrong = self.shared.first_wrong();
        let (counts, over, end) = match ended {
            Err(error) => (SliceCounts::over(Over::Failed), Over::Failed, Err(error)),
            Ok(Ended { counts, end }) => {
                let over = match &wrong {
                    Some(first) if self.plan.tolerates.is_none() => {
                        Over::WrongReply(first.exchange.clone())
                    }
                    _ if end.outcome.interrupted => Over::Stopped,
                    _ => Over::ServerDied,
                };
                (self.add(counts, used, length), over, Ok(end))
            }
        };
        let counted = self.total.counted();
        (counted.first_wrong, counted.tls) = (wrong, self.shared.spoken());
        self.ended = Some((over.clone(), end));
        SliceCounts { is_over: Some(over), ..counts }
    }
}

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        if let Some(waits) = self.waits.take() {
            self.shared.cut_short();
            self.shared.end_all();
            // A panic of a load thread was printed.
            let _ = waits.join();
        }
    }
}

/// Refuses what cannot be divided into slices.
fn check(plan: &Plan) -> Result<(), Error> {
    plan.check()?;
    let refused = match (plan.drive, plan.until) {
        (Drive::Burst(_), _) => "a burst",
        (_, Until::Requests(_) | Until::Done) => "a number of requests",
        _ if !plan.stages.is_empty() => "a window with stages",
        _ if plan.passing > 0 => "a load with members that join and leave",
        _ => return Ok(()),
    };
    Err(Error::Plan(format!("{refused} cannot be divided into slices")))
}

/// The load of a lane that has not started yet.
struct Run {
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    stopped: Arc<AtomicBool>,
}

impl Run {
    /// Runs the load threads until they have ended.
    fn carry_out(self, exchanges: &script::Compiled) -> Result<Ended, Error> {
        let shared = self.shared.clone();
        let _ended = Notify(&shared);
        exchanges.visit(self)
    }
}

impl Visitor for Run {
    type Out = Result<Ended, Error>;

    fn visit<D: Dialect>(self, dialect: &D) -> Self::Out {
        let Run { plan, shared, stopped } = &self;
        let rest = shared.rest.as_ref().expect("the threads of a lane rest");
        // A slice is short, so its caller reads around it.
        let observer = &mut |_: Moment| {};
        let director = Director::new(plan, shared, stopped, observer);
        let mut leader = Leader::new(plan, director, shared, rest);
        let part = Part::whole(shared.gauges.len() as u32);
        let done = work(dialect, plan, part, shared, &mut leader, |_| ())?;
        let outcome = leader.outcome()?;
        let mut counts: Vec<Count> = done.into_iter().map(|done| done.count).collect();
        if let Some(first) = counts.first_mut() {
            add_counts_of(dialect, &mut first.sum);
        }
        Ok(Ended { counts, end: End { outcome, verified: dialect.verified() } })
    }
}

/// Tells the caller that the threads have ended, also if one panicked.
struct Notify<'a>(&'a Shared);

impl Drop for Notify<'_> {
    fn drop(&mut self) {
        if let Some(rest) = &self.0.rest {
            rest.ended();
        }
    }
}
