//! Contenders whose cost depends on the source address of connections.

use crate::{
    cell::observed::CellRounds,
    compared::field::Field,
    statistics::{holm, p_value, student},
};
use regatta_record::{Doubt, Estimate, Finding};

/// Significance level, after Holm's correction: the chance that any honest contender of a race is
/// accused.
const CHANCE: f64 = 0.01;
/// Smallest factor that is reported.
const LEAST: f64 = 1.1;

/// Reports contenders whose cost differs between requests from 127.0.0.1 and requests from other
/// addresses of the machine: by Student's test on alternating loads ([`Settling::from_localhost`]),
/// with Holm's correction over all contenders.
///
/// [`Settling::from_localhost`]: regatta_record::Settling::from_localhost
pub fn favours(fields: &[Field]) -> Vec<Finding> {
    let tried = fields.iter().flat_map(|field| field.contenders.iter().map(move |o| (field, o)));
    let tried = tried.filter_map(|(field, o)| {
        let logs = o.settling?.from_localhost?;
        Some((field, o, student(&logs)?, p_value(&logs)?))
    });
    let tried: Vec<(&Field, &CellRounds, Estimate, f64)> = tried.collect();
    let p_values: Vec<f64> = tried.iter().map(|(.., p)| *p).collect();
    let significant = holm(&p_values, CHANCE);
    let accused = tried.iter().zip(significant).filter(|(_, yes)| *yes).map(|(one, _)| one);
    let accused = accused.filter(|(.., log, _)| log.mean.abs() > LEAST.ln());
    let finding = |(field, o, log, p): &(&Field, &CellRounds, Estimate, f64)| {
        let [factor, low, high] = [log.mean, log.low, log.high].map(f64::exp);
        field.finding(o, Doubt::SourceAddresses { factor, low, high, p: *p })
    };
    accused.map(finding).collect()
}
