//! Contenders that care where connections come from.

use crate::{
    field::Field,
    statistics::{holm, p_value, student},
};
use regatta_record::Estimate;

/// Most that Holm's correction may give to the event that any honest contender of a race is accused.
const CHANCE: f64 = 0.01;
/// Less than this is no favour, as a factor.
const LEAST: f64 = 1.1;

/// Contenders that cost another thing where they are asked from 127.0.0.1 than where they are asked from
/// other addresses of the machine: by Student's test on loads in turn ([`Settling::from_localhost`]), with
/// Holm's correction over all contenders.
///
/// [`Settling::from_localhost`]: regatta_record::Settling::from_localhost
pub fn favours(fields: &[Field]) -> Vec<String> {
    let tried = fields.iter().flat_map(|field| field.contenders.iter().map(move |o| (field, o)));
    let tried = tried.filter_map(|(field, o)| {
        let logs = o.settling?.from_localhost?;
        Some((field, o.name.as_str(), student(&logs)?, p_value(&logs)?))
    });
    let tried: Vec<(&Field, &str, Estimate, f64)> = tried.collect();
    let p_values: Vec<f64> = tried.iter().map(|(.., p)| *p).collect();
    let falls = holm(&p_values, CHANCE);
    let accused = tried.iter().zip(falls).filter(|(_, falls)| *falls).map(|(one, _)| one);
    let accused = accused.filter(|(.., log, _)| log.mean.abs() > LEAST.ln());
    let sentence = |(field, name, log, p): &(&Field, &str, Estimate, f64)| {
        let [mean, low, high] = [log.mean, log.low, log.high].map(f64::exp);
        format!(
            "at {} {name} tells source addresses apart: asked from 127.0.0.1 it costs {mean:.2}× \
             [{low:.2}–{high:.2}] what it costs from other addresses of this machine (p = {p:.1e}); \
             the connections of rounds come from addresses that it cannot know in advance, so its \
             figures do not profit",
            field.load
        )
    };
    accused.map(sentence).collect()
}
