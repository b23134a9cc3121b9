//! Simulated duels: contenders with known true costs, alive together on a machine with two states.

use super::{LOAD, Machine, QUIET, Truth, asked, normal, rounds};
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::SliceRandom};
use regatta_record::{Asked, Life, LoadShape, Round, Schedule, Slice, WholeLife};
use std::collections::HashSet;

/// The machine, and how often contenders start.
#[derive(Clone, Copy, Debug)]
pub struct Duel {
    pub lives: u32,
    pub blocks: u32,
    /// Standard deviation of the logarithm of a slice's cost.
    pub within: f64,
    /// The same for all slices of a life of one contender.
    pub between: f64,
    /// Blocks that a state lasts; 0: there is only one.
    pub state_lasts: u32,
    /// The chance that a disturbance begins in a slice; it raises the costs of that slice, of the next one
    /// and of the load in both by a half.
    pub disturbed: f64,
    /// A contender whose own cost is higher by a half in every tenth of its slices.
    pub own: Option<&'static str>,
    /// Whether it then also disturbs the contender after it.
    pub drags: bool,
    /// A contender that disturbs the one after it in every tenth block, at no cost for itself.
    pub litters: Option<&'static str>,
    /// A contender whose cost is higher by a half in each slice right after one of the other in its block.
    pub after: Option<(&'static str, &'static str)>,
    /// A contender that varies ten times as much from life to life as the others.
    pub wild: Option<&'static str>,
}

pub const DUEL: Duel = Duel {
    lives: 8,
    blocks: 8,
    within: 0.006,
    between: 0.005,
    state_lasts: 0,
    disturbed: 0.0,
    own: None,
    drags: false,
    litters: None,
    after: None,
    wild: None,
};

/// The factor of a cost that is higher by a half.
pub const HALF_MORE: f64 = 1.5;

/// Which slices of a life the machine, or a contender beside its own, disturbs: by block and position.
fn disturbed(contenders: &[Truth], duel: &Duel, first: u32) -> HashSet<(u32, u32)> {
    let mut random = SmallRng::seed_from_u64(u64::from(first));
    let k = contenders.len() as u32;
    let place = |name: Option<&str>| contenders.iter().position(|truth| Some(truth.name) == name);
    let (own, litters) = (place(duel.own).filter(|_| duel.drags), place(duel.litters));
    let who =
        |at: u32| positions((first, at / k), k).iter().position(|place| *place == at % k).unwrap();
    let mut all = HashSet::new();
    for at in k..(duel.blocks + 1) * k {
        let begins = duel.disturbed > 0.0 && random.random_bool(duel.disturbed);
        let is_bad =
            |whose: Option<usize>| whose == Some(who(at)) && is_own(who(at) as u32, first + at / k);
        let drags = is_bad(own) || is_bad(litters) && who(at + 1) != who(at);
        let slices = [(begins, at), (begins || drags, at + 1)];
        all.extend(slices.iter().filter(|(yes, _)| *yes).map(|(_, at)| (at / k, at % k)));
    }
    all
}

/// The place of each contender in a block of a life that begins with block `first`: a Williams design with shuffled
/// names, in which each contender comes as often right after each other one.
fn positions((first, block): (u32, u32), contenders: u32) -> Vec<u32> {
    let k = contenders;
    let mut names: Vec<u32> = (0..k).collect();
    names.shuffle(&mut SmallRng::seed_from_u64(u64::from(first)));
    let mut places = vec![0; k as usize];
    for place in 0..k {
        let zigzag = if place % 2 == 0 { k - place / 2 } else { place.div_ceil(2) };
        let name = names[((zigzag + block) % k) as usize];
        // With an odd number, every second design is in reverse.
        let in_reverse = k % 2 == 1 && (block / k) % 2 == 1;
        places[name as usize] = if in_reverse { k - 1 - place } else { place };
    }
    places
}

/// Whether a contender with costs of its own has them in this block: in one of each ten.
fn is_own(who: u32, block: u32) -> bool {
    let seed = u64::from(block / 10) * 1_000 + u64::from(who);
    block % 10 == SmallRng::seed_from_u64(seed).random_range(0..10)
}

/// The increase of the cost of a contender in the second state: that of `node` is smaller.
fn slope(name: &str) -> f64 {
    if name == "node" { 1.20 } else { 1.28 }
}

pub fn in_duels(names: &[&str], lives: u32, loads: &[LoadShape]) -> Asked {
    Asked { schedule: Schedule::Duels, slice_s: Some(0.05), ..asked(names, lives, loads) }
}

/// All rounds of a race in duels.
pub fn duels(contenders: &[Truth], duel: Duel, seed: u64) -> Vec<Round> {
    let machine = Machine { noise: 0.0, drift: 0.0, samples: 2_000, ..QUIET };
    let mut random = SmallRng::seed_from_u64(seed);
    let mut rounds = rounds(contenders, &[LOAD], duel.lives, machine, seed);
    for lived in rounds.chunks_mut(contenders.len()) {
        let first = random.random_range(0..u32::MAX / 2);
        let disturbed = disturbed(contenders, &duel, first);
        for (who, (round, truth)) in lived.iter_mut().zip(contenders).enumerate() {
            let times = if duel.wild == Some(truth.name) { 10.0 } else { 1.0 };
            let own = (times * duel.between * normal(&mut random)).exp();
            let life = Life {
                slices: (1..=duel.blocks)
                    .map(|block| {
                        let is_slow =
                            (first + block).checked_div(duel.state_lasts).unwrap_or(0) % 2 == 1;
                        let state = if is_slow { slope(truth.name) } else { 1.0 };
                        let noise = (duel.within * normal(&mut random)).exp();
                        let position = positions((first, block), contenders.len() as u32)[who];
                        let is_disturbed = disturbed.contains(&(block, position));
                        let factor = if is_disturbed { HALF_MORE } else { 1.0 };
                        let has_own =
                            Some(truth.name) == duel.own && is_own(who as u32, first + block);
                        let comes_after = |(own, before): (&str, &str)| {
                            let names = contenders.iter().map(|truth| truth.name);
                            let places = positions((first, block), contenders.len() as u32);
                            let mut placed = names.zip(places);
                            own == truth.name
                                && placed
                                    .any(|(name, place)| name == before && place + 1 == position)
                        };
                        let has_own = has_own || duel.after.is_some_and(comes_after);
                        let mode = if has_own { HALF_MORE } else { 1.0 };
                        let cost_ns = truth.cost_ns * own * state * noise * factor * mode;
                        let slice = slice(block, position, cost_ns);
                        let load_cpu_ns = (slice.load_cpu_ns as f64 * factor) as u64;
                        Slice { load_cpu_ns, ..slice }
                    })
                    .collect(),
                ..Life::default()
            };
            round.life = Some(life);
            round.slices.clear();
            sum_up(round);
        }
    }
    rounds
}

/// A slice in which the server was busy. Everything else of the machine takes 1% of the time.
fn slice(block: u32, position: u32, cost_ns: f64) -> Slice {
    let stretch = if block % 8 == 4 { Slice::LONG } else { 1 };
    let ns = 50_000_000 * u64::from(stretch);
    let count = (ns as f64 * 0.98 / cost_ns) as u64;
    Slice {
        block,
        position,
        stretch,
        ns,
        cpu_ns: (count as f64 * cost_ns) as u64,
        count,
        load_cpu_ns: (count as f64 * 3_600.0) as u64,
        rest_ns: Some(ns / 100),
        p50_ns: Some((64.0 * cost_ns) as u64),
        p99_ns: Some((150.0 * cost_ns) as u64),
    }
}

/// Sets the figures of a round that are sums over its slices, and those of its life.
pub fn sum_up(round: &mut Round) {
    let life = round.life.as_mut().unwrap();
    let sum = |of: fn(&Slice) -> u64| life.slices.iter().map(of).sum::<u64>();
    (round.requests, round.window_ns) = (sum(|s| s.count), sum(|s| s.ns));
    round.load_cpu_ns = sum(|s| s.load_cpu_ns);
    let cpu_ns = sum(|s| s.cpu_ns);
    let server = round.server.as_mut().unwrap();
    (server.cpu_ns, server.user_ns, server.system_ns) = (cpu_ns, cpu_ns / 5, cpu_ns * 4 / 5);
    // A start of 20 ms, a warm-up as long as the slices, and 30 ms until it has exited.
    let (start_ns, driven_ns) = (20_000_000, 2 * cpu_ns);
    life.whole = Some(WholeLife { cpu_ns: start_ns + driven_ns + 30_000_000, start_ns, driven_ns });
    life.lasted_ns = 400_000_000 + 2 * round.window_ns;
}
