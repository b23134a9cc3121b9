//! Which side was the limit.

use super::{
    remedy::Remedy,
    used::{LOAD, SERVER, Used, both, percent, with_used},
};
use regatta_record::{Kind, Verdict};

/// Up to this factor the null server counts as no faster. Then the server is not the limit.
pub const NO_FASTER: f64 = 1.02;

/// Finds which side was the limit. Measured CPU use takes precedence over inference: where the
/// server was busy, a null server that is no faster is itself bound by the kernel, as the server
/// is. `headroom` is the null server's rate over this one's.
pub fn limit(
    server: Option<Used>,
    load: Option<Used>,
    headroom: Option<f64>,
    remedy: Remedy<'_>,
) -> Verdict {
    let Some(load) = load else {
        return Verdict::new(Kind::ServerNotObserved, "the load's CPUs are not known");
    };
    let Some(server) = server else { return not_observed(load, remedy) };
    let used = both(server, load);
    let no_faster = headroom.filter(|headroom| *headroom <= NO_FASTER);
    let verdict = match (server.is_busy(), load.is_busy(), no_faster) {
        (true, false, _) if !load.is_starved() => {
            let because = match server.busy_thread() {
                Some(_) => {
                    format!("{used}: that thread is the limit, and more CPUs do not help")
                }
                None => used,
            };
            Verdict::new(Kind::ServerBound, because)
        }
        (true, _, _) => {
            let because = format!("{used}: the rate is a lower bound");
            Verdict::new(Kind::CoBound, because).with_remedy(remedy.more_for_load())
        }
        (false, false, _) if load.is_starved() => {
            Verdict::new(Kind::GeneratorBound, format!("{}; {used}", starved(load, remedy)))
        }
        (false, true, _) => {
            Verdict::new(Kind::GeneratorBound, used).with_remedy(remedy.more_for_load())
        }
        (false, false, Some(headroom)) => {
            let because = format!(
                "neither side was busy ({used}), and the null server reaches only {headroom:.2} \
                 times the rate: both servers wait for the load or for the kernel, so this rate is \
                 not the server's limit"
            );
            Verdict::new(Kind::GeneratorBound, because)
                .with([("null_rate", headroom)])
                .with_remedy(remedy.more_requests())
        }
        (false, false, None) => Verdict::new(Kind::Idle, used).with_remedy(remedy.more_requests()),
    };
    with_used(with_used(verdict, server, SERVER), load, LOAD)
}

/// Judges a cell whose server was not observed. Only the load is known, so the only question is
/// whether it was the limit.
fn not_observed(load: Used, remedy: Remedy<'_>) -> Verdict {
    let mut because = format!("no process of the server was observed; load busy {load}");
    if load.is_starved() {
        because = format!("{because}; {}", starved(load, remedy));
    }
    let mut verdict = with_used(Verdict::new(Kind::ServerNotObserved, because), load, LOAD);
    if load.is_busy() || load.is_starved() {
        verdict.void.extend(Kind::GeneratorBound.voids());
    }
    verdict
}

/// Explains why a load that is not busy can do no more.
pub fn starved(load: Used, remedy: Remedy<'_>) -> String {
    let who = remedy.who("server");
    let waited = percent(load.waited.unwrap_or(0.0));
    let remedy = remedy.another_for_load();
    format!("{who} took the load's CPU ({waited} of the window spent waiting): {remedy}")
}

/// Judges a burst. A burst has no steady rate that could drift, and a null server that is no faster
/// waits for its connections too, so only measured CPU use counts.
pub fn of_burst(server: Option<Used>, load: Option<Used>, remedy: Remedy<'_>) -> Verdict {
    let mut verdict = limit(server, load, None, remedy);
    if let (Kind::Idle, Some(server), Some(load)) = (verdict.kind(), server, load) {
        let used = both(server, load);
        verdict.first_mut().because =
            format!("{used}; the time was spent waiting, connecting included");
        verdict.first_mut().remedy = None;
    }
    verdict
}
