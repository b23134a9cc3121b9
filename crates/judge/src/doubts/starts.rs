//! Contenders that are not the same from start to start.

use crate::{
    field::Field,
    statistics::{TwoKinds, holm, two_kinds},
};
use regatta_record::NULL;

/// Most that Holm's correction may give to the event that any honest contender of a race is accused. In
/// simulated races it is half of that (`statistics::starts`).
const CHANCE: f64 = 0.02;

/// Contenders whose cost is of two kinds, by Holm's correction over all contenders of all loads.
pub fn uneven(fields: &[Field]) -> Vec<String> {
    let mut all: Vec<(&Field, &str, Option<TwoKinds>)> = Vec::new();
    for field in fields {
        // The null server's cost is so small that it scatters in its own way.
        let is_believed = |name: &str| name != NULL && field.cost(name).is_some();
        let believed: Vec<_> = field.contenders.iter().filter(|o| is_believed(&o.name)).collect();
        let costs: Vec<_> = believed.iter().map(|o| &o.compared).collect();
        let kinds = two_kinds(&costs);
        all.extend(believed.iter().zip(kinds).map(|(o, kinds)| (field, o.name.as_str(), kinds)));
    }
    let p_values = all.iter().map(|(.., kinds)| kinds.map_or(1.0, |kinds| kinds.p_value));
    let p_values: Vec<f64> = p_values.collect();
    let told = all.iter().zip(holm(&p_values, CHANCE)).filter_map(|((field, name, kinds), falls)| {
        let TwoKinds { rarer, starts, factor, p_value } = kinds.filter(|_| falls)?;
        Some(format!(
            "at {} the cost of {name} differs between starts: in {rarer} of {starts} it is {factor:.2}× \
             what it is in the others, and no other contender shows the like (p = {p_value:.4}), so its \
             mean is the cost of no start; see which rounds these are (rounds.jsonl), and what a start of \
             {name} leaves to chance",
            field.load
        ))
    });
    told.collect()
}
