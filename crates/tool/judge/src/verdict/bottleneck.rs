//! Which side was the limit.

use super::{remedy::Remedy, used::Used};
use regatta_record::{BothUsed, Cause, Kind, NetworkFull, Verdict};

/// Up to this factor the null server counts as no faster. Then the server is not the limit.
pub const NO_FASTER: f64 = 1.02;

/// Finds which side was the limit. Measured CPU use takes precedence over inference: where the
/// server was busy, a null server that is no faster is itself bound by the kernel, as the server
/// is. `headroom` is the null server's rate over this one's.
pub fn bottleneck(
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
    match (server.is_busy(), load.is_busy(), no_faster) {
        (true, false, _) if !load.is_starved() => {
            let has_busy_thread = server.busy_thread().is_some();
            let cause = if has_busy_thread { Cause::BusyThread(used) } else { Cause::Used(used) };
            Verdict::new(Kind::ServerBound, cause)
        }
        (true, _, _) => {
            Verdict::new(Kind::CoBound, Cause::BothBusy(used)).with_remedy(remedy.more_for_load())
        }
        (false, false, _) if load.is_starved() => {
            let cause = Cause::Starved { used, by_other_side: remedy.shares() };
            Verdict::new(Kind::GeneratorBound, cause).with_remedy(remedy.another_for_load())
        }
        (false, true, _) => Verdict::new(Kind::GeneratorBound, Cause::Used(used))
            .with_remedy(remedy.more_for_load()),
        (false, false, Some(null_rate)) => {
            Verdict::new(Kind::GeneratorBound, Cause::NullNoFaster { used, null_rate })
                .with_remedy(remedy.more_requests())
        }
        (false, false, None) => {
            Verdict::new(Kind::Idle, Cause::Used(used)).with_remedy(remedy.more_requests())
        }
    }
}

/// Replaces a verdict by which neither side was the limit, if the network was full: what was measured of CPUs takes
/// precedence.
pub fn by_network(
    limit: Verdict,
    server: Option<Used>,
    load: Option<Used>,
    full: Option<NetworkFull>,
) -> Verdict {
    let (Some(network), Some(server), Some(load)) = (full, server, load) else { return limit };
    let has_time = |side: Used| !side.is_busy() && !side.is_starved();
    let is_open = match limit.kind() {
        Kind::Idle => true,
        Kind::GeneratorBound => matches!(limit.first().cause, Cause::NullNoFaster { .. }),
        _ => false,
    };
    if !is_open || !has_time(server) || !has_time(load) {
        return limit;
    }
    Verdict::new(Kind::NetworkBound, Cause::Network { used: both(server, load), network })
        .with_remedy("use a faster network, or a load with fewer bytes")
}

fn both(server: Used, load: Used) -> BothUsed {
    BothUsed { server: server.seen(), load: load.seen() }
}

/// Judges a cell whose server was not observed. Only the load is known, so the only question is
/// whether it was the limit.
fn not_observed(load: Used, remedy: Remedy<'_>) -> Verdict {
    let starved_by_other_side = load.is_starved().then(|| remedy.shares());
    let cause = Cause::ServerNotSeen { load: load.seen(), starved_by_other_side };
    let mut verdict = Verdict::new(Kind::ServerNotObserved, cause);
    if load.is_starved() {
        verdict = verdict.with_remedy(remedy.another_for_load());
    }
    if load.is_busy() || load.is_starved() {
        verdict.void.extend(Kind::GeneratorBound.voids());
    }
    verdict
}

/// Judges a burst. A burst has no steady rate that could drift, and a null server that is no faster
/// waits for its connections too, so only measured CPU use counts.
pub fn of_burst(server: Option<Used>, load: Option<Used>, remedy: Remedy<'_>) -> Verdict {
    let mut verdict = bottleneck(server, load, None, remedy);
    if let (Kind::Idle, Some(server), Some(load)) = (verdict.kind(), server, load) {
        verdict.first_mut().cause = Cause::Waited(both(server, load));
        verdict.first_mut().remedy = None;
    }
    verdict
}
