//! Whether the machine disturbed a cell: drift, steal, CPUs taken by other programs.

use super::{
    remedy::Remedy,
    used::{Used, WAITED},
};
use crate::cell::{observed::CellRounds, signals::Signals};
use crate::statistics::drift;
use regatta_record::{Cause, Kind, Side, Verdict};

/// Drift of the rate within the window beyond which a cell is unstable, as a factor.
pub const DRIFT: f64 = 1.05;
/// Share of the CPUs' time that the hypervisor gave to others above which latencies are not the
/// server's: at 2%, one request in fifty may be affected, and p99 shows these.
pub const STEAL: f64 = 0.02;

/// Drift: a cell is unstable if the interval of its rate's drift within the window lies entirely
/// beyond [`DRIFT`], up or down. Where replies come in steps (a server that sleeps), a third of the
/// window holds one step more or less; that much is not drift. What is `usual` for contenders that take
/// turns is the machine's drift, which their ratios do not contain.
pub fn drifting(observed: &CellRounds, usual: Signals) -> Option<Verdict> {
    let drift = drift(observed.slices.iter().map(Vec::as_slice))?;
    let third_ns = observed.window_s * 1e9 / observed.slices.len() as f64 / 3.0;
    let limit = DRIFT + observed.latencies.all.mean.unwrap_or(0.0) / third_ns;
    let of_all = usual.drift.unwrap_or(1.0);
    let sure = drift.low > of_all * limit || drift.high < of_all / limit;
    let cause = Cause::Drift {
        drift: drift.mean,
        drift_low: drift.low,
        drift_high: drift.high,
        usual: usual.drift,
        rounds: observed.slices.len() as u32,
    };
    let verdict = || Verdict::new(Kind::Unstable, cause);
    sure.then(|| verdict().with_remedy("a longer warm-up or window (--window) may help"))
}

/// Steal, and CPUs taken by other programs. The time that the `load` waited counts only where its
/// lag was not measured, and where it was not starved outright (a separate finding). What is `usual` for
/// contenders that take turns disturbs all of them, and is a finding on the load. Each cause is a finding.
pub fn disturbed(
    steal: Option<f64>,
    server: Option<Used>,
    load: Option<Used>,
    usual: Signals,
    remedy: Remedy<'_>,
) -> impl Iterator<Item = Verdict> {
    let beyond = |share: Option<f64>, limit: f64, usual: Option<f64>| {
        share.filter(|share| *share >= limit && Signals::is_unusual(*share, usual))
    };
    let load = load.filter(|load| !load.is_starved());
    let steal = beyond(steal, STEAL, usual.steal).map(|steal| {
        Verdict::new(Kind::Noisy, Cause::Stolen { steal })
            .with_remedy("use a quieter machine, or repeat at a quieter time")
    });
    let taken = |side, waited| {
        let cause = Cause::CpuTaken { side, waited, by_other_side: remedy.shares() };
        Verdict::new(Kind::Noisy, cause)
    };
    let server = beyond(server.and_then(|server| server.waited), WAITED, usual.server_waited);
    let server =
        server.map(|waited| taken(Side::Server, waited).with_remedy(remedy.another_for_server()));
    let load = beyond(load.and_then(|load| load.waited), WAITED, usual.load_waited);
    let load = load.map(|waited| taken(Side::Load, waited).with_remedy(remedy.another_for_load()));
    [steal, server, load].into_iter().flatten()
}
