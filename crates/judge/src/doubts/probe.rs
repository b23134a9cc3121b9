//! What the probe says beside what it takes off the ratios.

use crate::{
    field::{Field, TIE_MARGIN},
    more_rounds,
    statistics::{Floor, Margins, aftermath, geometric, holm, p_value, paired, relation},
};
use regatta_record::{Asked, Cell, Estimate, NULL, Relation, alike, rounds_in_words};

/// Most that Holm's correction may give to the event that any honest contender of a race is accused.
const CHANCE: f64 = 0.01;
/// Fewest rounds of an accusation: fewer follow no distribution that is known.
const FEWEST: usize = 4;

/// Contenders that leave the machine slower or faster behind them than the others do, by Student's test
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
    let told = all.iter().zip(differs).filter_map(|((field, name, changes), differs)| {
        let change = geometric(changes, asked.seed)?;
        let slower = match relation(&change, differs, Margins { tie: TIE_MARGIN, floor: 0.0 }) {
            Relation::Dearer => "slower",
            Relation::Cheaper => "faster",
            Relation::Baseline | Relation::Tied | Relation::NotToldApart => return None,
        };
        Some(format!(
            "at {} {name} leaves the machine {slower} behind it than the others do: right after it \
             the probe reads {:.2}× [{:.2}–{:.2}]; no ratio is adjusted by readings after a \
             contender, but whoever runs next meets that machine: race {name} alone with the baseline \
             too (--only)",
            field.load, change.mean, change.low, change.high
        ))
    });
    told.collect()
}

/// Cells whose relation to the baseline is another one without the adjustment, those of which the same is
/// said in one sentence. `as_read` is the noise floor without the adjustment.
pub fn changed_relations(
    asked: &Asked,
    fields: &[Field],
    cells: &[Cell],
    as_read: Floor,
) -> Vec<String> {
    let says = |relation: Option<Relation>| match relation {
        Some(Relation::Cheaper) => Some("significantly cheaper"),
        Some(Relation::Dearer) => Some("significantly more expensive"),
        Some(Relation::Tied) => Some("tied"),
        Some(Relation::NotToldApart) => Some("not distinguishable"),
        Some(Relation::Baseline) | None => None,
    };
    let ratio =
        |ratio: Estimate| format!("{:.3} [{:.3} to {:.3}]", ratio.mean, ratio.low, ratio.high);
    let remarks = cells.iter().filter(|c| c.contender != NULL).filter_map(|c| {
        let (now, then) = (says(c.relation)?, says(c.relation_unadjusted)?);
        (now != then).then_some(())?;
        let advice = rounds_without(asked, fields, c, as_read).map_or_else(String::new, |rounds| {
            format!(" ({} would tell)", rounds_in_words(rounds, None, None))
        });
        let text = format!(
            "{now}, {}, only because ratios are adjusted by the machine probe; without that {then}, \
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

/// How many rounds would tell a ratio without the adjustment, where that alone is not told yet; where it
/// is not told with the adjustment either, the cell says so itself ([`Cell::rounds_to_tell`]).
fn rounds_without(asked: &Asked, fields: &[Field], cell: &Cell, as_read: Floor) -> Option<u32> {
    let is_told = cell.relation != Some(Relation::NotToldApart);
    if !is_told || cell.relation_unadjusted != Some(Relation::NotToldApart) {
        return None;
    }
    let field = fields.iter().find(|field| field.load == cell.load)?;
    let (own, baseline) = (field.of(&cell.contender)?, field.of(&asked.baseline)?);
    more_rounds::would_tell(asked, cell, &paired(&own.cost, &baseline.cost), as_read)
}
