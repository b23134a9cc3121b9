//! A load beside another one: large requests that are always outstanding on the same server, from
//! before the other's window until after it.
//!
//! Two engines at once. This one has a thread of its own that sleeps whenever there is nothing to
//! read, so that it takes from the other's CPU no more than its few requests need.

use crate::single::outcome_of_replies;
use regatta_load::{
    Drive, Edges, Plan, Processes, Progress, Tally, Until, WarmUp, run_in_processes,
};
use regatta_record::{Background, Beside, Outcome};
use regatta_script::Workload;
use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

/// It is stopped when the other load is through; by itself it would go on for so long.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// How often `stop` is looked at while it begins.
const LOOK_UP: Duration = Duration::from_millis(20);

/// What came of both.
pub(crate) struct Both {
    /// Of the load that is measured; `None` if it never began.
    pub measured: Option<Result<Tally, regatta_load::Error>>,
    /// Of the load beside it.
    pub background: Result<Tally, regatta_load::Error>,
}

/// The load beside the one of `measured`: `speaks` is what it asks for. A large request may take as
/// long as there are others before it.
pub(crate) fn plan(measured: &Plan, beside: Beside, speaks: Workload) -> Plan {
    Plan {
        workload: speaks,
        connections: beside.connections as usize,
        idle: 0,
        stalled: 0,
        passing: 0,
        pipeline: 1,
        drive: Drive::Closed,
        spin: Duration::ZERO,
        busy_poll: false,
        threads: 1,
        cpus: measured.cpus.last().map_or_else(Vec::new, |cpu| vec![*cpu]),
        timeout: Plan::MAX_TIMEOUT,
        patience: Plan::MAX_TIMEOUT,
        warm_up: WarmUp::Fixed(Duration::ZERO),
        until: Until::Elapsed(LONGEST),
        withholds: false,
        ..measured.clone()
    }
}

/// Runs `measured` while the requests of `beside` are outstanding; either is stopped when the other
/// one ends, and both when `stop` is set.
pub(crate) fn run(
    beside: &Plan,
    measured: &Plan,
    how: &Processes,
    edges: &mut dyn Edges,
    progress: &mut dyn FnMut(&Progress),
    stop: &AtomicBool,
) -> Both {
    let (over, gone) = (AtomicBool::new(false), AtomicBool::new(false));
    let (opened, opens) = mpsc::channel();
    thread::scope(|scope| {
        let background = scope.spawn(|| {
            let mut opens = Opens(opened);
            let ran = regatta_load::run(beside, &mut opens, &mut |_| (), &over);
            gone.store(true, Ordering::Relaxed);
            ran
        });
        let measured = has_begun(&opens, stop).then(|| {
            let end = AtomicBool::new(false);
            let mut look_up = |told: &Progress| {
                progress(told);
                let ended = [stop, &gone].iter().any(|flag| flag.load(Ordering::Relaxed));
                end.store(ended, Ordering::Relaxed);
            };
            run_in_processes(measured, how, edges, &mut look_up, &end)
        });
        over.store(true, Ordering::Relaxed);
        let background = background.join().expect("the load beside panicked");
        Both { measured, background }
    })
}

/// What is to be kept of the load beside, or how the round ends because of it. An error of the
/// machine stays one.
pub(crate) fn outcome(
    name: &str,
    background: Result<Tally, regatta_load::Error>,
    died: Option<&String>,
) -> Result<Result<Background, Outcome>, regatta_load::Error> {
    let beside = |because: &str| format!("among the large requests beside: {because}");
    let failed = |because: &str| {
        let because = died.cloned().unwrap_or_else(|| beside(because));
        Ok(Err(Outcome::Failed { because }))
    };
    let tally = match background {
        Ok(tally) => tally,
        Err(error @ regatta_load::Error::NotOpened { .. }) => {
            return failed(&format!("{name}: {error}"));
        }
        Err(error @ regatta_load::Error::Descriptors { .. }) => {
            return Ok(Err(Outcome::CannotHold { because: error.to_string() }));
        }
        Err(error) => return Err(error),
    };
    match (outcome_of_replies(name, &tally), died) {
        (Some(Outcome::Disqualified { because, exchange }), None) => {
            Ok(Err(Outcome::Disqualified { because: beside(&because), exchange }))
        }
        (Some(Outcome::Disqualified { because, exchange: Some(exchange) }), _) => {
            let exchange = Some(exchange);
            Ok(Err(Outcome::Disqualified { because: beside(&because), exchange }))
        }
        (Some(Outcome::Failed { because }), _) => failed(&because),
        (Some(_), _) => failed("replies are missing"),
        (None, _) if tally.requests == 0 => failed("not one was answered while the others came"),
        (None, _) => Ok(Ok(Background {
            requests: tally.requests,
            window_ns: tally.window_ns,
            load_cpu_ns: tally.load_cpu_ns,
        })),
    }
}

/// Whether the round ends by this `fault` of the load beside, rather than by what came of the
/// measured one. Either ends the other, which then has not got its replies; so a fault of the
/// measured load goes first, but a wrong reply says more than that replies are missing.
pub(crate) fn decides(
    fault: &Outcome,
    name: &str,
    measured: Option<&Result<Tally, regatta_load::Error>>,
) -> bool {
    let is_wrong =
        |fault: &Outcome| matches!(fault, Outcome::Disqualified { exchange: Some(_), .. });
    let Some(Ok(tally)) = measured else { return true };
    match outcome_of_replies(name, tally) {
        Some(own) if is_wrong(&own) => false,
        // Interrupted by the end of the load beside.
        Some(_) => tally.interrupted || is_wrong(fault),
        None => true,
    }
}

/// False if it never did, or is to stop.
fn has_begun(opens: &mpsc::Receiver<()>, stop: &AtomicBool) -> bool {
    loop {
        match opens.recv_timeout(LOOK_UP) {
            Ok(()) => return true,
            Err(mpsc::RecvTimeoutError::Disconnected) => return false,
            Err(mpsc::RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return false,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Tells that all of its requests are outstanding.
struct Opens(mpsc::Sender<()>);

impl Edges for Opens {
    fn window_opens(&mut self) {
        // Who waits for it may have given up.
        let _ = self.0.send(());
    }
    fn window_closes(&mut self) {}
    fn connections_open(&mut self) {}
}
