//! The bench of this machine: starts the contenders of a heat, keeps a lane of the load open to each,
//! freezes and thaws them, and reads their clocks. At the end it has a [`Round`] for each.

use super::life::{Bench, Drive, Driven, Lived, Purpose};
use crate::{
    context::{MachineError, RaceContext},
    edges::Served,
    entrant::Entrant,
    events::Events,
    reply_seen,
    round::{self, Deaths},
    start::{STOP_WITHIN, Start, Started, start},
};
use regatta_host::{Aside, Freezer, MachineClock, Meter, Roles, Watched, meters, what_is_spoken};
use regatta_load::{Compiled, Lane, Plan, SliceKind};
use regatta_record::{Happened, Life, LoadShape, Outcome, Phase, Round, Settling};
use std::{io, sync::atomic::Ordering, thread, time::Duration};
use tempfile::TempDir;

/// The contenders of one life.
pub(crate) struct Stand<'a, 'e> {
    context: &'a RaceContext<'a>,
    load: LoadShape,
    pass: u32,
    seed: u64,
    /// Requests that were compiled for earlier lives or contenders.
    scripts: &'a mut Vec<Compiled>,
    contenders: Vec<Contender<'a>>,
    clock: Option<MachineClock>,
    events: &'a mut Events<'e>,
    /// Keeps the thread that runs the race off the contenders' CPUs, while one of them is driven.
    aside: Option<Aside>,
}

/// A contender of the heat.
pub(crate) struct Contender<'a> {
    entrant: &'a Entrant,
    round: Round,
    plan: Option<Plan>,
    alive: Option<Alive>,
}

/// A contender that was started.
struct Alive {
    lane: Lane,
    freezer: Freezer,
    /// By role.
    meters: Vec<Meter>,
    /// CPU time of each role in counted slices, nanoseconds.
    in_slices: Vec<u64>,
    /// The next reading of the clocks ends a counted slice.
    counts_next: bool,
    watched: Watched,
    has_window: bool,
    served: Served,
    roles: Roles,
    port: u16,
    _run: TempDir,
}

impl<'a, 'e> Stand<'a, 'e> {
    pub fn new(
        context: &'a RaceContext<'a>,
        heat: &[&'a Entrant],
        load: LoadShape,
        (pass, seed): (u32, u64),
        settling: impl Fn(&Entrant) -> Option<Settling>,
        scripts: &'a mut Vec<Compiled>,
        events: &'a mut Events<'e>,
    ) -> Self {
        let contender = |entrant: &&'a Entrant| Contender {
            entrant,
            round: round::new_round(context, pass, entrant, load, seed, settling(entrant)),
            plan: None,
            alive: None,
        };
        let contenders = heat.iter().map(contender).collect();
        let clock = MachineClock::open();
        Stand { context, load, pass, seed, scripts, contenders, clock, events, aside: None }
    }

    /// Returns the rounds, with what [`super::life::live`] saw of them; `None` if the race was interrupted.
    pub fn into_rounds(self, lived: Vec<Lived>) -> Option<Vec<Round>> {
        if self.context.stop.load(Ordering::Relaxed) {
            return None;
        }
        let rounds = self.contenders.into_iter().zip(lived).map(|(contender, lived)| {
            let mut round = contender.round;
            let Lived { slices, idle, aside_ns, .. } = lived;
            let sum = |of: fn(&regatta_record::Slice) -> u64| slices.iter().map(of).sum();
            if let Some(server) = &mut round.server {
                server.cpu_ns = sum(|slice| slice.cpu_ns);
            }
            let life = round.life.get_or_insert_default();
            *life = Life { idle, aside_ns, slices, ..std::mem::take(life) };
            round
        });
        Some(rounds.collect())
    }

    /// Starts one contender. Returns its outcome if it is out.
    fn try_start(&mut self, who: usize) -> Result<Result<Alive, Outcome>, MachineError> {
        let Self { context, load, .. } = *self;
        let asked = context.asked;
        let entrant = self.contenders[who].entrant;
        if let Some(because) = entrant.cannot_hold(load) {
            return Ok(Err(Outcome::CannotHold { because }));
        }
        let Started { mut roles, port, run: _run } = match start(context, entrant, load)? {
            Start::Ready(started) => *started,
            Start::Failed { because } => return Ok(Err(Outcome::Failed { because })),
            Start::Interrupted => return Ok(Err(interrupted())),
        };
        let plan = round::plan_against(asked, entrant, port, load, self.seed);
        let mut watched = Watched::new(&roles, &asked.cpus, &load);
        self.events.emit(Happened::PhaseStarted { phase: Phase::Connecting });
        let lane = self.compiled(&plan).and_then(|script| Lane::open(&plan, script, context.stop));
        let lane = match lane {
            Ok(lane) => lane,
            Err(error) => {
                let died = round::deaths(&mut roles).server;
                let failed = Err(error);
                let is_doubtful = died.is_none() && round::is_doubtful(&failed);
                let spoken =
                    is_doubtful.then(|| what_is_spoken(plan.target, &plan.workload)).flatten();
                let Err(error) = failed else { unreachable!("it failed") };
                return round::not_loaded(entrant, error, died, spoken).map(Err);
            }
        };
        self.contenders[who].plan = Some(plan);
        watched.connected();
        let freezer = Freezer::of(&roles);
        if !freezer.can_freeze() {
            let why = format!(
                "{} was started before the race, so it cannot be frozen while others are loaded",
                entrant.name
            );
            self.contenders[who].round.life.get_or_insert_default().not_frozen = Some(why);
        }
        let served = Served::new(&entrant.name, &roles);
        let meters = meters(&roles);
        let in_slices = vec![0; meters.len()];
        let (counts_next, has_window) = (false, false);
        Ok(Ok(Alive {
            lane,
            freezer,
            meters,
            in_slices,
            counts_next,
            watched,
            has_window,
            served,
            roles,
            port,
            _run,
        }))
    }

    /// Requests are compiled once for all contenders and lives that get the same ones.
    fn compiled(&mut self, plan: &Plan) -> Result<Compiled, regatta_load::Error> {
        if let Some(known) = self.scripts.iter().find(|script| script.serves(plan)) {
            return Ok(known.clone());
        }
        let new = Compiled::of(plan)?;
        self.scripts.push(new.clone());
        Ok(new)
    }

    /// Keeps the reason if a contender could not be frozen or thawed.
    fn not_frozen(&mut self, who: usize, what: &str, done: io::Result<()>) {
        let Err(error) = done else { return };
        let Contender { entrant, round, .. } = &mut self.contenders[who];
        let why = format!("{} could not be {what}: {error}", entrant.name);
        round.life.get_or_insert_default().not_frozen.get_or_insert(why);
    }

    fn alive(&mut self, who: usize) -> &mut Alive {
        self.contenders[who].alive.as_mut().expect("only a contender that was started is used")
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
        match self.try_start(who)? {
            Ok(alive) => {
                self.contenders[who].alive = Some(alive);
                Ok(true)
            }
            Err(outcome) => {
                self.contenders[who].round.outcome = outcome;
                Ok(false)
            }
        }
    }

    fn thaw(&mut self, who: usize) {
        let thawed = self.alive(who).freezer.thaw();
        self.not_frozen(who, "thawed", thawed);
    }

    fn freeze(&mut self, who: usize) {
        let frozen = self.alive(who).freezer.freeze();
        self.not_frozen(who, "frozen", frozen);
    }

    fn cpu_ns(&mut self, who: usize) -> Option<u64> {
        let alive = self.alive(who);
        let counts = std::mem::take(&mut alive.counts_next);
        let mut sum = Some(0);
        for (meter, total) in alive.meters.iter_mut().zip(&mut alive.in_slices) {
            let lap = meter.lap();
            sum = sum.zip(lap).map(|(sum, lap)| sum + lap);
            if counts {
                *total += lap.unwrap_or(0);
            }
        }
        sum
    }

    fn block_begins(&mut self, nth: usize, of: usize) {
        let (contenders, block, blocks) = (self.contenders.len() as u32, nth as u32, of as u32);
        self.events.emit(Happened::BlockStarted { contenders, block, blocks, load: self.load });
    }

    fn drive(&mut self, who: usize, what: &Drive) -> Result<Driven, MachineError> {
        let kind = match what.purpose {
            Purpose::WarmUp => SliceKind::WarmUp,
            Purpose::FirstBlock => SliceKind::Uncounted,
            Purpose::Counted => SliceKind::Counted,
        };
        let asked = self.context.asked;
        let cpus = || Aside::of(&asked.cpus.of_server(&self.load), &asked.cpus.of_load(&self.load));
        self.aside.get_or_insert_with(cpus);
        let alive = self.contenders[who].alive.as_mut().expect("it was started");
        alive.counts_next = what.purpose == Purpose::Counted;
        if alive.counts_next && !std::mem::replace(&mut alive.has_window, true) {
            alive.watched.before_window();
            alive.watched.window_opens();
        }
        let before = self.clock.as_ref().and_then(MachineClock::read_ns);
        let counts = alive.lane.slice(what.length, kind, what.seed);
        let after = self.clock.as_ref().and_then(MachineClock::read_ns);
        let machine_ns = after.zip(before).map(|(after, before)| after.saturating_sub(before));
        Ok(Driven {
            goes_on: counts.is_over.is_none(),
            ns: counts.ns,
            count: counts.count_of(&asked.cost_per),
            load_cpu_ns: counts.load_cpu_ns.saturating_sub(counts.spun_ns),
            machine_ns: machine_ns.map(|all| all.saturating_sub(counts.load_cpu_ns)),
            p50_ns: counts.p50_ns,
            p99_ns: counts.p99_ns,
        })
    }

    fn wait(&mut self, length: Duration) {
        thread::sleep(length);
    }

    fn end(&mut self, who: usize) -> Result<(), MachineError> {
        self.aside = None;
        let contender = &mut self.contenders[who];
        let Some(alive) = contender.alive.take() else { return Ok(()) };
        let Contender { entrant, round, plan, .. } = contender;
        let Alive { lane, freezer, in_slices, mut watched, has_window, mut served, mut roles, .. } =
            alive;
        if has_window {
            watched.window_closes();
            watched.load_over();
            watched.connections_open();
        }
        served.look();
        (round.served_by_others, round.left_its_cpus) = (served.by_others, served.elsewhere);
        let all_requests = lane.replies();
        let loaded = lane.end();
        round.server = watched.spent.take();
        round.machine = Some(watched.machine);
        round.roles = watched.into_roles();
        // Roles are in the order of their start; in the record the server, the last one, is first.
        for (role, ns) in round.roles.iter_mut().zip(in_slices.into_iter().rev()) {
            if let Some(used) = &mut role.used {
                used.cpu_ns = ns;
            }
        }
        if self.pass == 0 {
            round.reply = reply_seen::look(entrant, alive.port);
        }
        let Deaths { backend, server: died } = round::deaths(&mut roles);
        let is_doubtful = died.is_none() && round::is_doubtful(&loaded);
        let spoken = plan.as_ref().filter(|_| is_doubtful);
        let spoken = spoken.and_then(|plan| what_is_spoken(plan.target, &plan.workload));
        drop(freezer);
        let stopped = roles.stop(STOP_WITHIN);
        round.life.get_or_insert_default().all_requests = all_requests;
        if let Some(because) = backend {
            round.outcome = Outcome::Failed { because };
            return Ok(());
        }
        round::conclude(round, entrant, loaded, died, spoken, stopped)
    }
}
