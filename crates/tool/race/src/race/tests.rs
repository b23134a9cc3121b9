//! Races on a simulated machine: contenders fail, the race is interrupted or the machine fails at any moment, the
//! result directory loses what was being written, and the race is resumed until it is complete. It must then have
//! the rounds of the same race without interruption.

use super::*;
use crate::{
    duel::{Life, Lived, WarmUp},
    fixtures::{self, entrant},
};
use rand::{Rng, rngs::SmallRng};
use regatta_record::{
    Outcome, Schedule, Server, Settled, Settling, Slice, WarmUpClass, WarmUpSlice,
};
use std::{
    cell::{Cell, RefCell},
    fs::{self, OpenOptions},
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

/// What happens to contenders, which depends on nothing but `seed`; and when the race is interrupted.
struct World<'a> {
    seed: u64,
    stop: &'a AtomicBool,
    /// Rounds and lives until the race is interrupted.
    left: Cell<u32>,
    /// The machine fails instead.
    fails: bool,
    /// Every trial that ran, to its end or not.
    ran: RefCell<Vec<(String, LoadShape, u32)>>,
}

impl World<'_> {
    /// Whether the race goes on after this step.
    fn step(&self) -> Result<bool, MachineError> {
        if let Some(left) = self.left.get().checked_sub(1) {
            self.left.set(left);
            return Ok(true);
        }
        if self.fails {
            let error = std::io::Error::other("simulated");
            return Err(MachineError::Io { what: "go on", error });
        }
        self.stop.store(true, Ordering::Relaxed);
        Ok(false)
    }

    /// Returns a number that belongs to a contender under a load in a pass.
    fn fate(&self, contender: &str, load: &LoadShape, pass: Option<u32>) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.seed, contender, load.connections, pass).hash(&mut hasher);
        hasher.finish()
    }

    /// Completes the round of a trial.
    fn ended(&self, mut round: Round) -> Round {
        let fate = self.fate(&round.contender, &round.load, Some(round.round));
        self.ran.borrow_mut().push((round.contender.clone(), round.load, round.round));
        let because = "it died".to_owned();
        match fate % 16 {
            0 => round.outcome = Outcome::Failed { because },
            1 => round.outcome = Outcome::Disqualified { because, exchange: None },
            _ => {}
        }
        (round.requests, round.window_ns) = (1_000 + fate % 100, 1_000_000_000);
        let cpu_ns = 10_000_000 + fate % 1_000_000;
        round.server = Some(Server { cpu_ns, cpus: 1, ..Server::default() });
        round
    }
}

impl RunsTrials for World<'_> {
    fn run_trial(
        &self,
        trial: Trial<'_>,
        warm: Warm<'_>,
        _: &mut Events<'_>,
    ) -> Result<Option<Round>, MachineError> {
        if !self.step()? {
            return Ok(None);
        }
        let settling = warm.settling();
        if let Warm::See(settler, _) = warm {
            let warms_up = self.fate(&trial.entrant.name, &trial.load, None).is_multiple_of(3);
            let cpu_ns = |nth: u64| 1_000_000 * if warms_up && nth < 10 { 9 } else { 1 };
            let slice =
                |nth| WarmUpSlice { ns: 50_000_000, requests: 100, cpu_ns: Some(cpu_ns(nth)) };
            let _ = (0..200).find(|nth| settler.add(slice(*nth)));
        }
        Ok(Some(self.ended(trial.new_round(&fixtures::asked(), settling))))
    }
}

/// Runs lives in a [`World`].
struct Lives<'a>(&'a World<'a>);

impl RunsLives for Lives<'_> {
    fn run_life(
        &mut self,
        life: Life<'_>,
        _: &mut Events<'_>,
    ) -> Result<Option<Lived>, MachineError> {
        if !self.0.step()? {
            return Ok(None);
        }
        let mut lived = Lived { rounds: Vec::new(), settled: Vec::new() };
        for (index, member) in life.members.into_iter().enumerate() {
            let name = member.entrant.name.clone();
            for (plan, round) in life.plan.loads.iter().zip(member.rounds) {
                let Some(round) = round else { continue };
                let mut round = self.0.ended(round);
                let slice = |block: usize| Slice {
                    block: block as u32,
                    position: 0,
                    stretch: 1,
                    ns: 25_000_000,
                    cpu_ns: 1_000_000 + self.0.fate(&name, &round.load, Some(block as u32)) % 99,
                    count: 100,
                    load_cpu_ns: 1_000_000,
                    rest_ns: None,
                    p50_ns: None,
                    p99_ns: None,
                };
                let slices = (1..plan.blocks.len()).map(slice).collect();
                let lasted_ns = 1_000_000_000;
                round.life = Some(regatta_record::Life { slices, lasted_ns, ..Default::default() });
                lived.rounds.push(round);
            }
            let load = life.loads[0];
            let plan = &life.plan.loads[0];
            let nth = plan.raced.iter().position(|who| *who == index);
            if nth.is_some_and(|nth| matches!(plan.warm_ups[nth], WarmUp::Observed(_))) {
                let settling = Some(settling(self.0.fate(&name, &load, None)));
                let (contender, slices) = (name, Vec::new());
                lived.settled.push(Settled { format: 1, contender, load, settling, slices });
            }
        }
        Ok(Some(lived))
    }
}

/// How a contender warmed up.
fn settling(fate: u64) -> Settling {
    let classes = [WarmUpClass::Flat, WarmUpClass::WarmsUp, WarmUpClass::NeverSettles];
    Settling {
        class: classes[fate as usize % 3],
        observed_ns: 5_000_000_000,
        after_ns: 0,
        after_requests: 0,
        cold_for_ns: 0,
        cold_ns_per_request: [1.2, 3.0][fate as usize % 2],
        warm_ns_per_request: 1.0,
        from_localhost: None,
    }
}

/// A random race.
fn asked(random: &mut SmallRng) -> Asked {
    let loads = (0..random.random_range(1..4)).map(|nth| LoadShape::closed(8 + nth, 1));
    let duels = random.random_bool(0.5);
    Asked {
        baseline: "a".into(),
        twin_of: random.random_bool(0.5).then(|| "a".into()),
        rounds: random.random_range(1..5),
        precision: random.random_bool(0.3).then(|| random.random_range(0.001..0.1)),
        schedule: if duels { Schedule::Duels } else { Schedule::Rounds },
        // Slices of two seconds make several heats.
        slice_s: random.random_bool(0.3).then_some(2.0),
        settle_s: if random.random_bool(0.5) { 10.0 } else { 0.0 },
        seed: random.random(),
        loads: loads.collect(),
        ..fixtures::asked()
    }
}

/// Runs or resumes a race in `dir` until the world interrupts it. Returns whether it is complete.
fn go_on(asked: &Asked, world: &World<'_>, dir: &Path) -> bool {
    world.stop.store(false, Ordering::Relaxed);
    let names = ["a", "b", "c", "a-twin"];
    let of_race = names.iter().filter(|name| !name.ends_with("twin") || asked.twin_of.is_some());
    let entrants: Vec<Entrant> = of_race.map(|name| entrant(name)).collect();
    let context = RaceContext::new(asked, Path::new("/"), world.stop);
    let mut store = match dir.join("race.toml").exists() {
        true => Store::resume(dir).unwrap().0,
        false => Store::create(dir, asked).unwrap(),
    };
    let mut show = |_: &regatta_record::Event| {};
    let mut events = Events::shown(&mut show);
    let runners = Runners { trials: world, lives: &mut Lives(world) };
    let complete = run_by(runners, &context, &entrants, &mut store, &mut events).unwrap_or(false);
    assert_eq!(store.rounds(), Store::read(dir).unwrap().1, "the file holds what is known");
    complete
}

/// Checks what holds for each race: a cell that is decided for good is not raced again, no other round is missing,
/// and no warm-up is observed too often.
fn check(asked: &Asked, dir: &Path) {
    let (_, rounds) = Store::read(dir).unwrap();
    for round in &rounds {
        let its = |other: &&Round| (&other.contender, other.load) == (&round.contender, round.load);
        let last = rounds.iter().filter(its).map(|other| other.round).max();
        assert!(round.outcome == Outcome::Finished || last == Some(round.round), "{round:?}");
        let before = rounds.iter().filter(its).filter(|other| other.round < round.round).count();
        // With several heats, most lives are those of others.
        let is_whole = asked.slice_s.is_some() || before == round.round as usize;
        assert!(is_whole, "a round before this one is missing: {round:?}");
    }
    let store = Store::resume(dir).unwrap().0;
    let settled = store.settled().unwrap();
    let most = if asked.schedule == Schedule::Rounds { 1 } else { 2 };
    for one in &settled {
        let same = |other: &&Settled| (&other.contender, other.load) == (&one.contender, one.load);
        assert!(settled.iter().filter(same).count() <= most, "observed too often: {one:?}");
    }
}

/// What identifies a round, and its outcome.
type Line = (u32, String, String, u64, Outcome, u64);

fn lines(dir: &Path) -> Vec<Line> {
    let (_, rounds) = Store::read(dir).unwrap();
    let line = |round: Round| {
        let load = round.load.to_string();
        (round.round, round.contender, load, round.seed, round.outcome, round.requests)
    };
    let mut lines: Vec<Line> = rounds.into_iter().map(line).collect();
    lines.sort_by(|one, two| (one.0, &one.1, &one.2).cmp(&(two.0, &two.1, &two.2)));
    lines
}

fn len(file: &PathBuf) -> u64 {
    fs::metadata(file).map_or(0, |file| file.len())
}

/// Whether a race that is interrupted and resumed again and again is the same race. `harm` damages the result
/// directory after each interruption.
fn is_the_same(seed: u64, visits: &mut Visits, mut harm: impl FnMut(&Path)) -> bool {
    let mut random = SmallRng::seed_from_u64(seed);
    let asked = asked(&mut random);
    let folder = tempfile::tempdir().unwrap();
    let [whole, pieces] = ["whole", "pieces"].map(|name| folder.path().join(name));
    let stop = AtomicBool::new(false);
    let world = |left, fails| {
        let (left, ran) = (Cell::new(left), RefCell::default());
        World { seed, stop: &stop, left, fails, ran }
    };
    assert!(go_on(&asked, &world(u32::MAX, false), &whole), "nothing interrupts it");
    let file = pieces.join("rounds.jsonl");
    for stops in 0.. {
        assert!(stops < 200, "{seed}: the race never ends");
        let before = len(&file);
        // Once in a while it gets far enough to end.
        let left = if stops > 20 { u32::MAX } else { random.random_range(0..12) };
        let world = world(left, random.random_bool(0.2));
        let complete = go_on(&asked, &world, &pieces);
        visits.ran += world.ran.borrow().len();
        if complete {
            break;
        }
        visits.interrupted += 1;
        // The program is killed while it writes: what was synced before it started stays.
        if random.random_bool(0.5) {
            let file = OpenOptions::new().write(true).open(&file).unwrap();
            let after = file.metadata().unwrap().len();
            file.set_len(random.random_range(before.min(after)..=after)).unwrap();
            visits.killed += u32::from(after > before);
        }
        harm(&pieces);
    }
    check(&asked, &pieces);
    lines(&whole) == lines(&pieces)
}

/// How often something happened.
#[derive(Debug, Default)]
struct Visits {
    ran: usize,
    interrupted: u32,
    killed: u32,
}

#[test]
fn a_race_that_is_interrupted_anywhere_and_resumed_is_the_same_race() {
    // A long run: SIMULATION_HISTORIES=100000.
    let given = std::env::var("SIMULATION_HISTORIES").ok().and_then(|n| n.parse().ok());
    let n: u32 = given.unwrap_or(80);
    let mut visits = Visits::default();
    for seed in 0..n {
        assert!(is_the_same(seed.into(), &mut visits, |_| ()), "{seed}: another race");
    }
    assert!(visits.interrupted > n && visits.killed > n / 4, "{visits:?}");
}

#[test]
fn a_round_that_is_stored_twice_or_changed_is_found() {
    type Change = fn(&mut Vec<Round>);
    let harms: [(&str, Change); 3] = [
        ("twice", |rounds| rounds.extend(rounds.first().cloned())),
        ("seed", |rounds| rounds.iter_mut().take(1).for_each(|round| round.seed ^= 1)),
        ("requests", |rounds| rounds.iter_mut().take(1).for_each(|round| round.requests += 1)),
    ];
    for (what, change) in harms {
        let mut found = 0;
        for seed in 0..40 {
            let harm = |dir: &Path| {
                let (_, mut rounds) = Store::read(dir).unwrap();
                change(&mut rounds);
                let line = |round: &Round| serde_json::to_string(round).unwrap() + "\n";
                fs::write(dir.join("rounds.jsonl"), rounds.iter().map(line).collect::<String>())
                    .unwrap();
            };
            // Its own checks may find it first.
            let ended =
                std::panic::catch_unwind(|| is_the_same(seed, &mut Visits::default(), harm));
            found += u32::from(!ended.unwrap_or(false));
        }
        assert!(found > 4, "{what}: found {found} times");
    }
}
