//! All contenders at one load, read from their rounds.

use crate::{
    cell::{observed::CellRounds, signals::Signals, took::below_floor},
    compared::{
        comparison::Comparison,
        lives::{Duel, lives},
    },
    duel::{self, Look},
    parallel::in_parallel,
    statistics::{CONFIDENCE, Series, holm, mean, median, paired},
    verdict::{self, Conditions},
};
use regatta_record::{Asked, CpuSets, Figure, LoadShape, NULL, Round, Slice, Verdict};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Minimum margin within which two costs are tied (method, rule 3), as a fraction.
pub const TIE_MARGIN: f64 = 0.02;

/// All contenders at one load.
pub(crate) struct Field {
    pub load: LoadShape,
    /// The CPUs that server and load had to share; empty if none.
    pub shared: Vec<u32>,
    /// The CPUs of the server and of the load.
    pub cpus: CpuSets,
    /// In the planned order.
    pub contenders: Vec<CellRounds>,
    /// The costs of its slices, if it was raced in duels.
    pub duel: Option<Duel>,
    /// Time of each start of all contenders at this load, in seconds: lives, or warm-ups and windows.
    starts_s: Vec<f64>,
    /// Time of one further start of all contenders, in seconds. `None` with too few rounds.
    pub start_s: Option<f64>,
    /// Whether the race goes on at this load.
    goes_on: bool,
}

/// Assigns the rounds to their cells; all cells use the same list of passes.
pub(crate) fn observe(asked: &Asked, rounds: &[Round]) -> Vec<Field> {
    let by_cell: HashMap<(&str, LoadShape, u32), &Round> =
        rounds.iter().map(|r| ((r.contender.as_str(), r.load, r.round), r)).collect();
    let passes: BTreeSet<u32> = rounds.iter().map(|r| r.round).collect();
    let cell = |load: LoadShape, name: &String| {
        let rounds = passes.iter().map(|&p| by_cell.get(&(name.as_str(), load, p)).copied());
        let skipped =
            asked.entries.iter().find(|e| e.name == *name).and_then(|e| e.skipped.clone());
        CellRounds::of(name, skipped, &rounds.collect::<Vec<_>>(), asked)
    };
    let pass_s = pass_s(rounds);
    let of_load = |&load: &LoadShape| {
        let contenders = in_parallel(&asked.contenders, |name| cell(load, name));
        let shared = match asked.cpus.are_shared(&load) {
            true => asked.cpus.of_load(&load),
            false => Vec::new(),
        };
        let mut starts_s: BTreeMap<u32, f64> = BTreeMap::new();
        for round in rounds.iter().filter(|round| round.load == load) {
            *starts_s.entry(round.round).or_default() += spent_s(round);
        }
        let starts_s = starts_s.into_values().collect();
        let cpus = asked.cpus.clone();
        let start_s = pass_s;
        let (duel, goes_on) = (None, true);
        let mut field = Field { load, shared, cpus, contenders, duel, starts_s, start_s, goes_on };
        field.duel = field.slices(asked, Slice::cost_ns);
        if field.duel.is_some() {
            field.start_s = Some(field.pass_s(asked));
        }
        field
    };
    asked.loads.iter().map(of_load).collect()
}

/// Time of a round, in seconds.
fn spent_s(round: &Round) -> f64 {
    let in_round = || round.window_ns + round.warm_up.map_or(0, |warm_up| warm_up.ns);
    round.life.as_ref().map_or_else(in_round, |life| life.lasted_ns) as f64 / 1e9
}

/// Median time from the start of a pass to the start of the next one, in seconds. `None` with fewer
/// than 2 passes.
pub(crate) fn pass_s(rounds: &[Round]) -> Option<f64> {
    let mut starts: BTreeMap<u32, u64> = BTreeMap::new();
    for round in rounds {
        let first = starts.entry(round.round).or_insert(u64::MAX);
        *first = round.started_unix_s.min(*first);
    }
    let starts: Vec<u64> = starts.into_values().collect();
    let mut times: Vec<u64> = starts.windows(2).map(|w| w[1].saturating_sub(w[0])).collect();
    times.sort_unstable();
    times.get(times.len() / 2).map(|s| *s as f64)
}

impl Field {
    pub fn of(&self, contender: &str) -> Option<&CellRounds> {
        self.contenders.iter().find(|o| o.name == contender)
    }

    /// Logarithms of a contender's cost, unless its verdict voids them.
    pub fn cost(&self, contender: &str) -> Option<&Series> {
        let observed = self.of(contender)?;
        (!self.verdict(observed).voids(Figure::Cost)).then_some(&observed.cost)
    }

    /// Compares contenders by a figure of their slices. The twin may stand for the baseline if it is its
    /// twin, and its cost is valid.
    pub fn slices(&self, asked: &Asked, figure: impl Fn(&Slice) -> Option<f64>) -> Option<Duel> {
        self.duel_of(asked, &lives(&self.contenders, figure))
    }

    /// The race is over at this load, so its slices are looked at for the last time.
    pub fn end(&mut self, asked: &Asked) {
        self.goes_on = false;
        if self.duel.is_some() {
            self.duel = self.slices(asked, Slice::cost_ns);
        }
    }

    /// Whether the race goes on at this load.
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Compares the costs without those of the last life.
    pub fn before_last_life(&self, asked: &Asked) -> Option<Duel> {
        let lives = lives(&self.contenders, Slice::cost_ns);
        self.duel_of(asked, lives.split_last()?.1)
    }

    fn duel_of(&self, asked: &Asked, lives: &[duel::Life]) -> Option<Duel> {
        let twin = asked.twin().filter(|_| asked.twin_of.as_ref() == Some(&asked.baseline));
        let twin = twin.filter(|twin| self.cost(twin).is_some());
        let twin = twin.and_then(|twin| self.index(&twin));
        let look = if self.goes_on { Look::Before } else { Look::Last };
        Duel::of(&duel::Field { lives, baseline: self.index(&asked.baseline)?, twin, look })
    }

    /// The ratio of the cost of `new` over that of `old`, whatever their verdicts: from slices, or from
    /// the rounds of the same passes. Contenders that were never alive together are compared through the
    /// baseline, which is in every heat.
    pub fn compare(&self, new: &str, old: &str) -> Option<Comparison> {
        let Some(duel) = &self.duel else {
            return Comparison::paired(&self.log_ratios(new, old));
        };
        let (old, new) = (self.index(old)?, self.index(new)?);
        let to_baseline = |who: usize| Comparison::of_slices(duel, who, duel.baseline);
        let through = || Some(to_baseline(new)?.over(&to_baseline(old)?));
        Comparison::of_slices(duel, new, old).or_else(through)
    }

    /// Number of starts of each contender that may start again. The baseline and its twin are in every
    /// heat, so they count only if there is no other.
    pub fn runs(&self, asked: &Asked) -> Vec<u32> {
        let twin = asked.twin();
        let is_anchor = |name: &String| *name == asked.baseline || Some(name) == twin.as_ref();
        let open = || self.contenders.iter().filter(|o| o.settled.is_none());
        let others: Vec<u32> = open().filter(|o| !is_anchor(&o.name)).map(|o| o.run).collect();
        if others.is_empty() { open().map(|o| o.run).collect() } else { others }
    }

    /// Number of passes so far.
    pub fn passes(&self, asked: &Asked) -> u32 {
        let all = || self.contenders.iter().map(|o| o.run);
        self.runs(asked).into_iter().max().or_else(|| all().max()).unwrap_or(0)
    }

    /// Time spent on this load, in seconds.
    pub fn spent_s(&self) -> f64 {
        self.starts_s.iter().sum()
    }

    /// Usual time of a pass at this load, in seconds. The first one is longer, because warm-ups are observed.
    pub fn pass_s(&self, asked: &Asked) -> f64 {
        let heats = self.starts_s.len().div_ceil(self.passes(asked).max(1) as usize);
        let of_heat = |nth| self.starts_s.iter().skip(nth).step_by(heats).copied().collect();
        (0..heats).filter_map(|nth| median(of_heat(nth))).sum()
    }

    /// `ln(a/b)` of the costs of two contenders by pass.
    pub fn log_ratios(&self, a: &str, b: &str) -> Vec<f64> {
        match (self.of(a), self.of(b)) {
            (Some(a), Some(b)) => paired(&a.cost, &b.cost),
            _ => Vec::new(),
        }
    }

    /// Index of a contender in the planned order.
    pub fn index(&self, contender: &str) -> Option<usize> {
        self.contenders.iter().position(|o| o.name == contender)
    }

    pub fn verdict(&self, observed: &CellRounds) -> Verdict {
        let (load, shared, headroom) = (&self.load, &self.shared[..], self.headroom(observed));
        let null = self.of(NULL).map_or(&[][..], |null| &null.took);
        // The floor is that of loopback, where a send includes the delivery.
        let below_floor = below_floor(&observed.took, null, load).filter(|_| !self.cpus.apart);
        let (cpus, usual) = (&self.cpus, self.usual().unwrap_or_default());
        verdict::verdict(observed, Conditions { load, shared, headroom, below_floor, cpus, usual })
    }

    /// What the machine usually did to the contenders, if they took turns.
    pub fn usual(&self) -> Option<Signals> {
        let all = self.contenders.iter().map(|observed| &observed.signals);
        self.duel.as_ref().map(|_| Signals::usual(all))
    }

    /// Rate of the null server over this one's in the same rounds; `None` for the null server
    /// itself, without common rounds, at a requested rate, and on shared CPUs.
    pub fn headroom(&self, observed: &CellRounds) -> Option<f64> {
        if self.load.drive.rate().is_some() || !self.shared.is_empty() {
            return None;
        }
        let null = self.of(NULL).filter(|_| observed.name != NULL)?;
        mean(&paired(&null.rate, &observed.rate)).map(f64::exp)
    }
}

/// The ratio of the twin to its original at a load.
pub(crate) struct Twin {
    pub ratio: Comparison,
    /// Whether they differ, with Holm's correction over the loads.
    pub differs: bool,
}

impl Twin {
    /// By field. `None` without a twin, or if one of the two has no valid cost.
    pub fn of(asked: &Asked, fields: &[Field]) -> Vec<Option<Twin>> {
        let names = asked.twin().zip(asked.twin_of.as_deref());
        let ratio = |field: &Field| {
            let (twin, original) = names.as_ref()?;
            field.cost(twin).and(field.cost(original))?;
            field.compare(twin, original)
        };
        let ratios: Vec<Option<Comparison>> = fields.iter().map(ratio).collect();
        let p_values: Vec<f64> = ratios.iter().flatten().map(Comparison::p).collect();
        let mut differ = holm(&p_values, 1.0 - CONFIDENCE).into_iter();
        let mut twin = |ratio: Comparison| {
            let differs = differ.next().unwrap_or_default();
            Twin { ratio, differs }
        };
        ratios.into_iter().map(|ratio| ratio.map(&mut twin)).collect()
    }

    /// By how much they differ, as a fraction: 0 if not significantly.
    pub fn offset(twin: Option<&Twin>) -> f64 {
        twin.filter(|twin| twin.differs).map_or(0.0, |twin| twin.ratio.log().abs().exp_m1())
    }
}
