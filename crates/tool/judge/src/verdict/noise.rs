//! Whether the machine disturbed a cell: drift, steal, CPUs taken by other programs.

use super::{
    remedy::Remedy,
    used::{Used, WAITED, percent},
};
use crate::cell::{observed::Observed, signals::Signals};
use crate::statistics::drift;
use regatta_record::{Kind, Verdict};

/// Drift of the rate within the window beyond which a cell is unstable, as a factor.
pub const DRIFT: f64 = 1.05;
/// Share of the CPUs' time that the hypervisor gave to others above which latencies are not the
/// server's: at 2%, one request in fifty may be affected, and p99 shows these.
pub const STEAL: f64 = 0.02;

/// Drift: a cell is unstable if the interval of its rate's drift within the window lies entirely
/// beyond [`DRIFT`], up or down. Where replies come in steps (a server that sleeps), a third of the
/// window holds one step more or less; that much is not drift. What is `usual` for contenders that take
/// turns is the machine's drift, which their ratios do not contain.
pub fn drifting(observed: &Observed, usual: Signals) -> Option<Verdict> {
    let drift = drift(observed.slices.iter().map(Vec::as_slice))?;
    let third_ns = observed.window_s * 1e9 / observed.slices.len() as f64 / 3.0;
    let limit = DRIFT + observed.latencies.all.mean.unwrap_or(0.0) / third_ns;
    let of_all = usual.drift.unwrap_or(1.0);
    let sure = drift.low > of_all * limit || drift.high < of_all / limit;
    sure.then(|| {
        let percent = |factor: f64| (factor - 1.0) * 100.0;
        let others = match usual.drift {
            Some(usual) => format!(" (usual here: {:+.0}%)", percent(usual)),
            None => String::new(),
        };
        let because = format!(
            "the rate drifts by {:+.0}% [{:+.0} to {:+.0}]{others} from the first third of the window to \
             the last, over {} rounds; a longer warm-up or window (--window) may help",
            percent(drift.mean),
            percent(drift.low),
            percent(drift.high),
            observed.slices.len()
        );
        let figures = [
            ("drift", drift.mean - 1.0),
            ("drift_low", drift.low - 1.0),
            ("drift_high", drift.high - 1.0),
        ];
        Verdict::new(Kind::Unstable, because).with(figures)
    })
}

/// Steal, and CPUs taken by other programs. The time that the `load` waited counts only where its
/// lag was not measured, and where it was not starved outright (a separate finding). What is `usual` for
/// contenders that take turns disturbs all of them, and is a finding on the load.
pub fn disturbed(
    steal: Option<f64>,
    server: Option<Used>,
    load: Option<Used>,
    usual: Signals,
    remedy: Remedy<'_>,
) -> Option<Verdict> {
    let (mut causes, mut figures) = (Vec::new(), Vec::new());
    let beyond = |share: Option<f64>, limit: f64, usual: Option<f64>| {
        share.filter(|share| *share >= limit && Signals::is_unusual(*share, usual))
    };
    if let Some(steal) = beyond(steal, STEAL, usual.steal) {
        figures.push(("steal", steal));
        causes.push(format!(
            "the hypervisor gave {} of the CPUs' time to others: use a quieter machine, or \
             repeat at a quieter time",
            percent(steal)
        ));
    }
    if let Some(waited) =
        beyond(server.and_then(|server| server.waited), WAITED, usual.server_waited)
    {
        figures.push(("server_waited", waited));
        causes.push(format!(
            "{} took the server's CPU ({} of the window spent waiting): {}",
            remedy.who("load"),
            percent(waited),
            remedy.another_for_server()
        ));
    }
    let load = load.filter(|load| !load.is_starved());
    if let Some(waited) = beyond(load.and_then(|load| load.waited), WAITED, usual.load_waited) {
        figures.push(("load_waited", waited));
        causes.push(format!(
            "{} took the load's CPU ({} of the window spent waiting): {}",
            remedy.who("server"),
            percent(waited),
            remedy.another_for_load()
        ));
    }
    (!causes.is_empty()).then(|| Verdict::new(Kind::Noisy, causes.join("; ")).with(figures))
}
