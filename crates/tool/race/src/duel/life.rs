//! What happens in a life, and in each of its slices. All contenders of a heat start and are frozen; under each
//! load, one after the other, they connect, warm up, take turns in blocks and disconnect; then they stop. In a
//! slice a contender is thawed, driven and frozen; its CPU clock is read before and after. Pure: all that touches
//! the machine is behind [`Bench`], so that lives are simulated, with contenders that die and races that are
//! interrupted at any moment.

use crate::ask::heats::ROTATION;
use regatta_record::{IdleSlice, MachineUse, NetworkUse, Slice, WarmUpSlice};
use std::time::Duration;

/// The machine, for one life. Contenders and loads are known by their index in the plan.
pub(crate) trait Bench {
    /// Why a life cannot go on, for any contender.
    type Error;

    /// Whether the race was interrupted.
    fn is_interrupted(&self) -> bool;

    /// Starts a contender. Returns false if it is out of this life, e.g. because it did not start.
    fn start(&mut self, who: usize) -> Result<bool, Self::Error>;

    /// Connects a load to a contender, which is thawed. Returns false if it cannot be driven.
    fn connect(&mut self, who: usize, load: usize) -> Result<bool, Self::Error>;

    /// Lets it run.
    fn thaw(&mut self, who: usize);

    /// Takes the readings before a slice of a contender, which is frozen: they must not be part of its cost.
    fn prepare(&mut self, who: usize, what: &Drive);

    /// How long it ran until it was frozen, nanoseconds: since it was thawed, or since its CPU time was read while
    /// it ran. `None`: as long as it was driven or waited for.
    fn thawed_ns(&self, who: usize) -> Option<u64>;

    /// The CPU of its whole machine, except that of the load, from when it was thawed until it was frozen. `None`: not
    /// known, or it is the load's machine.
    fn machine_used(&self, who: usize) -> Option<MachineUse>;

    /// What the network to it carried from when it was thawed until it was frozen. `None`: not known, or there is none.
    fn network_used(&self, who: usize) -> Option<&NetworkUse>;

    /// Keeps it from running, and returns when it no longer runs.
    fn freeze(&mut self, who: usize);

    /// Returns its CPU time since the last call (since its start, at the first one), in nanoseconds. It is
    /// frozen, so the figure is exact. `None`: unknown.
    fn cpu_ns(&mut self, who: usize) -> Option<u64>;

    /// The same while it runs without load. It is exact if it sleeps.
    fn cpu_ns_running(&mut self, who: usize) -> Option<u64>;

    /// A block begins, the `nth` of `of`; none of the contenders runs.
    fn block_begins(&mut self, load: usize, nth: usize, of: usize);

    /// Drives it, and waits for every reply.
    fn drive(&mut self, who: usize, what: &Drive) -> Result<Driven, Self::Error>;

    /// Takes a slice of an observed warm-up, and by how much the baseline cost more in this turn than in the
    /// first one (1 for the baseline itself). Returns whether the contender is warm.
    fn is_warm(&mut self, who: usize, load: usize, slice: WarmUpSlice, slower: f64) -> bool;

    /// Whether the cost of a contender fell or rose while it was observed in this life.
    fn has_changed(&self, who: usize) -> bool;

    /// Time since the life began.
    fn elapsed(&self) -> Duration;

    /// Waits, while it is thawed without load.
    fn wait(&mut self, who: usize, length: Duration);

    /// Ends the load on it. It is thawed. Returns false if it cannot be connected again.
    fn disconnect(&mut self, who: usize, load: usize) -> Result<bool, Self::Error>;

    /// Stops it. It is thawed.
    fn stop(&mut self, who: usize) -> Result<(), Self::Error>;
}

/// What the load does in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drive {
    pub length: Duration,
    pub purpose: Purpose,
    /// Seed of the arrivals. It is the same for all contenders of a block.
    pub seed: u64,
}

/// The purpose of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The contender gets warm. Nothing counts.
    WarmUp,
    /// It waits for others to connect and to get warm, and its connections must not be idle for too long. Nothing
    /// counts.
    Visit,
    /// The block in which contenders find the state that they keep from slice to slice. Nothing counts.
    FirstBlock,
    Counted,
}

/// What a slice yielded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Driven {
    /// Whether the contender can go on: not if it answered wrongly or died.
    pub goes_on: bool,
    pub ns: u64,
    /// Verified requests.
    pub requests: u64,
    /// Verified operations of the kind that costs are per.
    pub count: u64,
    pub load_cpu_ns: u64,
    /// CPU time of the machine while the load drove it, except that of the load.
    pub machine_ns: Option<u64>,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
}

/// The plan of a life.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Number of contenders in the heat.
    pub contenders: usize,
    /// The order in which contenders start and stop.
    pub starts: Vec<usize>,
    /// The loads, in their order.
    pub loads: Vec<LoadPlan>,
}

/// The plan of one load in a life.
#[derive(Clone, Debug)]
pub(crate) struct LoadPlan {
    /// Its index.
    pub load: usize,
    /// The baseline.
    pub baseline: usize,
    /// The contenders that are raced under it.
    pub raced: Vec<usize>,
    /// How each of these warms up.
    pub warm_ups: Vec<WarmUp>,
    /// The order of each block. The first one is not counted.
    pub blocks: Vec<Vec<usize>>,
    /// Length of a slice.
    pub slice: Duration,
    /// The number of the first block over all lives, which decides which blocks have long slices.
    pub first_block: usize,
    /// Those that get an idle slice in this life, and its length.
    pub idle: (Vec<usize>, Duration),
    pub seed: u64,
}

/// How a contender warms up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarmUp {
    /// For this long, in addition to the first block. May be zero.
    For(Duration),
    /// Until its cost is steady, at most this long. It was not observed yet.
    Observed(Duration),
    /// The same, if its cost changed while it was observed under an earlier load of this life: a program that is
    /// compiled while it runs is not yet warm under the next load.
    IfItChanged(Duration),
}

/// Length of a slice of a warm-up.
const WARMS: Duration = Duration::from_millis(50);
/// Lengths of a contender's rests after a slice of its warm-up, and after a load: the first one, further ones, and
/// all of them.
const RESTS: [Duration; 3] =
    [Duration::from_millis(2), Duration::from_millis(10), Duration::from_millis(250)];
/// No rest begins after a contender has rested this long under a load of a life: one that polls always works.
const RESTED: Duration = Duration::from_secs(10);
/// Time after a thaw until an idle slice begins: a thaw wakes all threads of a contender, and this is no cost of its
/// own (64 threads: 1 ms of CPU).
const WAKES: Duration = Duration::from_millis(1);
/// One block in this many has slices of [`Slice::LONG`] times the length.
const LONG_EVERY: usize = 16;

/// What a contender did under a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lived {
    pub slices: Vec<Slice>,
    pub idle: Option<IdleSlice>,
    /// Its CPU time while the others were driven.
    pub aside_ns: u64,
    /// Its CPU time while the load connected.
    pub connecting_ns: u64,
    /// Its CPU time in all of its slices.
    pub driven_ns: u64,
    /// How long it ran for its slices, if messages to its machine made that longer.
    pub thawed_ns: Option<u64>,
    /// The CPU of its whole machine meanwhile, if it is another one than the load's and this is known.
    pub machine: Option<MachineUse>,
    /// What the network to it carried meanwhile.
    pub network: Option<NetworkUse>,
}

/// Runs a life. Returns what each contender did, by load in the order of the plan and by contender, also if
/// it was interrupted: the caller asks the bench. Whatever happens, every contender that was started is
/// stopped, and none is frozen then.
pub(crate) fn live<B: Bench>(bench: &mut B, plan: &Plan) -> Result<Vec<Vec<Lived>>, B::Error> {
    let states = vec![State::Absent; plan.contenders];
    let rested = vec![Duration::ZERO; plan.contenders];
    let ran_at = rested.clone();
    let (next_visit, lived) = (Duration::ZERO, Vec::new());
    let mut life = Life { bench, plan, states, rested, ran_at, next_visit, lived };
    let ran = life.run();
    let stopped = life.stop();
    ran.and(stopped).map(|()| life.lived)
}

/// How long a slice of a warm-up lasted: longer than requested where requests take long.
fn lasted(what: &Drive, driven: Option<(Driven, Option<u64>)>) -> Duration {
    driven.map_or(what.length, |(driven, _)| what.length.max(Duration::from_nanos(driven.ns)))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// Not started, or stopped.
    Absent,
    /// Started, and frozen.
    Started,
    /// Connected, and frozen.
    Connected,
}

struct Life<'a, B> {
    bench: &'a mut B,
    plan: &'a Plan,
    states: Vec<State>,
    /// How long each has rested in its warm-up under the current load.
    rested: Vec<Duration>,
    /// When each was last connected or driven, since the life began.
    ran_at: Vec<Duration>,
    /// The earliest time of the next visits, since the life began.
    next_visit: Duration,
    lived: Vec<Vec<Lived>>,
}

impl<B: Bench> Life<'_, B> {
    fn run(&mut self) -> Result<(), B::Error> {
        let plan = self.plan;
        for &who in &plan.starts {
            if self.bench.is_interrupted() {
                return Ok(());
            }
            if self.bench.start(who)? {
                self.states[who] = State::Started;
                self.bench.freeze(who);
            }
        }
        for load in &plan.loads {
            self.lived.push(vec![Lived::default(); self.states.len()]);
            self.rested.fill(Duration::ZERO);
            let ran = self.under(load);
            let ended = self.disconnect_all(load.load);
            ran.and(ended)?;
        }
        Ok(())
    }

    fn under(&mut self, load: &LoadPlan) -> Result<(), B::Error> {
        for &who in &load.raced {
            if self.states[who] == State::Started && !self.bench.is_interrupted() {
                // Until now: its start, or the end of the load before.
                self.bench.cpu_ns(who);
                self.bench.thaw(who);
                let connected = self.bench.connect(who, load.load);
                self.bench.freeze(who);
                self.ran_at[who] = self.bench.elapsed();
                if connected? {
                    self.states[who] = State::Connected;
                }
                self.of_load(who).connecting_ns = self.bench.cpu_ns(who).unwrap_or(0);
                self.visit_waiting(load)?;
            }
        }
        self.warm_up(load)?;
        for (nth, order) in load.blocks.iter().enumerate() {
            self.block(load, nth, order)?;
        }
        let (idle, length) = &load.idle;
        for &who in idle {
            self.idle(who, *length);
        }
        Ok(())
    }

    /// Warms up all contenders. The baseline is first, because those that are observed take turns with it. These
    /// are next, because visits while others warm up would warm them, and nobody would observe it.
    fn warm_up(&mut self, load: &LoadPlan) -> Result<(), B::Error> {
        let (mut observed, mut fixed) = (Vec::new(), Vec::new());
        for (&who, how) in load.raced.iter().zip(&load.warm_ups) {
            match *how {
                WarmUp::For(length) if who == load.baseline => {
                    self.warm_up_for(who, load, length)?;
                }
                WarmUp::For(length) => fixed.push((who, length)),
                WarmUp::IfItChanged(_) if !self.bench.has_changed(who) => {}
                WarmUp::Observed(longest) | WarmUp::IfItChanged(longest) => {
                    observed.push((who, longest));
                }
            }
        }
        self.observe(load, observed)?;
        for (who, length) in fixed {
            self.warm_up_for(who, load, length)?;
        }
        Ok(())
    }

    /// Warms up contenders until they are steady, each at most for its time. They take turns with the baseline,
    /// whose cost shows how the machine changes meanwhile.
    fn observe(
        &mut self,
        load: &LoadPlan,
        mut observed: Vec<(usize, Duration)>,
    ) -> Result<(), B::Error> {
        let mut first_ns = None;
        for turn in 0u64.. {
            observed.retain(|(_, left)| !left.is_zero());
            if observed.is_empty() || self.bench.is_interrupted() {
                break;
            }
            let seed = load.seed.wrapping_sub(turn + 1);
            let what = Drive { length: WARMS, purpose: Purpose::WarmUp, seed };
            let of_baseline = self.warm(load.baseline, load, &what)?;
            let cost = of_baseline.and_then(|(driven, cpu_ns)| {
                (driven.requests > 0).then_some(cpu_ns? as f64 / driven.requests as f64)
            });
            let first = *first_ns.get_or_insert(cost);
            let slower = cost.zip(first).map_or(1.0, |(now, first)| now / first);
            let mut warm = Vec::new();
            for (who, left) in &mut observed {
                let who = *who;
                let is_baseline = who == load.baseline;
                let driven = if is_baseline { of_baseline } else { self.warm(who, load, &what)? };
                *left = left.saturating_sub(lasted(&what, driven));
                let is_warm = driven.is_none_or(|(driven, cpu_ns)| {
                    let slower = if is_baseline { 1.0 } else { slower };
                    let Driven { ns, requests, goes_on, .. } = driven;
                    let slice = WarmUpSlice { ns, requests, cpu_ns };
                    !goes_on || self.bench.is_warm(who, load.load, slice, slower)
                });
                if is_warm {
                    warm.push(who);
                }
            }
            observed.retain(|(who, _)| !warm.contains(who));
        }
        Ok(())
    }

    /// Warms up a contender for a given time.
    fn warm_up_for(
        &mut self,
        who: usize,
        load: &LoadPlan,
        length: Duration,
    ) -> Result<(), B::Error> {
        let mut done = Duration::ZERO;
        while done < length {
            let what = Drive {
                length: WARMS.min(length - done),
                purpose: Purpose::WarmUp,
                seed: load.seed.wrapping_sub(done.as_millis() as u64),
            };
            let driven = self.warm(who, load, &what)?;
            done += lasted(&what, driven);
        }
        Ok(())
    }

    /// Drives a contender for a slice of its warm-up, and then those that have waited for long.
    fn warm(
        &mut self,
        who: usize,
        load: &LoadPlan,
        what: &Drive,
    ) -> Result<Option<(Driven, Option<u64>)>, B::Error> {
        let driven = self.drive_and_rest(who, load, what)?;
        self.visit_waiting(load)?;
        Ok(driven)
    }

    /// Drives those that have waited for long while others connected and warmed up, the longest first. At most
    /// half of the time goes into visits.
    fn visit_waiting(&mut self, load: &LoadPlan) -> Result<(), B::Error> {
        let now = self.bench.elapsed();
        if now < self.next_visit {
            return Ok(());
        }
        let waits = |who: &&usize| {
            let is_late = now.saturating_sub(self.ran_at[**who]) > ROTATION;
            self.states[**who] == State::Connected && is_late
        };
        let mut waiting: Vec<usize> = load.raced.iter().filter(waits).copied().collect();
        waiting.sort_by_key(|who| self.ran_at[*who]);
        // At a low rate, other connections have requests due in each visit.
        let seed = load.seed.wrapping_add(now.as_nanos() as u64);
        let what = Drive { length: load.slice, purpose: Purpose::Visit, seed };
        for who in waiting {
            self.drive(who, load, &what)?;
        }
        let ended = self.bench.elapsed();
        self.next_visit = ended + (ended - now);
        Ok(())
    }

    /// Drives a contender for a slice of its warm-up, and then lets it rest for as long as it works without load,
    /// but not for ever: a compiler in the background shares the server's CPU with the requests. (On one CPU, helidon
    /// is warm after 2 s of such slices, instead of 17 s.)
    fn drive_and_rest(
        &mut self,
        who: usize,
        load: &LoadPlan,
        what: &Drive,
    ) -> Result<Option<(Driven, Option<u64>)>, B::Error> {
        let driven = self.drive(who, load, what)?;
        if self.rested[who] < RESTED {
            let (rested, cpu_ns) = self.rest(who);
            self.rested[who] += rested;
            self.of_load(who).driven_ns += cpu_ns;
        }
        Ok(driven)
    }

    /// Lets a contender run without load for as long as it works, within limits. Returns how long it worked, and
    /// its CPU time.
    fn rest(&mut self, who: usize) -> (Duration, u64) {
        let [mut rest, next, most] = RESTS;
        let (mut rested, mut all_ns) = (Duration::ZERO, 0);
        while rested < most {
            let Some(cpu_ns) = self.without_load(who, Duration::ZERO, rest) else { break };
            all_ns += cpu_ns;
            if u128::from(cpu_ns) < rest.as_nanos() / 2 {
                break;
            }
            rested += rest;
            rest = next;
        }
        (rested, all_ns)
    }

    fn block(&mut self, load: &LoadPlan, nth: usize, order: &[usize]) -> Result<(), B::Error> {
        let is_long = nth > 0 && (load.first_block + nth).is_multiple_of(LONG_EVERY);
        let stretch = if is_long { Slice::LONG } else { 1 };
        let what = Drive {
            length: load.slice * stretch,
            purpose: if nth == 0 { Purpose::FirstBlock } else { Purpose::Counted },
            seed: load.seed.wrapping_add(nth as u64 + 1),
        };
        if !self.bench.is_interrupted() {
            self.bench.block_begins(load.load, nth, load.blocks.len());
        }
        for (position, &who) in order.iter().enumerate() {
            let Some((driven, Some(cpu_ns))) = self.drive(who, load, &what)? else { continue };
            if nth == 0 || !driven.goes_on {
                continue;
            }
            let (thawed_ns, used) = (self.bench.thawed_ns(who), self.bench.machine_used(who));
            let carried = self.bench.network_used(who).cloned();
            let lived = self.of_load(who);
            if let Some(carried) = carried {
                lived.network.get_or_insert_default().add(&carried);
            }
            if let Some(used) = used {
                *lived.machine.get_or_insert_default() += used;
            }
            if let Some(ns) = thawed_ns {
                *lived.thawed_ns.get_or_insert(0) += ns;
            }
            lived.slices.push(Slice {
                block: nth as u32,
                position: position as u32,
                stretch,
                ns: driven.ns,
                cpu_ns,
                count: driven.count,
                load_cpu_ns: driven.load_cpu_ns,
                rest_ns: driven.machine_ns.map(|all| all.saturating_sub(cpu_ns)),
                p50_ns: driven.p50_ns,
                p99_ns: driven.p99_ns,
            });
        }
        Ok(())
    }

    /// Drives a contender that can go on. Returns what happened, and its CPU time.
    fn drive(
        &mut self,
        who: usize,
        load: &LoadPlan,
        what: &Drive,
    ) -> Result<Option<(Driven, Option<u64>)>, B::Error> {
        if self.states[who] != State::Connected || self.bench.is_interrupted() {
            return Ok(None);
        }
        self.bench.prepare(who, what);
        self.of_load(who).aside_ns += self.bench.cpu_ns(who).unwrap_or(0);
        self.bench.thaw(who);
        let driven = self.bench.drive(who, what);
        self.bench.freeze(who);
        self.ran_at[who] = self.bench.elapsed();
        let cpu_ns = self.bench.cpu_ns(who);
        self.of_load(who).driven_ns += cpu_ns.unwrap_or(0);
        let driven = driven?;
        if !driven.goes_on {
            self.disconnect(who, load.load)?;
        }
        Ok(Some((driven, cpu_ns)))
    }

    fn idle(&mut self, who: usize, length: Duration) {
        if let Some(cpu_ns) = self.without_load(who, WAKES, length) {
            let ns = self.bench.thawed_ns(who).unwrap_or(length.as_nanos() as u64);
            self.of_load(who).idle = Some(IdleSlice { ns, cpu_ns });
        }
    }

    /// Lets a contender run without load, and first wake up. Returns its CPU time after that, if it can go on and
    /// the time is known.
    fn without_load(&mut self, who: usize, wakes: Duration, length: Duration) -> Option<u64> {
        if self.states[who] != State::Connected || self.bench.is_interrupted() {
            return None;
        }
        self.of_load(who).aside_ns += self.bench.cpu_ns(who).unwrap_or(0);
        self.bench.thaw(who);
        if !wakes.is_zero() {
            self.bench.wait(who, wakes);
            self.bench.cpu_ns_running(who);
        }
        self.bench.wait(who, length);
        self.bench.freeze(who);
        self.bench.cpu_ns(who)
    }

    /// Ends a load on all that are still connected, one after the other, even if one of them fails.
    fn disconnect_all(&mut self, load: usize) -> Result<(), B::Error> {
        let mut ended = Ok(());
        for &who in &self.plan.starts {
            if self.states[who] == State::Connected {
                self.of_load(who).aside_ns += self.bench.cpu_ns(who).unwrap_or(0);
                ended = self.disconnect(who, load).and(ended);
            }
        }
        ended
    }

    fn disconnect(&mut self, who: usize, load: usize) -> Result<(), B::Error> {
        self.bench.thaw(who);
        let goes_on = self.bench.disconnect(who, load);
        self.bench.freeze(who);
        if matches!(goes_on, Ok(true)) {
            // Until it has closed its side, too: the next load must not meet members of this one.
            self.bench.cpu_ns(who);
            self.rest(who);
        }
        self.states[who] = State::Started;
        match goes_on {
            Ok(false) => self.stop_one(who),
            other => other.map(drop),
        }
    }

    /// Stops all that were started, even if one of them fails.
    fn stop(&mut self) -> Result<(), B::Error> {
        let mut stopped = Ok(());
        for &who in &self.plan.starts {
            if self.states[who] != State::Absent {
                stopped = self.stop_one(who).and(stopped);
            }
        }
        stopped
    }

    fn stop_one(&mut self, who: usize) -> Result<(), B::Error> {
        self.states[who] = State::Absent;
        self.bench.thaw(who);
        self.bench.stop(who)
    }

    /// What a contender did under the current load.
    fn of_load(&mut self, who: usize) -> &mut Lived {
        &mut self.lived.last_mut().expect("a load began")[who]
    }
}

#[cfg(test)]
mod tests;
