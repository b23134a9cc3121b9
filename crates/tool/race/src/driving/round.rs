//! The life of a round: one contender under one load, from a fresh start until all of its processes are gone.
//!
//! Its states: started ([`start`]), under load ([`UnderWay::load`]), stopped ([`UnderWay::stop`]), concluded
//! ([`Facts::conclude`]).

use crate::{
    contenders::sources,
    context::RaceContext,
    driving::{
        background_load,
        load_plan::{plan_against, spoken, time_limit},
        load_processes::load_processes,
        outcome::{Facts, Loaded, is_doubtful},
        progress_events::{ProgressEvents, Window},
        readings::RoundObserver,
        reply_seen,
        trial::Trial,
        warm::{Warm, WarmUpObserver},
    },
    machine_error::MachineError,
    results::events::Events,
    site::{hosted::Hosted, start::Start},
};
use regatta_host::{Aside, IdleCheck, Settings};
use regatta_load::{LoadObserver, Plan, Progress, run_in_processes};
use regatta_record::{Happened, Outcome, Phase, Round};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

/// Pause before a start: the previous processes give back their memory and their CPUs become idle.
const SETTLES: Duration = Duration::from_millis(20);

/// Runs one round and emits its phases to `events`. Returns `None` if it was interrupted.
pub(crate) fn run(
    context: &RaceContext<'_>,
    trial: Trial<'_>,
    warm: Warm<'_>,
    events: &mut Events<'_>,
) -> Result<Option<Round>, MachineError> {
    let Trial { entrant, load, .. } = trial;
    let mut round = trial.new_round(context.asked, warm.settling());
    if let Some(because) = entrant.cannot_hold(load) {
        round.outcome = Outcome::CannotHold { because };
        return Ok(Some(round));
    }
    events.emit(Happened::PhaseStarted { phase: Phase::Starting });
    let is_measured = !matches!(warm, Warm::See(..));
    let idle_check = if is_measured { context.check_idle(&load) } else { None };
    thread::sleep(SETTLES);
    let settings = Settings::read();
    let hosted = match context.start(entrant, load)? {
        Start::Ready(hosted) => *hosted,
        Start::Interrupted => return Ok(None),
        Start::Failed { because } => {
            round.outcome = Outcome::Failed { because };
            return Ok(Some(round));
        }
    };
    let mut round = UnderWay { context, trial, round, events };
    let loaded = round.load(hosted, warm);
    let facts = round.stop(loaded, &settings, idle_check);
    let UnderWay { mut round, .. } = round;
    let Some(concluded) = facts.conclude()? else { return Ok(None) };
    trial.record(&mut round, concluded);
    Ok(Some(round))
}

/// A round whose contender is ready.
struct UnderWay<'a, 'e> {
    context: &'a RaceContext<'a>,
    trial: Trial<'a>,
    round: Round,
    events: &'a mut Events<'e>,
}

/// A contender after its load.
struct Loads<'a> {
    hosted: Hosted<'a>,
    plan: Plan,
    driven: Driven,
}

/// The results of the loads on a contender.
struct Driven {
    /// The measured load; `None` if it never started.
    loaded: Option<Loaded>,
    /// The load beside it.
    background: Option<Loaded>,
    /// The time limit at which the measured load was stopped.
    too_long: Option<Duration>,
}

impl<'a> UnderWay<'a, '_> {
    /// Loads the contender, and reads its usage meanwhile.
    fn load(&mut self, mut hosted: Hosted<'a>, warm: Warm<'_>) -> Loads<'a> {
        let (context, Trial { pass, entrant, load, seed }) = (self.context, self.trial);
        let asked = context.asked;
        let observes = matches!(warm, Warm::See(..));
        let plan = plan_against(asked, entrant, hosted.addresses(), load, seed);
        let usual = Duration::from_secs_f64(asked.warm_up_s);
        let (warm_up, until) = (warm.up(usual), warm.until(plan.until));
        let plan = Plan { warm_up, until, ..plan };
        let seeing = match warm {
            Warm::Needs(_) => None,
            Warm::See(settler, _) => {
                hosted.meter().map(|meter| WarmUpObserver::new(settler, meter))
            }
            Warm::Pace(settler, _) => Some(WarmUpObserver::of_pace(settler)),
        };
        hosted.observe(&asked.cpus, load);
        hosted.look();
        let aside = Aside::of(&hosted.cpus_here(), &asked.cpus.of_load(&load));
        let mut observer = RoundObserver { hosted: &mut hosted, seeing };
        let driven = self.drive(&plan, &mut observer);
        drop(aside);
        let RoundObserver { seeing, .. } = observer;
        // The test of source addresses does not depend on the number of connections: once is enough.
        let is_first = asked.loads.iter().find(|load| !load.is_counted()) == Some(&load)
            && asked.settle_s >= sources::FROM_S;
        if let (Some(seeing), Some(Ok(_)), true) = (seeing, &driven.loaded, is_first) {
            seeing.try_sources(&plan, &load_processes(context.binary, 1), context.stop);
        }
        hosted.look();
        let observed = hosted.observed();
        let round = &mut self.round;
        (round.served_by_others, round.left_its_cpus) =
            (observed.served_by_others, observed.left_its_cpus);
        round.server = observed.server;
        round.machine = Some(observed.machine);
        round.roles = observed.roles;
        if pass == 0 && !observes {
            round.reply = reply_seen::look(entrant, hosted.address());
        }
        Loads { hosted, plan, driven }
    }

    /// Runs the load, and the one beside it.
    fn drive(&mut self, plan: &Plan, observer: &mut dyn LoadObserver) -> Driven {
        let (context, Trial { entrant, load, .. }) = (self.context, self.trial);
        let window = Window::default();
        let mut progress_events = ProgressEvents::new(self.events, &window);
        let progress = &mut |progress: &Progress| progress_events.progress(progress);
        let mut observer = window.around(observer);
        let driven = if let Some(large) = load.beside {
            let large = background_load::plan(plan, large, entrant.speaks_under(Some(large.n)));
            let both = background_load::run(&large, plan, context, &mut observer, progress);
            Driven { loaded: both.measured, background: Some(both.background), too_long: None }
        } else {
            let mut limit = TimeLimit::new(time_limit(&load), context.stop);
            let end = AtomicBool::new(false);
            let mut look = |now: &Progress| {
                progress(now);
                end.store(limit.is_reached(now), Ordering::Relaxed);
            };
            let how = load_processes(context.binary, 1);
            let end = if load.is_counted() { &end } else { context.stop };
            let loaded = run_in_processes(plan, &how, &mut observer, &mut look, end);
            Driven { loaded: Some(loaded), background: None, too_long: limit.too_long() }
        };
        progress_events.ended();
        driven
    }

    /// Stops the contender. Returns all that its outcome depends on.
    fn stop(
        &mut self,
        loads: Loads<'a>,
        settings: &Settings,
        idle_check: Option<IdleCheck>,
    ) -> Facts<'a> {
        let Loads { mut hosted, plan, driven } = loads;
        let Driven { loaded, background, too_long } = driven;
        let deaths = hosted.deaths();
        let is_doubtful = deaths.server.is_none() && loaded.as_ref().is_some_and(is_doubtful);
        let spoken = spoken(&plan, is_doubtful);
        let stopped = hosted.stop().remark;
        let (context, Trial { entrant, load, .. }) = (self.context, self.trial);
        self.round.settings_changed = Settings::read().changed_since(settings);
        if let Some(machine) = &mut self.round.machine {
            machine.busy_after_ns = idle_check.and_then(|check| context.wait_until_idle(&check));
        }
        let (name, interrupted) = (&entrant.name, context.stop.load(Ordering::Relaxed));
        Facts { name, load, interrupted, deaths, loaded, too_long, background, spoken, stopped }
    }
}

/// The time limit of a counted load, which would otherwise not end if replies are missing.
struct TimeLimit<'a> {
    limit: Option<Duration>,
    stop: &'a AtomicBool,
    /// Whether the limit was reached before `stop` was set.
    is_over: bool,
}

impl<'a> TimeLimit<'a> {
    fn new(limit: Option<Duration>, stop: &'a AtomicBool) -> TimeLimit<'a> {
        TimeLimit { limit, stop, is_over: false }
    }

    /// Whether the load is to end.
    fn is_reached(&mut self, now: &Progress) -> bool {
        let interrupted = self.stop.load(Ordering::Relaxed);
        self.is_over |= !interrupted && self.limit.is_some_and(|limit| now.elapsed >= limit);
        self.is_over || interrupted
    }

    /// Returns the limit if it was reached.
    fn too_long(&self) -> Option<Duration> {
        self.limit.filter(|_| self.is_over)
    }
}

#[cfg(test)]
mod tests;
