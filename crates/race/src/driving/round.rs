//! The life of a round: start, ready, load, measure, stop. One contender under one load, from a
//! fresh start until all of its processes are gone.

use crate::{
    ask::entrant::Entrant,
    contenders::{adapter::Adapter, sources},
    context::{HOST, MachineError, RaceContext},
    driving::{
        beside,
        observer::{RoundObserver, ServedBy},
        processes::load_processes,
        reply_seen,
        single::outcome_of_replies,
        start::{STOP_WITHIN, Start, Started, start},
        under_load::{UnderLoad, Window},
        warm::{Warm, WarmUpObserver, needs},
    },
    results::events::Events,
};
use regatta_host::{
    Aside, Ended, Meter, Roles, Settings, StopReport, SupervisorError, Watched, what_is_spoken,
};
use regatta_load::{
    Drive, LoadObserver, OpenTally, Plan, Processes, Progress, Tally, Until, WarmUp,
    run_in_processes,
};
use regatta_record::{
    Asked, Errors, FORMAT, Happened, LoadShape, NULL, OperationCounted, Outcome, Phase, Round,
    Settling, WarmUpDone, encode_histogram,
};
use regatta_script::Workload;
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Timeout of a reply.
const REPLY_WITHIN: Duration = Duration::from_secs(5);

/// Timeout of a reply under a counted load, and of a whole burst.
const COUNTED_WITHIN: Duration = Plan::MAX_TIMEOUT;
/// Timeout of a counted number of requests as a whole. It is long because one slow computation can
/// hold up all other requests.
const REQUESTS_WITHIN: Duration = Duration::from_secs(600);

/// Pause before a start: the previous processes give back their memory and their CPUs become idle.
const SETTLES: Duration = Duration::from_millis(20);

/// Runs one round and emits its phases to `events`. Returns `None` if it was interrupted.
#[expect(clippy::too_many_lines, reason = "a round, step by step")]
pub(crate) fn run(
    context: &RaceContext<'_>,
    pass: u32,
    entrant: &Entrant,
    load: LoadShape,
    seed: u64,
    warm: Warm<'_>,
    events: &mut Events<'_>,
) -> Result<Option<Round>, MachineError> {
    let asked = context.asked;
    let observes = matches!(warm, Warm::See(..));
    let mut round = new_round(context, pass, entrant, load, seed, warm.settling());
    let ended = |mut round: Round, outcome| {
        round.outcome = outcome;
        Ok(Some(round))
    };
    if let Some(because) = entrant.cannot_hold(load) {
        return ended(round, Outcome::CannotHold { because });
    }
    events.emit(Happened::PhaseStarted { phase: Phase::Starting });
    let is_measured = matches!(warm, Warm::Needs(_));
    let idle_check = if is_measured { context.check_idle(&load) } else { None };
    thread::sleep(SETTLES);
    let settings = Settings::read();
    let Started { mut roles, port, run: _run } = match start(context, entrant, load)? {
        Start::Ready(started) => *started,
        Start::Failed { because } => return ended(round, Outcome::Failed { because }),
        Start::Interrupted => return Ok(None),
    };
    let plan = plan_against(asked, entrant, port, load, seed);
    let usual = Duration::from_secs_f64(asked.warm_up_s);
    let (warm_up, until) = (warm.up(usual), warm.until(plan.until));
    let plan = Plan { warm_up, until, ..plan };
    let watched = Watched::new(&roles, &asked.cpus, &load);
    let seeing = match warm {
        Warm::Needs(_) => None,
        Warm::See(settler, _) => Some(WarmUpObserver::new(settler, Meter::of(roles.observed()))),
    };
    let served = ServedBy::new(&entrant.name, &roles);
    let mut watched = RoundObserver { watched, served, seeing };
    let aside = Aside::of(&roles.cpus(), &asked.cpus.of_load(&load));
    let window = Window::default();
    let mut under_load = UnderLoad::new(events, &window);
    let progress = &mut |progress: &Progress| under_load.progress(progress);
    let mut server = window.around(&mut watched);
    let how = &load_processes(context.binary, 1);
    let (loaded, late, large) = match load.beside {
        Some(beside) => {
            let beside = beside::plan(&plan, beside, entrant.speaks_under(Some(beside.n)));
            let both = beside::run(&beside, &plan, how, &mut server, progress, context.stop);
            (both.measured, false, Some(both.background))
        }
        None if load.is_counted() => {
            let (loaded, late) =
                run_counted(&plan, how, &mut server, progress, context.stop, within(&load));
            (Some(loaded), late, None)
        }
        None => {
            (Some(run_in_processes(&plan, how, &mut server, progress, context.stop)), false, None)
        }
    };
    under_load.ended();
    drop(aside);
    let RoundObserver { mut watched, mut served, seeing } = watched;
    // The test of source addresses does not depend on the number of connections: once is enough.
    let is_first = asked.loads.iter().find(|load| !load.is_counted()) == Some(&load)
        && asked.settle_s >= sources::FROM_S;
    if let (Some(seeing), Some(Ok(_)), true) = (seeing, &loaded, is_first) {
        seeing.try_sources(&plan, how, context.stop);
    }
    served.look();
    (round.served_by_others, round.left_its_cpus) = (served.by_others, served.elsewhere);
    round.server = watched.spent.take();
    round.machine = Some(watched.machine);
    round.roles = watched.into_roles();
    if pass == 0 && !observes {
        round.reply = reply_seen::look(entrant, port);
    }
    let Deaths { backend, server: died } = deaths(&mut roles);
    let is_doubtful = died.is_none() && loaded.as_ref().is_some_and(is_doubtful);
    let spoken = is_doubtful.then(|| what_is_spoken(plan.target, &plan.workload)).flatten();
    let stopped = roles.stop(STOP_WITHIN);
    round.settings_changed = Settings::read().changed_since(&settings);
    if let Some(machine) = &mut round.machine {
        machine.busy_after_ns = idle_check.and_then(|check| context.wait_until_idle(&check));
    }
    // If a backend died, that explains whatever the server then did or did not answer.
    if let Some(because) = backend {
        let interrupted = context.stop.load(Ordering::Relaxed);
        return if interrupted { Ok(None) } else { ended(round, Outcome::Failed { because }) };
    }
    if let Some(large) = large {
        match beside::outcome(&entrant.name, large, died.as_ref())? {
            Ok(background) => round.background = Some(background),
            Err(_) if context.stop.load(Ordering::Relaxed) => return Ok(None),
            Err(outcome) if beside::decides(&outcome, &entrant.name, loaded.as_ref()) => {
                return ended(round, outcome);
            }
            // A fault of the measured load ended it; that fault is reported below.
            Err(_) => {}
        }
    }
    let Some(loaded) = loaded else { return Ok(None) };
    if let (true, Ok(tally)) = (late, &loaded) {
        round.requests = tally.requests;
        round.errors = tally.errors;
        let because = died.unwrap_or_else(|| {
            format!(
                "{} did not finish the load {load} within {} s: {} requests were answered",
                entrant.name,
                within(&load).as_secs(),
                tally.requests
            )
        });
        return ended(round, Outcome::Failed { because });
    }
    if loaded.as_ref().is_ok_and(|tally| tally.interrupted) {
        return Ok(None);
    }
    conclude(&mut round, entrant, loaded, died, spoken)?;
    if round.outcome == Outcome::Finished {
        match after_stop(stopped) {
            Ok(remark) => round.remark = remark,
            Err(because) => round.outcome = Outcome::Failed { because },
        }
    }
    Ok(Some(round))
}

/// Sets the outcome of a round, and copies what the load counted into it.
///
/// # Errors
/// If the machine, not the contender, prevented the load.
pub(crate) fn conclude(
    round: &mut Round,
    entrant: &Entrant,
    loaded: Result<Tally, regatta_load::Error>,
    died: Option<String>,
    spoken: Option<String>,
) -> Result<(), MachineError> {
    let tally = match loaded {
        Ok(tally) => tally,
        Err(error) => {
            round.outcome = not_loaded(entrant, error, died, spoken)?;
            return Ok(());
        }
    };
    round.outcome = with_remark(outcome(entrant, &tally, died), spoken);
    // A reply before a close has other headers.
    let is_comparable = !round.load.drive.churns() && reply_seen::is_only_request(entrant);
    round.reply_bytes = is_comparable.then_some(tally.reply_bytes);
    record(round, tally);
    Ok(())
}

/// Whether a load was refused by a server that accepted no connection.
pub(crate) fn accepted_nothing(error: &regatta_load::Error) -> bool {
    matches!(error, regatta_load::Error::NotOpened { opened: 0, .. })
}

/// Returns the outcome of a contender that could not be loaded.
///
/// # Errors
/// If that was not its fault.
pub(crate) fn not_loaded(
    entrant: &Entrant,
    error: regatta_load::Error,
    died: Option<String>,
    spoken: Option<String>,
) -> Result<Outcome, MachineError> {
    match error {
        regatta_load::Error::NotOpened { .. } => {
            let because = died.unwrap_or_else(|| {
                let spoken = spoken.iter().map(|what| format!("; {what}")).collect::<String>();
                format!("{}: {error}{spoken}", entrant.name)
            });
            Ok(Outcome::Failed { because })
        }
        regatta_load::Error::Descriptors { .. } => {
            Ok(Outcome::CannotHold { because: error.to_string() })
        }
        error => Err(error.into()),
    }
}

/// The processes of a contender that ended by themselves, in words.
pub(crate) struct Deaths {
    /// The first backend. Its death explains whatever the server then did.
    pub backend: Option<String>,
    pub server: Option<String>,
}

/// Looks which processes of a contender have ended.
pub(crate) fn deaths(roles: &mut Roles) -> Deaths {
    let ended = roles
        .ended()
        .unwrap_or_else(|error| vec![Ended { because: error.to_string(), is_server: true }]);
    let first = |of_server: bool| {
        let mut those = ended.iter().filter(|one| one.is_server == of_server);
        those.next().map(|one| one.because.clone())
    };
    Deaths { backend: first(false), server: first(true) }
}

/// Returns the plan of a load of a race against a contender on `port`, as the contender is to be loaded.
pub(crate) fn plan_against(
    asked: &Asked,
    entrant: &Entrant,
    port: u16,
    load: LoadShape,
    seed: u64,
) -> Plan {
    let path = entrant.contender.manifest.path.clone();
    // A null server replies to bytes, not to whole requests. For a workload file, only its author knows
    // whether servers may do the same, unless it has a single request without content.
    let adapter = entrant.contender.manifest.adapter;
    let is_null = adapter.is_some_and(Adapter::is_null) || entrant.name == NULL;
    let withholds =
        !is_null && (asked.workload_file.is_none() || reply_seen::is_only_request(entrant));
    Plan { path, withholds, ..plan(asked, entrant.speaks_under(load.n), port, load, seed) }
}

/// Returns the record of a round before anything is measured.
pub(crate) fn new_round(
    context: &RaceContext<'_>,
    pass: u32,
    entrant: &Entrant,
    load: LoadShape,
    seed: u64,
    settling: Option<Settling>,
) -> Round {
    let asked = context.asked;
    Round {
        format: FORMAT,
        round: pass,
        contender: entrant.name.clone(),
        workload: asked.workload.clone(),
        load,
        seed,
        started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
        outcome: Outcome::Finished,
        requests: 0,
        reply_bytes: None,
        window_ns: 0,
        slices: Vec::new(),
        errors: Errors::default(),
        load_cpu_ns: 0,
        load_spun_ns: 0,
        load_cpus: asked.cpus.of_load(&load).len() as u32,
        server: None,
        roles: Vec::new(),
        remark: None,
        settings_changed: None,
        served_by_others: None,
        left_its_cpus: None,
        instances_ns: Vec::new(),
        passed: 0,
        operations: Vec::new(),
        open_loop: None,
        background: None,
        warm_up: None,
        settling,
        reply: None,
        life: None,
        machine: None,
        histogram: String::new(),
    }
}

/// Copies the counts and measurements of the load into the round.
fn record(round: &mut Round, tally: Tally) {
    round.requests = tally.requests;
    round.window_ns = tally.window_ns;
    round.errors = tally.errors;
    round.passed = tally.passed;
    round.load_cpu_ns = tally.load_cpu_ns;
    round.load_spun_ns = tally.spun_ns;
    round.histogram = encode_histogram(&tally.histogram);
    round.operations = tally.operations.iter().map(OperationCounted::to_round).collect();
    round.open_loop = tally.open_loop.as_ref().map(OpenTally::to_record);
    if tally.processes > 1 {
        let machine = round.machine.get_or_insert_default();
        machine.load_processes = Some(tally.processes as u32);
    }
    if tally.run_delay_ns.is_some() {
        let machine = round.machine.get_or_insert_default();
        (machine.load_run_delay_ns, machine.load_turns) = (tally.run_delay_ns, tally.turns);
    }
    if !round.load.is_counted() {
        let (least, needed_requests) = round.settling.as_ref().map(needs).unwrap_or_default();
        round.warm_up = Some(WarmUpDone {
            ns: tally.warm_up_ns,
            requests: tally.warm_up_requests,
            needed_ns: least.as_nanos() as u64,
            needed_requests,
        });
    }
    round.instances_ns = tally.instances_ns;
    round.slices = tally.counts.slices;
}

/// Returns a remark on how the processes stopped, if there is one; an error fails the round.
pub(crate) fn after_stop(
    stopped: Vec<Result<StopReport, SupervisorError>>,
) -> Result<Option<String>, String> {
    let mut remarks = Vec::new();
    for report in stopped {
        let report = report.map_err(|error| error.to_string())?;
        match report.fault() {
            Some(fault) if !report.keeps_results() => return Err(fault),
            remark => remarks.extend(remark),
        }
    }
    Ok((!remarks.is_empty()).then(|| remarks.join("; ")))
}

/// Returns the measured window of a load.
pub(crate) fn window(asked: &Asked, load: &LoadShape) -> regatta_record::Window {
    let of_burst =
        load.drive.burst().map(|burst| u64::from(load.connections) * u64::from(burst.requests));
    match of_burst.or(load.requests.map(u64::from)) {
        Some(n) => regatta_record::Window::Requests { n },
        None => regatta_record::Window::Time { s: asked.window_s },
    }
}

/// Returns the timeout of a counted load as a whole.
fn within(load: &LoadShape) -> Duration {
    if load.drive.burst().is_some() { COUNTED_WITHIN } else { REQUESTS_WITHIN }
}

/// Runs a counted load and stops it after `within`. The flag is true if it ran out of time.
fn run_counted(
    plan: &Plan,
    how: &Processes,
    server: &mut dyn LoadObserver,
    progress: &mut dyn FnMut(&Progress),
    stop: &AtomicBool,
    within: Duration,
) -> (Result<Tally, regatta_load::Error>, bool) {
    let (end, mut late) = (AtomicBool::new(false), false);
    let mut check = |now: &Progress| {
        progress(now);
        late |= now.elapsed >= within;
        end.store(late || stop.load(Ordering::Relaxed), Ordering::Relaxed);
    };
    let loaded = run_in_processes(plan, how, server, &mut check, &end);
    (loaded, late && !stop.load(Ordering::Relaxed))
}

/// Returns the plan of a load of a race against a contender on `port`.
pub(crate) fn plan(asked: &Asked, speaks: Workload, port: u16, load: LoadShape, seed: u64) -> Plan {
    let cpus = asked.cpus.of_load(&load);
    let of_server = asked.cpus.of_server(&load);
    let shares_cpus = cpus.is_empty() || cpus.iter().any(|cpu| of_server.contains(cpu));
    let window = Until::Elapsed(Duration::from_secs_f64(asked.window_s));
    let until = match (load.drive, load.requests) {
        (Drive::Burst(_), _) => Until::Done,
        (_, Some(requests)) => Until::Requests(requests.into()),
        (_, None) => window,
    };
    let target = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Plan {
        target,
        tls: None,
        workload: speaks,
        host: HOST.to_owned(),
        path: None,
        connections: load.connections as usize,
        idle: load.idle as usize,
        stalled: load.stalled as usize,
        passing: load.passing as usize,
        pipeline: load.pipeline as usize,
        drive: load.drive,
        // On shared CPUs, a spinning load would take CPU time from the server.
        spin: if shares_cpus { Duration::ZERO } else { Plan::SPIN },
        // Nor may it take CPU time from the load beside it.
        busy_poll: asked.busy_poll && !shares_cpus && load.beside.is_none(),
        threads: cpus.len().max(1),
        cpus,
        timeout: if load.is_counted() { COUNTED_WITHIN } else { REPLY_WITHIN },
        patience: if load.is_counted() { COUNTED_WITHIN } else { Plan::PATIENCE },
        warm_up: WarmUp::steady(Duration::from_secs_f64(asked.warm_up_s)),
        until,
        tolerates: None,
        withholds: false,
        draws_sources: true,
        seconds: false,
        stages: Vec::new(),
        unix: None,
        seed,
    }
}

/// A wrong reply takes precedence, even if the server died. The server's death explains missing
/// replies.
fn outcome(entrant: &Entrant, tally: &Tally, died: Option<String>) -> Outcome {
    match (outcome_of_replies(&entrant.name, tally), died) {
        (Some(wrong @ Outcome::Disqualified { exchange: Some(_), .. }), _) => wrong,
        (_, Some(because)) => Outcome::Failed { because },
        (Some(fault), None) => fault,
        (None, None) => Outcome::Finished,
    }
}

/// Whether a load shows that a server may speak another protocol: no reply was right, although it
/// accepted connections.
pub(crate) fn is_doubtful(loaded: &Result<Tally, regatta_load::Error>) -> bool {
    match loaded {
        Ok(tally) => !tally.interrupted && tally.replies == 0,
        Err(error) => accepted_nothing(error),
    }
}

/// Adds to a fault what the server speaks.
fn with_remark(outcome: Outcome, spoken: Option<String>) -> Outcome {
    let Some(spoken) = spoken else { return outcome };
    let added = |because: String| format!("{because}; {spoken}");
    match outcome {
        Outcome::Failed { because } => Outcome::Failed { because: added(because) },
        Outcome::Disqualified { because, exchange } => {
            Outcome::Disqualified { because: added(because), exchange }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
