//! Tests of the answer of a race: a sentence or two in plain words for each load.

use regatta_record::{Estimate, Figure, Kind, Relation, SomeStarts, Summary, Verdict};
use regatta_report::answer;

fn stored(text: &str) -> Summary {
    serde_json::from_str(text).expect("the fixture is a summary")
}

fn quick() -> Summary {
    stored(include_str!("../summary.json"))
}

/// The answer for the load whose text starts with `load`.
fn at(summary: &Summary, load: &str) -> String {
    let all = answer(summary);
    let found = all.iter().find(|one| one.load.starts_with(load));
    found.unwrap_or_else(|| panic!("no load {load}: {all:?}")).sentence.clone()
}

/// `summary` with only its first load.
fn first_load(mut summary: Summary) -> Summary {
    summary.asked.loads.truncate(1);
    summary
}

fn cell<'a>(summary: &'a mut Summary, contender: &str) -> &'a mut regatta_record::Cell {
    summary.cells.iter_mut().find(|cell| cell.contender == contender).expect("a cell")
}

#[test]
fn groups_contenders_by_their_relation_to_the_baseline() {
    assert_eq!(
        at(&quick(), "1000 conn"),
        "uring costs 0.91× as much as epoll, poll 1.11×, async 1.20×, threads 1.40×, node 1.73× \
         (within ±1.9%); percore costs 0.99–1.03×: not decided. select cannot hold this load. \
         haskell-conduit failed: died with exit status 251 inside the window. \
         <script>alert(1)</script> was disqualified: the 4,711th reply was wrong."
    );
    let with_a_tie = at(&stored(include_str!("../axes.json")), "10 conn + 10000 idle");
    let start = "percore costs the same as epoll (within 1.8%); cluster costs 1.12×";
    assert!(with_a_tie.starts_with(start), "{with_a_tie}");
    let first = at(&quick(), "64 conn × 16");
    assert!(
        first.starts_with(
            "7 contenders cost from 0.91× (uring) to 2.14× (haskell-conduit) as much as epoll"
        ),
        "{first}"
    );
    assert!(first.contains("async has no cost: its rate was not steady."), "{first}");
}

#[test]
fn a_reason_does_not_repeat_the_name_and_is_cut_between_words() {
    let mut summary = first_load(quick());
    let name = "<script>alert(1)</script>";
    let why = "0 of 100 connections came to a first reply, because the server waits";
    cell(&mut summary, name).verdict.first_mut().cause = format!("{name}: {why}").into();
    let answer = at(&summary, "64 conn");
    let expected = "disqualified: 0 of 100 connections came to a first reply, because the…";
    assert!(answer.ends_with(expected), "{answer}");
}

#[test]
fn a_race_with_one_load_names_the_machine() {
    let only = first_load(quick());
    assert!(at(&only, "64 conn").starts_with("On this machine, 7 contenders cost from"));
    assert!(!at(&quick(), "64 conn").contains("this machine"), "several loads");
}

#[test]
fn only_a_tie_is_called_the_same() {
    let mut summary = first_load(quick());
    let percore = cell(&mut summary, "percore");
    percore.relation = Some(Relation::Inconclusive);
    percore.ratio_to_baseline = Some(Estimate { mean: 1.0, low: 0.985, high: 1.015 });
    let text = at(&summary, "64 conn");
    assert!(text.contains("percore costs 0.98–1.01×: not decided"), "{text}");
    assert!(!text.contains("the same"), "{text}");
    cell(&mut summary, "percore").relation = Some(Relation::Tied);
    let text = at(&summary, "64 conn");
    let start = "On this machine, percore costs the same as epoll (within 1.5%); 7 others cost";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn a_wide_interval_shows_how_far_the_costs_may_differ() {
    let mut summary = first_load(quick());
    let percore = cell(&mut summary, "percore");
    percore.ratio_to_baseline = Some(Estimate { mean: 1.15, low: 0.99, high: 1.331 });
    let text = at(&summary, "64 conn");
    assert!(text.contains("percore costs 0.99–1.33×: not decided"), "{text}");
    cell(&mut summary, "percore").relation = Some(Relation::Costlier);
    summary.cells.retain(|cell| ["epoll", "percore", "node"].contains(&cell.contender.as_str()));
    let text = at(&summary, "64 conn");
    let both = "percore costs 0.99–1.33× as much as epoll, node 1.73–1.77×.";
    assert!(text.contains(both), "{text}");
}

#[test]
fn without_the_baseline_there_are_no_ratios() {
    let mut summary = first_load(quick());
    let epoll = cell(&mut summary, "epoll");
    epoll.verdict = Verdict::new(Kind::Disqualified, "a\u{1b}; b");
    epoll.verdict.first_mut().starts = Some(SomeStarts { seen: 1, of: 7, first: Some(2) });
    epoll.band = None;
    let text = at(&summary, "64 conn");
    assert!(text.starts_with(
        "On this machine, epoll, the baseline, has no valid cost, so there are no ratios; a request costs from"
    ));
    assert!(text.contains("epoll was disqualified: a\\u{1b}."), "without the rounds: {text}");
}

#[test]
fn a_load_without_rounds_was_not_raced_yet() {
    let mut summary = quick();
    let due: Vec<_> = summary.asked.loads.clone();
    for cell in summary.cells.iter_mut().filter(|cell| cell.load == due[2]) {
        cell.verdict = Verdict::new(Kind::Skipped, "no round was run");
        (cell.band, cell.relation, cell.ratio_to_baseline) = (None, None, None);
    }
    assert_eq!(at(&summary, "1000 conn"), "Not raced yet.");
    assert!(!at(&summary, "64 conn").contains("not raced"), "the others were");
}

#[test]
fn bursts_fairness_and_rates_have_their_own_answers() {
    let axes = stored(include_str!("../axes.json"));
    let burst = at(&axes, "5000 conn × 3, burst");
    assert!(
        burst.starts_with("An instance takes from 1.31 s (epoll) to 2.77 s (haskell-conduit).")
    );
    let mut bound = axes.clone();
    for cell in bound.cells.iter_mut().filter(|cell| cell.contender == "epoll") {
        cell.verdict.first_mut().kind = Kind::CoBound;
    }
    let burst = at(&bound, "5000 conn × 3, burst");
    assert!(
        burst.starts_with("An instance takes from at most 1.31 s (epoll) to 2.77 s"),
        "{burst}"
    );
    let rated = at(&axes, "64 conn, 20000/s, 1 core");
    assert!(rated.ends_with("p99 latency is from 644 µs (percore) to 1.44 ms (haskell-conduit)."));
    let shared = at(&axes, "64 conn, 20000/s, 2 cores");
    assert!(shared.ends_with("haskell-conduit has no valid cost (overloaded)."), "{shared}");
    let fair = at(&stored(include_str!("../counted.json")), "100 conn, 200/s");
    assert_eq!(
        fair,
        "Beside large requests, small requests wait least on go (p99 2.10 ms), and most on php \
         (p99 300 ms): 143 times as long."
    );
}

#[test]
fn one_round_has_no_ratio_yet() {
    let mut summary = first_load(quick());
    let node = cell(&mut summary, "node");
    (node.rounds, node.band, node.relation, node.ratio_to_baseline) = (1, None, None, None);
    node.cost_ns_per_request = None;
    node.verdict.first_mut().kind = Kind::GeneratorBound;
    let text = at(&summary, "64 conn");
    assert!(text.contains("node has no cost yet: an interval needs 2 rounds."), "{text}");
    cell(&mut summary, "node").rounds = 2;
    let text = at(&summary, "64 conn");
    assert!(text.contains("node has no valid cost (generator-bound)."), "{text}");
    let node = cell(&mut summary, "node");
    (node.rounds, node.verdict.void) = (1, vec![Figure::Cost]);
    let text = at(&summary, "64 conn");
    assert!(text.contains("node has no valid cost (generator-bound)."), "{text}");
}

#[test]
fn equal_latencies_are_not_ranked() {
    let mut summary = stored(include_str!("../counted.json"));
    for cell in &mut summary.cells {
        cell.latency_intervals = Default::default();
        let latency = &mut cell.latency_ns;
        (latency.p50, latency.p95, latency.p99) =
            (Some(9_000_000), Some(9_000_000), Some(9_000_000));
    }
    let fair = at(&summary, "100 conn, 200/s");
    let same =
        "Beside large requests, small requests wait equally long on all of them (p99 9.00 ms).";
    assert!(fair.starts_with(same), "{fair}");

    let mut axes = stored(include_str!("../axes.json"));
    let rated = "64 conn, 20000/s, 1 core";
    let load = *axes.asked.loads.iter().find(|load| load.to_string() == rated).unwrap();
    for cell in axes.cells.iter_mut().filter(|cell| cell.load == load) {
        cell.latency_intervals = Default::default();
        cell.latency_ns.p99 = Some(9_000_000);
    }
    assert!(at(&axes, rated).ends_with("p99 latency is 9.00 ms on all of them."));
    for cell in axes.cells.iter_mut().filter(|cell| cell.load == load) {
        if cell.contender != "percore" {
            cell.verdict.void.push(Figure::Latency);
        }
    }
    assert!(!at(&axes, rated).contains("latency is"), "one is not compared");
    for cell in summary.cells.iter_mut().filter(|cell| cell.contender != "go") {
        cell.verdict.void.push(Figure::Latency);
    }
    let only = "Only go (p99 9.00 ms) has valid latencies here.";
    assert!(at(&summary, "100 conn, 200/s").starts_with(only));
}
