//! What the slices of a duel show about single contenders: work that is done elsewhere or at another time,
//! and costs that depend on the slices themselves.

use crate::{
    cell::{observed::CellRounds, signals::Signals},
    compared::{field::Field, lives::blocks},
    statistics::{CONFIDENCE, fisher_exact, holm, mean, median, p_value},
    verdict::{STEAL, WAITED},
};
use regatta_record::{ContendedBlocks, Doubt, Finding, Life, NULL, Slice};
use std::collections::BTreeMap;

/// Significance level, after Holm's correction: the chance that any honest contender of a race is
/// accused.
const CHANCE: f64 = 0.01;
/// Least work done elsewhere, and least change within a life, as fractions of the cost.
const ELSEWHERE: f64 = 0.02;
const CHANGES: f64 = 0.02;
/// Least CPU outside of slices: relative to that in slices, and in nanoseconds per life, because a runtime
/// needs some time to exit.
const OUTSIDE: f64 = 0.05;
const OUTSIDE_NS: f64 = 1e8;
/// Least CPU use without load, and from where on it is polling, as fractions of one CPU.
const STANDING: f64 = 0.01;
const POLLING: f64 = 0.5;
/// Least CPU use in the slices of others, as a fraction of that in its own.
const ASIDE: f64 = 0.01;
/// Least effect of the length of a slice.
const BY_LENGTH: f64 = 0.005;
/// Share of the latencies that are far beyond the others, from which a start counts as one with delays.
const DELAYED: f64 = 5e-5;
/// CPU use from which a contender must have run on more CPUs than its own. Not 1, because in rounds the
/// clock may be a tick of the scheduler old.
const TOO_BUSY: f64 = 1.02;
/// Least difference of a mean length of replies from that of one reply, as a fraction and in bytes: of contents
/// that do not vary, or only in digits, and of others.
const FIXED_LENGTH: f64 = 0.01;
const VARYING_LENGTH: f64 = 0.1;
const LEAST_BYTES: f64 = 2.0;
/// Largest time in which a contender runs and is not loaded, as a fraction of its slices.
const THAWED: f64 = 0.02;
/// A state of the machine with less than this share of the blocks is rare.
const RARE: f64 = 0.1;

/// The findings on the loads that were raced in duels; those on delays and busy CPUs for all loads.
pub fn findings(fields: &[Field]) -> Vec<Finding> {
    let duels: Vec<&Field> = fields.iter().filter(|field| field.duel.is_some()).collect();
    let mut findings = Vec::new();
    findings.extend(elsewhere(&duels));
    findings.extend(outside_slices(&duels));
    findings.extend(duels.iter().flat_map(|field| field.each(standing)));
    findings.extend(duels.iter().flat_map(|field| field.each(not_frozen)));
    findings.extend(duels.iter().flat_map(|field| field.each(thawed_longer)));
    findings.extend(long_slices(&duels));
    findings.extend(changes_in_life(&duels));
    findings.extend(delays(fields));
    findings.extend(fields.iter().flat_map(|field| field.each(too_busy)));
    findings.extend(fields.iter().flat_map(|field| field.each(other_replies)));
    findings.extend(duels.iter().flat_map(|field| rare_states(field)));
    findings.extend(duels.iter().filter_map(|field| beside_others(field)));
    findings.extend(duels.iter().flat_map(|field| without_ratio(field)));
    findings.extend(disturbed(&duels));
    findings.extend(settings_changed(fields));
    findings
}

/// A hypothesis about a contender: a mean that should be zero.
pub(super) struct Case<'a> {
    field: &'a Field,
    who: usize,
    pub mean: f64,
    pub p: f64,
}

impl<'a> Case<'a> {
    /// From one value per life. `None` with fewer than 2.
    pub fn of(field: &'a Field, who: usize, values: &[f64]) -> Option<Case<'a>> {
        Some(Case { field, who, mean: mean(values)?, p: p_value(values)? })
    }

    pub fn finding(&self, doubt: Doubt) -> Finding {
        self.field.finding(self.observed(), doubt)
    }

    pub fn observed(&self) -> &CellRounds {
        &self.field.contenders[self.who]
    }

    /// The contender's CPU time per operation in its slices, nanoseconds; `None` without one.
    pub fn cost_ns(&self) -> Option<f64> {
        let sum = |of: fn(&Slice) -> u64| slices(self.observed()).map(of).sum::<u64>() as f64;
        Some(sum(|slice| slice.cpu_ns) / sum(|slice| slice.count)).filter(|cost| cost.is_finite())
    }
}

/// The cases that remain after Holm's correction, at the level `alpha`.
pub(super) fn significant<'a>(cases: Vec<Case<'a>>, alpha: f64) -> impl Iterator<Item = Case<'a>> {
    let p_values: Vec<f64> = cases.iter().map(|case| case.p).collect();
    let found = holm(&p_values, alpha);
    cases.into_iter().zip(found).filter(|(_, found)| *found).map(|(case, _)| case)
}

impl Field {
    pub(super) fn finding(&self, observed: &CellRounds, doubt: Doubt) -> Finding {
        Finding { contender: Some(observed.name.clone()), load: Some(self.load), doubt }
    }

    /// Checks each contender by itself.
    pub(super) fn each(&self, check: impl Fn(&CellRounds) -> Option<Doubt>) -> Vec<Finding> {
        let finding = |o: &CellRounds| Some(self.finding(o, check(o)?));
        self.contenders.iter().filter_map(finding).collect()
    }

    /// One value per contender and life: the mean of `of` over the blocks of the life. `of` gets the
    /// contender's slice, and those of the others.
    fn by_life(&self, of: impl Fn(&Slice, &[Slice]) -> Option<f64>) -> Vec<Vec<f64>> {
        let lives = blocks(&self.contenders);
        let of_block = |who: usize, block: &Vec<Option<Slice>>| {
            let others = block.iter().enumerate().filter(|(other, _)| *other != who);
            let others: Vec<Slice> = others.filter_map(|(_, slice)| *slice).collect();
            of(block[who].as_ref()?, &others)
        };
        let of_life = |who: usize, life: &BTreeMap<u32, Vec<Option<Slice>>>| {
            mean(&life.values().filter_map(|block| of_block(who, block)).collect::<Vec<_>>())
        };
        let of_contender = |who| lives.iter().filter_map(|life| of_life(who, life)).collect();
        (0..self.contenders.len()).map(of_contender).collect()
    }
}

/// Work that the rest of the machine does in the slices of one contender: more per operation than in those
/// of the others, and also more per second, because a slow contender takes longer for an operation.
fn elsewhere(fields: &[&Field]) -> Vec<Finding> {
    let excess = |slice: &Slice, others: &[Slice]| {
        let per = |of: fn(&Slice) -> f64, slice: &Slice| Some(slice.rest_ns? as f64 / of(slice));
        let above = |of: fn(&Slice) -> f64| {
            let others = others.iter().filter_map(|slice| per(of, slice)).collect();
            Some((per(of, slice)? - median(others)?) * of(slice))
        };
        let (by_count, by_time) =
            (above(|slice| slice.count as f64)?, above(|slice| slice.ns as f64)?);
        Some(by_count.min(by_time) / slice.count as f64).filter(|excess| excess.is_finite())
    };
    let cases = fields.iter().flat_map(|field| {
        let by_life = field.by_life(excess).into_iter().enumerate();
        by_life.filter_map(|(who, values)| Case::of(field, who, &values))
    });
    let found = significant(cases.collect(), CHANCE).filter_map(|case| {
        let share = case.mean / case.cost_ns()?;
        (share > ELSEWHERE).then(|| {
            case.finding(Doubt::WorkElsewhere { ns_per_operation: case.mean, share, p: case.p })
        })
    });
    found.collect()
}

/// CPU that a contender used neither in its start, nor in slices, nor as others do while loads connected, relative to
/// that in slices. A life that carries several loads has a round for each, with the same CPU times of the whole
/// life.
fn outside_slices(fields: &[&Field]) -> Vec<Finding> {
    // CPU outside and in slices, by contender, start, and CPU of the whole life: loads of one life share that.
    let mut lives: BTreeMap<(usize, usize, u64), (f64, f64)> = BTreeMap::new();
    for field in fields {
        for (who, o) in field.contenders.iter().enumerate() {
            for (start, life) in o.lives.iter().enumerate() {
                let Some(life) = life else { continue };
                let Some(whole) = life.whole.filter(|whole| whole.driven_ns > 0) else { continue };
                let (outside, _) = lives
                    .entry((who, start, whole.cpu_ns))
                    .or_insert((whole.outside_ns() as f64, whole.driven_ns as f64));
                *outside -= field.usual_to_connect(who, start, life);
            }
        }
    }
    let Some(field) = fields.first() else { return Vec::new() };
    let of = |who: usize| {
        lives
            .range((who, 0, 0)..(who + 1, 0, 0))
            .map(|(_, (outside, driven))| (outside.max(0.0), driven))
    };
    let is_much = |who: usize| {
        let outside: Vec<f64> = of(who).map(|(outside, _)| outside).collect();
        mean(&outside).is_some_and(|outside| outside > OUTSIDE_NS)
    };
    let case = |who: usize| {
        let shares: Vec<f64> = of(who).map(|(outside, driven)| outside / driven).collect();
        Case::of(field, who, &shares)
    };
    let cases = (0..field.contenders.len()).filter(|who| is_much(*who)).filter_map(case);
    let found = significant(cases.collect(), CHANCE).filter(|case| case.mean > OUTSIDE);
    let finding = |case: Case| Finding {
        load: None,
        ..case.finding(Doubt::OutsideSlices { share: case.mean, p: case.p })
    };
    found.map(finding).collect()
}

impl Field {
    /// The part of the CPU that a contender used while this load connected which is no sign of work postponed until then,
    /// in nanoseconds: as much as the others of its heat used, or as many of its own operations would cost as
    /// theirs (the load may store keys first), whichever is more.
    fn usual_to_connect(&self, who: usize, start: usize, own: &Life) -> f64 {
        let others = self.contenders.iter().enumerate().filter(|(other, _)| *other != who);
        let others: Vec<&Life> = others.filter_map(|(_, o)| o.lives.get(start)?.as_ref()).collect();
        let connecting = |life: &Life| life.connecting_ns as f64;
        let ns: Vec<f64> = others.iter().map(|life| connecting(life)).collect();
        let operations = others.iter().filter_map(|life| Some(connecting(life) / cost_ns(life)?));
        let operations = median(operations.collect()).zip(cost_ns(own));
        let usual = median(ns).into_iter().chain(operations.map(|(count, cost)| count * cost));
        usual.fold(0.0, f64::max).min(connecting(own))
    }
}

/// The cost of an operation in the slices of a life.
fn cost_ns(life: &Life) -> Option<f64> {
    let sum = |of: fn(&Slice) -> u64| life.slices.iter().map(of).sum::<u64>() as f64;
    let (cpu_ns, count) = (sum(|slice| slice.cpu_ns), sum(|slice| slice.count));
    (cpu_ns > 0.0 && count > 0.0).then(|| cpu_ns / count)
}

fn slices(observed: &CellRounds) -> impl Iterator<Item = &Slice> {
    observed.lives.iter().flatten().flat_map(|life| &life.slices)
}

/// CPU without load.
fn standing(observed: &CellRounds) -> Option<Doubt> {
    let busy = observed.standing()?;
    if busy >= POLLING {
        return Some(Doubt::Polls { busy });
    }
    let idle = || observed.lives.iter().flatten().filter_map(|life| life.idle);
    let usual = |slice: &&Slice| slice.stretch == 1;
    let usual: Vec<f64> = slices(observed).filter(usual).map(|slice| slice.cpu_ns as f64).collect();
    let of_a_slice =
        mean(&idle().map(|idle| idle.cpu_ns as f64).collect::<Vec<_>>())? / mean(&usual)?;
    (busy > STANDING).then_some(Doubt::Standing { ms_per_s: busy * 1e3, of_a_slice })
}

/// CPU in the slices of others.
fn not_frozen(observed: &CellRounds) -> Option<Doubt> {
    let lives = || observed.lives.iter().flatten();
    let own: f64 = slices(observed).map(|slice| slice.cpu_ns as f64).sum();
    let share = lives().map(|life| life.aside_ns as f64).sum::<f64>() / own;
    let unfrozen = lives().filter(|life| life.not_frozen.is_some()).count() as u32;
    let of = lives().count() as u32;
    (share > ASIDE).then_some(Doubt::NotFrozen { share, lives: unfrozen, of })
}

/// Time in which it ran and was not loaded, because its machine is reached by messages.
fn thawed_longer(observed: &CellRounds) -> Option<Doubt> {
    let share = |life: &Life| {
        let driven: u64 = life.slices.iter().map(|slice| slice.ns).sum();
        Some(life.thawed_ns? as f64 / driven as f64 - 1.0)
    };
    let shares = observed.lives.iter().flatten().filter_map(share).collect();
    let share = median(shares).filter(|share| *share > THAWED)?;
    Some(Doubt::ThawedLonger { share })
}

/// Ratios that depend on the length of a slice.
fn long_slices(fields: &[&Field]) -> Vec<Finding> {
    let cases = fields.iter().flat_map(|field| {
        let duel = field.duel.iter().flat_map(|duel| duel.estimates.long_slices.iter().enumerate());
        duel.filter_map(|(who, long)| {
            let long = long.as_ref()?;
            Some(Case { field, who, mean: long.log, p: long.p })
        })
    });
    let found = significant(cases.collect(), 1.0 - CONFIDENCE);
    let found = found.filter(|case| case.mean.abs() > BY_LENGTH);
    found
        .map(|case| case.finding(Doubt::LongSlices { factor: case.mean.exp(), p: case.p }))
        .collect()
}

/// Costs that change from the first third of a life to the last, unlike those of the others.
fn changes_in_life(fields: &[&Field]) -> Vec<Finding> {
    let log = |slice: &Slice| slice.cost_ns().map(f64::ln);
    let cases = fields.iter().flat_map(|field| {
        let lives = blocks(&field.contenders);
        let change = |who: usize, life: &BTreeMap<u32, Vec<Option<Slice>>>| {
            let logs: Vec<f64> =
                life.values().filter_map(|block| block[who].as_ref().and_then(log)).collect();
            let third = logs.len() / 3;
            Some(mean(&logs[logs.len() - third..])? - mean(&logs[..third])?)
        };
        let k = field.contenders.len();
        let by_life: Vec<Vec<Option<f64>>> =
            lives.iter().map(|life| (0..k).map(|who| change(who, life)).collect()).collect();
        let beyond_others = |who: usize, changes: &Vec<Option<f64>>| {
            let others = (0..k).filter(|other| *other != who).filter_map(|other| changes[other]);
            Some(changes[who]? - median(others.collect())?)
        };
        let values = |who| by_life.iter().filter_map(|life| beyond_others(who, life)).collect();
        let values: Vec<Vec<f64>> = (0..k).map(values).collect();
        values
            .into_iter()
            .enumerate()
            .filter_map(|(who, values)| Case::of(field, who, &values))
            .collect::<Vec<_>>()
    });
    let found = significant(cases.collect(), CHANCE);
    let found = found.filter(|case| case.mean.abs() > CHANGES.ln_1p());
    found
        .map(|case| case.finding(Doubt::ChangesInLife { factor: case.mean.exp(), p: case.p }))
        .collect()
}

/// A few very late replies in most starts of one contender, by Fisher's exact test over starts.
fn delays(fields: &[Field]) -> Vec<Finding> {
    let cases = fields.iter().flat_map(|field| {
        let hits = |o: &CellRounds| {
            let far = &o.latencies.far;
            (far.iter().filter(|(far, of)| *far as f64 > DELAYED * *of as f64).count(), far.len())
        };
        let each: Vec<(usize, usize)> = field.contenders.iter().map(hits).collect();
        let sum = each.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let cases = each.into_iter().enumerate().filter_map(move |(who, own)| {
            let p = fisher_exact(own, (sum.0 - own.0, sum.1 - own.1))?;
            Some(Case { field, who, mean: own.0 as f64 / own.1 as f64, p })
        });
        cases.collect::<Vec<_>>()
    });
    let found = significant(cases.collect(), CHANCE).filter_map(|case| {
        let latencies = &case.field.contenders[case.who].latencies;
        let far = latencies.far.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let share = far.0 as f64 / far.1 as f64;
        let (p99_ns, max_ns) = latencies.all.p99.zip(latencies.all.max)?;
        let doubt = Doubt::RareDelays { share, p99_ns, max_ns, p: case.p };
        (case.mean > 0.5).then(|| case.finding(doubt))
    });
    found.collect()
}

/// Replies whose mean length is not that of the reply seen without load. Contents that vary by themselves
/// may vary in length.
fn other_replies(observed: &CellRounds) -> Option<Doubt> {
    let reply = observed.reply?;
    let (bytes, replies) = observed.alike;
    let is_fixed = reply.content?.digest.is_some();
    let mean = (replies > 0).then(|| bytes as f64 / replies as f64)?;
    let alone = reply.bytes as f64;
    let tolerated = alone * if is_fixed { FIXED_LENGTH } else { VARYING_LENGTH };
    let is_other = (mean - alone).abs() > tolerated.max(LEAST_BYTES);
    is_other.then_some(Doubt::OtherReplies { bytes: mean, alone: reply.bytes })
}

fn too_busy(observed: &CellRounds) -> Option<Doubt> {
    let busy = observed.server_busy.filter(|busy| *busy > TOO_BUSY)?;
    Some(Doubt::MoreThanItsCpus { busy })
}

/// Settings of the machine that changed: those of a life concern all contenders that were alive.
fn settings_changed(fields: &[Field]) -> Option<Finding> {
    let mut all = fields.iter().flat_map(|field| &field.contenders);
    let what = all.find_map(|observed| observed.settings_changed.clone())?;
    Some(Finding { contender: None, load: None, doubt: Doubt::SettingsChanged { what } })
}

fn rare_states(field: &Field) -> Vec<Finding> {
    let Some(seen) = field.duel_seen() else { return Vec::new() };
    // One of which all blocks were left out has no ratio.
    let rare = seen.states.iter().filter(|state| state.blocks > 0 && state.share < RARE);
    let finding = |state: &regatta_record::StateSeen| {
        let regatta_record::StateSeen { factor, blocks, share } = *state;
        Finding {
            contender: None,
            load: Some(field.load),
            doubt: Doubt::RareState { factor, blocks, share },
        }
    };
    rare.map(finding).collect()
}

/// Other programs beside more than half of the blocks, which count all the same.
fn beside_others(field: &Field) -> Option<Finding> {
    let ContendedBlocks { blocks, of, .. } = field.duel_seen()?.busy.filter(|busy| !busy.apart)?;
    let doubt = Doubt::BesideOthers { blocks, of };
    (2 * blocks > of).then_some(Finding { contender: None, load: Some(field.load), doubt })
}

/// Contenders with a cost and without a ratio, although the baseline has a cost and the race is over.
fn without_ratio(field: &Field) -> Vec<Finding> {
    let Some(duel) = field.duel.as_ref().filter(|_| !field.goes_on()) else { return Vec::new() };
    let has_cost = |o: &CellRounds| field.cost(&o.name).is_some();
    let finding = |(who, o): (usize, &CellRounds)| {
        let lives = duel.estimates.lives.get(who).copied().unwrap_or_default();
        let of = o.lives.len() as u32;
        let lacks = has_cost(o) && duel.ratio(duel.baseline, who).is_none();
        let is_asked = who != duel.baseline && o.name != NULL && of > 0;
        (is_asked && lacks).then(|| field.finding(o, Doubt::TooFewLives { lives, of }))
    };
    let is_compared = has_cost(&field.contenders[duel.baseline]);
    let all = field.contenders.iter().enumerate().filter(|_| is_compared);
    all.filter_map(finding).collect()
}

/// What the machine did to all contenders alike, in any load.
fn disturbed(fields: &[&Field]) -> Option<Finding> {
    let usual: Vec<Signals> = fields.iter().filter_map(|field| field.usual()).collect();
    let most = |of: fn(&Signals) -> Option<f64>, limit: f64| {
        let all = usual.iter().filter_map(of).filter(|share| *share >= limit);
        all.max_by(f64::total_cmp)
    };
    let steal = most(|one| one.steal, STEAL);
    let server_waited = most(|one| one.server_waited, WAITED);
    let load_waited = most(|one| one.load_waited, WAITED);
    let is_disturbed = steal.or(server_waited).or(load_waited).is_some();
    let doubt = Doubt::Disturbed { steal, server_waited, load_waited };
    is_disturbed.then_some(Finding { contender: None, load: None, doubt })
}
