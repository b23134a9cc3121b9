//! Gates: is anything significantly more expensive than allowed? The gate of a race against its
//! baseline (`--fail-over`) is here, that of two results in `diff`. Both are judged in the same
//! way.

use crate::{
    compared::{
        comparison::Comparison,
        field::{Field, Twin},
    },
    statistics::{CONFIDENCE, holm, is_known, known, known_floor},
};
use regatta_record::{
    Asked, Estimate, Gate, GateLine, Judgement, Kind, LoadShape, Schedule, more_in_words,
};

/// A cell to be judged.
pub struct Compared {
    pub contender: String,
    pub load: LoadShape,
    /// The new cost over the old; or why there is none.
    pub comparison: Result<Comparison, String>,
    /// The ratio to print.
    pub ratio: Option<Estimate>,
    /// What would decide it, if it is open and that does not take too long.
    pub remedy: Option<String>,
}

/// The gate of a race with a limit.
pub fn of_race<'a>(
    asked: &Asked,
    fields: impl Iterator<Item = (&'a Field, Option<&'a Twin>)> + Clone,
    noise_floor: Option<f64>,
) -> Option<Gate> {
    let limit = asked.fail_over?;
    let compared = fields.clone().flat_map(|(field, _)| field.compared(asked, limit)).collect();
    let offset = fields.map(|(_, twin)| Twin::offset(twin)).fold(0.0, f64::max);
    let (paired, more) = match asked.schedule {
        Schedule::Duels => ("blocks", "give it more time (--time)"),
        Schedule::Rounds => ("round", "run more rounds or longer windows"),
    };
    Some(Gate {
        old: asked.baseline.clone(),
        new: "every contender".to_owned(),
        fail_over: Some(limit),
        method: format!(
            "server CPU per {} over that of {} in the same {paired}; worse: the one-sided 95% interval of \
             the ratio lies above the limit, with Holm's correction over all lines; within: it lies \
             below; otherwise not decided",
            asked.cost_per.one, asked.baseline
        ),
        lines: lines(compared, Some(limit)),
        doubts: too_noisy(limit, noise_floor, offset, more).into_iter().collect(),
    })
}

fn too_noisy(limit: f64, noise_floor: Option<f64>, offset: f64, more: &str) -> Option<String> {
    let floor = noise_floor.filter(|floor| *floor > limit)?;
    let is = match known_floor(Some(floor)) {
        Some(floor) => format!("±{:.1}%", floor * 100.0),
        None => "beyond a factor of ten".to_owned(),
    };
    let remedy = match offset > limit {
        true => "more starts do not help; raise the limit".to_owned(),
        false => format!("{more}, or raise the limit"),
    };
    Some(format!(
        "this machine is too noisy for a limit of {}: its noise floor is {is}, so a rise of that \
         size cannot be distinguished from none; {remedy}",
        percent(limit)
    ))
}

/// `5%`, `2.5%`.
pub fn percent(fraction: f64) -> String {
    format!("{}%", (fraction * 1e4).round() / 100.0)
}

impl Field {
    /// Every ranked contender against the baseline. Contenders without a cost are left out if the
    /// baseline has none either. So are contenders that did not take part, and disqualified
    /// exhibits: both are reported elsewhere.
    fn compared(&self, asked: &Asked, limit: f64) -> Vec<Compared> {
        let judged = self.contenders.iter().filter(|o| {
            let reported = o.settled.as_ref().is_some_and(|v| match v.kind() {
                Kind::Skipped => true,
                Kind::Disqualified => asked.is_exhibit(&o.name),
                _ => false,
            });
            o.name != asked.baseline && !asked.is_reference(&o.name) && !reported
        });
        judged
            .filter_map(|observed| {
                let name = &observed.name;
                let comparison = match (self.why_no_cost(&asked.baseline), self.why_no_cost(name)) {
                    (Some(_), Some(_)) => return None,
                    (Some(why), None) => Err(format!("{} {why}", asked.baseline)),
                    (None, Some(why)) => Err(format!("{name} {why}")),
                    (None, None) => self.compare(name, &asked.baseline).ok_or_else(|| {
                        "too few starts in common: there is no interval; race for longer".to_owned()
                    }),
                };
                let ratio = comparison.as_ref().ok().and_then(|c| known(Some(c.ratio())));
                let decides = |c: &Comparison| {
                    let starts = c.starts_to_decide([(c.log() - limit.ln_1p()).abs()]);
                    let (starts, seconds) = self.affordable(starts)?;
                    Some(more_in_words(starts, seconds, self.duel.is_some()))
                };
                let remedy = comparison.as_ref().ok().and_then(decides);
                let (contender, load) = (name.clone(), self.load);
                Some(Compared { contender, load, comparison, ratio, remedy })
            })
            .collect()
    }

    /// Why a contender has no trusted cost; `None` if it has one.
    pub(crate) fn why_no_cost(&self, name: &str) -> Option<String> {
        let Some(observed) = self.of(name) else { return Some("did not race".to_owned()) };
        let verdict = self.verdict(observed);
        if verdict.voids(regatta_record::Figure::Cost) {
            return Some(format!("is {}: {}", verdict.kind().name(), verdict.because()));
        }
        let unseen = observed.cost.iter().all(Option::is_none);
        unseen.then(|| "has no cost: its processes were not observed".to_owned())
    }
}

/// Judges all cells together: Holm's correction covers all that can be judged.
pub fn lines(compared: Vec<Compared>, limit: Option<f64>) -> Vec<GateLine> {
    let known: Vec<&Comparison> =
        compared.iter().filter_map(|c| c.comparison.as_ref().ok()).collect();
    let alpha = 1.0 - CONFIDENCE;
    let rejected = |p: &dyn Fn(&Comparison) -> f64| {
        holm(&known.iter().map(|c| p(c)).collect::<Vec<_>>(), alpha).into_iter()
    };
    let mut differs = rejected(&|c| c.p());
    let mut worse = rejected(&|c| limit.map_or(1.0, |limit| c.p_above(limit.ln_1p())));
    let line = |c: &Compared| {
        let (judgement, because) = match &c.comparison {
            Err(why) => (Judgement::Unknown, why.clone()),
            Ok(comparison) => {
                let next = |of: &mut dyn Iterator<Item = bool>| of.next().unwrap_or_default();
                let (worse, differs) = (next(&mut worse), next(&mut differs));
                judgement(comparison, worse, differs, limit, c.remedy.as_deref())
            }
        };
        let (contender, load, ratio) = (c.contender.clone(), c.load, c.ratio);
        GateLine { contender, load, ratio, judgement, because }
    };
    compared.iter().map(line).collect()
}

fn judgement(
    comparison: &Comparison,
    worse: bool,
    differs: bool,
    limit: Option<f64>,
    remedy: Option<&str>,
) -> (Judgement, String) {
    let half = comparison.half_width().exp_m1() * 100.0;
    let at_least = comparison.at_least().exp();
    let is_above = comparison.log() > 0.0;
    match (worse, differs, limit) {
        (true, _, Some(limit)) => {
            let limit = percent(limit);
            (
                Judgement::Worse,
                format!(
                    "significantly more expensive, by more than {limit}: at least {at_least:.3} times \
                     the cost"
                ),
            )
        }
        (_, _, Some(limit)) if comparison.at_most() > limit.ln_1p() => {
            (Judgement::Undecided, undecided(comparison, limit, remedy))
        }
        (_, true, Some(limit)) if is_above => (
            Judgement::Differs,
            format!("significantly more expensive, but within {}", percent(limit)),
        ),
        (_, true, None) if is_above => {
            (Judgement::Differs, "significantly more expensive".to_owned())
        }
        (_, true, _) => (Judgement::Differs, "significantly cheaper".to_owned()),
        (_, false, _) if !is_known(&comparison.ratio()) => {
            (Judgement::Same, "no difference is reported: the ratio is not known".to_owned())
        }
        (_, false, _) => (Judgement::Same, format!("no difference at ±{half:.1}%")),
    }
}

/// With advice, if following it does not take too long.
fn undecided(comparison: &Comparison, limit: f64, remedy: Option<&str>) -> String {
    let [least, most] = [comparison.at_least(), comparison.at_most()].map(f64::exp);
    let remedy = remedy.map_or_else(String::new, |remedy| format!(": {remedy} would decide"));
    let limit = percent(limit);
    if !is_known(&comparison.ratio()) {
        return format!(
            "the ratio is not known, so it is not decided whether it is within {limit}{remedy}"
        );
    }
    format!(
        "between {least:.3} and {most:.3} times the cost, an interval that includes the limit of \
         {limit}{remedy}"
    )
}
