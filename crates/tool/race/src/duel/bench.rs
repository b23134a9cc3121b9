//! The bench of a race: how each step of a life is done, from the start of a contender to its clocks.
//! The order of the steps is in `life`. At the end it has a [`Round`] for each contender under each load.

use super::{
    death_watch::DeathWatch,
    life::{Bench, Drive, Driven, Lived, Plan, Purpose, live},
    roles::of_slices,
    runner::{self, Life, Member, RunsLives},
    warm_up::WarmUpSeen,
};
use crate::{
    ask::entrant::Entrant,
    context::RaceContext,
    driving::{
        load_plan::{plan_against, spoken},
        outcome::{Facts, accepted_nothing, is_doubtful, not_loaded, permits_fewer},
        reply_seen,
        trial::Trial,
        warm,
    },
    machine_error::MachineError,
    results::events::Events,
    site::{hosted::Hosted, start::Start, wire::Reading},
};
use regatta_host::{Aside, MachineClock, Settings};
use regatta_load::{Compiled, Lane, Plan as Load, SliceCounts, SliceKind, SliceLatency};
use regatta_record::{
    FORMAT, Happened, LoadShape, MachineUse, NetworkUse, Operation, Outcome, Phase, Round,
    RoundStart, Settled, WarmUpSlice, WholeLife,
};
use std::{
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

/// The last bytes of a few requests are held back in one life of this many, because it takes 50 ms for each
/// contender.
const WITHHOLDS_EVERY: u32 = 4;

/// The requests of the loads of a race.
struct Scripts(Vec<Compiled>);

/// A life whose load runs on this machine.
struct Stand<'a, 'e> {
    context: &'a RaceContext<'a>,
    life: u32,
    began: Instant,
    seed: u64,
    loads: &'a [LoadShape],
    scripts: &'a mut Scripts,
    contenders: Vec<Contender<'a>>,
    /// `None` if the contenders have another machine, too.
    clock: Option<MachineClock>,
    events: &'a mut Events<'e>,
    deaths: DeathWatch,
    /// Keeps the thread that runs the race off the contenders' CPUs, while one of them is driven.
    aside: Option<Aside>,
}

/// A contender of the heat.
struct Contender<'a> {
    entrant: &'a Entrant,
    /// The event of its start.
    start: RoundStart,
    /// Its rounds, by load; `None` under a load where it is not raced in this life.
    rounds: Vec<Option<Round>>,
    alive: Option<Alive<'a>>,
    lane: Option<LaneTo<'a>>,
    /// CPU time from its start to its end, and until it was frozen for the first time, nanoseconds.
    whole: (Option<u64>, Option<u64>),
    /// The observations of its warm-ups, by load.
    warm_ups: Vec<WarmUpSeen>,
}

/// The processes of a contender.
struct Alive<'a> {
    hosted: Hosted<'a>,
    /// CPU time of each role in counted slices of the current load, nanoseconds.
    in_slices: Vec<u64>,
    /// The next reading of the clocks ends a counted slice.
    counts_next: bool,
    /// CPU time of the load in the last slice on this contender's machine, nanoseconds.
    load_there_ns: u64,
}

/// The load on a contender.
struct LaneTo<'a> {
    lane: Lane<'a>,
    plan: Load,
    has_window: bool,
    /// Time in starts, slices and stops, nanoseconds.
    lasted_ns: u64,
}

/// Runs the lives of a race on this machine.
pub(crate) struct LivesHere<'a> {
    context: &'a RaceContext<'a>,
    scripts: Scripts,
}

impl<'a> LivesHere<'a> {
    pub fn new(context: &'a RaceContext<'a>) -> LivesHere<'a> {
        LivesHere { context, scripts: Scripts(Vec::new()) }
    }
}

impl RunsLives for LivesHere<'_> {
    fn run_life(
        &mut self,
        life: Life<'_>,
        events: &mut Events<'_>,
    ) -> Result<Option<runner::Lived>, MachineError> {
        let plan = life.plan.clone();
        let mut stand = Stand::new(self.context, life, &mut self.scripts, events);
        let alone = plan.loads.first().and_then(|load| self.context.machine_alone(load.slice));
        let settings = Settings::read();
        let lived = live(&mut stand, &plan)?;
        let here = Settings::read().changed_since(&settings);
        let there = self.context.changed_on_server();
        let changed: Vec<String> = here.into_iter().chain(there).collect();
        let changed = (!changed.is_empty()).then(|| changed.join("; "));
        let settled = stand.settled();
        let rounds = stand.into_rounds(&plan, lived);
        Ok(rounds.map(|mut rounds| {
            for round in &mut rounds {
                round.settings_changed.clone_from(&changed);
                if let Some(life) = &mut round.life {
                    life.machine_alone = alone;
                }
            }
            runner::Lived { rounds, settled }
        }))
    }
}

impl<'a, 'e> Stand<'a, 'e> {
    fn new(
        context: &'a RaceContext<'a>,
        life: Life<'a>,
        scripts: &'a mut Scripts,
        events: &'a mut Events<'e>,
    ) -> Self {
        let Life { nth, seed, loads, members, plan: _ } = life;
        let longest = Duration::from_secs_f64(context.asked.settle_s);
        let contender = |Member { entrant, start, rounds }: Member<'a>| Contender {
            entrant,
            start,
            rounds,
            alive: None,
            lane: None,
            whole: (None, None),
            warm_ups: loads.iter().map(|load| WarmUpSeen::new(longest, load)).collect(),
        };
        Stand {
            context,
            life: nth,
            began: Instant::now(),
            seed,
            loads,
            scripts,
            contenders: members.into_iter().map(contender).collect(),
            clock: MachineClock::open().filter(|_| !context.asked.cpus.apart),
            events,
            deaths: DeathWatch::new(),
            aside: None,
        }
    }

    /// Returns the observations of warm-ups: the contenders that were observed in this life.
    fn settled(&self) -> Vec<Settled> {
        let mut all = Vec::new();
        for Contender { entrant, rounds, warm_ups, .. } in &self.contenders {
            for (nth, seen) in warm_ups.iter().enumerate() {
                let finished = rounds[nth].as_ref().is_some_and(|r| r.outcome == Outcome::Finished);
                if !finished || seen.slices().is_empty() {
                    continue;
                }
                all.push(Settled {
                    format: FORMAT,
                    contender: entrant.name.clone(),
                    load: self.loads[nth],
                    settling: seen.settling(),
                    slices: vec![seen.slices().to_vec()],
                });
            }
        }
        all
    }

    /// Returns the rounds, with what [`super::life::live`] saw of them; `None` if the race was interrupted.
    fn into_rounds(self, plan: &Plan, lived: Vec<Vec<Lived>>) -> Option<Vec<Round>> {
        if self.context.stop.load(Ordering::Relaxed) {
            return None;
        }
        let mut rounds = Vec::new();
        let mut contenders = self.contenders;
        let driven_ns = |who: usize| lived.iter().map(|load| load[who].driven_ns).sum();
        let whole = |(who, contender): (usize, &Contender<'_>)| {
            let (Some(cpu_ns), Some(start_ns)) = contender.whole else { return None };
            Some(WholeLife { cpu_ns, start_ns, driven_ns: driven_ns(who) })
        };
        let wholes: Vec<Option<WholeLife>> = contenders.iter().enumerate().map(whole).collect();
        for (load, lived) in plan.loads.iter().zip(lived) {
            for ((contender, lived), whole) in contenders.iter_mut().zip(lived).zip(&wholes) {
                let Some(mut round) = contender.rounds[load.load].take() else { continue };
                let Lived { slices, idle, aside_ns, connecting_ns, .. } = lived;
                let Lived { thawed_ns, machine, network, .. } = lived;
                if let Some(server) = &mut round.server {
                    server.cpu_ns = slices.iter().map(|slice| slice.cpu_ns).sum();
                }
                let life = round.life.get_or_insert_default();
                let whole = *whole;
                *life = regatta_record::Life {
                    idle,
                    aside_ns,
                    connecting_ns,
                    thawed_ns,
                    machine,
                    network,
                    slices,
                    whole,
                    ..std::mem::take(life)
                };
                rounds.push(round);
            }
        }
        Some(rounds)
    }

    /// Starts a contender. Returns its outcome if it is out.
    fn try_start(&mut self, who: usize) -> Result<Result<Alive<'a>, Outcome>, MachineError> {
        let Contender { entrant, rounds, .. } = &self.contenders[who];
        // Loads share a life only if all contenders are started in the same way for them.
        let Some(nth) = rounds.iter().position(Option::is_some) else {
            return Ok(Err(interrupted()));
        };
        Ok(match self.context.start(entrant, self.loads[nth])? {
            Start::Ready(hosted) => {
                let (hosted, in_slices) = (*hosted, Vec::new());
                Ok(Alive { hosted, in_slices, counts_next: false, load_there_ns: 0 })
            }
            Start::Failed { because } => Err(Outcome::Failed { because }),
            Start::Interrupted => Err(interrupted()),
        })
    }

    /// Opens a lane to a contender. Returns its outcome if it cannot be loaded.
    fn try_connect(
        &mut self,
        who: usize,
        nth: usize,
    ) -> Result<Result<LaneTo<'a>, Outcome>, MachineError> {
        let (context, load) = (self.context, self.loads[nth]);
        let asked = context.asked;
        let Contender { entrant, alive, .. } = &mut self.contenders[who];
        let Some(alive) = alive else { return Ok(Err(interrupted())) };
        if let Some(because) = entrant.cannot_hold(load) {
            return Ok(Err(Outcome::CannotHold { because }));
        }
        let plan = plan_against(asked, entrant, alive.hosted.addresses(), load, self.seed);
        // One set of requests serves all contenders and lives.
        let withholds = plan.withholds && self.life.is_multiple_of(WITHHOLDS_EVERY);
        let plan = Load { seed: asked.seed, withholds, ..plan };
        alive.hosted.observe(&asked.cpus, load);
        let compiled = self.scripts.of(&plan);
        let lane = compiled.and_then(|script| Lane::open(&plan, &script, context.stop));
        let lane = match lane {
            Ok(mut lane) => {
                if let Some(limit) = lane.in_flight_limit() {
                    return Ok(Err(permits_fewer(&entrant.name, limit, load)));
                }
                lane
            }
            Err(error) => {
                let deaths = alive.hosted.deaths();
                self.deaths.report(&entrant.name, &deaths, self.events);
                let died = deaths.server;
                let is_silent = accepted_nothing(&error) && died.is_none();
                let spoken = spoken(&plan, is_silent);
                return not_loaded(&entrant.name, error, died, spoken).map(Err);
            }
        };
        alive.hosted.read(&[Reading::BeforeLoad]);
        alive.in_slices.clear();
        Ok(Ok(LaneTo { lane, plan, has_window: false, lasted_ns: 0 }))
    }

    /// Keeps the reason if a contender could not be frozen or thawed.
    fn not_frozen(&mut self, who: usize, what: &str, done: Result<(), String>) {
        let Err(error) = done else { return };
        let Contender { entrant, rounds, .. } = &mut self.contenders[who];
        for round in rounds.iter_mut().flatten() {
            let why = format!("{} could not be {what}: {error}", entrant.name);
            round.life.get_or_insert_default().not_frozen.get_or_insert(why);
        }
    }

    /// Adds the time since `began` to what the life of a contender lasted under its load.
    fn lasted(&mut self, who: usize, load: usize, began: Instant) {
        if let Some(round) = &mut self.contenders[who].rounds[load] {
            let life = round.life.get_or_insert_default();
            life.lasted_ns += began.elapsed().as_nanos() as u64;
        }
    }
}

impl Scripts {
    /// The requests of a plan, compiled now or earlier.
    fn of(&mut self, plan: &Load) -> Result<Compiled, regatta_load::Error> {
        if let Some(known) = self.0.iter().find(|script| script.serves(plan)) {
            return Ok(known.clone());
        }
        let new = Compiled::of(plan)?;
        self.0.push(new.clone());
        Ok(new)
    }
}

/// The outcome of a contender whose start was interrupted. It is never stored, because the whole life is not.
fn interrupted() -> Outcome {
    Outcome::Failed { because: "the race was interrupted".into() }
}

impl Bench for Stand<'_, '_> {
    type Error = MachineError;

    fn is_interrupted(&self) -> bool {
        self.context.stop.load(Ordering::Relaxed)
    }

    fn start(&mut self, who: usize) -> Result<bool, MachineError> {
        self.events.emit(Happened::RoundStarted(self.contenders[who].start.clone()));
        self.events.emit(Happened::PhaseStarted { phase: Phase::Starting });
        let began = Instant::now();
        let started = self.try_start(who)?;
        // A start is needed once, whatever the number of loads.
        if let Some(first) = self.contenders[who].rounds.iter().position(Option::is_some) {
            self.lasted(who, first, began);
        }
        let contender = &mut self.contenders[who];
        match started {
            Ok(alive) => {
                let can_freeze = alive.hosted.can_freeze();
                contender.alive = Some(alive);
                if !can_freeze {
                    let why = Err("it was started before the race".to_owned());
                    self.not_frozen(who, "frozen while others are loaded", why);
                }
                Ok(true)
            }
            Err(outcome) => {
                for round in contender.rounds.iter_mut().flatten() {
                    round.outcome = outcome.clone();
                }
                Ok(false)
            }
        }
    }

    fn connect(&mut self, who: usize, load: usize) -> Result<bool, MachineError> {
        if self.contenders[who].rounds[load].is_none() {
            return Ok(false);
        }
        let began = Instant::now();
        let connected = self.try_connect(who, load)?;
        self.lasted(who, load, began);
        let contender = &mut self.contenders[who];
        match connected {
            Ok(lane) => contender.lane = Some(lane),
            Err(outcome) => {
                let round = contender.rounds[load].as_mut().expect("it is raced under this load");
                round.outcome = outcome;
            }
        }
        Ok(contender.lane.is_some())
    }

    fn thaw(&mut self, who: usize) {
        let alive = self.contenders[who].alive.as_mut();
        let thawed = alive.map_or(Ok(()), |alive| alive.hosted.thaw());
        self.not_frozen(who, "thawed", thawed);
    }

    fn freeze(&mut self, who: usize) {
        let Contender { alive, whole, .. } = &mut self.contenders[who];
        let frozen = alive.as_mut().map_or(Ok(()), |alive| alive.hosted.freeze());
        if let (Some(alive), (_, start_ns @ None)) = (alive, whole) {
            *start_ns = alive.hosted.cpu_ns();
        }
        self.not_frozen(who, "frozen", frozen);
        if !self.is_interrupted() {
            let loaded = self.contenders.iter_mut().filter(|one| one.lane.is_some());
            let loaded = loaded
                .filter_map(|one| Some((&*one.entrant.name, &mut one.alive.as_mut()?.hosted)));
            self.deaths.look(loaded, self.events);
        }
    }

    fn cpu_ns(&mut self, who: usize) -> Option<u64> {
        let alive = self.contenders[who].alive.as_mut()?;
        let counts = std::mem::take(&mut alive.counts_next);
        let (laps, mut sum) = (alive.hosted.laps()?, Some(0));
        alive.in_slices.resize(laps.len(), 0);
        for (lap, total) in laps.into_iter().zip(&mut alive.in_slices) {
            sum = sum.zip(lap).map(|(sum, lap)| sum + lap);
            if counts {
                *total += lap.unwrap_or(0);
            }
        }
        sum
    }

    fn cpu_ns_running(&mut self, who: usize) -> Option<u64> {
        self.cpu_ns(who)
    }

    fn block_begins(&mut self, load: usize, nth: usize, of: usize) {
        let is_driven = |one: &&Contender<'_>| one.lane.is_some();
        let contenders = self.contenders.iter().filter(is_driven).count() as u32;
        let (block, blocks, load) = (nth as u32, of as u32, self.loads[load]);
        self.events.emit(Happened::BlockStarted { contenders, block, blocks, load });
    }

    fn prepare(&mut self, who: usize, what: &Drive) {
        let Contender { alive: Some(alive), lane: Some(to), .. } = &mut self.contenders[who] else {
            return;
        };
        if what.purpose == Purpose::Counted && !std::mem::replace(&mut to.has_window, true) {
            alive.hosted.read(&[Reading::BeforeWindow, Reading::WindowOpens]);
        }
    }

    fn thawed_ns(&self, who: usize) -> Option<u64> {
        self.contenders[who].alive.as_ref()?.hosted.thawed_ns()
    }

    fn machine_used(&self, who: usize) -> Option<MachineUse> {
        let alive = self.contenders[who].alive.as_ref()?;
        let used = alive.hosted.machine_used()?;
        Some(MachineUse { busy_ns: used.busy_ns - alive.load_there_ns as i64, ..used })
    }

    fn network_used(&self, who: usize) -> Option<&NetworkUse> {
        self.contenders[who].alive.as_ref()?.hosted.network_used()
    }

    fn drive(&mut self, who: usize, what: &Drive) -> Result<Driven, MachineError> {
        let asked = self.context.asked;
        let Contender { alive: Some(alive), lane: Some(to), .. } = &mut self.contenders[who] else {
            unreachable!("only connected contenders are driven")
        };
        let cpus = || Aside::of(&alive.hosted.cpus_here(), &to.plan.cpus);
        self.aside.get_or_insert_with(cpus);
        let kind = match what.purpose {
            Purpose::WarmUp | Purpose::Visit => SliceKind::WarmUp,
            Purpose::FirstBlock => SliceKind::Uncounted,
            Purpose::Counted => SliceKind::Counted,
        };
        alive.counts_next = what.purpose == Purpose::Counted;
        let began = Instant::now();
        let before = self.clock.as_ref().and_then(MachineClock::read_ns);
        let counts = to.lane.slice(what.length, kind, what.seed);
        let after = self.clock.as_ref().and_then(MachineClock::read_ns);
        let one_machine = asked.server.as_ref().is_some_and(|server| server.one_machine);
        alive.load_there_ns = if one_machine { counts.load_cpu_ns } else { 0 };
        let machine_ns = after.zip(before).map(|(after, before)| after.saturating_sub(before));
        to.lasted_ns += began.elapsed().as_nanos() as u64;
        let latency = latency(&counts, &asked.latency_of);
        let known = |ns: u64| (ns > 0).then_some(ns);
        Ok(Driven {
            goes_on: counts.is_over.is_none(),
            ns: counts.ns,
            requests: counts.requests,
            count: count(&counts, &asked.cost_per),
            load_cpu_ns: counts.load_cpu_ns.saturating_sub(counts.spun_ns),
            machine_ns: machine_ns.map(|all| all.saturating_sub(counts.load_cpu_ns)),
            p50_ns: known(latency.p50_ns),
            p99_ns: known(latency.p99_ns),
        })
    }

    fn is_warm(&mut self, who: usize, load: usize, slice: WarmUpSlice, slower: f64) -> bool {
        self.contenders[who].warm_ups[load].add(slice, slower)
    }

    fn has_changed(&self, who: usize) -> bool {
        // A twin warms up as its original does.
        let asked = self.context.asked;
        let is_twin = asked.twin().as_ref() == Some(&self.contenders[who].entrant.name);
        let original = |one: &Contender<'_>| asked.twin_of.as_ref() == Some(&one.entrant.name);
        let original = self.contenders.iter().position(original).filter(|_| is_twin);
        let warm_ups = &self.contenders[original.unwrap_or(who)].warm_ups;
        warm_ups.iter().filter_map(WarmUpSeen::settling).any(|one| warm::is_needed(&one))
    }

    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    fn wait(&mut self, who: usize, length: Duration) {
        let began = Instant::now();
        thread::sleep(length);
        if let Some(to) = &mut self.contenders[who].lane {
            to.lasted_ns += began.elapsed().as_nanos() as u64;
        }
    }

    fn disconnect(&mut self, who: usize, load: usize) -> Result<bool, MachineError> {
        self.aside = None;
        let began = Instant::now();
        let Contender { entrant, rounds, alive: Some(alive), lane, .. } = &mut self.contenders[who]
        else {
            unreachable!("only a contender that was started is connected")
        };
        let (Some(to), Some(round)) = (lane.take(), &mut rounds[load]) else { return Ok(true) };
        let LaneTo { lane, plan, has_window, lasted_ns } = to;
        if has_window {
            let last = [Reading::WindowCloses, Reading::LoadOver, Reading::AfterLoad];
            alive.hosted.read(&last);
        }
        // The connections are still open.
        alive.hosted.look();
        let loaded = lane.end();
        let observed = alive.hosted.observed();
        (round.served_by_others, round.left_its_cpus) =
            (observed.served_by_others, observed.left_its_cpus);
        round.server = observed.server;
        round.machine = Some(observed.machine);
        round.roles = of_slices(observed.roles, &alive.in_slices);
        if self.life == 0 {
            round.reply = reply_seen::look(entrant, alive.hosted.address());
        }
        round.life.get_or_insert_default().lasted_ns += lasted_ns;
        let deaths = alive.hosted.deaths();
        let is_interrupted = self.context.stop.load(Ordering::Relaxed);
        if !is_interrupted {
            self.deaths.report(&entrant.name, &deaths, self.events);
        }
        let goes_on = deaths.backend.is_none() && deaths.server.is_none();
        let is_doubtful = deaths.server.is_none() && is_doubtful(&loaded);
        let spoken = spoken(&plan, is_doubtful);
        let trial = Trial { pass: self.life, entrant, load: self.loads[load], seed: self.seed };
        let facts = Facts {
            name: &entrant.name,
            load: trial.load,
            interrupted: is_interrupted,
            deaths,
            loaded: Some(loaded),
            too_long: None,
            background: None,
            spoken,
            stopped: Ok(None),
        };
        // An interrupted life is not stored.
        if let Some(concluded) = facts.conclude()? {
            trial.record(round, concluded);
        }
        self.lasted(who, load, began);
        Ok(goes_on)
    }

    fn stop(&mut self, who: usize) -> Result<(), MachineError> {
        let began = Instant::now();
        let Contender { rounds, alive, whole, .. } = &mut self.contenders[who];
        let Some(Alive { hosted, .. }) = alive.take() else { return Ok(()) };
        let stopped = hosted.stop();
        whole.0 = stopped.cpu_ns;
        let finished = |round: &&mut Round| round.outcome == Outcome::Finished;
        for round in rounds.iter_mut().flatten().filter(finished) {
            match &stopped.remark {
                Ok(remark) => round.remark.clone_from(remark),
                Err(because) => round.outcome = Outcome::Failed { because: because.clone() },
            }
        }
        if let Some(first) = rounds.iter().position(Option::is_some) {
            self.lasted(who, first, began);
        }
        Ok(())
    }
}

/// Number of operations of a kind.
fn count(counts: &SliceCounts, operation: &Operation) -> u64 {
    if operation.is_request() {
        return counts.requests;
    }
    let kind = counts.operations.iter().find(|one| one.operation.name == operation.name);
    kind.map_or(0, |one| one.count)
}

/// Latencies of a kind of operation.
fn latency(counts: &SliceCounts, operation: &Operation) -> SliceLatency {
    if operation.is_request() {
        return counts.latency;
    }
    let kind = counts.operations.iter().find(|one| one.operation.name == operation.name);
    kind.map_or_else(SliceLatency::default, |one| one.latency)
}
