//! Tests of a race in two regimes, on the summary of a simulated race in duels on a busy machine
//! (`regimes.json`, made by the example `simulated_regimes` of regatta-judge).

use crate::common::{row, table, words};
use regatta_record::{
    ContendedBlocks, Drive, Estimate, Event, Happened, Kind, PassStart, PilotRate, RaceHeader,
    Relation, RoundStart, Summary, Verdict, Window,
};
use regatta_report::{Live, Looks, Room, Shown, answer, markdown, terminal, terminal_with};
use unicode_width::UnicodeWidthStr;

const TITLE: &str = "double · 64 conn";

fn summary() -> Summary {
    serde_json::from_str(include_str!("../regimes.json")).expect("the fixture is a summary")
}

#[test]
fn the_answer_is_one_sentence_for_both_regimes() {
    let [only] = &answer(&summary())[..] else { panic!("one answer") };
    assert_eq!(
        only.sentence,
        "At an equal rate of 61 k/s and at saturation, uring costs the same as epoll (within 0.9%); green \
         costs 1.02×, async 1.09×, threads 1.62×, node 1.67× (within ±0.9%); rates at saturation are \
         from 104 k/s (node) to at least 174 k/s (uring)."
    );
}

#[test]
fn undecided_ratios_are_given_as_intervals() {
    let mut s = summary();
    for cell in s.cells.iter_mut().filter(|cell| cell.contender == "green") {
        cell.relation = Some(Relation::Inconclusive);
        let ratio = cell.ratio_to_baseline.as_mut().unwrap();
        (ratio.low, ratio.high) = (0.97, 1.06);
    }
    let text = &answer(&s)[0].sentence;
    assert_eq!(text.matches("green costs 0.97–1.06×: not decided").count(), 1, "{text}");
}

#[test]
fn a_ratio_that_differs_between_the_regimes_is_given_as_the_range_of_both() {
    let mut s = summary();
    let mut green = s.cells.iter_mut().filter(|cell| cell.contender == "green");
    let ranges = [(1.20, 1.22), (0.99, 1.05)];
    for (cell, (low, high)) in green.by_ref().zip(ranges) {
        let ratio = cell.ratio_to_baseline.as_mut().unwrap();
        (ratio.mean, ratio.low, ratio.high) = (f64::midpoint(low, high), low, high);
        cell.relation = Some(if low > 1.0 { Relation::Costlier } else { Relation::Inconclusive });
    }
    let text = &answer(&s)[0].sentence;
    assert!(text.contains(", green 0.99–1.22×, "), "{text}");
    assert!(!text.contains("not decided"), "{text}");
}

#[test]
fn one_table_has_both_regimes_at_every_width() {
    let s = summary();
    let shown = |width| {
        let text = terminal(&s, width, false);
        let table = table(&text, TITLE);
        assert!(table[1].contains("at 61 k/s ─"), "{}", table[1]);
        assert!(table[1].contains("  at saturation ─"), "{}", table[1]);
        words(table[2])
    };
    let ratio = "contender cost ratio to epoll result";
    assert_eq!(shown(80), format!("{ratio} p99 cost ratio rate"));
    assert_eq!(shown(100), format!("{ratio} p99 cost ratio rate both sides memory"));
    assert_eq!(shown(120), format!("{ratio} p50 p99 cost ratio result rate both sides memory"));
    assert_eq!(
        shown(240),
        format!("{ratio} p50 p99 p99.99 max cost ratio result rate both sides memory")
    );
    for width in 40..240 {
        let text = terminal(&s, width, false);
        assert_eq!(text.lines().find(|line| line.width() > width), None, "{width}");
    }
}

#[test]
fn costs_where_both_sides_were_busy_are_upper_bounds() {
    let text = terminal(&summary(), 120, false);
    let table = table(&text, TITLE);
    assert!(
        words(row(&table, "uring")).contains(" ≤ 5.64 1.00 tied ≥ 174 ≤ 11.2 3.25"),
        "{table:#?}"
    );
    assert!(!row(&table, "node").contains(['≤', '≥']), "its load was not busy");
    assert_eq!(text.matches("bounds: the load was as busy as the server").count(), 1, "{text}");
}

#[test]
fn a_busy_machine_has_few_remarks() {
    let text = terminal(&summary(), 120, false);
    let below = text.split_once("not shown: ").expect("a note").1.lines().skip(1);
    let notes = below.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with(' '));
    let doubts = text.lines().filter(|line| line.starts_with("doubt: "));
    let remarks: Vec<&str> = notes.chain(doubts).collect();
    let states =
        "states · node: costs 1.72× in the fast state of the machine, 1.61× in the slow one;";
    assert!(remarks[0].starts_with(states), "{remarks:#?}");
    assert!(remarks[1].starts_with("doubt: the machine was busy: the hypervisor"), "{remarks:#?}");
    assert_eq!(remarks.len(), 2, "{remarks:#?}");
    for word in ["noise floor", "noisy", "unclear", "co-bound"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
}

#[test]
fn a_load_without_cpu_is_no_remark_on_each_contender_if_the_machine_was_busy() {
    let mut s = summary();
    for cell in &mut s.cells {
        cell.verdict = Verdict::new(Kind::GeneratorBound, "another program took the load's CPU");
    }
    let text = terminal(&s, 120, false);
    assert!(text.contains("(173)") && !text.contains("generator-bound · "), "{text}");
    s.findings.clear();
    assert!(terminal(&s, 120, false).contains("generator-bound · all: "));
}

#[test]
fn the_heading_has_lives_and_states() {
    let text = terminal(&summary(), 200, false);
    assert!(
        text.starts_with("simulated · double · 14 lives, slices of 50 ms · seed 42\n"),
        "{text}"
    );
    assert!(text.contains("precision ±1.0%: reached after 14 lives"), "{text}");
    let states =
        "at saturation: 14 lives; the machine was in 2 states, with costs of 1.00× and 1.28×";
    assert!(text.contains(states), "{text}");
    let mut s = summary();
    s.precision.as_mut().unwrap().reached = false;
    s.precision.as_mut().unwrap().asked = 0.008;
    let text = terminal(&s, 200, false);
    let missed = "precision ±0.80%: not reached after 14 lives for node (±0.82%)";
    assert!(text.contains(missed), "{text}");
}

#[test]
fn blocks_beside_other_programs_and_those_left_out_are_counted() {
    let mut s = summary();
    let mut said = |busy: Option<ContendedBlocks>, blocks: u32, slices: u32| {
        let duel = s.duels.iter_mut().find(|duel| duel.load.drive == Drive::Closed).unwrap();
        (duel.busy, duel.left_out, duel.left_out_slices) = (busy, blocks, slices);
        duel.states.truncate(1);
        let text = terminal(&s, 300, false);
        let line = text.lines().find(|line| line.starts_with("at saturation: ")).unwrap();
        line.split_once("one state").unwrap().1.to_owned()
    };
    let busy = Some(ContendedBlocks { blocks: 12, of: 44, apart: true });
    assert_eq!(said(None, 0, 0), "");
    let beside = "; other programs ran beside 12 of 44 blocks";
    assert_eq!(said(busy, 0, 0), beside);
    let changed = "; 5 blocks left out, because the machine changed in them";
    assert_eq!(said(busy, 5, 0), format!("{beside}{changed}"));
    assert_eq!(said(None, 0, 3), "; 3 slices left out, because the machine was disturbed");
    assert_eq!(
        said(None, 5, 3),
        "; 5 blocks and 3 slices left out, because the machine changed or was disturbed"
    );
}

#[test]
fn ratios_that_differ_beside_other_programs_are_given() {
    let mut s = summary();
    for (name, ratio) in [("async", 1.12), ("node", 1.75)] {
        let cell = s.cells.iter_mut().find(|cell| cell.contender == name).unwrap();
        cell.ratio_beside_others =
            Some(Estimate { mean: ratio, low: ratio - 0.02, high: ratio + 0.02 });
    }
    let text = terminal(&s, 300, false);
    let said = "beside other programs · async, node: at an equal rate of 61 k/s, async costs 1.12×, node 1.75×; each ratio is that without them";
    assert!(text.contains(said), "{text}");
    s.cells
        .iter_mut()
        .filter(|c| c.contender == "async")
        .for_each(|c| c.ratio_beside_others = None);
    let text = terminal(&s, 300, false);
    let said = "beside other programs · node: at an equal rate of 61 k/s, costs 1.75×; the ratio is that without them";
    assert!(text.contains(said), "{text}");
}

#[test]
fn chosen_columns_are_those_of_both_regimes() {
    let chosen = ["rank", "cost", "switches", "memory"].map(str::to_owned);
    let text = terminal_with(&summary(), 120, false, &chosen);
    assert_eq!(words(table(&text, TITLE)[2]), "contender memory rank cost switches cost");
}

#[test]
fn markdown_names_the_regime_of_each_column() {
    let text = markdown(&summary());
    assert!(text.contains("| at 61 k/s: cost µs/req |"), "{text}");
    assert!(text.contains("| at saturation: rate k/s |"), "{text}");
    assert!(text.contains("### latency compared with epoll"), "{text}");
}

#[test]
fn a_regime_that_was_not_raced_yet_has_no_columns() {
    let mut s = summary();
    let saturation = s.asked.regimes().unwrap().saturation;
    s.cells.retain(|cell| cell.load != saturation);
    let text = terminal(&s, 120, false);
    assert!(!text.contains("saturation ─") && !text.contains("At saturation"), "{text}");
    s.cells.clear();
    assert!(terminal(&s, 120, false).contains("Not raced yet."));
}

#[test]
fn a_running_race_shows_precision_lives_and_time() {
    let asked = summary().asked;
    let load = asked.loads[0];
    let header = RaceHeader {
        dir: "results".into(),
        unix_ms: 0,
        asked,
        events_missing: false,
        notes: Vec::new(),
    };
    let pass = |widest| Happened::PassStarted(PassStart { passes: 40, widest });
    let start = |pass: u32| {
        Happened::RoundStarted(RoundStart {
            pass: Some(pass),
            observes_s: None,
            done: 8 * pass,
            all: 320,
            contender: "epoll".into(),
            load,
            window: Window::Time { s: 0.3 },
            next: None,
        })
    };
    let events = [
        (0, Happened::RaceStarted(Box::new(header))),
        (2, pass(None)),
        (2, start(0)),
        (40, pass(Some(0.014))),
        (40, start(5)),
    ];
    let show = |events: &[(u64, Happened)], progress| {
        let mut live = Live::new(Looks { width: 100, progress, ..Looks::default() });
        let event =
            |(s, happened): &(u64, Happened)| Event::new(s * 1_000_000_000, happened.clone());
        events.iter().flat_map(|one| live.show(&event(one))).collect::<Vec<Shown>>()
    };
    let shown = |progress| show(&events, progress);
    let lines = shown(None);
    let first = "life 1: 0 s of 60 s\n";
    let then = "life 6: 38 s of 60 s · ±1.4% after 5 lives\n";
    assert_eq!(lines, [first, then].map(|line| Shown::Stderr(line.to_owned())));
    let drawn = shown(Some(Room { width: 100, height: 30 }));
    let Some(Shown::Progress(last)) = drawn.last() else { panic!("{drawn:?}") };
    assert!(last.ends_with(" 22s left · ±1.4% after 5 lives, 38 s of 60 s"), "{last}");
    // The time of its pilot pass is within the limit.
    let mut with_pilot = events.clone();
    let (_, Happened::RaceStarted(header)) = &mut with_pilot[0] else { panic!("{events:?}") };
    header.asked.pilot = vec![PilotRate {
        contender: "epoll".into(),
        load,
        rate_per_s: 1.0,
        failed: None,
        window_rate_per_s: None,
        unsteady_after_s: None,
        took_s: 12.5,
    }];
    let lines = show(&with_pilot, None);
    assert_eq!(lines[0], Shown::Stderr("life 1: 12 s of 60 s\n".to_owned()));
}
