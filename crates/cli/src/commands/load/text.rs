//! The text that `regatta load` prints.

use super::{
    agents,
    args::{LoadArgs, Shape},
    open, stages, threshold,
};
use indicatif::HumanCount;
use regatta_record::{
    AnnouncedLosses, Burst, Figure, Latency, LoadOperation, LoadResult, TlsSpoken, Unseen,
    Verified, WrongDeliveries, decode_histogram, joined,
};
use regatta_report::{chart, warm_up_in_words};
use std::{collections::BTreeMap, fmt::Write};

/// The measurements of the article from which the burst comes (workload `double` of the design).
const THEN: &str = "Haskell 5.30 s on 8 cores, node 8.94 s, node cluster 5.50 s, Haskell on one \
                    core 8.0 s: measured on another machine, long ago";

/// Renders the result as text.
#[expect(clippy::too_many_lines, reason = "a paragraph for each kind of result")]
pub fn text(args: &LoadArgs, workload: &str, result: &LoadResult) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:<11} {value}").expect("a string can be written to");
    };
    let voided = |figure, value: String| {
        if result.verdict.voids(figure) { format!("({value})") } else { value }
    };
    let from = match (&result.agents, result.processes) {
        (Some(on), _) => format!(" · from {} agents", on.agents.len()),
        (None, 1) => String::new(),
        (None, n) => format!(" · from {n} processes"),
    };
    line("load", format!("{} · {} · {}{from}", urls(args), workload, shape(args)));
    if let Some(TlsSpoken { version, cipher, checked }) = &result.tls {
        let check = if *checked { "certificate checked" } else { "certificate not checked" };
        line("TLS", format!("{version}, {cipher}, {check}"));
    }
    let rate = voided(Figure::Rate, format!("{}/s", HumanCount(result.rate_per_s.round() as u64)));
    let (requests, seconds) = (HumanCount(result.requests), result.duration_s);
    line(
        "requests",
        match &result.open_loop {
            None => format!("{requests} in {seconds:.2} s: {rate}"),
            Some(open) => format!(
                "{requests} of {} due in {seconds:.2} s were answered; replies inside the window: {rate}",
                HumanCount(open.due)
            ),
        },
    );
    if result.refused > 0 {
        let refused = HumanCount(result.refused);
        line("refused", format!("{refused} requests, which are in no rate and no latency"));
    }
    if !result.statuses.is_empty() {
        line("statuses", statuses(&result.statuses));
    }
    if let (Some(rate), Some(open)) = (result.target_rate_per_s, &result.open_loop) {
        line("rate", open::rate(rate, args.arrivals, open, result));
    }
    if let Some(open) = &result.open_loop {
        let of = if result.stages.is_empty() { "" } else { "of the worst stage " };
        line("arrivals", format!("{of}{}", open::arrivals(args.arrivals, &open.arrivals)));
    }
    for (name, row) in stages::rows(&result.stages) {
        line(&name, row);
    }
    if !result.instances_s.is_empty() {
        line("instances", instances(&result.instances_s));
    }
    if is_the_articles(args) {
        line("then", THEN.into());
    }
    line("latency", voided(Figure::Latency, latency(&result.latency_ns)));
    for row in chart(result) {
        line("", row);
    }
    for (name, part) in [
        ("  wait", &result.wait_ns),
        ("  send lag", &result.send_lag_ns),
        ("  service", &result.service_ns),
    ] {
        if let Some(part) = part {
            line(name, voided(Figure::Latency, percentiles(part)));
        }
    }
    for each in &result.operations {
        let LoadOperation { operation, count, rate_per_s, latency_ns, .. } = each;
        let rate = voided(Figure::Rate, format!("{}/s", HumanCount(rate_per_s.round() as u64)));
        line(&operation.several, format!("{} in {seconds:.2} s: {rate}", HumanCount(*count)));
        if !each.is_only_counted() {
            line("  latency", voided(Figure::Latency, latency(latency_ns)));
        }
        if result.agents.as_ref().is_some_and(|agents| agents.across.is_some()) {
            line("", "of members on the sender's agent".into());
        }
    }
    if args.passing > 0 {
        line("passed", format!("{} members joined and left", HumanCount(result.passed)));
    }
    if result.sent_again > 0 {
        let all = HumanCount(result.sent_again);
        let why = "not processed before a close that the server announced";
        line("sent again", format!("{all} requests, {why}"));
    }
    if let Some(limit) = result.in_flight_limit {
        let asked = args.pipeline();
        line("in flight", format!("the server allows {limit} on a connection; {asked} asked"));
    }
    if args.settle.is_some() {
        line("warm-up", warm_up_in_words(result.settling.as_ref()));
    }
    let each = &result.cost_per.one;
    let cpu = |ns: Option<f64>| ns.map_or("–".into(), |ns| format!("{:.2} µs/{each}", ns / 1e3));
    let at_least = match result.server_unseen {
        Some(Unseen::Unbounded) => " at least: short-lived processes of the server may be missing",
        Some(Unseen::AtMostNs(_)) | None => "",
    };
    let server = result.server_cpu_ns_per_request;
    let cost = format!("{}{at_least}", cpu(server));
    let cost = if server.is_some() { voided(Figure::Cost, cost) } else { cost };
    line("server CPU", format!("{cost}{}", processes_in_words(&result.server_pids)));
    line("load CPU", cpu(result.load_cpu_ns_per_request));
    let errors: Vec<String> = result
        .errors
        .by_kind()
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("{} {}", HumanCount(*count), errors_in_words(kind, *count)))
        .collect();
    line(
        "errors",
        if errors.is_empty() { "none".into() } else { with_share(errors.join(", "), result) },
    );
    for (cause, times) in &result.causes {
        line("  cause", format!("{} × {cause}", HumanCount(*times)));
    }
    if let Some(verified) = result.verified {
        line("verified", verified_in_words(verified));
    }
    if let Some(announced) = result.announced {
        losses_in_words(announced).into_iter().for_each(|words| line("announced", words));
    }
    if let Some(wrong) = result.wrong_deliveries.filter(|wrong| wrong.total() > 0) {
        line("wrong", wrong_in_words(wrong));
    }
    for threshold in threshold::lines(&args.fail_if, &result.thresholds) {
        line("fail if", threshold);
    }
    let (kind, because) = (result.verdict.kind().name(), result.verdict.because());
    let shares =
        [lost_share, missing_share, absent_share, refused_share].map(|of| of(result)).concat();
    line("verdict", format!("{kind}: {because}{shares}"));
    if let Some(wrong) = result.first_wrong.as_ref().or(result.first_unfinished.as_ref()) {
        line("  sent", wrong.sent.clone());
        line("  expected", wrong.expected.clone());
        line("  received", wrong.received.clone());
    }
    if let Some(agents) = &result.agents {
        text += &agents::table(agents, result.duration_s, &result.verdict);
    }
    text
}

/// The server, with its further nodes.
fn urls(args: &LoadArgs) -> String {
    [&args.url].into_iter().chain(&args.nodes).map(String::as_str).collect::<Vec<_>>().join(" + ")
}

/// The shape of the load, e.g. `64 connections, × 16`.
fn shape(args: &LoadArgs) -> String {
    let pipeline = args.pipeline();
    if let Some(Shape { burst: Burst { instances, requests }, connections }) = args.burst {
        return format!(
            "burst of {instances} instances × {connections} connections × {requests} requests, \
             at most {pipeline} in flight on each"
        );
    }
    let idle = match (args.idle, args.stalled) {
        (0, _) => String::new(),
        (idle, 0) => format!(" + {idle} idle"),
        (idle, stalled) => format!(" + {idle} idle ({stalled} never read)"),
    };
    let passing = match args.passing {
        0 => String::new(),
        n => format!(" + {n} passing"),
    };
    let each = match args.in_flight {
        _ if args.churn => "one request each".into(),
        Some(in_flight) => format!("{in_flight} requests in flight"),
        None => format!("× {pipeline}"),
    };
    format!("{} connections{idle}{passing}, {each}", args.connections())
}

/// The number of operations and keys that the history checker checked.
fn verified_in_words(Verified { operations, keys, beyond }: Verified) -> String {
    let beyond = match beyond {
        0 => String::new(),
        n => format!("; the last {} were not checked (limit reached)", HumanCount(n)),
    };
    format!("{} operations on {} keys{beyond}", HumanCount(operations), HumanCount(keys))
}

/// The share of the owed deliveries that the server announced as lost, to follow the verdict. Empty: none.
fn lost_share(result: &LoadResult) -> String {
    let losses = result.announced.unwrap_or_default();
    let delivered = delivered(result).saturating_sub(losses.unknown_deliveries);
    share_in_words(losses.missed, delivered, "the deliveries announced as lost")
}

/// The share of the owed deliveries that are missing, to follow the verdict. Empty: none.
fn missing_share(result: &LoadResult) -> String {
    let missing = result.wrong_deliveries.unwrap_or_default().missing;
    share_in_words(missing, delivered(result), "the deliveries missing")
}

/// The share of the deliveries that nobody was owed while members were away, to follow the verdict. Empty: none.
fn absent_share(result: &LoadResult) -> String {
    let what = "the deliveries owed to nobody, because connections of members were lost";
    share_in_words(result.absent, delivered(result), what)
}

/// Number of deliveries of the whole run.
fn delivered(result: &LoadResult) -> u64 {
    let of = |one: &&LoadOperation| one.operation.name == result.cost_per.name;
    result.operations.iter().find(of).map_or(0, |one| one.whole_run)
}

/// The share of the requests that the server refused, to follow the verdict. Empty: none.
fn refused_share(result: &LoadResult) -> String {
    share_in_words(result.refused, result.requests, "the requests refused")
}

/// The share of a part in itself and the rest. Empty: there is no such part.
fn share_in_words(part: u64, rest: u64, what: &str) -> String {
    if part == 0 {
        return String::new();
    }
    match 100.0 * part as f64 / (part as f64 + rest as f64) {
        share if share < 0.01 => format!("; less than 0.01% of {what}"),
        share => format!("; {share:.2}% of {what}"),
    }
}

/// Which processes were observed, if several were named.
fn processes_in_words(pids: &[u32]) -> String {
    let Some((last, first @ [_, ..])) = pids.split_last() else { return String::new() };
    format!(", of processes {} and {last} with their descendants", joined(first, ", "))
}

/// Wrong deliveries, by kind.
fn wrong_in_words(wrong: WrongDeliveries) -> String {
    let WrongDeliveries { missing, twice, out_of_order, unsent, .. } = wrong;
    let [missing, twice, out_of_order, unsent] =
        [missing, twice, out_of_order, unsent].map(HumanCount);
    format!(
        "deliveries: {missing} missing without an announcement, {twice} that came before, {out_of_order} in \
         another order, {unsent} that were not published"
    )
}

/// What the server announced as lost.
fn losses_in_words(losses: AnnouncedLosses) -> Vec<String> {
    if losses == AnnouncedLosses::default() {
        return vec!["no losses".into()];
    }
    let AnnouncedLosses { gaps, missed, not_published, unknown, unknown_deliveries } = losses;
    let [gaps, missed, not_published, unknown, of_unknown] =
        [gaps, missed, not_published, unknown, unknown_deliveries].map(HumanCount);
    vec![
        format!("{gaps} gaps; {missed} deliveries missed before them"),
        format!("{not_published} broadcasts not published; {unknown} perhaps not published"),
        format!("{of_unknown} of the deliveries are of the latter"),
    ]
}

/// A kind of error in words, for this number of errors.
fn errors_in_words(kind: &str, count: u64) -> &str {
    match (kind, count) {
        ("wrong_reply", 1) => "wrong reply",
        ("wrong_reply", _) => "wrong replies",
        ("connect", 1) => "failed connect",
        ("connect", _) => "failed connects",
        ("read", 1) => "failed read",
        ("read", _) => "failed reads",
        ("write", 1) => "failed write",
        ("write", _) => "failed writes",
        ("timeout", 1) => "timeout",
        ("timeout", _) => "timeouts",
        ("closed_early", _) => "closed early",
        ("closed_idle", _) => "closed idle",
        ("reset", 1) => "reset stream",
        ("reset", _) => "reset streams",
        _ => kind,
    }
}

/// The number and share of replies of each status: `200: 990 (99.0%), 503: 10 (1.0%)`.
fn statuses(statuses: &BTreeMap<u16, u64>) -> String {
    let all: u64 = statuses.values().sum();
    let each = statuses.iter().map(|(status, replies)| {
        let share = *replies as f64 * 100.0 / all as f64;
        format!("{status}: {} ({share:.1}%)", HumanCount(*replies))
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The errors, with their share of the requests if --tolerate was given.
fn with_share(errors: String, result: &LoadResult) -> String {
    match result.tolerated {
        Some(share) => {
            format!("{errors} ({:.1}%, {}% tolerated)", result.failed * 100.0, share * 100.0)
        }
        None => errors,
    }
}

/// Latency percentiles and the maximum; one that is unknown, e.g. because too few samples are beyond it,
/// is shown as a dash.
pub fn percentiles(l: &Latency) -> String {
    let time = |ns: Option<u64>| ns.map_or("–".into(), |ns| regatta_report::time(ns as f64));
    format!(
        "p50 {}  p90 {}  p99 {}  p99.9 {}  max {}",
        time(l.p50),
        time(l.p90),
        time(l.p99),
        time(l.p99_9),
        time(l.max)
    )
}

/// The percentiles, the maximum and the mean, in two lines.
fn latency(l: &Latency) -> String {
    let time = |ns: Option<f64>| ns.map_or("–".into(), regatta_report::time);
    let each = |ns: Option<u64>| time(ns.map(|ns| ns as f64));
    format!(
        "p50 {}  p90 {}  p95 {}  p99 {}  p99.9 {}\n{:12}max {}  mean {}",
        each(l.p50),
        each(l.p90),
        each(l.p95),
        each(l.p99),
        each(l.p99_9),
        "",
        each(l.max),
        time(l.mean)
    )
}

/// The rows of the histogram of all latencies; none for an earlier result without one.
fn chart(result: &LoadResult) -> Vec<String> {
    let Ok(histogram) = decode_histogram(&result.histogram) else { return Vec::new() };
    let unanswered = result.open_loop.as_ref().map_or(0, |o| o.unsent + o.timed_out + o.lost);
    let mut rows = chart::rows(&histogram, unanswered);
    if result.verdict.voids(Figure::Latency) && !rows.is_empty() {
        rows.insert(0, "(these latencies are void: see the verdict)".into());
    }
    rows
}

/// The durations of the instances of a burst, in seconds.
fn instances(each: &[f64]) -> String {
    let mut sorted: Vec<f64> = each.iter().copied().filter(|seconds| *seconds > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        return "none received a reply".into();
    }
    let median = (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0;
    let (shortest, longest) = (sorted[0], sorted[sorted.len() - 1]);
    let mut text = format!("min {shortest:.3} s  median {median:.3} s  max {longest:.3} s");
    for ten in each.chunks(10) {
        let row: Vec<_> = ten.iter().map(|seconds| instance(*seconds)).collect();
        write!(text, "\n{:<12}{}", "", row.join("  ")).expect("a string can be written to");
    }
    text
}

/// The duration of one instance; a dash if it received no reply.
fn instance(seconds: f64) -> String {
    if seconds > 0.0 { format!("{seconds:.3}") } else { format!("{:>5}", "–") }
}

/// Whether this is the load of the article. Its figures are shown only beside that load.
fn is_the_articles(args: &LoadArgs) -> bool {
    let burst = Burst { instances: 10, requests: 10 };
    args.burst == Some(Shape { burst, connections: 500 })
        && args.pipeline() == 3
        && args
            .workload
            .as_ref()
            .is_none_or(|workload| workload.name() == "double" && workload.text().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_record::Operation;

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        load: LoadArgs,
    }

    /// A result of an earlier version, with the keys of `more` added.
    fn result(more: serde_json::Value) -> LoadResult {
        let latency = serde_json::json!({ "p50": 2_000_000, "p99": 9_000_000 });
        let mut result = serde_json::json!({
            "format": 1, "requests": 1_000, "errors": regatta_record::Errors::default(),
            "duration_s": 2.0, "rate_per_s": 500.0, "connections": 64, "latency_ns": latency,
            "load_cpu_ns_per_request": 1_500.0, "server_cpu_ns_per_request": 2_500.0,
            "first_wrong": null, "histogram": "",
            "verdict": regatta_record::Verdict::new(regatta_record::Kind::ServerBound, "busy"),
        });
        let (all, more) = (result.as_object_mut().unwrap(), more.as_object().unwrap().clone());
        all.extend(more);
        serde_json::from_value(result).unwrap()
    }

    #[test]
    fn the_verdict_names_the_share_of_announced_losses() {
        let losses = |missed| AnnouncedLosses { gaps: 1, missed, ..AnnouncedLosses::default() };
        let ends = |missed, end: &str| {
            let text = printed(&result(serde_json::json!({ "announced": losses(missed) })));
            let line = text.lines().find(|line| line.trim_start().starts_with("verdict"));
            assert!(line.is_some_and(|line| line.ends_with(end)), "{text}");
        };
        ends(0, "busy");
        ends(7, "busy; 100.00% of the deliveries announced as lost");
    }

    #[test]
    fn refusals_wrong_deliveries_and_several_processes_are_named() {
        let losses = AnnouncedLosses {
            not_published: 9,
            unknown: 2,
            unknown_deliveries: 5,
            ..Default::default()
        };
        let wrong = WrongDeliveries { missing: 4, twice: 3, out_of_order: 2, unsent: 1 };
        let pids = [7, 8, 9];
        let text = printed(&result(serde_json::json!({
            "refused": 10, "announced": losses, "wrong_deliveries": wrong, "absent": 6,
            "server_pids": pids,
        })));
        for line in [
            "refused     10 requests, which are in no rate and no latency",
            "announced   9 broadcasts not published; 2 perhaps not published",
            "announced   5 of the deliveries are of the latter",
            "wrong       deliveries: 4 missing without an announcement, 3 that came before, 2 in another order, \
             1 that were not published",
            "server CPU  2.50 µs/request, of processes 7, 8 and 9 with their descendants",
            "verdict     server-bound: busy; 100.00% of the deliveries missing; 100.00% of the deliveries owed to \
             nobody, because connections of members were lost; 0.99% of the requests refused",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}:\n{text}");
        }
        let text = printed(&result(serde_json::json!({ "server_pids": [7] })));
        assert!(text.contains("\nserver CPU  2.50 µs/request\n"), "{text}");
        assert!(!text.contains("refused") && !text.contains("wrong"), "{text}");
    }

    fn printed(result: &LoadResult) -> String {
        let args = <Cli as clap::Parser>::parse_from(["load", "line://127.0.0.1:1"]);
        text(&args.load, "double", result)
    }

    #[test]
    fn prints_how_many_operations_were_verified_and_how_many_were_not() {
        let verified = |beyond| {
            let verified = Verified { operations: 1_000, keys: 20, beyond };
            printed(&result(serde_json::json!({ "verified": verified })))
        };
        assert!(verified(0).contains("\nverified    1,000 operations on 20 keys\n"));
        let beyond = "1,000 operations on 20 keys; the last 7 were not checked (limit reached)\n";
        assert!(verified(7).contains(beyond));
        assert!(!printed(&result(serde_json::json!({}))).contains("verified"));
    }

    #[test]
    fn prints_lines_for_each_operation_and_the_unit_of_a_cost() {
        let deliveries = Operation::new("deliveries", "delivery", "deliveries");
        let messages = Operation::new("messages", "message", "messages");
        let operation = LoadOperation {
            operation: deliveries.clone(),
            count: 50_000,
            rate_per_s: 25_000.0,
            whole_run: 60_000,
            latency_ns: Latency { p50: Some(3_000_000), max: Some(1), ..Latency::default() },
            histogram: String::new(),
        };
        let only_counted = LoadOperation {
            operation: messages,
            latency_ns: Latency::default(),
            ..operation.clone()
        };
        let operations = [only_counted, operation];
        let more = serde_json::json!({ "operations": operations, "cost_per": deliveries });
        let result = result(more);
        let text = printed(&result);
        for line in [
            "requests    1,000 in 2.00 s: 500/s",
            "deliveries  50,000 in 2.00 s: 25,000/s",
            "  latency   p50 3.00 ms  p90 –",
            "server CPU  2.50 µs/delivery",
            "load CPU    1.50 µs/delivery",
        ] {
            assert!(text.lines().any(|one| one.starts_with(line)), "{line}:\n{text}");
        }
        let counted = "messages    50,000 in 2.00 s: 25,000/s\ndeliveries";
        assert!(text.contains(counted), "it has no line of latencies:\n{text}");
        let stored = serde_json::to_value(&result).unwrap();
        assert_eq!(stored["cost_per"]["one"], "delivery");
    }

    #[test]
    fn prints_an_incomplete_cost_as_a_lower_bound() {
        let unseen = |unseen: serde_json::Value| {
            let text = printed(&result(serde_json::json!({ "server_unseen": unseen })));
            text.contains("\nserver CPU  2.50 µs/request at least: short-lived processes")
        };
        assert!(unseen(serde_json::json!("unbounded")));
        assert!(!unseen(serde_json::json!({ "at-most-ns": 7_000 })));
        assert!(!unseen(serde_json::Value::Null));
    }

    #[test]
    fn prints_a_void_cost_in_parentheses() {
        let verdict = regatta_record::Verdict {
            void: vec![Figure::Rate, Figure::Cost],
            ..regatta_record::Verdict::new(regatta_record::Kind::Disqualified, "a wrong reply")
        };
        let text = printed(&result(serde_json::json!({ "verdict": verdict })));
        assert!(text.contains("\nserver CPU  (2.50 µs/request)\n"), "{text}");
        let unseen = serde_json::json!({ "verdict": verdict, "server_cpu_ns_per_request": null });
        assert!(printed(&result(unseen)).contains("\nserver CPU  –\n"));
    }

    #[test]
    fn reads_and_prints_an_old_result_without_operations() {
        let result = result(serde_json::json!({}));
        let text = printed(&result);
        assert!(text.contains("\nserver CPU  2.50 µs/request\n"), "{text}");
        let stored = serde_json::to_value(&result).unwrap();
        assert!(stored.get("operations").or(stored.get("cost_per")).is_none(), "{stored}");
    }

    #[test]
    fn prints_the_median_and_each_instance_in_rows_of_ten() {
        assert_eq!(
            instances(&[0.4, 0.1, 0.2, 0.3]),
            "min 0.100 s  median 0.250 s  max 0.400 s\n            0.400  0.100  0.200  0.300"
        );
        assert!(instances(&[0.5; 11]).ends_with("\n            0.500"));
    }
}
