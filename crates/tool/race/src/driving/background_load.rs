//! A load beside the measured one: large requests that are always in flight on the same server, from
//! before the measured window until after it.
//!
//! Two load engines run at once. This one has its own thread, which sleeps while there is nothing to
//! read. So it takes only as much of the measured load's CPU as its few requests need.

use crate::{
    context::RaceContext,
    driving::{load_processes::load_processes, outcome::Loaded},
};
use regatta_load::{LoadObserver, Moment, Plan, Progress, Until, run_in_processes};
use regatta_record::BackgroundLoad;
use regatta_script::Workload;
use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

/// Time limit of the load beside. In practice it is stopped when the measured load ends.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Interval between checks of `stop` while the load beside starts.
const LOOK_UP: Duration = Duration::from_millis(20);

/// The results of both loads.
pub(crate) struct Both {
    /// The result of the measured load; `None` if it never started.
    pub measured: Option<Loaded>,
    /// The result of the load beside it.
    pub background: Loaded,
}

/// Returns the plan of the load beside `measured`, which sends the requests of `speaks`. Its timeout
/// is long because a large request may wait for others before it.
pub(crate) fn plan(measured: &Plan, beside: BackgroundLoad, speaks: Workload) -> Plan {
    Plan {
        host: measured.host.clone(),
        path: measured.path.clone(),
        connections: beside.connections as usize,
        cpus: measured.cpus.last().map_or_else(Vec::new, |cpu| vec![*cpu]),
        timeout: Plan::MAX_TIMEOUT,
        patience: Plan::MAX_TIMEOUT,
        until: Until::Elapsed(LONGEST),
        draws_sources: measured.draws_sources,
        seed: measured.seed,
        ..Plan::closed(measured.target, speaks)
    }
}

/// Runs `measured` while the requests of `beside` are in flight. Each load is stopped when the other
/// ends, and both when the race is interrupted.
pub(crate) fn run(
    beside: &Plan,
    measured: &Plan,
    context: &RaceContext<'_>,
    observer: &mut dyn LoadObserver,
    progress: &mut dyn FnMut(&Progress),
) -> Both {
    let (stop, how) = (context.stop, load_processes(context.binary, 1));
    let (over, gone) = (AtomicBool::new(false), AtomicBool::new(false));
    let (opened, opens) = mpsc::channel();
    thread::scope(|scope| {
        let background = scope.spawn(|| {
            let mut signal = move |moment: Moment| {
                if moment == Moment::WindowOpens {
                    // The receiver may have given up waiting.
                    let _ = opened.send(());
                }
            };
            let ran = regatta_load::run(beside, &mut signal, &mut |_| (), &over);
            drop(signal);
            gone.store(true, Ordering::Relaxed);
            ran
        });
        let measured = has_started(&opens, stop).then(|| {
            let end = AtomicBool::new(false);
            let mut check = |now: &Progress| {
                progress(now);
                let ended = [stop, &gone].iter().any(|flag| flag.load(Ordering::Relaxed));
                end.store(ended, Ordering::Relaxed);
            };
            run_in_processes(measured, &how, observer, &mut check, &end)
        });
        over.store(true, Ordering::Relaxed);
        let background = background.join().expect("the load beside panicked");
        Both { measured, background }
    })
}

/// Waits until the load beside has started. Returns false if it never does, or if `stop` is set.
fn has_started(opens: &mpsc::Receiver<()>, stop: &AtomicBool) -> bool {
    loop {
        match opens.recv_timeout(LOOK_UP) {
            Ok(()) => return true,
            Err(mpsc::RecvTimeoutError::Disconnected) => return false,
            Err(mpsc::RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return false,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
}
