//! `regatta load --slow`: opens slow connections and checks that the server still serves new clients.

use super::{args::LoadArgs, progress, target::url::Target, text::percentiles};
use crate::{exit::Outcome, output};
use anyhow::{Context, bail};
use indicatif::HumanCount;
use regatta_load::{SlowPlan, SlowProgress, SlowTally, run_slow};
use regatta_record::{Ages, FORMAT, Latency, SlowClients};
use regatta_script::{
    Workload,
    dialects::http::{SlowPart, slow_request},
};
use std::{fmt::Write, sync::atomic::AtomicBool, time::Duration};

/// Share of the new clients that must be served within the limit.
const SHARE: f64 = 0.99;

/// Runs the slow clients and prints the result.
pub fn run(args: &LoadArgs, part: SlowPart, stop: &AtomicBool) -> anyhow::Result<Outcome> {
    let target = Target::at(&args.url, None, &args.connect)?;
    if !matches!(target.workload, Workload::Http(_)) || target.certified.is_some() {
        bail!("--slow needs a URL of the form http://HOST[:PORT]/PATH");
    }
    let path = target.path.as_deref().unwrap_or("/");
    // The number of intervals within the duration; about as many bytes can be sent.
    let most = args.duration.as_nanos() / args.slow.every.as_nanos();
    let plan = SlowPlan {
        target: target.address,
        request: slow_request(part, &target.host, path, most as u64),
        host: target.host,
        workload: target.workload,
        connections: args.connections.get(),
        every: args.slow.every,
        longest: args.duration,
        timeout: args.timeout,
    };
    let bar = progress::bar();
    let mut progress = |progress: &SlowProgress| bar.set_message(message(progress));
    let tally = run_slow(&plan, &mut progress, stop);
    bar.finish_and_clear();
    let tally = tally.with_context(|| args.url.clone())?;
    if tally.opened == 0 && tally.served.is_empty() && !tally.interrupted {
        let because = tally.first_failure.as_deref().unwrap_or("no connection could be opened");
        bail!("{}: no client was served, and no slow connection was opened: {because}", args.url);
    }
    let result = result(part, &plan, args.slow.within, &tally);
    if let Some(path) = &args.json {
        output::write(path, &regatta_report::pretty(&result))?;
    }
    if args.json.as_deref() != Some("-".as_ref()) {
        output::print(&text(&args.url, &result))?;
    }
    Ok(match () {
        () if tally.interrupted => Outcome::Interrupted,
        () if !result.kept_serving || too_few(&result) => Outcome::Failure,
        () => Outcome::Success,
    })
}

fn message(progress: &SlowProgress) -> String {
    let SlowProgress { alive, served, failed, .. } = *progress;
    let (alive, served) = (HumanCount(alive as u64), HumanCount(served));
    format!("{alive} slow connections · {served} new clients served · {failed} not served")
}

fn result(part: SlowPart, plan: &SlowPlan, within: Duration, tally: &SlowTally) -> SlowClients {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let ages = &tally.closed_ns;
    let closed_age_s = (!ages.is_empty()).then(|| Ages {
        min: seconds(ages[0]),
        median: (seconds(ages[(ages.len() - 1) / 2]) + seconds(ages[ages.len() / 2])) / 2.0,
        max: seconds(ages[ages.len() - 1]),
    });
    let name = |status: Option<u16>| status.map_or("none".to_owned(), |status| status.to_string());
    let served = tally.served.len();
    let served_within = tally.served.count_between(0, within.as_nanos() as u64);
    let mut result = SlowClients {
        format: FORMAT,
        slow: part.name().into(),
        connections: plan.connections as u64,
        every_s: plan.every.as_secs_f64(),
        duration_s: seconds(tally.took_ns),
        opened: tally.opened,
        refused: tally.refused,
        closed: ages.len() as u64,
        closed_age_s,
        closed_status: tally.statuses.iter().map(|(&status, &n)| (name(status), n)).collect(),
        alive: tally.alive,
        served,
        served_within,
        failed: tally.failed,
        first_failure: tally.first_failure.clone(),
        latency_ns: Latency::of_censored(&tally.served, tally.failed),
        within_s: within.as_secs_f64(),
        kept_serving: served > 0
            && tally.failed == 0
            && served_within as f64 >= SHARE * served as f64,
        verdict: String::new(),
    };
    result.verdict = verdict(&result, within);
    result
}

/// Whether fewer slow connections were opened than requested. Then the requested number was not tested.
fn too_few(result: &SlowClients) -> bool {
    result.opened < result.connections
}

/// States whether the server kept serving new clients, and whether it closed the slow connections.
fn verdict(result: &SlowClients, within: Duration) -> String {
    let SlowClients { served, served_within, failed, closed, opened, alive, .. } = *result;
    let within = humantime::format_duration(within);
    let serving = match () {
        () if result.kept_serving => format!("the server kept serving new clients within {within}"),
        () if served + failed == 0 => "no new client finished before the load ended".into(),
        () if failed > 0 => format!(
            "the server did not keep serving new clients: {} of {} were not served ({})",
            HumanCount(failed),
            HumanCount(served + failed),
            result.first_failure.as_deref().unwrap_or("unknown reason")
        ),
        () => format!(
            "the server did not keep serving new clients within {within}: {} of {} waited longer",
            HumanCount(served - served_within),
            HumanCount(served)
        ),
    };
    let closing = match () {
        () if opened == 0 => "no slow connection was opened".to_owned(),
        () if closed == opened => "it closed all slow connections".to_owned(),
        () if closed == 0 => "it closed no slow connection".to_owned(),
        () => format!(
            "it closed {} slow connections; {} stayed open",
            HumanCount(closed),
            HumanCount(alive)
        ),
    };
    if too_few(result) {
        let (opened, asked) = (HumanCount(opened), HumanCount(result.connections));
        return format!(
            "only {opened} of {asked} slow connections could be opened, so {asked} were not tested: \
             lower --connections or raise --duration; {serving}; {closing}"
        );
    }
    format!("{serving}; {closing}")
}

fn text(url: &str, result: &SlowClients) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:<12}{value}").expect("a string can be written to");
    };
    let SlowClients { connections, every_s, duration_s, .. } = result;
    line(
        "load",
        format!(
            "{url} · slow {} · {} connections, one byte each every {every_s} s, for {duration_s:.1} s",
            result.slow,
            HumanCount(*connections),
        ),
    );
    let refused = match result.refused {
        0 => String::new(),
        n => format!(", {} could not be opened", HumanCount(n)),
    };
    line(
        "slow",
        format!(
            "{} opened{refused}, {} closed by the server, {} open at the end",
            HumanCount(result.opened),
            HumanCount(result.closed),
            HumanCount(result.alive)
        ),
    );
    if let Some(Ages { min, median, max }) = result.closed_age_s {
        let replies: Vec<_> = result
            .closed_status
            .iter()
            .map(|(status, n)| match status.as_str() {
                "none" => format!("{} without a reply", HumanCount(*n)),
                status => format!("{} with {status}", HumanCount(*n)),
            })
            .collect();
        let ages = format!("min {min:.2} s  median {median:.2} s  max {max:.2} s");
        line("closed at", format!("{ages}: {}", replies.join(", ")));
    }
    line(
        "new clients",
        format!(
            "{} served, {} of them within {} s; {} not served",
            HumanCount(result.served),
            HumanCount(result.served_within),
            result.within_s,
            HumanCount(result.failed)
        ),
    );
    line("latency", percentiles(&result.latency_ns));
    line("verdict", result.verdict.clone());
    text
}
