//! Gates: is anything significantly more expensive than allowed? The gate of a race against its
//! baseline (`--fail-over`) is here, that of two results in `diff`. Both are judged in the same
//! way.

use crate::field::Field;
use crate::statistics::{CONFIDENCE, Difference, Floor, holm, is_known, known_floor};
use regatta_record::{Asked, Cell, Estimate, Gate, GateLine, Judgement, Kind, LoadShape};

/// A cell to be judged.
pub struct Compared {
    pub contender: String,
    pub load: LoadShape,
    /// Logarithm of the new cost over the old; or why there is none.
    pub difference: Result<Difference, String>,
    /// The ratio to print.
    pub ratio: Option<Estimate>,
}

/// The gate of a race with a limit.
pub fn of_race(
    asked: &Asked,
    fields: &[Field],
    cells: &[Cell],
    noise_floor: Option<f64>,
    parts: Floor,
) -> Option<Gate> {
    let limit = asked.fail_over?;
    let compared = fields.iter().flat_map(|field| field.compared(asked, cells)).collect();
    Some(Gate {
        old: asked.baseline.clone(),
        new: "every contender".to_owned(),
        fail_over: Some(limit),
        method: format!(
            "server CPU per {} over that of {} in the same round; worse: the one-sided 95% interval of \
             the ratio lies above the limit, with Holm's correction over all lines; within: it lies \
             below; otherwise not decided",
            asked.cost_per.one, asked.baseline
        ),
        lines: lines(compared, Some(limit)),
        doubts: too_noisy(limit, noise_floor, parts).into_iter().collect(),
    })
}

fn too_noisy(limit: f64, noise_floor: Option<f64>, parts: Floor) -> Option<String> {
    let floor = noise_floor.filter(|floor| *floor > limit)?;
    let is = match known_floor(Some(floor)) {
        Some(floor) => format!("±{:.1}%", floor * 100.0),
        None => "beyond a factor of ten".to_owned(),
    };
    let remedy = match parts.lasting.exp_m1() {
        lasting if lasting > limit => "more rounds do not help; raise the limit",
        _ => "run more rounds or longer windows, or raise the limit",
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
    fn compared(&self, asked: &Asked, cells: &[Cell]) -> Vec<Compared> {
        let ratio_of = |name: &str| {
            let cell = cells.iter().find(|c| c.load == self.load && c.contender == name)?;
            cell.ratio_to_baseline
        };
        let judged = self.contenders.iter().filter(|o| {
            let reported = o.settled.as_ref().is_some_and(|v| match v.kind {
                Kind::Skipped => true,
                Kind::Disqualified => asked.is_exhibit(&o.name),
                _ => false,
            });
            o.name != asked.baseline && !asked.is_reference(&o.name) && !reported
        });
        judged
            .filter_map(|observed| {
                let name = &observed.name;
                let difference = match (self.why_no_cost(&asked.baseline), self.why_no_cost(name)) {
                    (Some(_), Some(_)) => return None,
                    (Some(why), None) => Err(format!("{} {why}", asked.baseline)),
                    (None, Some(why)) => Err(format!("{name} {why}")),
                    (None, None) => self.difference(name, &asked.baseline),
                };
                let ratio = difference.as_ref().ok().and_then(|_| ratio_of(name));
                Some(Compared { contender: name.clone(), load: self.load, difference, ratio })
            })
            .collect()
    }

    fn difference(&self, new: &str, old: &str) -> Result<Difference, String> {
        Difference::paired(&self.log_ratios(new, old)).ok_or_else(|| {
            "fewer than 2 rounds in common: there is no interval; run more rounds".to_owned()
        })
    }

    /// Why a contender has no trusted cost; `None` if it has one.
    pub(super) fn why_no_cost(&self, name: &str) -> Option<String> {
        let Some(observed) = self.of(name) else { return Some("did not race".to_owned()) };
        let verdict = self.verdict(observed);
        if verdict.voids(regatta_record::Figure::Cost) {
            return Some(format!("is {}: {}", verdict.kind.name(), verdict.because));
        }
        let unseen = observed.cost.iter().all(Option::is_none);
        unseen.then(|| "has no cost: its processes were not observed".to_owned())
    }
}

/// Judges all cells together: Holm's correction covers all that can be judged.
pub fn lines(compared: Vec<Compared>, limit: Option<f64>) -> Vec<GateLine> {
    let known: Vec<Difference> =
        compared.iter().filter_map(|c| c.difference.as_ref().ok().copied()).collect();
    let alpha = 1.0 - CONFIDENCE;
    let rejected = |p: &dyn Fn(&Difference) -> f64| {
        holm(&known.iter().map(p).collect::<Vec<_>>(), alpha).into_iter()
    };
    let mut differs = rejected(&|d| d.p_differs());
    let mut worse = rejected(&|d| limit.map_or(1.0, |limit| d.p_above(limit.ln_1p())));
    let line = |c: Compared| {
        let (judgement, because) = match &c.difference {
            Err(why) => (Judgement::Unknown, why.clone()),
            Ok(difference) => {
                let next = |of: &mut dyn Iterator<Item = bool>| of.next().unwrap_or_default();
                judgement(difference, next(&mut worse), next(&mut differs), limit)
            }
        };
        GateLine { contender: c.contender, load: c.load, ratio: c.ratio, judgement, because }
    };
    compared.into_iter().map(line).collect()
}

fn judgement(
    difference: &Difference,
    worse: bool,
    differs: bool,
    limit: Option<f64>,
) -> (Judgement, String) {
    let ratio = difference.ratio();
    let Estimate { mean, low, high } = ratio;
    let half = ((high / low).sqrt() - 1.0) * 100.0;
    let at_least = difference.at_least();
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
        (_, _, Some(limit)) if difference.at_most() > 1.0 + limit => {
            (Judgement::Undecided, undecided(difference, limit))
        }
        (_, true, Some(limit)) if mean > 1.0 => (
            Judgement::Differs,
            format!("significantly more expensive, but within {}", percent(limit)),
        ),
        (_, true, None) if mean > 1.0 => {
            (Judgement::Differs, "significantly more expensive".to_owned())
        }
        (_, true, _) => (Judgement::Differs, "significantly cheaper".to_owned()),
        (_, false, _) if !is_known(&ratio) => {
            (Judgement::Same, "no difference is reported: the ratio is not known".to_owned())
        }
        (_, false, _) => (Judgement::Same, format!("no difference at ±{half:.1}%")),
    }
}

/// With advice.
fn undecided(difference: &Difference, limit: f64) -> String {
    let (least, most) = (difference.at_least(), difference.at_most());
    let remedy = match difference.rounds_to_decide(limit.ln_1p()) {
        // By chance the estimate may be lower than the rounds already run, which did not decide.
        Some(rounds) => {
            let rounds = rounds.max(difference.rounds() as u32 + 1);
            format!("about {rounds} rounds would decide")
        }
        None => "it is so close to the limit that more rounds may never decide".to_owned(),
    };
    let limit = percent(limit);
    if !is_known(&difference.ratio()) {
        return format!(
            "the ratio is not known, so it is not decided whether it is within {limit}: {remedy}"
        );
    }
    format!(
        "between {least:.3} and {most:.3} times the cost, an interval that includes the limit of \
         {limit}: {remedy}"
    )
}
