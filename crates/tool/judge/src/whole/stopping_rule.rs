//! `--precision` and `--time`: which loads are due in the next pass, and the precision reached.
//!
//! All intervals of a load must be narrow enough after two consecutive passes, as they are if the race ends.
//! In rounds they are checked from the fifth pass on, and in duels from the third life on. Stopping when the
//! data look good makes Student's intervals a little too narrow. In the limit of narrow intervals their
//! coverage is exact (Chow and Robbins, *On the asymptotic theory of fixed-width sequential confidence
//! intervals for the mean*, Annals of Mathematical Statistics 36, 1965), but after few passes a variance that
//! is small by chance ends the race. With both rules, the 95% intervals of simulated normal log-ratios cover
//! the true value in 93% of the races in the worst case (about 12 to 25 passes).

use crate::{
    compared::{
        comparison::Comparison,
        field::{Field, observe},
    },
    duel,
    statistics::{known_floor, mean, median},
};
use regatta_record::{Asked, LoadShape, Precision, Round, more_in_words};
use std::collections::{BTreeMap, BTreeSet};

/// Passes that are run before the first check of a load that is raced in rounds.
pub const LEAST_PASSES: u32 = 5;
/// Lives before the first check of a duel. With fewer there is no interval.
pub const LEAST_LIVES: u32 = 3;
/// Maximum number of passes without `--rounds`.
pub const MOST_PASSES: u32 = 50;
/// Number of rounds, and of lives, from which a forecast may call a ratio hopeless. The variances of
/// lives are moderated, so fewer are enough.
const FORECAST_FROM: [u32; 2] = [10, 6];
/// A ratio is hopeless if it needs this many times the possible number of passes. After ten rounds the
/// number needed is known to within a factor of about two.
const HOPELESS: f64 = 4.0;
/// More starts are advised up to this time, in seconds.
const AFFORDABLE_S: f64 = 600.0;
/// Blocks of a life, before there are variances to choose their number by.
const BLOCKS: u32 = 8;
/// The least and the largest number of blocks in a life.
pub const BLOCKS_OF_A_LIFE: [u32; 2] = [4, 32];
/// Lives whose blocks were left out, because the machine changed or was disturbed, are replaced whatever the time
/// limit, up to this many times the minimum of lives.
const REPLACED: u32 = 2;
/// A race with a time limit plans for this many lives, if they may have as few as 4 blocks: from few lives
/// their variance is not known, however many blocks they have.
const LIVES_IN_TIME: f64 = 6.0;
/// If warm-ups take more than half of the time of so many lives, it plans for fewer, down to this many: those of
/// slow starters are worth more blocks.
const FEW_LIVES_IN_TIME: f64 = 4.0;
/// The blocks of a life may take this part of its other time, whatever the time limit: they are cheap beside it, and
/// three lives are run in any case.
const CHEAP: f64 = 1.0 / 8.0;

/// The next pass of a race.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// The loads of the pass; empty: the race is over.
    pub loads: Vec<LoadShape>,
    /// Forecast of the total number of passes, at most the requested number.
    pub passes: u32,
    /// Half-width of the widest ratio of these loads if the race ended now, as a fraction. `None` without a
    /// requested precision, and before its first check.
    pub widest: Option<f64>,
}

/// Returns the loads due in the pass `pass` (from 0), from the `rounds` of all earlier passes. It
/// depends on nothing else, so a resumed race continues as if it had never stopped.
pub fn due(asked: &Asked, rounds: &[Round], pass: u32) -> Due {
    let all = |loads| Due { loads, passes: asked.rounds, widest: None };
    if pass >= asked.rounds {
        return all(Vec::new());
    }
    if asked.precision.is_none() && asked.time_s.is_none() || pass < LEAST_LIVES {
        return all(asked.loads.clone());
    }
    let fields = fields(asked, rounds);
    let open = || fields.iter().filter(|field| field.goes_on());
    let goals = || open().filter(|f| f.passes(asked) >= f.least()).flat_map(|f| f.goals(asked));
    let forecast = goals().filter_map(|goal| goal.needed(asked)).max();
    let soonest = pass + 1;
    let in_time = || {
        let next_s: f64 = open().map(|field| field.pass_s(asked)).sum();
        let passes = left_s(asked, &fields) / next_s.max(f64::MIN_POSITIVE);
        pass.saturating_add(passes.min(f64::from(asked.rounds)) as u32)
    };
    let likely = match (asked.precision, asked.time_s) {
        (Some(_), _) => forecast.unwrap_or(soonest),
        (None, Some(_)) => in_time(),
        (None, None) => asked.rounds,
    };
    Due {
        loads: open().map(|field| field.load).collect(),
        passes: likely.max(soonest).min(asked.rounds),
        widest: goals().filter_map(|goal| goal.width()).max_by(f64::total_cmp),
    }
}

/// Returns the number of blocks in the next life of a duel at `load`, from the rounds so far. From the
/// fourth life on it is the best one for the median contender; before, it is that for blocks that vary
/// twice as much as lives, and at least 8. With a time limit it leaves room for 6 lives, or for fewer if lives
/// are so long that most of the time would pass in warm-ups; but blocks that make a life an eighth longer are
/// always permitted.
/// A pass has a life of each of `heats`, one after the other; the time of a life is that of the lives of its heat.
pub fn blocks_of_next_life(asked: &Asked, rounds: &[Round], load: &LoadShape, heats: u32) -> u32 {
    let of_load: Vec<Round> = rounds.iter().filter(|round| round.load == *load).cloned().collect();
    let alone = Asked { loads: vec![*load], ..asked.clone() };
    let [field] = &observe(&alone, &of_load)[..] else { return BLOCKS };
    let passes = field.passes(&alone);
    let next = of_load.iter().map(|round| round.round + 1).max().unwrap_or(0);
    let is_of_heat = |round: &&Round| round.round % heats == next % heats;
    let of_heat: Vec<Round> = rounds.iter().filter(is_of_heat).cloned().collect();
    let Some((life_s, block_s)) = costs(&of_heat, load) else { return BLOCKS };
    let [least, most] = BLOCKS_OF_A_LIFE;
    let most = asked.time_for_passes_s().map_or(most, |time_s| {
        let time_s = time_s / (asked.loads.len() as f64 * f64::from(heats));
        let lives = (time_s / (2.0 * life_s)).clamp(FEW_LIVES_IN_TIME, LIVES_IN_TIME);
        let blocks = (time_s / lives - life_s).max(CHEAP * life_s) / block_s;
        blocks.clamp(f64::from(least), f64::from(most)) as u32
    });
    let of = |within: f64, between: f64| {
        duel::blocks_per_life(life_s, block_s, within, between, least..=most)
    };
    if passes < LEAST_LIVES {
        return of(2.0, 1.0).max(BLOCKS);
    }
    let best = field.goals(&alone).into_iter().filter_map(|goal| match goal.comparison? {
        Comparison::Duel(ratio) => Some(of(ratio.within, ratio.between)),
        Comparison::Rounds(_) => None,
    });
    median(best.map(f64::from).collect()).map_or(BLOCKS, |blocks| blocks as u32)
}

/// The time of a life without its counted blocks, divided by the number of loads, which share it, and the time of
/// a block of this load, in seconds. The first of several lives does not count for the former, because most
/// warm-ups are observed in it.
fn costs(rounds: &[Round], load: &LoadShape) -> Option<(f64, f64)> {
    let mut asides: BTreeMap<u32, f64> = BTreeMap::new();
    let mut loads: Vec<LoadShape> = Vec::new();
    let (mut in_slices, mut blocks) = (0.0, BTreeSet::new());
    for (round, life) in rounds.iter().filter_map(|r| Some((r, r.life.as_ref()?))) {
        let slices: f64 = life.slices.iter().map(|slice| slice.ns as f64 / 1e9).sum();
        *asides.entry(round.round).or_default() += life.lasted_ns as f64 / 1e9 - slices;
        if !loads.contains(&round.load) {
            loads.push(round.load);
        }
        if round.load == *load {
            in_slices += slices;
            blocks.extend(life.slices.iter().map(|slice| (round.round, slice.block)));
        }
    }
    let asides: Vec<f64> = asides.into_values().collect();
    let later = if asides.len() > 1 { &asides[1..] } else { &asides };
    let aside = mean(later)? / loads.len() as f64;
    (!blocks.is_empty() && in_slices > 0.0 && aside > 0.0)
        .then(|| (aside, in_slices / blocks.len() as f64))
}

/// A ratio to the baseline that should become narrow.
struct Goal<'a> {
    contender: &'a str,
    /// `None` with too few starts.
    comparison: Option<Comparison>,
    /// Number of starts.
    starts: u32,
}

impl Goal<'_> {
    /// Half-width at the end of the race, as a fraction; `None` with too few starts.
    fn width(&self) -> Option<f64> {
        Some(self.comparison.as_ref()?.half_width_at_end().exp_m1())
    }

    /// Total number of starts that it needs, if its variance is as observed; `None` if it is not known,
    /// or if no number is enough.
    fn needed(&self, asked: &Asked) -> Option<u32> {
        let further = self.comparison.as_ref()?.further_starts(asked.half_width().ln_1p())?;
        Some(self.starts.saturating_add(further.likely))
    }
}

/// Whether a ratio is as narrow as requested, if the race ends.
fn is_narrow(asked: &Asked, comparison: Option<&Comparison>) -> bool {
    comparison.is_some_and(|c| c.half_width_at_end() <= asked.half_width().ln_1p())
}

/// All contenders at each load. Loads that no further pass is for are at their end.
pub(crate) fn fields(asked: &Asked, rounds: &[Round]) -> Vec<Field> {
    let mut fields = observe(asked, rounds);
    let wanted = wanted(asked, &fields);
    let over = fields.iter_mut().zip(wanted).filter(|(_, wanted)| !wanted);
    over.for_each(|(field, _)| field.end(asked));
    fields
}

/// The time left, in seconds; infinite without a limit.
fn left_s(asked: &Asked, fields: &[Field]) -> f64 {
    let spent_s: f64 = fields.iter().map(Field::spent_s).sum();
    asked.time_for_passes_s().map_or(f64::INFINITY, |time_s| time_s - spent_s)
}

/// Which loads another pass is for.
fn wanted(asked: &Asked, fields: &[Field]) -> Vec<bool> {
    let left_s = left_s(asked, fields);
    let wants = |field: &Field| field.wants_more(asked);
    let wanting: Vec<bool> = fields.iter().map(wants).collect();
    let open = || fields.iter().zip(&wanting).filter(|(_, wants)| **wants);
    let next_s: f64 = open().map(|(field, _)| field.pass_s(asked)).sum();
    // Without a minimum of starts, there is no interval.
    let may = |field: &Field| {
        let passes = field.passes(asked);
        let replaces = passes < REPLACED * field.least() && field.lacks_ratios(asked);
        next_s <= left_s || passes < field.least() || replaces
    };
    fields.iter().zip(&wanting).map(|(field, wants)| *wants && may(field)).collect()
}

/// Whether no planned round is missing.
pub(crate) fn is_complete(asked: &Asked, fields: &[Field]) -> bool {
    let is_whole = |field: &Field| {
        let passes = field.passes(asked);
        field.contenders.iter().filter(|o| o.settled.is_none()).all(|o| o.run >= passes)
    };
    fields.iter().all(|field| is_whole(field) && !field.goes_on())
}

impl Field {
    /// Passes before the first check.
    fn least(&self) -> u32 {
        if self.duel.is_some() { LEAST_LIVES } else { LEAST_PASSES }
    }

    /// Whether most contenders of a duel have no ratio, because too few of their lives count.
    fn lacks_ratios(&self, asked: &Asked) -> bool {
        let goals = self.goals(asked);
        let lacking = goals.iter().filter(|goal| goal.comparison.is_none()).count();
        self.duel.is_some() && 2 * lacking > goals.len()
    }

    /// Further starts with their time in seconds, if that is short enough to be advised.
    pub(crate) fn affordable(&self, starts: Option<u32>) -> Option<(u32, f64)> {
        let starts = starts?;
        let seconds = f64::from(starts) * self.start_s?;
        (seconds <= AFFORDABLE_S).then_some((starts, seconds))
    }

    /// Whether a further pass is allowed and could be of use.
    fn wants_more(&self, asked: &Asked) -> bool {
        let passes = self.passes(asked);
        if passes >= asked.rounds || self.runs(asked).is_empty() {
            return false;
        }
        if passes < self.least() || asked.precision.is_none() {
            return true;
        }
        let goals = self.goals(asked);
        let open = || goals.iter().filter(|goal| !self.is_hopeless(asked, goal));
        if !open().all(|goal| is_narrow(asked, goal.comparison.as_ref())) {
            return true;
        }
        let before = self.duel.as_ref().and_then(|_| self.before_last_life(asked));
        let was = |contender: &str| match &before {
            Some(duel) => Comparison::of_slices(duel, self.index(contender)?, duel.baseline),
            None => {
                let ratios = self.log_ratios(contender, &asked.baseline);
                Comparison::paired(ratios.split_last()?.1)
            }
        };
        !open().all(|goal| is_narrow(asked, was(goal.contender).as_ref()))
    }

    /// Whether a ratio needs far more than the possible number of starts. With a time limit none is: the time
    /// was granted, and what a machine disturbs now it may not disturb later.
    fn is_hopeless(&self, asked: &Asked, goal: &Goal) -> bool {
        let needed = goal.needed(asked).map_or(f64::INFINITY, f64::from);
        let [rounds, lives] = FORECAST_FROM;
        let enough = if self.duel.is_some() { lives } else { rounds };
        let needs_too_many = needed > HOPELESS * f64::from(asked.rounds);
        asked.time_s.is_none() && goal.starts >= enough && needs_too_many
    }

    /// The ratios of all ranked contenders that have a cost, if the baseline has one.
    fn goals<'a>(&self, asked: &'a Asked) -> Vec<Goal<'a>> {
        if self.why_no_cost(&asked.baseline).is_some() {
            return Vec::new();
        }
        let counts = |name: &&String| {
            **name != asked.baseline
                && !asked.is_reference(name)
                && self.why_no_cost(name).is_none()
        };
        let goal = |contender: &'a String| {
            let comparison = self.compare(contender, &asked.baseline);
            let starts = self.log_ratios(contender, &asked.baseline).len() as u32;
            Goal { contender, comparison, starts }
        };
        asked.contenders.iter().filter(counts).map(goal).collect()
    }
}

/// The precision reached, against the requested one.
pub(crate) fn precision(asked: &Asked, fields: &[Field]) -> Option<Precision> {
    let width = asked.precision?;
    let percent = crate::whole::gate::percent(width);
    let mut missing = Vec::new();
    // Beside another load no cost is compared.
    for field in fields.iter().filter(|field| field.load.beside.is_none()) {
        let goals = field.goals(asked);
        if goals.is_empty() {
            missing.push(format!(
                "at {} there is no ratio: the baseline or all others have no cost",
                field.load
            ));
        }
        let unit = if field.duel.is_some() { "lives" } else { "rounds" };
        for goal in &goals {
            let starts = goal.starts;
            // As in the table: wider than at the end of the race, if it is not over.
            let now = goal.comparison.as_ref().map(|c| c.half_width().exp_m1());
            let now = match now {
                Some(now) if now <= width => continue,
                Some(now) if known_floor(Some(now)).is_none() => {
                    format!("not known after {starts} {unit}")
                }
                Some(now) => format!("±{:.1}% after {starts} {unit}", now * 100.0),
                None => format!("no interval after {starts} {unit}"),
            };
            let further = goal.comparison.as_ref().and_then(|c| c.further_starts(width.ln_1p()));
            let takes = match field.affordable(further.map(|further| further.likely.max(1))) {
                Some((starts, seconds)) => more_in_words(starts, seconds, field.duel.is_some()),
                None => "longer than ten minutes; longer windows or a quieter machine would help"
                    .to_owned(),
            };
            let takes =
                if starts > 1 { format!("; ±{percent} takes {takes}") } else { String::new() };
            missing.push(format!("{} at {}: {now}{takes}", goal.contender, field.load));
        }
    }
    let passes = fields.iter().map(|field| field.passes(asked)).max();
    Some(Precision {
        asked: width,
        reached: missing.is_empty(),
        rounds: passes.unwrap_or(0),
        missing,
    })
}
