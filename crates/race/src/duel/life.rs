//! What happens in a life: all contenders of a heat start, each frozen as soon as it is connected; each warms
//! up; the blocks follow; each ends. Pure: all that touches the machine is behind [`Bench`], so that lives
//! are simulated, with contenders that die and races that are interrupted at any moment.

use regatta_record::{IdleSlice, Slice};
use std::time::Duration;

/// The machine, for one life. Contenders are known by their index in the heat.
pub(crate) trait Bench {
    /// Why a life cannot go on, for any contender.
    type Error;

    /// Whether the race was interrupted.
    fn is_interrupted(&self) -> bool;

    /// Starts a contender and connects to it. Returns false if it is out of this life, e.g. because it did
    /// not start.
    fn start(&mut self, who: usize) -> Result<bool, Self::Error>;

    /// Lets it run.
    fn thaw(&mut self, who: usize);

    /// Keeps it from running, and returns when it does not run any more.
    fn freeze(&mut self, who: usize);

    /// Returns its CPU time since the last call (since its start, at the first one), in nanoseconds. It is
    /// frozen, so the figure is exact. `None`: unknown.
    fn cpu_ns(&mut self, who: usize) -> Option<u64>;

    /// A block begins, the `nth` of `of`; none of the contenders runs.
    fn block_begins(&mut self, nth: usize, of: usize);

    /// Drives it, and waits for every reply.
    fn drive(&mut self, who: usize, what: &Drive) -> Result<Driven, Self::Error>;

    /// Waits.
    fn wait(&mut self, length: Duration);

    /// Ends its load and stops it. It is thawed.
    fn end(&mut self, who: usize) -> Result<(), Self::Error>;
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
    /// Verified operations of the kind that costs are per.
    pub count: u64,
    pub load_cpu_ns: u64,
    /// CPU time of the machine in the slice, freezing and thawing included, except that of the load.
    pub machine_ns: Option<u64>,
    pub p50_ns: Option<u64>,
    pub p99_ns: Option<u64>,
}

/// The plan of a life, for `k` contenders.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The order in which they start and end.
    pub starts: Vec<usize>,
    /// How long each warms up.
    pub warm_ups: Vec<Duration>,
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

/// One block in this many has slices of [`Slice::LONG`] times the length.
const LONG_EVERY: usize = 8;

/// What a contender did in a life.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Lived {
    pub slices: Vec<Slice>,
    pub idle: Option<IdleSlice>,
    /// Its CPU time while the others were driven.
    pub aside_ns: u64,
    /// Whether its CPU time was unknown in a slice, which then does not count.
    pub lost_slices: u32,
}

/// Runs a life. Returns what each contender did, also if it was interrupted: the caller asks the bench.
/// Whatever happens, every contender that was started is ended, and none is frozen then.
pub(crate) fn live<B: Bench>(bench: &mut B, plan: &Plan) -> Result<Vec<Lived>, B::Error> {
    let mut life = Life {
        bench,
        plan,
        alive: vec![false; plan.starts.len()],
        lived: vec![Lived::default(); plan.starts.len()],
    };
    let ran = life.run();
    let ended = life.end();
    ran.and(ended).map(|()| life.lived)
}

struct Life<'a, B> {
    bench: &'a mut B,
    plan: &'a Plan,
    /// Those that were started and can go on.
    alive: Vec<bool>,
    lived: Vec<Lived>,
}

impl<B: Bench> Life<'_, B> {
    fn run(&mut self) -> Result<(), B::Error> {
        let plan = self.plan;
        for &who in &plan.starts {
            if self.bench.is_interrupted() {
                return Ok(());
            }
            self.alive[who] = self.bench.start(who)?;
            if self.alive[who] {
                self.bench.freeze(who);
                self.bench.cpu_ns(who);
            }
        }
        for &who in &plan.starts {
            let what =
                Drive { length: plan.warm_ups[who], purpose: Purpose::WarmUp, seed: plan.seed };
            self.drive(who, &what)?;
        }
        for (nth, order) in plan.blocks.iter().enumerate() {
            self.block(nth, order)?;
        }
        let (idle, length) = &plan.idle;
        for &who in idle {
            self.idle(who, *length);
        }
        Ok(())
    }

    fn block(&mut self, nth: usize, order: &[usize]) -> Result<(), B::Error> {
        let is_long = nth > 0 && (self.plan.first_block + nth) % LONG_EVERY == 0;
        let stretch = if is_long { Slice::LONG } else { 1 };
        let what = Drive {
            length: self.plan.slice * stretch,
            purpose: if nth == 0 { Purpose::FirstBlock } else { Purpose::Counted },
            seed: self.plan.seed.wrapping_add(nth as u64 + 1),
        };
        self.bench.block_begins(nth, self.plan.blocks.len());
        for (position, &who) in order.iter().enumerate() {
            let Some((driven, cpu_ns)) = self.drive(who, &what)? else { continue };
            if nth == 0 || !driven.goes_on {
                continue;
            }
            let lived = &mut self.lived[who];
            let Some(cpu_ns) = cpu_ns else {
                lived.lost_slices += 1;
                continue;
            };
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
        what: &Drive,
    ) -> Result<Option<(Driven, Option<u64>)>, B::Error> {
        if !self.alive[who] || self.bench.is_interrupted() {
            return Ok(None);
        }
        self.lived[who].aside_ns += self.bench.cpu_ns(who).unwrap_or(0);
        self.bench.thaw(who);
        let driven = self.bench.drive(who, what);
        self.bench.freeze(who);
        let cpu_ns = self.bench.cpu_ns(who);
        let driven = driven?;
        self.alive[who] = driven.goes_on;
        if !driven.goes_on {
            self.finish(who)?;
        }
        Ok(Some((driven, cpu_ns)))
    }

    fn idle(&mut self, who: usize, length: Duration) {
        if !self.alive[who] || self.bench.is_interrupted() {
            return;
        }
        self.lived[who].aside_ns += self.bench.cpu_ns(who).unwrap_or(0);
        self.bench.thaw(who);
        self.bench.wait(length);
        self.bench.freeze(who);
        let ns = length.as_nanos() as u64;
        self.lived[who].idle = self.bench.cpu_ns(who).map(|cpu_ns| IdleSlice { ns, cpu_ns });
    }

    /// Ends those that are still alive, one after the other, even if one of them fails.
    fn end(&mut self) -> Result<(), B::Error> {
        let mut ended = Ok(());
        for &who in &self.plan.starts {
            if self.alive[who] {
                self.lived[who].aside_ns += self.bench.cpu_ns(who).unwrap_or(0);
                ended = self.finish(who).and(ended);
            }
        }
        ended
    }

    fn finish(&mut self, who: usize) -> Result<(), B::Error> {
        self.alive[who] = false;
        self.bench.thaw(who);
        self.bench.end(who)
    }
}

#[cfg(test)]
mod tests;
