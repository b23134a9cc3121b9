//! All rounds in order of time, as columns of short numbers.

use regatta_record::{HistogramReader, Outcome, Round, Summary};
use serde::Serialize;

/// The rounds, as columns of equal length. A round takes about ten bytes of a page.
#[derive(Debug, Default, Serialize)]
pub struct Strip {
    /// Index of the contender in [`crate::data::Data::contenders`].
    contender: Vec<usize>,
    /// Index of the load.
    load: Vec<usize>,
    /// The pass, counted from 0.
    pass: Vec<u32>,
    /// Seconds from the start of the previous round to that of this one.
    after_s: Vec<u64>,
    /// 0 finished, 1 disqualified, 2 failed, 3 beyond a limit that the contender declares.
    outcome: Vec<u8>,
    /// Server CPU per operation, nanoseconds.
    cost_ns: Vec<Option<Short>>,
    /// Requests per second.
    rate_per_s: Vec<Option<Short>>,
    /// 99th percentile of latency, nanoseconds.
    p99_ns: Vec<Option<Short>>,
}

/// A number with four significant digits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Short(pub f64);

impl Serialize for Short {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let decimals = 3 - self.0.abs().max(1e-9).log10().floor() as i32;
        let power = 10f64.powi(decimals.clamp(-15, 12));
        let short = (self.0 * power).round() / power;
        match short.fract() == 0.0 && short.abs() < 1e15 {
            true => serializer.serialize_i64(short as i64),
            false => serializer.serialize_f64(short),
        }
    }
}

/// The rounds of a race, in the order in which they were run.
pub fn strip(summary: &Summary, contenders: &[&str], rounds: &[Round]) -> Strip {
    let mut strip = Strip::default();
    let mut reader = HistogramReader::default();
    let mut before = rounds.first().map_or(0, |round| round.started_unix_s);
    for round in rounds {
        let contender = contenders.iter().position(|name| *name == round.contender);
        let load = summary.asked.loads.iter().position(|load| *load == round.load);
        let (Some(contender), Some(load)) = (contender, load) else { continue };
        let finished = round.outcome == Outcome::Finished;
        strip.contender.push(contender);
        strip.load.push(load);
        strip.pass.push(round.round);
        strip.after_s.push(round.started_unix_s.saturating_sub(before));
        before = round.started_unix_s;
        strip.outcome.push(match round.outcome {
            Outcome::Finished => 0,
            Outcome::Disqualified { .. } => 1,
            Outcome::Failed { .. } => 2,
            Outcome::CannotHold { .. } => 3,
        });
        let count = round.count_of(&summary.asked.cost_per) as f64;
        let cost = round.server.as_ref().map(|server| server.cpu_ns as f64 / count);
        let rate = round.requests as f64 / (round.window_ns as f64 / 1e9);
        let p99 = round
            .histogram_of(&summary.asked.latency_of)
            .filter(|_| finished)
            .and_then(|text| reader.read(text).ok()?.percentiles(round.unanswered())[3]);
        let short = |value: Option<f64>| {
            value.filter(|value| finished && value.is_finite() && *value > 0.0).map(Short)
        };
        strip.cost_ns.push(short(cost));
        strip.rate_per_s.push(short(Some(rate)));
        strip.p99_ns.push(short(p99.map(|ns| ns as f64)));
    }
    strip
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits() {
        let text = |value| serde_json::to_string(&Short(value)).unwrap();
        let all = [5_321.7, 123_456.0, 0.012_345_6, 7.0, 98.765, 0.0].map(text);
        assert_eq!(all, ["5322", "123500", "0.01235", "7", "98.77", "0"]);
    }
}
