//! What the probe says beside what it takes off the ratios.

use crate::{
    field::{Field, TIE_MARGIN},
    statistics::{CONFIDENCE, Margins, aftermath, geometric, holm, p_value, relation},
};
use regatta_record::{Asked, Cell, Estimate, NULL, Relation};

/// Contenders that leave the machine slower or faster behind them than the others do, by Holm's
/// correction over all contenders of all loads, and by more than a tie.
pub fn left_behind(asked: &Asked, fields: &[Field]) -> Vec<String> {
    let mut all: Vec<(&Field, &str, Vec<f64>)> = Vec::new();
    for field in fields {
        let readings: Vec<_> =
            field.contenders.iter().map(|o| (&o.probe, &o.probe_after)).collect();
        let changes = aftermath(&readings);
        let named = field.contenders.iter().zip(changes);
        all.extend(named.map(|(o, changes)| (field, o.name.as_str(), changes)));
    }
    let p_values: Vec<f64> = all.iter().map(|(.., d)| p_value(d).unwrap_or(1.0)).collect();
    let differs = holm(&p_values, 1.0 - CONFIDENCE);
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

/// Cells whose relation to the baseline is another one without the adjustment.
pub fn changed_relations(asked: &Asked, cells: &[Cell]) -> Vec<String> {
    let says = |relation: Option<Relation>| match relation {
        Some(Relation::Cheaper) => Some("significantly cheaper"),
        Some(Relation::Dearer) => Some("significantly more expensive"),
        Some(Relation::Tied) => Some("tied"),
        Some(Relation::NotToldApart) => Some("not distinguishable"),
        Some(Relation::Baseline) | None => None,
    };
    let ratio = |ratio: Estimate| format!("{:.3} [{:.3}–{:.3}]", ratio.mean, ratio.low, ratio.high);
    let told = cells.iter().filter(|c| c.contender != NULL).filter_map(|c| {
        let (now, then) = (says(c.relation)?, says(c.relation_unadjusted)?);
        (now != then).then_some(())?;
        Some(format!(
            "at {} {} against {} is {now}, {}, only because ratios are adjusted by the machine probe; \
             without that it is {then}, {}: more rounds would decide",
            c.load,
            c.contender,
            asked.baseline,
            ratio(c.ratio_to_baseline?),
            ratio(c.ratio_unadjusted?),
        ))
    });
    told.collect()
}
