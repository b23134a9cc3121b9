//! Contenders whose starts differ from each other.

use crate::{
    cell::observed::CellRounds,
    compared::field::Field,
    statistics::{TwoKinds, holm, two_kinds},
};
use regatta_record::{Doubt, Finding, NULL};

/// Significance level, after Holm's correction: the chance that any honest contender of a race is
/// accused. In simulated races it is half of that (`statistics::starts`).
const CHANCE: f64 = 0.02;

/// Reports contenders whose cost has two kinds, with Holm's correction over all contenders of all
/// loads.
pub fn uneven(fields: &[Field]) -> Vec<Finding> {
    let mut all: Vec<(&Field, &CellRounds, Option<TwoKinds>)> = Vec::new();
    for field in fields {
        // The null server's cost is so small that its variance has its own pattern.
        let is_trusted = |name: &str| name != NULL && field.cost(name).is_some();
        let trusted: Vec<&CellRounds> =
            field.contenders.iter().filter(|o| is_trusted(&o.name)).collect();
        let costs: Vec<_> = trusted.iter().map(|o| &o.cost).collect();
        let kinds = two_kinds(&costs);
        all.extend(trusted.into_iter().zip(kinds).map(|(o, kinds)| (field, o, kinds)));
    }
    let p_values = all.iter().map(|(.., kinds)| kinds.map_or(1.0, |kinds| kinds.p_value));
    let p_values: Vec<f64> = p_values.collect();
    let found = all.iter().zip(holm(&p_values, CHANCE)).filter_map(|((field, o, kinds), yes)| {
        let TwoKinds { rarer, starts, factor, p_value } = kinds.filter(|_| yes)?;
        let doubt = Doubt::UnevenStarts { starts: rarer, of: starts, factor, p: p_value };
        Some(field.finding(o, doubt))
    });
    found.collect()
}
