//! Doubts that the machine probe raises, apart from its adjustment of the ratios.

use crate::{
    field::{Field, TIE_MARGIN},
    more_rounds,
    statistics::{Floor, Margins, aftermath, geometric, holm, p_value, paired, relation},
};
use regatta_record::{Asked, Cell, Estimate, NULL, Relation, alike, rounds_in_words};

/// Significance level, after Holm's correction: the chance that any honest contender of a race is
/// accused.
const CHANCE: f64 = 0.01;
/// Minimum number of rounds for an accusation: fewer have no known distribution.
const FEWEST: usize = 4;

/// Reports contenders that leave the machine slower or faster than the others do, by Student's test
/// with Holm's correction over all contenders of all loads, and by more than a tie.
pub fn left_behind(asked: &Asked, fields: &[Field]) -> Vec<String> {
    let mut all: Vec<(&Field, &str, Vec<f64>)> = Vec::new();
    for field in fields {
        let readings: Vec<_> =
            field.contenders.iter().map(|o| (&o.probe, &o.probe_after)).collect();
        let changes = aftermath(&readings);
        let named = field.contenders.iter().zip(changes);
        all.extend(named.map(|(o, changes)| (field, o.name.as_str(), changes)));
    }
    let p = |changes: &[f64]| p_value(changes).filter(|_| changes.len() >= FEWEST).unwrap_or(1.0);
    let p_values: Vec<f64> = all.iter().map(|(.., changes)| p(changes)).collect();
    let differs = holm(&p_values, CHANCE);
    let remarks = all.iter().zip(differs).filter_map(|((field, name, changes), differs)| {
        let change = geometric(changes, asked.seed)?;
        let slower = match relation(&change, differs, Margins { tie: TIE_MARGIN, floor: 0.0 }) {
            Relation::Costlier => "slower",
            Relation::Cheaper => "faster",
            Relation::Baseline | Relation::Tied | Relation::Inconclusive => return None,
        };
        Some(format!(
            "at {} {name} leaves the machine {slower} than the others do: right after it the probe \
             reads {:.2}× [{:.2}–{:.2}]; no ratio is adjusted by readings after a contender, but the \
             contender that runs next is affected: also race {name} alone with the baseline (--only)",
            field.load, change.mean, change.low, change.high
        ))
    });
    remarks.collect()
}

/// Reports cells whose relation to the baseline changes without the adjustment; cells with the same
/// remark share one sentence. `as_read` is the noise floor without the adjustment.
pub fn changed_relations(
    asked: &Asked,
    fields: &[Field],
    cells: &[Cell],
    as_read: Floor,
) -> Vec<String> {
    let in_words = |relation: Option<Relation>| match relation {
        Some(Relation::Cheaper) => Some("significantly cheaper"),
        Some(Relation::Costlier) => Some("significantly more expensive"),
        Some(Relation::Tied) => Some("tied"),
        Some(Relation::Inconclusive) => Some("not distinguishable"),
        Some(Relation::Baseline) | None => None,
    };
    let ratio =
        |ratio: Estimate| format!("{:.3} [{:.3} to {:.3}]", ratio.mean, ratio.low, ratio.high);
    let remarks = cells.iter().filter(|c| c.contender != NULL).filter_map(|c| {
        let (now, then) = (in_words(c.relation)?, in_words(c.relation_unadjusted)?);
        (now != then).then_some(())?;
        let advice = rounds_without(asked, fields, c, as_read).map_or_else(String::new, |rounds| {
            format!(" ({} would decide)", rounds_in_words(rounds, None, None))
        });
        let text = format!(
            "{now}, {}, only because ratios are adjusted for the machine probe; unadjusted: {then}, \
             {}{advice}",
            ratio(c.ratio_to_baseline?),
            ratio(c.ratio_unadjusted?),
        );
        Some((format!("{} at {}", c.contender, c.load), text))
    });
    let sentence = |(cells, text): (Vec<String>, String)| {
        format!("{} against {}: {text}", cells.join(" and "), asked.baseline)
    };
    alike(remarks).into_iter().map(sentence).collect()
}

/// The number of rounds that would decide the unadjusted ratio. `None` if it is decided, if no number
/// of rounds decides, or if the adjusted ratio is undecided too: then the cell reports a number
/// ([`Cell::rounds_to_decide`]).
fn rounds_without(asked: &Asked, fields: &[Field], cell: &Cell, as_read: Floor) -> Option<u32> {
    let is_decided = cell.relation != Some(Relation::Inconclusive);
    if !is_decided || cell.relation_unadjusted != Some(Relation::Inconclusive) {
        return None;
    }
    let field = fields.iter().find(|field| field.load == cell.load)?;
    let (own, baseline) = (field.of(&cell.contender)?, field.of(&asked.baseline)?);
    more_rounds::would_decide(asked, cell, &paired(&own.cost, &baseline.cost), as_read)
}
