//! Texts on curves: a section for each sweep, with the findings for each contender.

use crate::{numbers, table::visible};
use regatta_record::{
    Arrivals, Curve, Drive, Estimate, IdleCost, Knee, LoadShape, Over, RateCost, Summary, Usl,
    alike,
};
use serde::Serialize;

/// A sweep: loads that differ in a single number.
#[derive(Debug, Serialize)]
pub struct Sweep {
    /// The number that varies, workload and load.
    pub title: String,
    /// How to read the findings.
    pub key: String,
    /// The findings, in the order of the contenders.
    pub found: Vec<Remark>,
    /// Warnings, and reasons why there is no finding.
    pub doubts: Vec<Remark>,
}

/// A remark on contenders.
#[derive(Debug, Serialize)]
pub struct Remark {
    /// The contenders.
    pub names: String,
    /// The sentence.
    pub text: String,
}

/// The sweeps, in the order of the record.
pub fn sweeps(summary: &Summary) -> Vec<Sweep> {
    groups(summary).into_iter().map(|curves| sweep(summary, &curves)).collect()
}

/// The curves of each sweep.
pub fn groups(summary: &Summary) -> Vec<Vec<&Curve>> {
    let mut groups: Vec<Vec<&Curve>> = Vec::new();
    for curve in &summary.curves {
        match groups.iter_mut().find(|group| rest(group[0]) == rest(curve)) {
            Some(group) => group.push(curve),
            None => groups.push(vec![curve]),
        }
    }
    groups
}

/// The number in which the loads of a curve differ, and what they have in common. For a sweep over
/// rates, the kind of arrivals is all that remains of the drive.
fn rest(curve: &Curve) -> (&'static str, LoadShape, Option<Arrivals>) {
    let load = curve.load;
    let (over, rest) = match curve.over {
        Over::Rate { .. } => ("rates", LoadShape { drive: Drive::Closed, ..load }),
        Over::Connections { .. } => ("connections", LoadShape { connections: 0, ..load }),
        Over::Idle { .. } => ("silent connections", LoadShape { idle: 0, ..load }),
        Over::Cores { .. } => ("cores", LoadShape { cores: None, ..load }),
    };
    (over, rest, load.drive.arrivals())
}

fn sweep(summary: &Summary, curves: &[&Curve]) -> Sweep {
    let (over, rest, _) = rest(curves[0]);
    let per = visible(&summary.asked.cost_per.one);
    let numbers = curves.iter().flat_map(|curve| match &curve.over {
        Over::Connections { points, .. } => points.iter().map(|p| p.connections).collect(),
        _ => Vec::new(),
    });
    let load = match numbers.clone().min().zip(numbers.max()) {
        Some((first, connections)) => {
            format!("{first} to {}", LoadShape { connections, ..rest })
        }
        None => rest.to_string(),
    };
    let key = match curves[0].over {
        Over::Rate { .. } => {
            "standing: CPU without any request; knee: the rate with the highest ratio of rate to p99"
                .into()
        }
        Over::Idle { .. } => {
            format!("the cost of one {per} alone, plus the cost that each silent connection adds")
        }
        Over::Connections { .. } | Over::Cores { .. } => {
            "X(N) = λN / (1 + σ(N−1) + κN(N−1)): λ rate at N = 1, σ contention, κ coherency".into()
        }
    };
    Sweep {
        title: visible(&format!("over {over} · {} · {load}", summary.asked.workload)),
        key,
        found: curves.iter().filter_map(|curve| found(curve, &per)).collect(),
        doubts: doubts(curves),
    }
}

/// The finding for a curve. `per`: the operation that costs are per.
fn found(curve: &Curve, per: &str) -> Option<Remark> {
    let text = match &curve.over {
        Over::Rate { cost, knee, .. } => {
            let parts = [cost.as_ref().map(self::cost), knee.as_ref().map(self::knee)];
            parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
        }
        Over::Idle { cost, .. } => cost.as_ref().map_or_else(String::new, |cost| idle(cost, per)),
        Over::Connections { points, usl } => {
            let most = points.iter().map(|p| p.connections).max();
            usl.as_ref().map_or_else(String::new, |usl| law(usl, most, "conn"))
        }
        Over::Cores { points, usl } => {
            let most = points.iter().map(|p| p.cores).max();
            usl.as_ref().map_or_else(String::new, |usl| law(usl, most, "cores"))
        }
    };
    (!text.is_empty()).then(|| Remark { names: visible(&curve.contender), text })
}

/// The doubts about curves; equal doubts are merged.
fn doubts(curves: &[&Curve]) -> Vec<Remark> {
    let doubt = |c: &&Curve| Some((visible(&c.contender), visible(c.doubt.as_deref()?)));
    let merged = alike(curves.iter().filter_map(doubt));
    merged.into_iter().map(|(names, text)| Remark { names: names.join(", "), text }).collect()
}

/// `CPU = 3.2 [2.9–3.5] ms/s standing + 4.90 [4.80–5.00] µs per request`.
fn cost(cost: &RateCost) -> String {
    let (standing, marginal) = (&cost.standing_ns_per_s, &cost.marginal_ns);
    format!(
        "CPU = {} ms/s standing + {} µs per request",
        numbers::estimate(standing, 1e6),
        numbers::estimate(marginal, 1e3)
    )
}

/// `4.61 [4.55–4.67] µs per request + 12.3 [12.0–12.6] ns for each silent connection`; an upper bound of
/// the latter if it may be zero.
fn idle(cost: &IdleCost, per: &str) -> String {
    let (alone, each) = (numbers::estimate(&cost.alone_ns, 1e3), &cost.each_ns);
    if each.low <= 0.0 {
        let most = numbers::three_digits(each.high.max(0.0));
        return format!("{alone} µs per {per}; a silent connection adds at most {most} ns");
    }
    let each = numbers::estimate(each, 1.0);
    format!("{alone} µs per {per} + {each} ns for each silent connection")
}

/// `knee at 40 k/s (between 30 and 50 k/s)`.
fn knee(knee: &Knee) -> String {
    let unit = numbers::rate_unit([knee.rate].into_iter());
    let text = |rate: f64| numbers::short(rate / unit.size);
    let name = unit.name;
    let between = match (knee.low, knee.high) {
        (Some(low), Some(high)) => format!("between {} and {} {name}", text(low), text(high)),
        (Some(low), None) => format!("above {} {name}", text(low)),
        (None, Some(high)) => format!("below {} {name}", text(high)),
        (None, None) => "anywhere in the sweep".to_owned(),
    };
    format!("knee at {} {name} ({between})", text(knee.rate))
}

/// `λ 9170 [8720–9640] /s, σ 0.0400 [0.0390–0.0410], κ 2.00 [1.90–2.10] ×10⁻⁵; fastest at …; r² 0.998`.
fn law(usl: &Usl, most: Option<u32>, unit: &str) -> String {
    let rate = numbers::rate_unit([usl.lambda.mean].into_iter());
    let peak = match usl.peak {
        Some(peak) => {
            let beyond = most.filter(|most| peak.mean > f64::from(*most));
            let beyond = beyond
                .map_or_else(String::new, |most| format!(", beyond the {most} that were tested"));
            format!("fastest at {} {unit}{beyond}", numbers::estimate(&peak, 1.0))
        }
        None => "no peak found".to_owned(),
    };
    format!(
        "λ {} {}, σ {}, κ {}; {peak}; r² {:.3}",
        numbers::estimate(&usl.lambda, rate.size),
        rate.name,
        numbers::estimate(&usl.sigma, 1.0),
        tiny(&usl.kappa),
        usl.r2
    )
}

/// `2.4 [1.5–3.2] ×10⁻⁶`.
fn tiny(e: &Estimate) -> String {
    let power = e.mean.max(e.high).log10().floor();
    if !power.is_finite() || power >= -2.0 {
        return numbers::estimate(e, 1.0);
    }
    let digits = format!("{:.0}", -power);
    let raised = digits.chars().filter_map(|c| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(c.to_digit(10)? as usize));
    format!("{} ×10⁻{}", numbers::estimate(e, 10f64.powf(power)), raised.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn describes_findings() {
        let e = |mean, low, high| Estimate { mean, low, high };
        let line = RateCost {
            standing_ns_per_s: e(3.21e6, 2.9e6, 3.5e6),
            marginal_ns: e(4_900.0, 4_800.0, 5_000.0),
        };
        assert_eq!(
            cost(&line),
            "CPU = 3.2 [2.9–3.5] ms/s standing + 4.90 [4.80–5.00] µs per request"
        );
        let uncertain = RateCost { standing_ns_per_s: e(1e6, -2e6, 4e6), ..line };
        assert!(
            cost(&uncertain).starts_with("CPU = 1 [-2 to 4] ms/s standing"),
            "{}",
            cost(&uncertain)
        );
        let at = |low, high| knee(&Knee { rate: 40_000.0, low, high });
        assert_eq!(at(Some(30_000.0), Some(52_500.0)), "knee at 40 k/s (between 30 and 52.5 k/s)");
        assert_eq!(at(None, Some(50_000.0)), "knee at 40 k/s (below 50 k/s)");
        assert_eq!(at(Some(9_000.0), None), "knee at 40 k/s (above 9 k/s)");
        let silent =
            IdleCost { alone_ns: e(4_610.0, 4_550.0, 4_670.0), each_ns: e(12.3, 12.0, 12.6) };
        assert_eq!(
            idle(&silent, "request"),
            "4.61 [4.55–4.67] µs per request + 12.3 [12.0–12.6] ns for each silent connection"
        );
        let free = IdleCost { each_ns: e(-0.001, -0.006, 0.0034), ..silent };
        assert!(idle(&free, "request").ends_with("; a silent connection adds at most 0.0034 ns"));
        let usl = Usl {
            lambda: e(9_170.0, 8_720.0, 9_640.0),
            sigma: e(0.0401, 0.0, 0.123),
            kappa: e(2e-5, 1.9e-5, 2.1e-5),
            peak: Some(e(219.0, 210.0, 228.0)),
            r2: 0.99812,
        };
        assert_eq!(
            law(&usl, Some(100), "conn"),
            "λ 9170 [8720–9640] /s, σ 0.04 [0.00–0.12], κ 2.00 [1.90–2.10] ×10⁻⁵; fastest at \
             219 [210–228] conn, beyond the 100 that were tested; r² 0.998"
        );
        assert!(law(&Usl { peak: None, ..usl }, Some(1_000), "conn").contains("; no peak found;"));
    }
}
