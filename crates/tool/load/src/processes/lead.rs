//! The leader of several load processes: decides for all of them when a phase ends, and merges what
//! they counted.

use super::{
    LoadProcessConfig,
    ask::{Ask, Order},
    children::LocalCrew,
    crew::{Crew, Heard},
    exact::{self, Inexact},
    follow::{order_of, phase_of},
};
use crate::{
    Error, LoadObserver, Plan, Progress, Split, Tally,
    clock::{self, MS, Nanos, SECOND},
    histogram::new_histogram,
    running::{
        director::Director,
        gatherer::Gatherer,
        leads::Leads,
        run::{EndAll, KeptOn, reached, report_progress, run},
        shared::{Gauge, Phase, Shared},
    },
};
use regatta_record::{
    AcrossCounted, AcrossProgress, AcrossSeen, Counted, Failure, LeaderCommand, LoadProgress,
    Machines, Mismatch, Part, ProcessMessage, SecondCounted,
};
use std::{
    sync::{
        atomic::{AtomicBool, Ordering::*},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

/// Maximum wait for a report: the delay with which a request to stop is noticed.
const TURN: Nanos = 5 * MS;
/// Most reports between two decisions: a process that never stops reporting must not delay them for ever.
const AT_ONCE: usize = 1024;
/// Maximum time for a process to compile its requests and start its threads.
const UP_WITHIN: Duration = Duration::from_secs(120);
/// Maximum silence of a process after that. It reports about twice a second, or more often.
const SILENCE: Duration = Duration::from_secs(20);

/// Carries out a plan like [`crate::run()`], in as many processes as [`LoadProcessConfig::split`] determines. With
/// one process it is the same as [`crate::run()`].
///
/// The calling process leads the others and opens no connections. `observer` is called on a thread that
/// runs on the CPUs of the load. The processes inherit the calling process's environment and limits, and
/// die with it.
///
/// # Errors
/// Those of [`crate::run()`] and [`LoadProcessConfig::split`], and [`Error::Process`] if a process fails; all
/// others are killed then.
pub fn run_in_processes(
    plan: &Plan,
    processes: &LoadProcessConfig,
    observer: &mut dyn LoadObserver,
    progress: &mut dyn FnMut(&Progress),
    stop: &AtomicBool,
) -> Result<Tally, Error> {
    let split = processes.split(plan)?;
    if split.processes == 1 {
        return run(&Plan { threads: split.threads, ..plan.clone() }, observer, progress, stop);
    }
    let plan = &Plan { threads: split.threads, ..plan.needed() };
    let _kept = KeptOn::cpus(&plan.cpus);
    let parts: Vec<Part> = (0..split.processes).map(|process| split.part(process)).collect();
    let asks = parts.iter().map(|part| Ask::new(plan, *part)).collect();
    // The processes run on the CPUs of the load, as this thread does, and die with this thread.
    let mut crew = LocalCrew::start(processes, asks)?;
    let division = Division { parts, groups: Vec::new() };
    let merged = run_by_crew(plan, &division, &mut crew, Watch { observer, progress, stop })?;
    Ok(merged.whole)
}

/// How a load is divided among the processes of a crew.
#[derive(Clone, Debug)]
pub struct Division {
    /// The part of each process. Together they have each thread of the load once.
    pub parts: Vec<Part>,
    /// The number of the group of each process, from 0, whose counts are also merged separately, e.g.
    /// its machine. Empty: there are no groups.
    pub groups: Vec<usize>,
}

/// What a caller observes of a load while it runs.
pub struct Watch<'a> {
    /// Is called at the edges of the window, on another thread.
    pub observer: &'a mut dyn LoadObserver,
    /// Is called with the progress, on the calling thread.
    pub progress: &'a mut dyn FnMut(&Progress),
    /// Ends the load with its results so far, once it is set.
    pub stop: &'a AtomicBool,
}

/// The results of a load by a crew.
#[derive(Debug)]
pub struct Merged {
    /// The result of the load.
    pub whole: Tally,
    /// The result of each group of processes.
    pub groups: Vec<Tally>,
}

/// Carries out a plan in the processes of a crew, each of which has the plan and its part of `division`
/// already. The plan is [`Plan::needed`], and its threads are those of the division. The calling process
/// leads the others and opens no connections.
///
/// # Errors
/// Those of [`run_in_processes`], and what [`Crew::error`] returns if a process fails. The processes may
/// still be running then: the caller ends them.
pub fn run_by_crew(
    plan: &Plan,
    division: &Division,
    crew: &mut (dyn Crew + Send),
    watch: Watch<'_>,
) -> Result<Merged, Error> {
    let Watch { observer, progress, stop } = watch;
    let processes = division.parts.len();
    let shared = &Shared::new(processes, 0);
    thread::scope(|scope| {
        let (alive, ended) = mpsc::channel::<()>();
        // A separate thread, because this one reports progress.
        let leader = thread::Builder::new().name("load-leader".into()).spawn_scoped(scope, || {
            let _alive = alive;
            let _guard = EndAll(shared);
            let director = Director::new(plan, shared, stop, observer);
            lead(plan, division, crew, shared, director)
        });
        let leader = leader.map_err(|error| Error::Machine { what: "start its threads", error })?;
        let mut gatherer = plan.seconds.then(|| Gatherer::new(processes));
        report_progress(shared, &ended, gatherer.as_mut(), progress);
        leader.join().expect("the leader of the load panicked")
    })
}

fn lead(
    plan: &Plan,
    division: &Division,
    crew: &mut (dyn Crew + Send),
    shared: &Shared,
    director: Director<'_>,
) -> Result<Merged, Error> {
    let mut director = director.with_lead(crew.lead_ns());
    let counted = Led::new(plan, division, shared, crew).until_counted(&mut director);
    if counted.is_err() {
        // If the window was opened, this makes the director close it, so that `observer` is called.
        shared.end_early();
        director.turn(clock::now());
    }
    let counted = counted?;
    let outcome = director.outcome()?;
    let of = |group: usize| {
        let all = counted.iter().zip(&division.parts).zip(&division.groups);
        let of_group = all.filter(|(_, number)| **number == group).map(|(one, _)| one);
        let (counts, parts): (Vec<&Counted>, Vec<&Part>) = of_group.unzip();
        let own = parts.iter().map(|part| part.own as usize).sum();
        let split = Split { processes: parts.len(), threads: plan.threads };
        Tally::of_some(merged(counts), &outcome, plan, split, own)
    };
    let groups = division.groups.iter().max().map_or(0, |last| last + 1);
    let groups = (0..groups).map(of).collect();
    let split = Split { processes: division.parts.len(), threads: plan.threads };
    let whole = Tally::of(merged(counted.iter().collect()), &outcome, plan, split);
    let mut done = Merged { whole: reached(whole, plan, shared)?, groups };
    if !shared.is_cut_short() {
        check_exact(plan, division, crew, &mut done)?;
    }
    Ok(done)
}

/// Checks that each member of a hub got each broadcast of the other machines once, if the load ended in
/// order. A wrong delivery disqualifies the server, as one that a load process finds.
fn check_exact(
    plan: &Plan,
    division: &Division,
    crew: &dyn Crew,
    done: &mut Merged,
) -> Result<(), Error> {
    let Some(machines) = &plan.machines else { return Ok(()) };
    let Merged { whole, groups } = done;
    let is_wrong = whole.first_wrong.is_some() || whole.errors.failed() > 0;
    if whole.interrupted || whole.server_died || is_wrong {
        return Ok(());
    }
    let first_of = |machine: usize| division.groups.iter().position(|of| *of == machine);
    let name = |machine: usize| crew.name(first_of(machine).unwrap_or(0));
    let seen = groups.iter().map(|group| Some(&group.across.as_ref()?.seen));
    let Some(seen) = seen.collect::<Option<Vec<&AcrossSeen>>>() else { return Ok(()) };
    match exact::check(machines, &seen, &name) {
        Ok(()) => Ok(()),
        Err(Inexact::Unknown { machine, because }) => {
            Err(Error::Unverified { name: name(machine), because })
        }
        Err(Inexact::Wrong { machine, exchange }) => {
            for tally in [whole, &mut groups[machine]] {
                tally.counts.errors.wrong_reply += 1;
                tally.first_wrong = Some((*exchange).clone());
            }
            Ok(())
        }
    }
}

/// Merges counts, which were checked to be of one load.
fn merged(counts: Vec<&Counted>) -> Counted {
    let mut all = counts.into_iter().cloned();
    let mut sum = all.next().expect("every group has a process");
    all.for_each(|counted| sum.add(counted).expect("counts of one load"));
    sum
}

/// A load carried out by several processes.
struct Led<'a> {
    plan: &'a Plan,
    division: &'a Division,
    shared: &'a Shared,
    crew: &'a mut (dyn Crew + Send),
    started: Instant,
    /// When each process last reported.
    heard: Vec<Option<Instant>>,
    /// Whether each process has connections that wait for their first reply.
    opening: Vec<bool>,
    /// In a burst: the number of connections of each process that got their first reply.
    opened: Vec<usize>,
    /// The number of the next second of each process.
    seconds: Vec<u32>,
    /// What each process sent to other machines and received from them.
    across: Vec<AcrossProgress>,
    counted: Vec<Option<Counted>>,
}

impl<'a> Led<'a> {
    fn new(
        plan: &'a Plan,
        division: &'a Division,
        shared: &'a Shared,
        crew: &'a mut (dyn Crew + Send),
    ) -> Self {
        let processes = division.parts.len();
        Led {
            plan,
            division,
            shared,
            crew,
            started: Instant::now(),
            heard: vec![None; processes],
            opening: vec![false; processes],
            opened: vec![0; processes],
            seconds: vec![0; processes],
            across: vec![AcrossProgress::default(); processes],
            counted: vec![None; processes],
        }
    }

    /// Leads the processes through the phases. Returns what each of them counted.
    fn until_counted(mut self, director: &mut Director<'_>) -> Result<Vec<Counted>, Error> {
        let (mut phase, mut all_opened, mut opens_at) = (Phase::Starting, false, None);
        while self.counted.iter().any(Option::is_none) {
            let wait = director.next_check().saturating_sub(clock::now()).min(TURN);
            let mut wait = Duration::from_nanos(wait);
            for _ in 0..AT_ONCE {
                let Some((number, heard)) = self.crew.next(wait) else { break };
                self.hear(number, heard)?;
                wait = Duration::ZERO;
            }
            self.check_silence()?;
            if !all_opened && self.opened.iter().sum::<usize>() == self.plan.connections {
                all_opened = true;
                self.order(LeaderCommand::AllOpened);
            }
            director.turn(clock::now());
            if opens_at.is_none() && self.crew.lead_ns() > 0 {
                opens_at = director.opens_at();
                if let Some(at) = opens_at {
                    let order = LeaderCommand::OpenWindow;
                    self.crew.order(Order { order, at_ns: Some(at) });
                }
            }
            if self.shared.phase() != phase {
                phase = self.shared.phase();
                self.order_into(phase, opens_at.is_some());
            }
        }
        self.check_alike()?;
        Ok(self.counted.into_iter().flatten().collect())
    }

    /// Orders all processes to enter a phase. If they know when to open the window, they do it themselves.
    fn order_into(&mut self, phase: Phase, know_when: bool) {
        if phase == Phase::Ended && self.shared.closes_are_overdue() {
            self.order(LeaderCommand::ClosesOverdue);
        }
        if phase == Phase::Ended && self.shared.is_cut_short() {
            self.order(LeaderCommand::CutShort);
        }
        if let Some(order) = order_of(phase).filter(|_| phase != Phase::Measuring || !know_when) {
            self.order(order);
        }
    }

    fn order(&mut self, order: LeaderCommand) {
        self.crew.order(Order { order, at_ns: None });
    }

    fn hear(&mut self, number: usize, heard: Heard) -> Result<(), Error> {
        self.heard[number] = Some(Instant::now());
        match heard {
            Heard::Report(ProcessMessage::Progress(progress)) => self.note(number, progress),
            Heard::Report(ProcessMessage::Second(second)) => {
                self.check_second(number, &second).map_err(|what| {
                    self.failed(number, format!("reported a wrong second: {what}"))
                })?;
                self.seconds[number] = second.number + 1;
                self.shared.gauges[number].handed.push(*second);
            }
            Heard::Report(ProcessMessage::Counted(counted)) => {
                let part = self.division.parts[number];
                check(&counted, self.plan, part).map_err(|what| {
                    self.failed(number, format!("reported wrong counts: {what}"))
                })?;
                self.counted[number] = Some(*counted);
            }
            Heard::Report(ProcessMessage::Failed(Failure::Tls(because))) => {
                return Err(Error::Tls(because));
            }
            Heard::Report(ProcessMessage::Failed(Failure::Other(because))) => {
                return Err(self.failed(number, because));
            }
            Heard::Nonsense(error) => {
                return Err(self.failed(number, format!("sent no valid report: {error}")));
            }
            Heard::Failed(because) => return Err(self.failed(number, because)),
            Heard::Gone => {
                let ending = self.crew.ending(number);
                return Err(self.failed(number, ending));
            }
        }
        Ok(())
    }

    /// A process reported its progress: the director decides by the sums over all of them.
    fn note(&mut self, number: usize, progress: LoadProgress) {
        let LoadProgress { replies, settled, awaited, refused, dropped, owed_ends, .. } = progress;
        let gauge: &Gauge = &self.shared.gauges[number];
        gauge.replies.store(replies, Relaxed);
        gauge.active_replies.store(progress.active_replies, Relaxed);
        gauge.settled.store(settled, Relaxed);
        gauge.awaited.store(awaited, Relaxed);
        gauge.refused.store(refused, Relaxed);
        gauge.dropped.store(dropped, Relaxed);
        gauge.owed_ends.store(owed_ends, Relaxed);
        gauge.errors.store(progress.errors, Relaxed);
        gauge.open.store(progress.open as usize, Relaxed);
        gauge.entered.store(phase_of(progress.entered) as u8 + 1, Release);
        self.opening[number] = progress.opening;
        self.shared.set_opening(self.opening.iter().filter(|opening| **opening).count());
        self.opened[number] = progress.opened as usize;
        if let (Some(machines), Some(across)) = (&self.plan.machines, progress.across) {
            self.across[number] = across;
            let all = self.division.groups.iter().zip(&self.across);
            self.shared.set_owes_across(exact::owes(machines, all));
        }
        if let Some(trouble) = progress.trouble {
            self.shared.troubled(&format!("{trouble} ({})", self.crew.name(number)));
        }
        if progress.over {
            self.shared.end_early();
        }
    }

    /// Checks that a second follows those before it, and has a histogram of this load.
    fn check_second(&self, number: usize, second: &SecondCounted) -> Result<(), String> {
        let (next, now) = (self.seconds[number], clock::now());
        let last = now.saturating_sub(self.shared.window_opened_at()) / SECOND + 1;
        if !self.plan.seconds || second.number < next || u64::from(second.number) > last {
            return Err(format!("number {}, expected {next} to {last}", second.number));
        }
        let mut like = SecondCounted::nothing(second.number, new_histogram());
        like.add(second).map_err(|unlike| unlike.to_string())
    }

    fn check_silence(&self) -> Result<(), Error> {
        for (number, heard) in self.heard.iter().enumerate() {
            let (since, limit) = match heard {
                None => (self.started, UP_WITHIN),
                Some(at) => (*at, SILENCE),
            };
            if self.counted[number].is_none() && since.elapsed() > limit {
                return Err(self.failed(number, format!("has not reported for {limit:?}")));
            }
        }
        Ok(())
    }

    /// Checks that all counts are of one load.
    fn check_alike(&self) -> Result<(), Error> {
        let mut all = self.counted.iter().flatten().cloned();
        let mut sum = all.next().expect("there is a process");
        for (number, counted) in (1..).zip(all) {
            sum.add(counted).map_err(|unlike: Mismatch| {
                self.failed(number, format!("reported counts of another load: {unlike}"))
            })?;
        }
        Ok(())
    }

    fn failed(&self, number: usize, because: String) -> Error {
        self.crew.error(number, because)
    }
}

/// Checks that counts belong to `part` and are consistent.
fn check(counted: &Counted, plan: &Plan, part: Part) -> Result<(), String> {
    counted.check(plan.drive.rate().is_some()).map_err(|error| error.to_string())?;
    let machines = |across: &AcrossCounted| across.latencies.len();
    let counted_machines = counted.across.as_deref().map(machines);
    if counted_machines != plan.machines.as_ref().map(Machines::count) {
        return Err("deliveries of another number of machines".into());
    }
    let instances = plan.drive.burst().map_or(0, |burst| burst.instances);
    let own = part.numbers().flat_map(|number| (number..instances).step_by(part.threads as usize));
    let mut own: Vec<u32> = own.collect();
    own.sort_unstable();
    if counted.window_ns > 0 && !counted.instances_ns.keys().copied().eq(own) {
        return Err("burst instances of another process".into());
    }
    Ok(())
}
