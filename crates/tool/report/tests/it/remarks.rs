//! Remarks below the tables: one for each cause, with the names it concerns.

use regatta_record::{Estimate, Figure, Kind, Operation, Relation, Summary};
use regatta_report::{markdown, terminal, terminal_with};

fn summary() -> Summary {
    serde_json::from_str(include_str!("../summary.json")).expect("the fixture is a summary")
}

/// The fixture with only its first load, and these ratios, which are not decided.
fn undecided(floor: f64, ratios: &[(&str, f64, f64)]) -> Summary {
    let mut summary = summary();
    summary.noise_floor = Some(floor);
    summary.asked.loads.truncate(1);
    let only = summary.asked.loads[0];
    summary.cells.retain(|cell| cell.load == only);
    for cell in &mut summary.cells {
        if let Some((_, low, high)) = ratios.iter().find(|(name, ..)| *name == cell.contender) {
            let mean = (low * high).sqrt();
            cell.ratio_to_baseline = Some(Estimate { mean, low: *low, high: *high });
            cell.relation = Some(Relation::Inconclusive);
        }
    }
    summary
}

#[test]
fn an_interval_that_excludes_1_and_is_not_decided_has_a_reason() {
    let ratios = [
        ("percore", 0.97, 1.05),
        ("poll", 1.05, 1.20),
        ("uring", 0.80, 0.95),
        ("node", 1.30, 4.00),
        ("select", 0.25, 0.80),
        ("epoll-twin", 1.01, 1.09),
    ];
    let text = terminal(&undecided(0.09, &ratios), 200, false);
    let chance = "unclear · uring, poll, select, node: the interval excludes 1, but with several comparisons that \
                  may be chance (Holm's correction)";
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("unclear · ")).collect();
    assert_eq!(lines, [chance], "{text}");
    let none = terminal(&undecided(0.09, &ratios[..1]), 200, false);
    assert!(!none.contains("unclear · "), "{none}");
}

#[test]
fn contenders_that_are_missing_for_the_same_reason_share_a_line() {
    let mut summary = summary();
    let run = |name: &str| format!("not built yet; run `regatta peers install {name}`");
    for entry in &mut summary.asked.entries {
        entry.skipped = match entry.name.as_str() {
            "poll" | "node" => Some(run(&entry.name)),
            "uring" => Some("not on PATH: ruby; run `regatta peers install uring`".to_owned()),
            _ => None,
        };
    }
    let text = terminal(&summary, 120, false);
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("skipped · ")).collect();
    assert_eq!(
        lines,
        [
            "skipped · uring: not on PATH: ruby; run `regatta peers install uring`",
            "skipped · poll, node: not built yet; run `regatta peers install NAME…`",
        ]
    );
    let text = markdown(&summary);
    let line = r"- poll, node: not built yet; run \`regatta peers install NAME…\`";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_remark_on_many_loads_counts_loads_and_gives_an_example() {
    let mut summary: Summary = serde_json::from_str(include_str!("../axes.json")).unwrap();
    let loads = summary.asked.loads[..2].to_vec();
    for cell in summary.cells.iter_mut().filter(|cell| loads.contains(&cell.load)) {
        let name = cell.contender.clone();
        if ["percore", "cluster"].contains(&name.as_str()) {
            cell.verdict.first_mut().kind = Kind::CannotHold;
            cell.verdict.void = [Figure::Cost, Figure::Rate].to_vec();
            cell.verdict.first_mut().cause =
                format!("{name} states a limit of 5 connections").into();
        }
    }
    let text = terminal(&summary, 200, false);
    let remark =
        "cannot-hold · percore, cluster (at 2 of 7 loads): e.g. percore states a limit of 5";
    assert!(text.contains(remark), "{text}");
}

#[test]
fn a_reference_names_a_table_above_it() {
    let mut summary: Summary = serde_json::from_str(include_str!("../axes.json")).unwrap();
    let because =
        "another program took the CPU of the server for a part of the window, which is long";
    for cell in summary.cells.iter_mut().filter(|cell| cell.contender == "percore") {
        cell.verdict.first_mut().kind = Kind::Noisy;
        cell.verdict.void = [Figure::Latency].to_vec();
        cell.verdict.first_mut().cause = because.into();
    }
    // The terminal shows the tables of loads with historic results: the last, and two others.
    let others = [summary.asked.loads[1], summary.asked.loads[3]];
    summary.asked.then[0].loads.extend(others);
    let mut seen = 0;
    for width in [80, 120, 200] {
        let text = terminal(&summary, width, false);
        assert!(text.contains("below: 3 of 7 loads"), "{text}");
        for (at, line) in text.lines().enumerate() {
            let Some((_, title)) = line.split_once(": as under ") else { continue };
            assert!(text.lines().take(at).any(|line| line == title), "{title:?} in {text}");
            seen += 1;
        }
    }
    assert!(seen > 0);
}

#[test]
fn a_remark_on_columns_is_shown_with_them() {
    let mut summary = undecided(0.09, &[]);
    summary.asked.latency_of = Operation::new("deliveries", "delivery", "deliveries");
    let remark = "latency · p50, p99: measured per delivery";
    let shown = |columns: &[&str]| {
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        terminal_with(&summary, 120, false, &columns).contains(remark)
    };
    assert!(shown(&[]) && shown(&["cost", "p99"]));
    assert!(!shown(&["cost", "ratio"]));
    let narrow = terminal(&summary, 48, false);
    assert!(narrow.contains("p50, p99, max") && !narrow.contains(remark), "{narrow}");
}

#[test]
fn an_overview_has_the_digits_that_its_intervals_support() {
    let mut summary: Summary = serde_json::from_str(include_str!("../axes.json")).unwrap();
    for cell in summary.cells.iter_mut().filter(|cell| cell.contender == "percore") {
        cell.ratio_to_baseline = Some(Estimate { mean: 24.0, low: 12.0, high: 48.0 });
        cell.relation = Some(Relation::Costlier);
    }
    let text = terminal(&summary, 100, false);
    let title = text.lines().position(|line| line.starts_with("cost as a multiple of"));
    let matrix: Vec<&str> = text.lines().skip(title.expect("an overview")).collect();
    let at = matrix[1].find("percore").expect("a column") + "percore".len();
    assert!(matrix[2][..at].ends_with("  24"), "{text}");
    assert!(text.contains("percore 24×"), "{text}");
}

#[test]
fn the_answer_over_all_loads_counts_only_loads_with_a_ratio() {
    let mut summary: Summary = serde_json::from_str(include_str!("../axes.json")).unwrap();
    let first = summary.asked.loads[0];
    for cell in &mut summary.cells {
        let relation = match cell.contender.as_str() {
            "percore" => Relation::Costlier,
            "cluster" => Relation::Inconclusive,
            _ => continue,
        };
        cell.ratio_to_baseline = Some(Estimate { mean: 2.0, low: 1.9, high: 2.1 });
        cell.relation = Some(relation);
        if cell.load != first {
            (cell.band, cell.relation, cell.ratio_to_baseline) = (None, None, None);
        }
    }
    let text = terminal(&summary, 400, false);
    assert!(text.contains("percore 2.00× (at 1 load)"), "{text}");
    let (_, same) = text.split_once("No load distinguishes ").expect("a sentence");
    assert!(
        same.starts_with("cluster (at 1 load)") || same.contains(", cluster (at 1 load)"),
        "{same}"
    );
}

#[test]
fn an_overview_names_its_loads_in_full_if_there_is_room() {
    let summary: Summary = serde_json::from_str(include_str!("../axes.json")).unwrap();
    let text = terminal(&summary, 90, false);
    let title = text.lines().position(|line| line.starts_with("cost as a multiple of"));
    let matrix: Vec<&str> = text.lines().skip(title.expect("an overview")).collect();
    for load in &summary.asked.loads {
        let there = matrix.iter().any(|line| line.starts_with(&format!("{load}  ")));
        assert!(there, "{load} in {text}");
    }
}
