//! The results of an open loop in `regatta load`: the outcome of the requests that were due, the parts
//! of their latency, and whether their arrivals had the requested shape.

use indicatif::HumanCount;
use regatta_load::Tally;
use regatta_record::{ArrivalCheck, Arrivals, Latency, LoadResult, OpenLoop};

/// Share of the requests that may be unsent or time out before a rate counts as not reached.
const UNANSWERED: f64 = 0.01;

/// Adds the figures of an open loop to a result.
pub fn fill(result: &mut LoadResult, tally: &Tally) {
    let Some(open) = &tally.open_loop else { return };
    let beyond = open.unanswered();
    result.requests = open.due - beyond - open.refused;
    result.refused = open.refused;
    result.unsent = open.unsent;
    result.late = open.late;
    result.latency_ns = Latency::of_censored(&tally.histogram, beyond);
    // The histograms contain only answered requests. The others count as longer, except in the send lag.
    result.wait_ns = Some(Latency::of_censored(&open.wait, beyond));
    result.send_lag_ns = Some(Latency::of(&open.lag));
    result.service_ns = Some(Latency::of_censored(&open.service, open.timed_out + open.lost));
    result.open_loop = Some(open.to_record());
}

/// Whether at least 99% of the requests that were due were sent and answered, or refused, or lost to errors:
/// both are reported separately; of each stage, if there are stages. True without a rate.
pub fn rate_was_reached(result: &LoadResult) -> bool {
    let of_stages = result.stages.iter().map(|stage| &stage.open_loop);
    result.open_loop.iter().chain(of_stages).all(was_reached)
}

/// The same for the outcome of one schedule.
pub fn was_reached(open: &OpenLoop) -> bool {
    (open.unsent + open.timed_out) as f64 <= UNANSWERED * open.due as f64
}

/// A text that compares the requested rate with the outcome.
pub fn rate(asked: u32, arrivals: Arrivals, open: &OpenLoop, result: &LoadResult) -> String {
    let (asked, count) = (HumanCount(asked.into()), |n: u64| HumanCount(n).to_string());
    let mut outcomes = Vec::new();
    for (n, what) in [
        (open.unsent, "were never sent"),
        (open.timed_out, "timed out"),
        (open.lost, "were lost"),
        (open.refused, "were refused"),
        (open.late, "were sent more than 1 ms late"),
    ] {
        if n > 0 {
            outcomes.push(format!("{} {what}", count(n)));
        }
    }
    let due = count(open.due);
    let outcome =
        if outcomes.is_empty() { "all were answered".into() } else { outcomes.join(", ") };
    let reached = if rate_was_reached(result) {
        String::new()
    } else {
        format!(
            " but NOT REACHED: {}/s answered; lower --rate, or raise --connections or --pipeline",
            HumanCount(result.rate_per_s.round() as u64)
        )
    };
    format!("{asked}/s {} requested{reached}; of {due} due, {outcome}", arrivals.name())
}

/// A text that reports whether the requests arrived in the requested shape.
pub fn arrivals(shape: Arrivals, check: &ArrivalCheck) -> String {
    let ArrivalCheck { rate_per_s, distance, lag1, unsteadiness, .. } = check;
    let kept = if check.kept { "as requested" } else { "NOT as requested" };
    let correlation = match shape {
        Arrivals::Poisson => format!(", correlation of successive gaps {lag1:.2}"),
        Arrivals::Constant => String::new(),
    };
    format!(
        "{kept}: {}/s, gap distribution off by {}{correlation}, rate varies by up to {}",
        HumanCount(rate_per_s.round() as u64),
        percent(*distance),
        percent(*unsteadiness)
    )
}

fn percent(fraction: f64) -> String {
    format!("{:.1}%", fraction * 100.0)
}
