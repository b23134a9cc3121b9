//! Lives on a simulated bench: contenders fail to start, die, answer wrongly; the race is interrupted at any
//! moment; the machine fails. Every step is checked.

use super::*;
use crate::duel::order::orders;
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::cell::Cell;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Running,
    Frozen,
    Stopped,
}

/// A bench with a clock of its own. A contender works for as long as it is driven, at its own cost, and for
/// a hundredth of the time while it is thawed without load. Some are compiled, and work on after a slice that warms
/// them. In some histories they cannot be frozen, and work while others are driven.
struct Simulated {
    random: StdRng,
    states: Vec<State>,
    /// The load that is connected to each.
    connected: Vec<Option<usize>>,
    /// CPU time since the last reading.
    unread: Vec<u64>,
    /// CPU time of one that is connected while another is driven for a slice.
    aside_of_slice: u64,
    /// The sum of that for each.
    aside: Vec<u64>,
    /// What each has still to compile, in CPU time.
    to_compile: Vec<u64>,
    /// What each has still to do for connections that were closed, in CPU time.
    to_close: Vec<u64>,
    /// Its clock, and when each was last connected or driven.
    now: Duration,
    ran_at: Vec<Duration>,
    /// How long a message to the machine of the contenders takes, if that is another one.
    trip: Option<Duration>,
    /// How long each ran since it was thawed, or its clock was read.
    ran: Vec<Duration>,
    /// The longest that one was connected and not driven.
    awaited: Duration,
    /// Time without load since the last slice, and in all for each.
    rested: Duration,
    waited: Vec<Duration>,
    /// Lengths of the slices that only warmed each.
    warmed: Vec<Vec<Duration>>,
    /// Steps until the race is interrupted.
    steps_left: Cell<u32>,
    fails: f64,
    errs: bool,
    never_warm: bool,
    /// How many times as long as requested a slice of a warm-up lasts, because requests take long.
    slowness: u32,
    visited: Visited,
}

#[derive(Clone, Copy, Debug, Default)]
struct Visited {
    interrupted: u64,
    not_started: u64,
    not_connected: u64,
    gone: u64,
    observed: u64,
    died: u64,
    failed: u64,
    complete: u64,
    long: u64,
    idle: u64,
    visits: u64,
}

const COST: u64 = 10_000;
const SLICE: Duration = Duration::from_millis(50);
const CONNECTS: Duration = Duration::from_millis(300);
const TRIP: Duration = Duration::from_millis(2);
const WARM_UP: Duration = Duration::from_millis(120);
const CLOSES: u64 = 40_000_000;
/// More than is waited for.
const ENDLESS: u64 = 1_000_000_000;

impl Simulated {
    fn new(k: usize, seed: u64) -> Simulated {
        let mut random = StdRng::seed_from_u64(seed);
        let is_whole = random.random_bool(0.4);
        let steps = if is_whole { u32::MAX } else { random.random_range(0..40 * k as u32) };
        let fails = if is_whole { 0.0 } else { 0.02 };
        let errs = random.random_bool(0.1);
        let aside_of_slice = if random.random_bool(0.3) { 1_000 } else { 0 };
        Simulated {
            random,
            states: vec![State::Absent; k],
            connected: vec![None; k],
            unread: vec![0; k],
            aside_of_slice,
            aside: vec![0; k],
            to_compile: vec![0; k],
            to_close: vec![0; k],
            now: Duration::ZERO,
            ran_at: vec![Duration::ZERO; k],
            trip: seed.is_multiple_of(5).then_some(TRIP),
            ran: vec![Duration::ZERO; k],
            awaited: Duration::ZERO,
            rested: Duration::ZERO,
            waited: vec![Duration::ZERO; k],
            warmed: vec![Vec::new(); k],
            steps_left: Cell::new(steps),
            fails,
            errs,
            never_warm: false,
            slowness: 1,
            visited: Visited::default(),
        }
    }

    fn step(&self) {
        self.steps_left.set(self.steps_left.get().saturating_sub(1));
    }

    /// At most one contender runs.
    fn assert_alone(&self, who: usize) {
        for (other, state) in self.states.iter().enumerate() {
            assert!(other == who || *state != State::Running, "{other} runs beside {who}");
        }
    }

    fn fails(&mut self) -> bool {
        self.random.random_bool(self.fails)
    }
}

impl Bench for Simulated {
    type Error = &'static str;

    fn is_interrupted(&self) -> bool {
        self.step();
        self.steps_left.get() == 0
    }

    fn start(&mut self, who: usize) -> Result<bool, Self::Error> {
        assert_eq!(self.states[who], State::Absent, "{who} is started once");
        self.assert_alone(who);
        if self.errs && self.fails() {
            self.visited.failed += 1;
            return Err("the machine failed");
        }
        if self.fails() {
            self.visited.not_started += 1;
            return Ok(false);
        }
        self.states[who] = State::Running;
        self.unread[who] = 5_000_000;
        Ok(true)
    }

    fn thaw(&mut self, who: usize) {
        self.assert_alone(who);
        assert!(matches!(self.states[who], State::Frozen | State::Running));
        self.states[who] = State::Running;
        self.ran[who] = Duration::ZERO;
    }

    fn prepare(&mut self, who: usize, _: &Drive) {
        assert_eq!(self.states[who], State::Frozen, "readings are taken while {who} is frozen");
    }

    fn thawed_ns(&self, who: usize) -> Option<u64> {
        assert_eq!(self.states[who], State::Frozen, "{who} still runs");
        self.trip.map(|_| self.ran[who].as_nanos() as u64)
    }

    fn machine_used(&self, who: usize) -> Option<MachineUse> {
        assert_eq!(self.states[who], State::Frozen, "{who} still runs");
        let ns = self.trip.map(|_| self.ran[who].as_nanos() as u64);
        ns.map(|ns| MachineUse { spans: 1, ns, ..MachineUse::default() })
    }

    fn network_used(&self, who: usize) -> Option<&NetworkUse> {
        assert_eq!(self.states[who], State::Frozen, "{who} still runs");
        None
    }

    fn freeze(&mut self, who: usize) {
        assert_eq!(self.states[who], State::Running);
        self.states[who] = State::Frozen;
        self.ran[who] += self.trip.unwrap_or_default();
    }

    fn cpu_ns(&mut self, who: usize) -> Option<u64> {
        assert_ne!(self.states[who], State::Running, "the clock of {who} is read while it runs");
        Some(std::mem::take(&mut self.unread[who]))
    }

    fn cpu_ns_running(&mut self, who: usize) -> Option<u64> {
        assert_eq!(self.states[who], State::Running);
        self.ran[who] = Duration::ZERO;
        Some(std::mem::take(&mut self.unread[who]))
    }

    fn drive(&mut self, who: usize, what: &Drive) -> Result<Driven, Self::Error> {
        self.assert_alone(who);
        assert_eq!(self.states[who], State::Running);
        if self.errs && self.fails() {
            self.visited.failed += 1;
            return Err("the machine failed");
        }
        let count = what.length.as_nanos() as u64 / COST;
        self.unread[who] += count * COST;
        for other in (0..self.states.len()).filter(|other| *other != who) {
            if self.connected[other].is_some() {
                self.unread[other] += self.aside_of_slice;
                self.aside[other] += self.aside_of_slice;
            }
        }
        self.visited.long += u64::from(what.purpose == Purpose::Counted && what.length > SLICE);
        let compiles = match who % 4 {
            _ if what.purpose != Purpose::WarmUp => 0,
            1 => 30_000_000,
            2 => ENDLESS,
            _ => 0,
        };
        assert!(self.to_compile[who] == 0 || who % 4 == 2, "{who} has not come to its end");
        self.to_compile[who] = compiles;
        self.rested = Duration::ZERO;
        self.awaited = self.awaited.max(self.now - self.ran_at[who]);
        self.visited.visits += u64::from(what.purpose == Purpose::Visit);
        let is_slow = what.purpose == Purpose::WarmUp;
        let lasted = what.length * if is_slow { self.slowness } else { 1 };
        self.now += lasted;
        self.ran[who] += lasted;
        self.ran_at[who] = self.now;
        if what.purpose == Purpose::WarmUp {
            self.warmed[who].push(lasted);
        }
        let goes_on = !self.fails();
        self.visited.died += u64::from(!goes_on);
        let ns = lasted.as_nanos() as u64;
        let machine_ns = Some(count * COST + 7);
        Ok(Driven {
            goes_on,
            ns,
            requests: count,
            count,
            load_cpu_ns: 1,
            machine_ns,
            p50_ns: None,
            p99_ns: None,
        })
    }

    fn connect(&mut self, who: usize, load: usize) -> Result<bool, Self::Error> {
        self.assert_alone(who);
        assert_eq!(self.states[who], State::Running);
        assert_eq!(self.connected[who].replace(load), None, "one load at a time");
        assert_eq!(self.to_close[who], 0, "{who} still serves the load before");
        self.unread[who] += 3_000_000;
        self.to_compile[who] = 0;
        self.now += CONNECTS;
        self.ran_at[who] = self.now;
        if self.fails() {
            self.connected[who] = None;
            self.visited.not_connected += 1;
            return Ok(false);
        }
        Ok(true)
    }

    fn block_begins(&mut self, load: usize, _nth: usize, _of: usize) {
        self.assert_alone(usize::MAX);
        assert!(self.connected.iter().flatten().all(|connected| *connected == load));
    }

    fn is_warm(&mut self, who: usize, _: usize, slice: WarmUpSlice, slower: f64) -> bool {
        assert_eq!(self.states[who], State::Frozen);
        assert_eq!((slice.cpu_ns, slower), (Some(slice.requests * COST), 1.0));
        self.visited.observed += 1;
        !self.never_warm && self.random.random_bool(0.3)
    }

    fn has_changed(&self, who: usize) -> bool {
        who.is_multiple_of(2)
    }

    fn elapsed(&self) -> Duration {
        self.now
    }

    fn wait(&mut self, who: usize, length: Duration) {
        self.assert_alone(who);
        assert_eq!(self.states[who], State::Running);
        self.now += length;
        self.ran[who] += length;
        self.visited.idle += 1;
        self.rested += length;
        self.waited[who] += length;
        assert!(self.rested < Duration::from_millis(270), "{who} keeps the others waiting");
        let ns = length.as_nanos() as u64;
        let closed = self.to_close[who].min(ns);
        self.to_close[who] -= closed;
        let compiled = self.to_compile[who].min(ns - closed);
        self.to_compile[who] -= compiled;
        self.unread[who] += (closed + compiled).max(ns / 100);
        if length == WAKES {
            self.unread[who] += 900_000;
        }
    }

    fn disconnect(&mut self, who: usize, load: usize) -> Result<bool, Self::Error> {
        assert_eq!(self.states[who], State::Running, "a frozen process answers nothing");
        self.assert_alone(who);
        assert_eq!(self.connected[who].take(), Some(load));
        self.unread[who] += 2_000_000;
        self.rested = Duration::ZERO;
        self.to_close[who] = CLOSES;
        let goes_on = !self.fails();
        self.visited.gone += u64::from(!goes_on);
        Ok(goes_on)
    }

    fn stop(&mut self, who: usize) -> Result<(), Self::Error> {
        assert_eq!(self.states[who], State::Running, "a frozen process cannot stop");
        assert_eq!(self.connected[who], None, "its load has ended");
        self.assert_alone(who);
        self.states[who] = State::Stopped;
        Ok(())
    }
}

fn load_plan(k: usize, seed: u64, load: usize) -> LoadPlan {
    LoadPlan {
        load,
        baseline: seed as usize % k,
        raced: (0..k).filter(|who| !seed.is_multiple_of(5) || *who != load).collect(),
        warm_ups: vec![
            match seed % 3 {
                0 => WarmUp::Observed(Duration::from_secs(1)),
                1 => WarmUp::IfItChanged(Duration::from_secs(1)),
                _ => WarmUp::For(WARM_UP),
            };
            k
        ],
        blocks: orders(k, 8, seed ^ load as u64),
        slice: SLICE,
        first_block: 9 * (seed % 8) as usize,
        idle: (vec![seed as usize % k], Duration::from_millis(30)),
        seed,
    }
}

fn plan(k: usize, seed: u64) -> Plan {
    let starts = orders(k, 0, seed).concat();
    Plan { contenders: k, starts, loads: [1, 0].map(|load| load_plan(k, seed, load)).into() }
}

/// Checks a life. Returns what happened.
fn history(seed: u64) -> Visited {
    let k = 2 + (seed % 6) as usize;
    let (mut bench, plan) = (Simulated::new(k, seed), plan(k, seed));
    let ran = live(&mut bench, &plan);
    for (who, state) in bench.states.iter().enumerate() {
        assert!(matches!(state, State::Absent | State::Stopped), "{who} was left {state:?}");
    }
    let mut visited = bench.visited;
    let is_interrupted = bench.steps_left.get() == 0;
    visited.interrupted = u64::from(is_interrupted);
    let Ok(lived) = ran else { return visited };
    for one in lived.iter().flatten() {
        // Exact: nothing else that a contender uses is in its slices, and they are not in the idle slice.
        assert!(one.slices.iter().all(|slice| slice.cpu_ns == slice.count * COST));
        assert!(one.slices.iter().all(|slice| slice.rest_ns == Some(7)));
        let blocks: Vec<u32> = one.slices.iter().map(|slice| slice.block).collect();
        assert_eq!(blocks, (1..=blocks.len() as u32).collect::<Vec<_>>(), "without the first one");
        assert!(
            [0, 3_000_000].contains(&one.connecting_ns),
            "neither the start nor the end of the load before is in it"
        );
        let trip_ns = bench.trip.unwrap_or_default().as_nanos() as u64;
        let idle_ns = one.idle.map(|idle| (idle.ns - trip_ns, idle.cpu_ns));
        assert!(idle_ns.is_none_or(|(ns, cpu_ns)| [cpu_ns, 100 * cpu_ns].contains(&ns)));
        let thawed_ns = one.slices.iter().map(|slice| slice.ns + trip_ns).sum();
        let is_known = bench.trip.is_some() && !one.slices.is_empty();
        assert_eq!(one.thawed_ns, is_known.then_some(thawed_ns), "the messages are in it");
        let of_machine = one.machine.map(|used| (used.spans, used.ns));
        let expected = is_known.then_some((one.slices.len() as u64, thawed_ns));
        assert_eq!(of_machine, expected, "of the counted slices and of nothing else");
    }
    for (who, aside) in bench.aside.iter().enumerate() {
        assert_eq!(lived.iter().map(|load| load[who].aside_ns).sum::<u64>(), *aside);
    }
    if bench.fails == 0.0 && !is_interrupted {
        visited.complete = 1;
        for (who, warmed) in bench.warmed.iter().enumerate() {
            let of_load = |load: &LoadPlan| {
                let nth = load.raced.iter().position(|other| *other == who)?;
                Some(load.warm_ups[nth] == WarmUp::For(WARM_UP))
            };
            let due = plan.loads.iter().filter_map(of_load).filter(|is_fixed| *is_fixed).count();
            let done: Duration = warmed.iter().sum();
            let is_fixed = seed % 3 == 2;
            assert!(
                !is_fixed || done == WARM_UP * due as u32,
                "{who} is warmed up under each load"
            );
            if seed % 3 == 1 && who != plan.loads[0].baseline {
                assert_eq!(!warmed.is_empty(), who.is_multiple_of(2), "{who} changed");
            }
        }
        for (load, lived) in plan.loads.iter().zip(&lived) {
            let raced = || load.raced.iter().map(|who| &lived[*who]);
            assert!(raced().all(|one| one.slices.len() == 8));
            assert!(
                lived.iter().filter(|one| one.slices.is_empty()).count() == k - load.raced.len()
            );
            for block in 0..8 {
                let mut places: Vec<u32> = raced().map(|one| one.slices[block].position).collect();
                places.sort_unstable();
                places.dedup();
                assert_eq!(places.len(), load.raced.len(), "a place for each");
            }
        }
    }
    visited
}

#[test]
fn whatever_happens_one_contender_runs_at_a_time_and_none_is_left() {
    let mut all = [0; 11];
    for seed in 0..8_000 {
        let visited = history(seed);
        let Visited { interrupted, not_started, not_connected, gone, died, .. } = visited;
        let Visited { failed, complete, long, idle, observed, visits, .. } = visited;
        let one = [
            interrupted,
            not_started,
            not_connected,
            gone,
            died,
            failed,
            complete,
            long,
            idle,
            observed,
            visits,
        ];
        all.iter_mut().zip(one).for_each(|(all, one)| *all += one);
    }
    assert!(all.iter().all(|visits| *visits > 100), "{all:?}");
}

#[test]
fn one_that_always_works_rests_for_ten_seconds_at_most() {
    let mut bench = Simulated { fails: 0.0, errs: false, ..Simulated::new(3, 0) };
    bench.steps_left.set(u32::MAX);
    let warm_ups = vec![WarmUp::For(Duration::from_secs(8)); 3];
    let under = LoadPlan { warm_ups, raced: vec![0, 1, 2], ..load_plan(3, 6, 0) };
    live(&mut bench, &Plan { loads: vec![under], ..plan(3, 6) }).unwrap();
    let rests = |who: usize| bench.waited[who].as_millis();
    assert!((10_000..10_300).contains(&rests(2)), "it polls: {} ms", rests(2));
    // 160 slices, after each of which one works on for 30 ms, and one does not.
    assert!((4_800..8_000).contains(&rests(1)), "{} ms", rests(1));
    // It closes its connections in 40 ms.
    assert!((360..460).contains(&rests(0)), "{} ms", rests(0));
}

#[test]
fn none_waits_long_while_others_connect_and_warm_up() {
    const K: usize = 24;
    for warm_up in [WarmUp::For(Duration::from_secs(8)), WarmUp::Observed(Duration::from_secs(20))]
    {
        let mut bench =
            Simulated { fails: 0.0, errs: false, never_warm: true, ..Simulated::new(K, 0) };
        bench.steps_left.set(u32::MAX);
        // One warms up for long, some for a while, and one not at all.
        let mut warm_ups = vec![WarmUp::For(WARM_UP); K];
        (warm_ups[0], warm_ups[2]) = (warm_up, WarmUp::For(Duration::ZERO));
        let under = LoadPlan { warm_ups, raced: (0..K).collect(), ..load_plan(K, 6, 0) };
        live(&mut bench, &Plan { loads: vec![under], ..plan(K, 6) }).unwrap();
        let longest = bench.awaited.as_millis();
        assert!((3_000..5_000).contains(&longest), "{longest} ms: node closes after 5 s");
    }
}

/// With requests of 300 ms, observing a contender for 30 s took ten minutes.
#[test]
fn a_warm_up_lasts_as_long_as_asked_for_if_requests_take_long() {
    for slowness in [1, 7] {
        let mut bench = Simulated {
            fails: 0.0,
            errs: false,
            never_warm: true,
            slowness,
            ..Simulated::new(3, 0)
        };
        bench.steps_left.set(u32::MAX);
        let asked = Duration::from_secs(3);
        let warm_ups = vec![WarmUp::For(asked), WarmUp::Observed(asked), WarmUp::Observed(asked)];
        let under = LoadPlan { warm_ups, raced: vec![0, 1, 2], baseline: 1, ..load_plan(3, 6, 0) };
        live(&mut bench, &Plan { loads: vec![under], ..plan(3, 6) }).unwrap();
        for warmed in &bench.warmed {
            let done: Duration = warmed.iter().sum();
            assert!((asked..asked + WARMS * slowness).contains(&done), "{slowness}: {done:?}");
        }
    }
}
