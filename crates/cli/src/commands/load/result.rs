//! The result of a load as stored, from what was counted.

use super::{
    agents::{self, OnAgents},
    args::LoadArgs,
    open,
    server::Server,
    stages,
    threshold::{Figures, Streams, Threshold, Times},
};
use regatta_load::{Plan, Tally};
use regatta_record::{
    AnnouncedLosses, CellFinding, FORMAT, Figure, Kind, Latency, LoadOperation, LoadResult,
    LoadThreshold, Operation, OperationCounted, Unseen, Verdict, are_many_lost, encode_histogram,
};
use std::num::NonZeroU32;

/// The figures of one kind. In an open loop, `unanswered` requests were due and have no right reply.
fn operation(counted: &OperationCounted, duration_s: f64, unanswered: u64) -> LoadOperation {
    let OperationCounted { operation, count, whole_run, histogram, missing } = counted;
    let beyond = missing + if operation.fails_with_request() { unanswered } else { 0 };
    LoadOperation {
        operation: operation.clone(),
        count: *count,
        rate_per_s: if duration_s > 0.0 { *count as f64 / duration_s } else { 0.0 },
        whole_run: *whole_run,
        latency_ns: Latency::of_censored(histogram, beyond),
        histogram: encode_histogram(histogram),
    }
}

/// Builds the result and judges it.
pub fn result(
    args: &LoadArgs,
    plan: &Plan,
    tally: &Tally,
    server: &Server<'_>,
    on_agents: Option<&OnAgents>,
) -> LoadResult {
    let plan = &agents::on_their_cpus(plan, on_agents);
    let duration_s = tally.window_ns as f64 / 1e9;
    let cost_per = plan.workload.cost_per();
    let operations = tally.count_of(&cost_per);
    let each = |ns: u64| (operations > 0).then(|| ns as f64 / operations as f64);
    let spent = server.spent();
    let unanswered = tally.open_loop.as_ref().map_or(0, |open| open.unanswered());
    let of_kind = |one| operation(one, duration_s, unanswered);
    let mut result = LoadResult {
        format: FORMAT,
        requests: tally.requests,
        refused: tally.refused,
        errors: tally.errors,
        statuses: tally.statuses.clone(),
        tolerated: args.tolerated(),
        failed: tally.failed_share(tally.errors.failed(), 0).share,
        causes: tally.causes.clone(),
        duration_s,
        rate_per_s: if duration_s > 0.0 { tally.requests as f64 / duration_s } else { 0.0 },
        connections: args.connections() as u64,
        processes: tally.processes as u32,
        agents: on_agents.map(|agents| agents.result(plan, server)),
        tls: tally.tls.clone(),
        idle: args.idle as u64,
        stalled: args.stalled as u64,
        passing: args.passing as u64,
        passed: tally.passed,
        sent_again: tally.sent_again,
        in_flight_limit: tally.in_flight_limit,
        target_rate_per_s: args.rate.map(NonZeroU32::get),
        open_loop: None,
        unsent: 0,
        late: 0,
        wait_ns: None,
        send_lag_ns: None,
        service_ns: None,
        instances_s: tally.instances_ns.iter().map(|&ns| ns as f64 / 1e9).collect(),
        latency_ns: Latency::of(&tally.histogram),
        operations: tally.operations.iter().map(of_kind).collect(),
        cost_per,
        load_cpu_ns_per_request: each(tally.load_cpu_ns - tally.spun_ns),
        server_cpu_ns_per_request: spent.as_ref().and_then(|spent| each(spent.cpu_ns)),
        server_pids: args.pid.clone(),
        server_unseen: spent.as_ref().map(|spent| spent.unseen),
        first_wrong: tally.first_wrong.clone(),
        first_unfinished: tally.first_unfinished.clone(),
        settling: None,
        verified: tally.verified,
        announced: tally.announced,
        // Agents do not know what is missing of the broadcasts of other machines.
        wrong_deliveries: tally.wrong_deliveries.filter(|_| on_agents.is_none()),
        absent: tally.broadcasts.map_or(0, |counts| counts.absent),
        thresholds: Vec::new(),
        stages: stages::results(plan, tally, server),
        verdict: server.judge(plan, tally, spent.as_ref()),
        histogram: encode_histogram(&tally.histogram),
    };
    open::fill(&mut result, tally);
    result.verdict = stages::verdict(result.verdict, &result.stages);
    result.verdict = agents::verdict(result.verdict, result.agents.as_ref(), duration_s);
    result.verdict = of_deliveries(result.verdict, tally, &result.cost_per);
    result.thresholds = thresholds(&args.fail_if, plan, tally, &result);
    result
}

/// Adds what deliveries mean that have not come or were not owed, if the load has some. Costs are per delivery then.
fn of_deliveries(verdict: Verdict, tally: &Tally, cost_per: &Operation) -> Verdict {
    let absent = tally.broadcasts.map_or(0, |counts| counts.absent);
    let missing = tally.wrong_deliveries.map_or(0, |wrong| wrong.missing) + absent;
    if missing == 0 && tally.announced.is_none() {
        return verdict;
    }
    let delivered = tally.operations.iter().find(|one| one.operation.name == cost_per.name);
    let delivered = delivered.map_or(0, |one| one.whole_run);
    let losses = tally.announced.unwrap_or_default();
    with_losses(verdict, (losses, missing), delivered, tally.right_replies())
}

/// Adds what the announced losses of a hub, and deliveries that are `missing` or not owed to members that are away, mean
/// for this number of deliveries, and of requests that were not refused. Without any delivery of a broadcast that is
/// known to be published, although something was announced as lost, the load has failed. Many void rate and latency.
fn with_losses(
    mut verdict: Verdict,
    (losses, missing): (AnnouncedLosses, u64),
    delivered: u64,
    requests: u64,
) -> Verdict {
    let delivered = delivered.saturating_sub(losses.unknown_deliveries);
    if delivered == 0 && losses.missed + losses.refused() > 0 {
        let why = "nothing was delivered: the server announced all broadcasts as lost";
        let finding = CellFinding::new(Kind::Failed, why.to_owned());
        return agents::with(verdict, finding, Kind::Failed.voids());
    }
    if are_many_lost(losses.missed + missing, delivered)
        || are_many_lost(losses.refused(), requests)
    {
        for figure in [Figure::Rate, Figure::Latency] {
            if !verdict.voids(figure) {
                verdict.void.push(figure);
            }
        }
    }
    verdict
}

/// Compares the result with the thresholds.
fn thresholds(
    all: &[Threshold],
    plan: &Plan,
    tally: &Tally,
    result: &LoadResult,
) -> Vec<LoadThreshold> {
    let limited = plan.workload.limited();
    let pushed = tally.operations.iter().find(|one| one.operation.name == limited.name);
    let histogram = pushed.map_or(&tally.histogram, |one| &one.histogram);
    let unsent = tally.open_loop.as_ref().map_or(0, |open| open.unsent);
    let unanswered = match pushed {
        Some(pushed) => pushed.missing,
        None => unanswered(tally),
    };
    let errors = tally.errors.total() - tally.errors.closed_idle + unsent;
    let wrong = tally.wrong_deliveries.unwrap_or_default();
    let figures = Figures {
        across: result.agents.as_ref().and_then(|agents| agents.across.as_ref()),
        stage: None,
        times: Times::of(histogram, unanswered),
        streams: streams(tally, result.duration_s),
        rate_per_s: result.rate_per_s,
        errors,
        error_share: (errors + tally.replies > 0)
            .then(|| tally.failed_share(errors, tally.errors.connect).share),
        requests: tally.right_replies() + errors.saturating_sub(wrong.total()),
        refused: tally.announced.map_or(0, AnnouncedLosses::refused),
        cost_ns: result.server_cpu_ns_per_request,
        cost_is_least: matches!(result.server_unseen, Some(Unseen::Unbounded)),
        verdict: &result.verdict,
    };
    if result.stages.is_empty() {
        return all.iter().map(|threshold| threshold.judged(&figures)).collect();
    }
    // Errors may also occur outside the stages.
    let of_whole =
        all.iter().filter(|threshold| threshold.is_of_errors() || threshold.is_of_whole());
    let of_whole = of_whole.map(|threshold| threshold.judged(&figures));
    let of_stages = result.stages.iter().zip(&tally.stages).flat_map(|(stage, tally)| {
        let figures = stages::figures(stage, tally);
        let of_stages = all.iter().filter(|threshold| !threshold.is_of_whole());
        of_stages.map(move |threshold| threshold.judged(&figures)).collect::<Vec<_>>()
    });
    of_stages.chain(of_whole).collect()
}

/// The messages of streams, if the load has some. A stream without a right reply has a first message and a gap that are
/// longer than all others, because nothing is known of them.
fn streams(tally: &Tally, duration_s: f64) -> Option<Streams> {
    let of = |operation: &Operation| {
        tally.operations.iter().find(|one| one.operation.name == operation.name)
    };
    let unanswered = unanswered(tally);
    let times = |operation| Some(Times::of(&of(operation)?.histogram, unanswered));
    let messages = of(&Operation::MESSAGES)?.count as f64;
    Some(Streams {
        messages_per_s: if duration_s > 0.0 { messages / duration_s } else { 0.0 },
        first: times(&Operation::FIRST_MESSAGES)?,
        gaps: times(&Operation::LONGEST_GAPS)?,
    })
}

/// Requests that were due in the window, or timed out in it, and have no right reply.
fn unanswered(tally: &Tally) -> u64 {
    tally.open_loop.as_ref().map_or(tally.timeouts_in_window, |open| open.unanswered())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_fails_if_all_that_was_delivered_may_not_have_been_published() {
        let judged = |losses, delivered| {
            with_losses(Verdict::new(Kind::ServerBound, "busy"), (losses, 0), delivered, 1_000)
        };
        let none = AnnouncedLosses::default();
        let missed = AnnouncedLosses { gaps: 1, missed: 9, ..none };
        let refused = AnnouncedLosses { not_published: 2, ..none };
        for losses in [missed, refused, AnnouncedLosses { unknown: 1, ..none }] {
            let verdict = judged(losses, 0);
            assert_eq!(verdict.kind(), Kind::Failed, "{losses:?}");
            assert!(verdict.because().contains("nothing was delivered"), "{verdict:?}");
            assert_eq!(judged(losses, 1).kind(), Kind::ServerBound);
        }
        let unknown = AnnouncedLosses { unknown: 3, unknown_deliveries: 9, ..none };
        assert_eq!(judged(unknown, 9).kind(), Kind::Failed, "all may be of another broadcast");
        assert_eq!(judged(unknown, 10).kind(), Kind::ServerBound);
        assert_eq!(judged(none, 0).kind(), Kind::ServerBound, "nothing was owed");
    }

    #[test]
    fn more_than_one_in_a_thousand_that_is_missed_missing_or_refused_voids_rate_and_latency() {
        let none = AnnouncedLosses::default();
        let missed = |missed| AnnouncedLosses { gaps: 1, missed, ..none };
        let refused = |not_published, unknown| AnnouncedLosses { not_published, unknown, ..none };
        let of_unknown = AnnouncedLosses { unknown_deliveries: 500, ..missed(1) };
        for (losses, missing, voids) in [
            (none, 0, false),
            (missed(1), 0, false),
            (missed(2), 0, true),
            (of_unknown, 0, true),
            (refused(1, 0), 0, false),
            (refused(1, 1), 0, true),
            (none, 1, false),
            (none, 2, true),
            (missed(1), 1, true),
        ] {
            let usual = Verdict::new(Kind::ServerBound, "busy");
            let verdict = with_losses(usual, (losses, missing), 999, 999);
            for figure in [Figure::Rate, Figure::Latency] {
                assert_eq!(verdict.voids(figure), voids, "{losses:?}, {missing}");
            }
        }
    }
}
