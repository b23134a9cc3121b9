//! `--precision`: which loads need further passes, the precision reached, and the passes it needs.
//!
//! From the fifth pass on, every ratio to the baseline is checked after each pass. A load gets no
//! further pass once all of its ratios were narrow enough after two consecutive passes, or need far
//! more passes than permitted. Stopping when the data look good
//! makes intervals a little too narrow. In the limit of narrow intervals their coverage is exact
//! (Chow and Robbins, *On the asymptotic theory of fixed-width sequential confidence intervals for
//! the mean*, Annals of Mathematical Statistics 36, 1965), but after few passes a variance that is
//! small by chance ends the race. Hence at least [`LEAST_PASSES`], and the second check. With both,
//! the 95% intervals of simulated normal log-ratios cover the true value in 93% of the races in the
//! worst case (about 12 to 25 passes), against 92% with one check.

use crate::statistics::{Needed, Series, geometric, known_floor, paired, rounds_needed};
use crate::{
    field::{Field, adjust_for_machine, observe},
    observed::Observed,
};
use regatta_record::{Asked, Cell, LoadShape, Precision, Round, rounds_in_words};
use std::collections::BTreeMap;

/// Passes that are run before the first check.
pub const LEAST_PASSES: u32 = 5;
/// Maximum number of passes without `--rounds`.
pub const MOST_PASSES: u32 = 50;
/// Number of passes from which a forecast may call a ratio hopeless.
const FORECAST_FROM: usize = 10;
/// A ratio is hopeless if it needs this many times the maximum number of passes. After ten passes
/// the number of rounds needed is known to within a factor of about two.
const HOPELESS: u32 = 4;

/// The next pass of a race.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// The loads of the pass; empty: the race is over.
    pub loads: Vec<LoadShape>,
    /// Forecast of the total number of passes, at most the requested number.
    pub passes: u32,
    /// Half-width of the widest ratio of these loads so far, as a fraction. `None` without a requested
    /// precision, and before its first check.
    pub widest: Option<f64>,
}

/// Returns the loads due in the pass `pass` (from 0). It depends only on the rounds before that
/// pass, so a resumed race continues as if it had never stopped.
pub fn due(asked: &Asked, rounds: &[Round], pass: u32) -> Due {
    let all = |loads| Due { loads, passes: asked.rounds, widest: None };
    if pass >= asked.rounds {
        return all(Vec::new());
    }
    if asked.precision.is_none() || pass < LEAST_PASSES {
        return all(asked.loads.clone());
    }
    let before: Vec<Round> = rounds.iter().filter(|r| r.round < pass).cloned().collect();
    let fields = observe(asked, &before);
    let open: Vec<&Field> = fields.iter().filter(|field| field.wants_more(asked)).collect();
    let ratios = || open.iter().flat_map(|field| field.ratios(asked));
    let forecast = ratios().filter_map(|ratio| Some(ratio.needed()?.likely)).max();
    let soonest = pass + 1;
    Due {
        loads: open.iter().map(|field| field.load).collect(),
        passes: forecast.unwrap_or(soonest).max(soonest).min(asked.rounds),
        widest: ratios().filter_map(|ratio| ratio.width()).max_by(f64::total_cmp),
    }
}

/// A ratio to the baseline that should become narrow.
struct Ratio<'a> {
    contender: &'a str,
    log_ratios: Vec<f64>,
    /// The same, before the load's last pass.
    before: Vec<f64>,
    asked: &'a Asked,
}

impl Ratio<'_> {
    fn rounds(&self) -> usize {
        self.log_ratios.len()
    }

    /// Half-width as a fraction; `None` with fewer than 2 rounds.
    fn width(&self) -> Option<f64> {
        self.width_of(&self.log_ratios)
    }

    fn width_of(&self, log_ratios: &[f64]) -> Option<f64> {
        let interval = geometric(log_ratios, self.asked.seed)?;
        Some((interval.high / interval.low).sqrt() - 1.0)
    }

    fn needed(&self) -> Option<Needed> {
        rounds_needed(&self.log_ratios, self.asked.half_width())
    }

    /// Whether it is narrow enough, and was so before the last pass.
    fn is_narrow(&self) -> bool {
        let narrow =
            |logs: &[f64]| self.width_of(logs).is_some_and(|w| w <= self.asked.half_width());
        narrow(&self.log_ratios) && narrow(&self.before)
    }

    fn is_hopeless(&self) -> bool {
        let needed = self.needed().filter(|_| self.rounds() >= FORECAST_FROM);
        needed.is_some_and(|n| n.likely > self.asked.rounds.saturating_mul(HOPELESS))
    }
}

impl Field {
    /// Whether a further pass could reach the requested precision.
    fn wants_more(&self, asked: &Asked) -> bool {
        asked.precision.is_some()
            && self.ratios(asked).iter().any(|r| !r.is_narrow() && !r.is_hopeless())
    }

    /// The ratios of all ranked contenders that have a cost, if the baseline has one.
    fn ratios<'a>(&self, asked: &'a Asked) -> Vec<Ratio<'a>> {
        if self.why_no_cost(&asked.baseline).is_some() {
            return Vec::new();
        }
        let counts = |name: &&String| {
            **name != asked.baseline
                && !asked.is_reference(name)
                && self.why_no_cost(name).is_none()
        };
        let before = self.before_last_pass();
        let compared = |name: &str| before.iter().find(|o| o.name == name).map(|o| &o.compared);
        let ratio = |name: &'a String| {
            let log_ratios = self.log_ratios(name, &asked.baseline);
            let before = compared(name).zip(compared(&asked.baseline));
            let before = before.map_or_else(Vec::new, |(a, b)| paired(a, b));
            Ratio { contender: name, log_ratios, before, asked }
        };
        asked.contenders.iter().filter(counts).map(ratio).collect()
    }

    /// The costs as compared before the load's last pass. The adjustment for the probe is fitted to
    /// the passes run so far, so the last pass also changes the ratios of earlier ones.
    fn before_last_pass(&self) -> Vec<Observed> {
        let last = |series: &Series| series.iter().rposition(Option::is_some);
        let last = self.contenders.iter().filter_map(|o| last(&o.cost)).max().unwrap_or(0);
        let cut = |series: &Series| series[..last].to_vec();
        let without = |o: &Observed| Observed {
            name: o.name.clone(),
            cost: cut(&o.cost),
            compared: cut(&o.cost),
            probe: cut(&o.probe),
            ..Observed::default()
        };
        let mut before: Vec<Observed> = self.contenders.iter().map(without).collect();
        adjust_for_machine(&mut before);
        before
    }

    /// Whether no planned round is missing.
    pub(super) fn is_complete(&self, asked: &Asked) -> bool {
        let open = || self.contenders.iter().filter(|o| o.settled.is_none()).map(|o| o.run);
        let (Some(least), Some(most)) = (open().min(), open().max()) else { return true };
        let early = asked.precision.is_some() && least >= LEAST_PASSES && least == most;
        least >= asked.rounds || early && !self.wants_more(asked)
    }
}

/// The precision reached, against the requested one.
pub fn precision(asked: &Asked, fields: &[Field], pass_s: Option<f64>) -> Option<Precision> {
    let width = asked.precision?;
    let percent = crate::gate::percent(width);
    let mut missing = Vec::new();
    // Beside another load no cost is compared.
    for field in fields.iter().filter(|field| field.load.beside.is_none()) {
        let ratios = field.ratios(asked);
        if ratios.is_empty() {
            missing.push(format!(
                "at {} there is no ratio: the baseline or all others have no cost",
                field.load
            ));
        }
        for ratio in &ratios {
            let now = match ratio.width() {
                Some(now) if now <= width => continue,
                Some(now) if known_floor(Some(now)).is_none() => {
                    format!("not known after {} rounds", ratio.rounds())
                }
                Some(now) => format!("±{:.1}% after {} rounds", now * 100.0, ratio.rounds()),
                None => format!("no interval after {} rounds", ratio.rounds()),
            };
            let takes = ratio.needed().map_or_else(String::new, |needed| {
                let words = rounds_in_words(needed.likely, Some(needed.at_most), pass_s);
                format!("; ±{percent} takes {words}")
            });
            let hopeless = match ratio.is_hopeless() {
                true => format!(
                    ", which is not feasible with at most {}: longer windows, a quieter machine or \
                     --rounds would help",
                    asked.rounds
                ),
                false => String::new(),
            };
            missing.push(format!("{} at {}: {now}{takes}{hopeless}", ratio.contender, field.load));
        }
    }
    let run = fields.iter().flat_map(|f| f.contenders.iter().map(|o| o.run));
    Some(Precision {
        asked: width,
        reached: missing.is_empty(),
        rounds: run.max().unwrap_or(0),
        missing,
    })
}

/// Sets the number of rounds that each cell's ratio needs, at the observed variance.
pub fn plan(asked: &Asked, fields: &[Field], cells: &mut [Cell]) {
    for field in fields {
        for ratio in field.ratios(asked) {
            let is_its = |c: &&mut Cell| c.load == field.load && c.contender == ratio.contender;
            let Some(cell) = cells.iter_mut().find(is_its) else { continue };
            let needed = ratio.needed();
            cell.rounds_needed = needed.map(|needed| needed.likely);
            cell.rounds_needed_at_most = needed.map(|needed| needed.at_most);
        }
    }
}

/// Median time from the start of a pass to the start of the next one, in seconds. `None` with fewer
/// than 2 passes.
pub fn pass_s(rounds: &[Round]) -> Option<f64> {
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
