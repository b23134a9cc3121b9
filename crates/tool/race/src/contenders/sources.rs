//! Tests whether a contender costs the same from every source address.
//!
//! Rounds connect from source addresses drawn from their seed, so a server cannot be tuned for the
//! load's own addresses. A server that treats some sources better is found by connecting from
//! 127.0.0.1, as load generators usually do. Short loads from there alternate with loads from drawn
//! addresses, so that the machine's drift cancels out.

use regatta_host::Meter;
use regatta_load::{LoadProcessConfig, Moment, Plan, Until, WarmUp, run_in_processes};
use regatta_record::SOURCE_PAIRS;
use std::{sync::atomic::AtomicBool, time::Duration};

/// If observations may last less than this, in seconds, the test is skipped, so that quick races stay
/// quick.
pub(crate) const FROM_S: f64 = 10.0;
/// Warm-up of a short load: its connections are new.
const WARM_UP: Duration = Duration::from_millis(20);
/// Window of a short load.
const WINDOW: Duration = Duration::from_millis(60);
/// Maximum number of connections of a short load: the test does not depend on it.
const CONNECTIONS: usize = 64;

/// Returns for each pair of loads the logarithm of a ratio: the server's CPU time per request from
/// 127.0.0.1, over that from a drawn address. The server has just been loaded with `plan`; `meter`
/// reads its CPU time. `None` if that cannot be read, a load failed, or `stop` was set; the first round
/// reports failures.
pub(crate) fn compare(
    meter: &mut Meter,
    plan: &Plan,
    how: &LoadProcessConfig,
    stop: &AtomicBool,
) -> Option<[f64; SOURCE_PAIRS]> {
    let mut of = |nth: usize, draws_sources: bool| {
        let plan = Plan {
            connections: plan.connections.min(CONNECTIONS),
            idle: 0,
            stalled: 0,
            passing: 0,
            warm_up: WarmUp::Fixed(WARM_UP),
            until: Until::Elapsed(WINDOW),
            withholds: false,
            draws_sources,
            seed: plan.seed.wrapping_add(nth as u64),
            ..plan.clone()
        };
        let mut cpu_ns = None;
        let mut lap = |moment: Moment| match moment {
            Moment::WindowOpens => _ = meter.lap(),
            Moment::WindowCloses => cpu_ns = meter.lap(),
            _ => {}
        };
        let tally = run_in_processes(&plan, how, &mut lap, &mut |_| (), stop).ok()?;
        let is_right = tally.first_wrong.is_none() && !tally.interrupted && tally.requests > 0;
        let cost = cpu_ns.filter(|ns| is_right && *ns > 0)? as f64 / tally.requests as f64;
        Some(cost.ln())
    };
    let mut logs = [0.0; SOURCE_PAIRS];
    for (nth, log) in logs.iter_mut().enumerate() {
        // The two take turns in going first.
        let draws_first = nth % 2 == 0;
        let (first, second) = (of(nth, draws_first)?, of(nth, !draws_first)?);
        *log = if draws_first { second - first } else { first - second };
    }
    Some(logs)
}
