//! The leader of several load processes: decides for all of them when a phase ends, and merges what
//! they counted.

use super::{
    LoadProcessConfig,
    ask::Ask,
    crew::{Crew, Heard},
    follow::{order_of, phase_of},
    memory::Memory,
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
    Counted, Failure, LeaderCommand, LoadProgress, Mismatch, Part, ProcessMessage, SecondCounted,
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
    let shared = &Shared::new(split.processes, 1);
    thread::scope(|scope| {
        let (alive, ended) = mpsc::channel::<()>();
        // A separate thread, because this one reports progress. It and the processes that it starts run
        // on the CPUs of the load, as this thread does.
        let leader = thread::Builder::new().name("load-leader".into()).spawn_scoped(scope, || {
            let _alive = alive;
            let _guard = EndAll(shared);
            lead(plan, split, processes, shared, Director::new(plan, shared, stop, observer))
        });
        let leader = leader.map_err(|error| Error::Machine { what: "start its threads", error })?;
        let mut gatherer = plan.seconds.then(|| Gatherer::new(split.processes));
        report_progress(shared, &ended, gatherer.as_mut(), progress);
        leader.join().expect("the leader of the load panicked")
    })
}

fn lead(
    plan: &Plan,
    split: Split,
    how: &LoadProcessConfig,
    shared: &Shared,
    mut director: Director<'_>,
) -> Result<Tally, Error> {
    let words = plan.workload.shared_words();
    let memory = (words > 0).then(|| Memory::new(words)).transpose();
    let memory =
        memory.map_err(|error| Error::Machine { what: "create its shared memory", error })?;
    let path = memory.as_ref().map(Memory::path);
    let ask = |process| Ask::new(plan, split.part(process), path.clone());
    let asks = (0..split.processes).map(ask).collect();
    let led = Crew::start(how, asks)
        .and_then(|crew| Led::new(plan, split, shared, crew).until_counted(&mut director));
    if led.is_err() {
        // If the window was opened, this makes the director close it, so that `observer` is called.
        shared.end_early();
        director.turn(clock::now());
    }
    let counted = led?;
    let outcome = director.outcome()?;
    reached(Tally::of(counted, &outcome, plan, split), plan, shared)
}

/// A load carried out by several processes.
struct Led<'a> {
    plan: &'a Plan,
    split: Split,
    shared: &'a Shared,
    crew: Crew,
    started: Instant,
    /// When each process last reported.
    heard: Vec<Option<Instant>>,
    /// Whether each process has connections that wait for their first reply.
    opening: Vec<bool>,
    /// In a burst: the number of connections of each process that got their first reply.
    opened: Vec<usize>,
    /// The number of the next second of each process.
    seconds: Vec<u32>,
    counted: Vec<Option<Counted>>,
}

impl<'a> Led<'a> {
    fn new(plan: &'a Plan, split: Split, shared: &'a Shared, crew: Crew) -> Self {
        Led {
            plan,
            split,
            shared,
            crew,
            started: Instant::now(),
            heard: vec![None; split.processes],
            opening: vec![false; split.processes],
            opened: vec![0; split.processes],
            seconds: vec![0; split.processes],
            counted: vec![None; split.processes],
        }
    }

    /// Leads the processes through the phases, and merges what they counted.
    fn until_counted(mut self, director: &mut Director<'_>) -> Result<Counted, Error> {
        let (mut phase, mut all_opened) = (Phase::Starting, false);
        while self.counted.iter().any(Option::is_none) {
            let wait = director.next_check().saturating_sub(clock::now()).min(TURN);
            let mut next = self.crew.next(Duration::from_nanos(wait));
            while let Some((number, heard)) = next {
                self.hear(number, heard)?;
                next = self.crew.next(Duration::ZERO);
            }
            self.check_silence()?;
            if !all_opened && self.opened.iter().sum::<usize>() == self.plan.connections {
                all_opened = true;
                self.crew.order(LeaderCommand::AllOpened);
            }
            director.turn(clock::now());
            if self.shared.phase() != phase {
                phase = self.shared.phase();
                if phase == Phase::Ended && self.shared.closes_are_overdue() {
                    self.crew.order(LeaderCommand::ClosesOverdue);
                }
                if phase == Phase::Ended && self.shared.is_cut_short() {
                    self.crew.order(LeaderCommand::CutShort);
                }
                if let Some(order) = order_of(phase) {
                    self.crew.order(order);
                }
            }
        }
        self.merge()
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
                let part = self.split.part(number);
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
        if let Some(trouble) = progress.trouble {
            let of = self.split.processes;
            let trouble = format!("{trouble} (load process {} of {of})", number + 1);
            self.shared.troubled(&trouble);
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

    fn merge(self) -> Result<Counted, Error> {
        let mut all = self.counted.iter().flatten().cloned();
        let mut sum = all.next().expect("there is a process");
        for (number, counted) in (1..).zip(all) {
            sum.add(counted).map_err(|unlike: Mismatch| {
                self.failed(number, format!("reported counts of another load: {unlike}"))
            })?;
        }
        Ok(sum)
    }

    fn failed(&self, number: usize, because: String) -> Error {
        Error::Process { number: number + 1, processes: self.split.processes, because }
    }
}

/// Checks that counts belong to `part` and are consistent.
fn check(counted: &Counted, plan: &Plan, part: Part) -> Result<(), String> {
    counted.check(plan.drive.rate().is_some()).map_err(|error| error.to_string())?;
    let instances = plan.drive.burst().map_or(0, |burst| burst.instances);
    let own = part.numbers().flat_map(|number| (number..instances).step_by(part.threads as usize));
    let mut own: Vec<u32> = own.collect();
    own.sort_unstable();
    if counted.window_ns > 0 && !counted.instances_ns.keys().copied().eq(own) {
        return Err("burst instances of another process".into());
    }
    Ok(())
}
