//! Deliveries between the agents of a level (pure). Their latencies are known to within a bound.

use super::search::Shown;
use regatta_record::{Latency, Limit, LoadAcross, decode_histogram};
use std::time::Duration;

/// Judges deliveries between agents; `None` if they are within `limit`. A broadcast has reached its last
/// member only after each single delivery of it, so a percentile of the single ones is a lower bound. The
/// level has failed only if it is above the limit whatever the clocks show, and is unclear if it may be.
pub fn judge_across(limit: Limit, across: &LoadAcross) -> Option<(Shown, String)> {
    let unclear = |because: String| Some((Shown::Unclear, because));
    if across.unchecked > 0 {
        return across.void().map(|because| (Shown::Failed, because));
    }
    if let Some(because) = across.void() {
        return unclear(format!("deliveries between agents: {because}"));
    }
    let name = limit.percentile();
    let Some(ns) = percentile(limit, across) else {
        let count = across.deliveries;
        return unclear(format!(
            "{count} deliveries between agents are too few for {name}; pass a longer --window"
        ));
    };
    let (shown, bound) = (Duration::from_nanos(ns), Duration::from_nanos(across.bound_ns));
    let figure = format!("{name} of deliveries between agents is {shown:.1?} ± {bound:.1?}");
    match () {
        () if ns.saturating_sub(across.bound_ns) > limit.ns => {
            Some((Shown::Failed, format!("{figure}, above the limit")))
        }
        () if ns.saturating_add(across.bound_ns) > limit.ns => {
            unclear(format!("{figure}, so it may be above the limit"))
        }
        () => None,
    }
}

fn percentile(limit: Limit, across: &LoadAcross) -> Option<u64> {
    let latencies = decode_histogram(&across.histogram).ok()?;
    let rank = (latencies.len() as f64 * limit.quantile).ceil() as u64;
    let beyond = latencies.len().saturating_sub(rank);
    (beyond >= Latency::SAMPLES_BEYOND).then(|| latencies.value_at_quantile(limit.quantile))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use regatta_record::encode_histogram;

    const LIMIT: Limit = Limit { quantile: 0.5, ns: 50_000_000 };

    /// This many deliveries, each of which took this long.
    fn across(count: u64, ns: u64, bound_ns: u64) -> LoadAcross {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 240_000_000_000, 3).unwrap();
        histogram.record_n(ns, count).unwrap();
        LoadAcross {
            deliveries: count,
            impossible: 0,
            unchecked: 0,
            bound_ns,
            latency_ns: Latency::of(&histogram),
            histogram: encode_histogram(&histogram),
            pairs: Vec::new(),
        }
    }

    #[track_caller]
    fn shows(across: &LoadAcross, expected: Shown, text: &str) {
        let (shown, because) = judge_across(LIMIT, across).unwrap();
        assert_eq!(shown, expected, "{because}");
        assert!(because.contains(text), "{because}");
    }

    #[test]
    fn late_deliveries_between_agents_fail_a_level_only_beyond_their_bound() {
        const MS: u64 = 1_000_000;
        assert_eq!(judge_across(LIMIT, &across(10_000, 40 * MS, 9 * MS)), None);
        shows(&across(10_000, 300 * MS, MS), Shown::Failed, "above the limit");
        shows(&across(10_000, 52 * MS, 3 * MS), Shown::Unclear, "may be above the limit");
        shows(&across(10_000, 48 * MS, 3 * MS), Shown::Unclear, "may be above the limit");
        shows(&across(10_000, 300 * MS, u64::MAX), Shown::Unclear, "may be above the limit");
        shows(&across(10, MS, MS), Shown::Unclear, "too few for p50");
    }

    #[test]
    fn void_latencies_show_nothing_and_closed_connections_fail_a_level() {
        let impossible = LoadAcross { impossible: 1, ..across(10_000, 1, 1) };
        shows(&impossible, Shown::Unclear, "a clock has failed, or the server");
        let closed = LoadAcross { unchecked: 2, ..across(10_000, 1, 1) };
        shows(&closed, Shown::Failed, "the connections of 2 members were closed");
    }
}
