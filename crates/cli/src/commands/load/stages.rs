//! The results of the stages of a load: figures, verdicts and their table.

use super::{
    open,
    server::Server,
    threshold::{Figures, Times},
};
use indicatif::HumanCount;
use regatta_host::Spent;
use regatta_load::{Plan, Tally};
use regatta_record::{
    Figure, Kind, Latency, LoadStage, OpenLoop, Unseen, Verdict, encode_histogram,
};

/// The result of each stage of the window that began.
pub fn results(plan: &Plan, tally: &Tally, server: &Server<'_>) -> Vec<LoadStage> {
    let each = tally.stages.iter().zip(&plan.stages).enumerate();
    each.map(|(number, (tally, asked))| {
        // A run that ended early has fewer readings: its last stage ended with the window.
        let spent = server.spent_in_stage(number);
        let verdict = server.judge(&plan.stage(number), tally, spent.as_ref());
        of_stage(number as u32 + 1, asked.rate.get(), tally, spent.as_ref(), verdict)
    })
    .collect()
}

fn of_stage(
    number: u32,
    rate: u32,
    tally: &Tally,
    spent: Option<&Spent>,
    verdict: Verdict,
) -> LoadStage {
    let duration_s = tally.window_ns as f64 / 1e9;
    let each = |ns: u64| (tally.requests > 0).then(|| ns as f64 / tally.requests as f64);
    let open = tally.open_loop.as_ref().expect("a stage has a rate");
    LoadStage {
        number,
        duration_s,
        target_rate_per_s: rate,
        requests: open.due - open.unanswered() - open.refused,
        rate_per_s: if duration_s > 0.0 { tally.requests as f64 / duration_s } else { 0.0 },
        latency_ns: Latency::of_censored(&tally.histogram, open.unanswered()),
        open_loop: open.to_record(),
        load_cpu_ns_per_request: each(tally.load_cpu_ns - tally.spun_ns),
        server_cpu_ns_per_request: spent.and_then(|spent| each(spent.cpu_ns)),
        server_unseen: spent.map(|spent| spent.unseen),
        verdict,
        histogram: encode_histogram(&tally.histogram),
    }
}

/// The figures of a stage that are compared with thresholds.
pub fn figures<'a>(stage: &'a LoadStage, tally: &Tally) -> Figures<'a> {
    let open = &stage.open_loop;
    let errors = open.unsent + open.timed_out + open.lost;
    let requests = open.due - open.refused;
    Figures {
        across: None,
        stage: Some(stage.number),
        times: Times::of(&tally.histogram, errors),
        streams: None,
        rate_per_s: stage.rate_per_s,
        errors,
        error_share: (requests > 0).then(|| errors as f64 / requests as f64),
        requests,
        refused: open.refused,
        cost_ns: stage.server_cpu_ns_per_request,
        cost_is_least: matches!(stage.server_unseen, Some(Unseen::Unbounded)),
        verdict: &stage.verdict,
    }
}

/// The verdict of a load with stages: that of the first stage whose rate was not held or whose figures
/// are void. A fault of the server in any stage comes first.
pub fn verdict(whole: Verdict, stages: &[LoadStage]) -> Verdict {
    if matches!(whole.kind(), Kind::Disqualified | Kind::Failed) {
        return whole;
    }
    let is_held = |verdict: &Verdict| {
        verdict.kind() == Kind::AtAskedRate
            && !verdict.voids(Figure::Rate)
            && !verdict.voids(Figure::Latency)
    };
    match stages.iter().find(|stage| !is_held(&stage.verdict)) {
        Some(LoadStage { number, verdict, .. }) => {
            let mut verdict = verdict.clone();
            verdict.first_mut().stage = Some(*number);
            verdict
        }
        None => whole,
    }
}

/// The names and rows of the table of stages, with a header; none without stages. Void figures are in
/// parentheses.
pub fn rows(stages: &[LoadStage]) -> Vec<(String, String)> {
    const COLUMNS: [&str; 7] = ["requested", "answered", "p50", "p99", "p99.9", "CPU", "verdict"];
    if stages.is_empty() {
        return Vec::new();
    }
    let cells: Vec<_> =
        [COLUMNS.map(String::from)].into_iter().chain(stages.iter().map(row)).collect();
    // A column without a figure is left out, such as the CPU of a server that was not observed.
    let shown = (0..COLUMNS.len()).filter(|&n| cells[1..].iter().any(|row| row[n] != NOTHING));
    let shown: Vec<(usize, usize)> = shown
        .map(|n| (n, cells.iter().map(|row| row[n].chars().count()).max().unwrap_or(0)))
        .collect();
    let line = |row: &[String; 7]| {
        let (last, before) = row.split_last().expect("it has columns");
        let figures =
            shown.iter().filter_map(|&(n, width)| Some(format!("{:>width$}", before.get(n)?)));
        figures.chain([last.clone()]).collect::<Vec<_>>().join("  ")
    };
    let names = stages.iter().map(|stage| format!("stage {}", stage.number));
    let names = ["stages".to_owned()].into_iter().chain(names);
    let missed = stages.iter().filter(|stage| !open::was_reached(&stage.open_loop));
    names.zip(cells.iter().map(line)).chain(missed.map(not_reached)).collect()
}

/// A figure that is not known.
const NOTHING: &str = "–";

/// The cells of a stage.
fn row(stage: &LoadStage) -> [String; 7] {
    let voided = |figure, value: String| match stage.verdict.voids(figure) {
        true if value != NOTHING => format!("({value})"),
        _ => value,
    };
    let per_second = |rate: f64| format!("{}/s", HumanCount(rate.round() as u64));
    let time = |ns: Option<f64>| ns.map_or(NOTHING.into(), regatta_report::time);
    let latency = |ns: Option<u64>| voided(Figure::Latency, time(ns.map(|ns| ns as f64)));
    let least = match (stage.server_cpu_ns_per_request, stage.server_unseen) {
        (Some(_), Some(Unseen::Unbounded)) => "≥ ",
        _ => "",
    };
    let Latency { p50, p99, p99_9, .. } = stage.latency_ns;
    [
        per_second(f64::from(stage.target_rate_per_s)),
        voided(Figure::Rate, per_second(stage.rate_per_s)),
        latency(p50),
        latency(p99),
        latency(p99_9),
        voided(Figure::Cost, format!("{least}{}", time(stage.server_cpu_ns_per_request))),
        stage.verdict.kind().name().to_owned(),
    ]
}

/// The outcome of a stage whose rate was not reached.
fn not_reached(stage: &LoadStage) -> (String, String) {
    let OpenLoop { due, unsent, timed_out, .. } = stage.open_loop;
    let [due, unsent, timed_out] = [due, unsent, timed_out].map(HumanCount);
    (
        format!("stage {}", stage.number),
        format!("NOT REACHED: of {due} due, {unsent} were never sent, {timed_out} timed out"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(number: u32, verdict: Verdict) -> LoadStage {
        let latency = Latency { p50: Some(90_000), p99: Some(1_200_000), ..Latency::default() };
        LoadStage {
            number,
            duration_s: 2.0,
            target_rate_per_s: 1_000,
            requests: 1_990,
            rate_per_s: 995.0,
            latency_ns: latency,
            open_loop: serde_json::from_value(serde_json::json!({
                "due": 2_000, "unsent": 0, "late": 0, "timed_out": 0, "lost": 0, "wait": "", "lag": "",
                "service": "", "spin_ns": 0, "arrivals": { "gaps": 1, "rate_per_s": 1_000.0,
                "distance": 0.0, "lag1": 0.0, "unsteadiness": 0.0, "kept": true },
            }))
            .unwrap(),
            load_cpu_ns_per_request: None,
            server_cpu_ns_per_request: None,
            server_unseen: None,
            verdict,
            histogram: String::new(),
        }
    }

    fn held(number: u32) -> LoadStage {
        stage(number, Verdict::new(Kind::AtAskedRate, "held"))
    }

    #[test]
    fn the_first_stage_whose_rate_was_not_held_decides() {
        let whole = || Verdict::new(Kind::AtAskedRate, "whole");
        assert_eq!(verdict(whole(), &[held(1), held(2)]), whole());
        let late = stage(2, Verdict::new(Kind::GeneratorBound, "late"));
        let slow = stage(3, Verdict::new(Kind::Overloaded, "slow"));
        let decided = verdict(whole(), &[held(1), late, slow.clone()]);
        assert_eq!((decided.kind(), &*decided.because()), (Kind::GeneratorBound, "stage 2: late"));
        assert!(decided.voids(Figure::Latency));
        let void = Verdict { void: vec![Figure::Latency], ..whole() };
        assert_eq!(verdict(whole(), &[stage(1, void)]).because(), "stage 1: whole");
        let wrong = Verdict::new(Kind::Disqualified, "wrong");
        assert_eq!(verdict(wrong.clone(), &[slow]), wrong);
    }

    #[test]
    fn void_figures_are_in_parentheses_and_columns_without_figures_are_left_out() {
        let mut missed = stage(2, Verdict::new(Kind::GeneratorBound, "late"));
        missed.open_loop.unsent = 21;
        missed.open_loop.timed_out = 4;
        let rows = rows(&[held(1), missed]);
        let lines: Vec<_> = rows.iter().map(|(name, row)| format!("{name}: {row}")).collect();
        assert_eq!(
            lines,
            [
                "stages: requested  answered        p50        p99  verdict",
                "stage 1:   1,000/s     995/s    90.0 µs    1.20 ms  at-asked-rate",
                "stage 2:   1,000/s   (995/s)  (90.0 µs)  (1.20 ms)  generator-bound",
                "stage 2: NOT REACHED: of 2,000 due, 21 were never sent, 4 timed out",
            ]
        );
        assert!(super::rows(&[]).is_empty());
        let mut least = held(1);
        least.server_cpu_ns_per_request = Some(9_000.0);
        least.server_unseen = Some(Unseen::Unbounded);
        assert!(super::rows(&[least])[1].1.contains("  ≥ 9.00 µs  "));
    }
}
