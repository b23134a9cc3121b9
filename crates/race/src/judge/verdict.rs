//! The verdict on a cell (method, rule 7): kind, cause with figures, remedy.

use super::observed::Observed;
use crate::statistics::{mean, present, student};
use regatta_record::{Figure, Kind, LoadShape, Verdict};
use std::fmt;

/// Fraction of its CPUs from which on a side counts as busy. Not 1: under 64 connections the
/// leanest server and the leanest load each use 0.98 of a core, since both sleep for a moment
/// whenever they have overtaken the other; and a CPU also serves its timer and the kernel's threads.
pub const BUSY: f64 = 0.90;
/// The null server counts as no faster up to this factor: then it is not the server that limits.
pub const NO_FASTER: f64 = 1.02;
/// Drift of the rate inside the window that an interval cannot carry, as a factor.
pub const DRIFT: f64 = 1.05;
/// Fewest right answers per slice for judging slices: from 100 on, counting alone scatters them by
/// 10% at most.
pub const ANSWERS_PER_SLICE: f64 = 100.0;

/// Fraction of an asked rate from which on it counts as held.
pub const HELD: f64 = 0.98;

/// Under what a cell was measured.
#[derive(Clone, Copy, Debug)]
pub struct Conditions<'a> {
    /// The load.
    pub load: &'a LoadShape,
    /// The CPUs that server and load had to share; empty if none.
    pub shared: &'a [u32],
    /// The null server's rate over this one's, `None` for the null server itself or without one.
    pub headroom: Option<f64>,
}

/// Judges a cell.
///
/// The first finding names the verdict; the others add their voids and their sentences.
pub fn verdict(observed: &Observed, conditions: Conditions<'_>) -> Verdict {
    if let Some(settled) = &observed.settled {
        return settled.clone();
    }
    if observed.finished == 0 {
        return Verdict::new(
            Kind::Skipped,
            "no round was run yet: the race was interrupted; `regatta race --resume` runs the rest",
        );
    }
    let used = |fraction: Option<f64>, cpus| fraction.map(|fraction| Used { fraction, cpus });
    let (server_cpus, load_cpus) = observed.cpus;
    let server = used(observed.server_busy, server_cpus);
    let load = used(observed.load_busy, load_cpus);
    if let Some(verdict) = unlimited(observed, conditions, server.is_some()) {
        return verdict;
    }
    if conditions.load.burst.is_some() {
        return of_burst(server, load);
    }
    let limit = limit(server, load, conditions.headroom);
    let findings = [drifting(observed), bimodal(observed), Some(limit)];
    let mut findings = findings.into_iter().flatten();
    let first = findings.next().expect("the limit is always found");
    findings.fold(first, |mut verdict, next| {
        verdict
            .void
            .extend(next.void.iter().filter(|f| !verdict.void.contains(f)).collect::<Vec<_>>());
        verdict.because =
            format!("{}. Also {}: {}", verdict.because, next.kind.name(), next.because);
        verdict
    })
}

/// The verdict where no side can be the limit that is looked for: at an asked rate, and where
/// server and load shared their CPUs.
fn unlimited(observed: &Observed, conditions: Conditions<'_>, seen: bool) -> Option<Verdict> {
    let Conditions { load, shared, .. } = conditions;
    if !seen || load.rate.is_none() && shared.is_empty() {
        return None;
    }
    let held = mean(&present(&observed.rate)).map(f64::exp).zip(load.rate);
    let share = match shared {
        [] => String::new(),
        [cpu] => format!("server and load share CPU {cpu}"),
        cpus => format!("server and load share CPUs {}", list(cpus)),
    };
    Some(match held {
        Some((rate, asked)) if shared.is_empty() => at_rate(rate, asked),
        Some((rate, asked)) if rate < HELD * f64::from(asked) => {
            let verdict = at_rate(rate, asked);
            // Costs at unequal rates say nothing of cores.
            let void = vec![Figure::Cost, Figure::Rate, Figure::Latency];
            Verdict { void, because: format!("{share}; {}", verdict.because), ..verdict }
        }
        _ => Verdict::new(Kind::CostOnly, share),
    })
}

/// Whether the `asked` rate was held.
pub fn at_rate(rate: f64, asked: u32) -> Verdict {
    if rate >= HELD * f64::from(asked) {
        let because = format!("{asked} requests per second, evenly spaced");
        return Verdict::new(Kind::AtAskedRate, because);
    }
    let because = format!(
        "of the {asked} requests asked for per second {rate:.0} were answered; ask for less, or \
         give it more CPUs"
    );
    Verdict::new(Kind::Overloaded, because)
}

/// A burst has no steady rate that could drift, and a null server that is no faster waits for its
/// connections as everybody does; only business that was measured speaks.
fn of_burst(server: Option<Used>, load: Option<Used>) -> Verdict {
    let verdict = limit(server, load, None);
    match (verdict.kind, server, load) {
        (Kind::Idle, Some(server), Some(load)) => {
            let used = both(server, load);
            let because = format!("{used}; the time was spent waiting, connecting included");
            Verdict::new(Kind::Idle, because)
        }
        _ => verdict,
    }
}

/// `0, 1`.
fn list(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// How busy a side was: the fraction used of its CPUs, and how many these are.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// CPU time over (window × CPUs).
    pub fraction: f64,
    /// CPUs that it had.
    pub cpus: u32,
}

impl Used {
    fn is_busy(self) -> bool {
        self.fraction >= BUSY
    }
}

/// Which side was the limit. Measured business goes before inference: where the server was busy, a
/// null server that is no faster is itself bound by the kernel, as the server is.
pub fn limit(server: Option<Used>, load: Option<Used>, headroom: Option<f64>) -> Verdict {
    let Some(load) = load else {
        return Verdict::new(Kind::ServerNotObserved, "the load's CPUs are not known");
    };
    let Some(server) = server else {
        let because = format!("no process of the server was observed; load busy {load}");
        let mut verdict = Verdict::new(Kind::ServerNotObserved, because);
        if load.is_busy() {
            verdict.void.extend(Verdict::new(Kind::GeneratorBound, "").void);
        }
        return verdict;
    };
    let used = both(server, load);
    match (server.is_busy(), load.is_busy(), headroom.filter(|h| *h <= NO_FASTER)) {
        (true, false, _) => Verdict::new(Kind::ServerBound, used),
        (true, true, _) => Verdict::new(
            Kind::CoBound,
            format!("{used}: the rate is a lower bound; more CPUs for the load would show more"),
        ),
        (false, _, Some(headroom)) => Verdict::new(
            Kind::GeneratorBound,
            format!(
                "the null server is only {headroom:.2} times as fast: the load or the kernel was the \
                 limit ({used}); give the load more CPUs or another shape"
            ),
        ),
        (false, true, None) => {
            Verdict::new(Kind::GeneratorBound, format!("{used}; give the load more CPUs"))
        }
        (false, false, None) => Verdict::new(
            Kind::Idle,
            format!("{used}; more connections or deeper pipelining would show the limit"),
        ),
    }
}

fn both(server: Used, load: Used) -> String {
    format!("server busy {server}, load {load}")
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Used { fraction, cpus } = self;
        match cpus {
            1 => write!(f, "{fraction:.2}"),
            _ => write!(f, "{fraction:.2} of {cpus} CPUs"),
        }
    }
}

/// Drift: in each round, the logarithm of the answers in the last third of the slices over those
/// in the first third. Unstable where Student's interval of that over rounds lies wholly beyond
/// [`DRIFT`], up or down. Needs 2 rounds of 3 slices.
fn drifting(observed: &Observed) -> Option<Verdict> {
    let log_drifts: Vec<f64> = observed.slices.iter().filter_map(|s| log_drift(s)).collect();
    let drift = student(&log_drifts)?;
    let sure = drift.low > DRIFT.ln() || drift.high < -DRIFT.ln();
    sure.then(|| {
        let percent = |log: f64| log.exp_m1() * 100.0;
        let because = format!(
            "the rate drifts by {:+.0}% [{:+.0} to {:+.0}] from the first third of the window to \
             the last, over {} rounds; a longer warm-up or window may settle it",
            percent(drift.mean),
            percent(drift.low),
            percent(drift.high),
            log_drifts.len()
        );
        Verdict::new(Kind::Unstable, because)
    })
}

fn log_drift(slices: &[u64]) -> Option<f64> {
    let third = slices.len() / 3;
    let first: u64 = slices[..third].iter().sum();
    let last: u64 = slices[slices.len() - third..].iter().sum();
    (first > 0 && last > 0).then(|| (last as f64 / first as f64).ln())
}

/// Share of the spread that two groups must explain. The best split of a normal distribution
/// explains 64% of its variance and that of a uniform one 75%; two clean modes explain nearly all.
const SPLIT_EXPLAINS: f64 = 0.85;
/// Least share of the slices in the smaller group.
const SMALLER_GROUP: f64 = 0.2;
/// Least factor between the groups' means.
const GROUPS_APART: f64 = 1.25;

/// Bimodality: the slices of all rounds, sorted and cut in two where the variance between the
/// groups is largest (the best 2-means of a line: Fisher, *On grouping for maximum homogeneity*,
/// JASA 53, 1958). Noisy where the cut explains [`SPLIT_EXPLAINS`] of all variance, the smaller
/// group has [`SMALLER_GROUP`] of the slices and the means are [`GROUPS_APART`].
fn bimodal(observed: &Observed) -> Option<Verdict> {
    let mut slices: Vec<f64> = observed.slices.iter().flatten().map(|&s| s as f64).collect();
    slices.sort_by(f64::total_cmp);
    let n = slices.len() as f64;
    let sum: f64 = slices.iter().sum();
    if slices.is_empty() || sum / n < ANSWERS_PER_SLICE {
        return None;
    }
    let mean = sum / n;
    let total: f64 = slices.iter().map(|s| (s - mean).powi(2)).sum();
    let mut below = 0.0;
    let mut best = (0.0, 0.0, 0.0, 0.0);
    for (i, slice) in slices.iter().enumerate().take(slices.len() - 1) {
        below += slice;
        let k = (i + 1) as f64;
        let (low, high) = (below / k, (sum - below) / (n - k));
        let between = k * (low - mean).powi(2) + (n - k) * (high - mean).powi(2);
        if between > best.0 {
            best = (between, low, high, k / n);
        }
    }
    let (between, low, high, share) = best;
    let two = between > SPLIT_EXPLAINS * total
        && share.min(1.0 - share) >= SMALLER_GROUP
        && high >= low * GROUPS_APART;
    two.then(|| {
        let slice_s = observed.window_s / n;
        let because = format!(
            "the rate has two modes, {:.0}/s in {:.0}% of the slices and {:.0}/s in the others \
             (another tenant, or the CPU's frequency): believe the cost, not the latency",
            low / slice_s,
            share * 100.0,
            high / slice_s
        );
        Verdict::new(Kind::Noisy, because)
    })
}
