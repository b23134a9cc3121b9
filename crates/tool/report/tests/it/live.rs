//! Tests of the output for events, with and without a terminal.

use regatta_record::{
    Asked, Capacity, CapacityInterval, CapacityLoad, CapacityPhase, CapacityStep, Estimate, Event,
    Exchange, Extreme, Form, Happened, Judged, JudgedCell, Kind, Limit, LoadShape, NextStart,
    Operation, Outcome, PassStart, Phase, PilotRate, PilotShare, RaceHeader, Relation, RoundEnd,
    RoundStart, Summary, Window,
};
use regatta_report::{Live, Looks, Room, Shown, json, markdown, terminal};

const SECOND: u64 = 1_000_000_000;
const PLAIN: Looks = Looks { width: 100, colour: false, progress: None, columns: Vec::new() };
const ROOM: Room = Room { width: 100, height: 40 };
const TERMINAL: Looks =
    Looks { width: 100, colour: false, progress: Some(ROOM), columns: Vec::new() };

fn summary() -> Summary {
    serde_json::from_str(include_str!("../summary.json")).expect("the fixture is a summary")
}

fn header(asked: Asked) -> Box<RaceHeader> {
    let (dir, notes) = ("out".into(), Vec::new());
    Box::new(RaceHeader { dir, unix_ms: 7, asked, events_missing: false, notes })
}

fn asked() -> Asked {
    Asked { left_out: vec!["8 conn on 9 CPUs: there are 2 to use".into()], ..summary().asked }
}

fn round(done: u32, pass: Option<u32>) -> Happened {
    let window = Window::Time { s: 0.5 };
    let (contender, load) = ("epoll".into(), LoadShape::closed(64, 1));
    Happened::RoundStarted(RoundStart {
        pass,
        observes_s: None,
        done,
        all: 8,
        contender,
        load,
        window,
        next: Some(NextStart { contender: "go".into(), load }),
    })
}

fn pass(widest: Option<f64>) -> Happened {
    Happened::PassStarted(PassStart { passes: 2, widest })
}

fn ended(pass: Option<u32>, outcome: Outcome) -> Happened {
    Happened::RoundEnded(Box::new(RoundEnd {
        pass,
        contender: "epoll".into(),
        load: LoadShape::closed(64, 1),
        outcome,
        requests: 0,
        window_ns: 0,
        server_cpu_ns: None,
    }))
}

fn phase(phase: Phase) -> Happened {
    Happened::PhaseStarted { phase }
}

fn open(open: u64) -> Happened {
    Happened::LoadSampled { open }
}

/// The output for events that are one second apart.
fn shown(looks: Looks, events: impl IntoIterator<Item = Happened>) -> Vec<Shown> {
    let mut live = Live::new(looks);
    let events = events.into_iter().zip(0_u64..);
    events.flat_map(|(what, s)| live.show(&Event::new(s * SECOND, what))).collect()
}

/// The lines printed to stderr.
fn lines(shown: &[Shown]) -> String {
    let line = |shown: &Shown| match shown {
        Shown::Stderr(text) => Some(text.clone()),
        _ => None,
    };
    shown.iter().filter_map(line).collect()
}

fn progress(shown: &[Shown]) -> Vec<&str> {
    shown
        .iter()
        .filter_map(|shown| match shown {
            Shown::Progress(text) => Some(text.as_str()),
            Shown::Stdout(_) | Shown::Stderr(_) | Shown::NoProgress => None,
        })
        .collect()
}

#[test]
fn without_a_terminal_each_pass_is_a_line() {
    let events = [
        Happened::RaceStarted(header(asked())),
        pass(None),
        round(0, Some(0)),
        phase(Phase::WarmUp),
        ended(Some(0), Outcome::Finished),
        round(1, Some(0)),
        pass(Some(0.034)),
        round(2, Some(1)),
        round(3, Some(1)),
    ];
    let shown = shown(PLAIN, events);
    assert_eq!(
        lines(&shown),
        "skipped: erlang: `erl` is not on PATH; get it with: apt-get install erlang-base\n\
         left out: 8 conn on 9 CPUs: there are 2 to use\n\
         round 1: 0 of 8 starts are done, 18s left\n\
         round 2: 2 of about 8 starts are done, 15s left · widest ratio ±3.4%\n"
    );
    assert!(shown.iter().all(|shown| matches!(shown, Shown::Stderr(_))), "{shown:?}");
}

#[test]
fn the_progress_line_shows_the_task_and_announces_the_window() {
    let events = [
        Happened::RaceStarted(header(summary().asked)),
        pass(None),
        round(0, Some(0)),
        phase(Phase::Connecting),
        open(1_064),
        phase(Phase::WarmUp),
        open(1_064),
        phase(Phase::Window),
        phase(Phase::Stopping),
        ended(Some(0), Outcome::Finished),
        round(1, Some(0)),
    ];
    let shown = shown(TERMINAL, events);
    let last: Vec<Vec<&str>> = progress(&shown)
        .iter()
        .map(|text| {
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len() - 3..].to_vec()
        })
        .collect();
    let now: Vec<&str> = last.iter().map(|lines| lines[0]).collect();
    let of = |phase: &str| format!("now: epoll · 64 conn · {phase}");
    let warm = of("warming up, then measuring for 0.5 s");
    assert_eq!(
        now,
        [
            of("starting"),
            of("connecting"),
            of("1,064 connected"),
            warm.clone(),
            warm,
            of("measured"),
            of("stopping"),
            of("starting"),
        ]
    );
    assert!(last.iter().all(|lines| lines[1] == "next: go · 64 conn"), "{last:?}");
    assert_eq!(last[0][2], "0/8 ──────────────────────── 18s left · round 1 of 2");
    assert!(last[7][2].starts_with("1/8 ━━━╸──────────────────── "), "{last:?}");
    assert!(!lines(&shown).contains("round 1:"), "only the progress line shows it");
}

#[test]
fn the_death_of_a_contender_is_a_line_above_the_progress_and_without_one() {
    let (contender, because) = ("b".to_owned(), "b was killed by signal 9".to_owned());
    let died = Happened::ContenderDied { contender, because };
    let expected = [Shown::Stderr("died: b was killed by signal 9; the others go on\n".into())];
    assert_eq!(shown(TERMINAL, [died.clone()]), expected);
    assert_eq!(shown(PLAIN, [died]), expected);
}

/// A judgement on `contender` after `rounds`, with a ratio of 2 if `half` is the half-width.
fn judged(contender: &str, rounds: u32, half: Option<f64>) -> JudgedCell {
    let around = |mean: f64, half: f64| Estimate { mean, low: mean - half, high: mean + half };
    JudgedCell {
        contender: contender.into(),
        load: LoadShape::closed(64, 1),
        rounds,
        verdict: Kind::ServerBound,
        relation: half.map(|_| Relation::Costlier),
        cost_ns_per_request: half.map(|half| around(8_000.0, 1e3 * half)),
        ratio_to_baseline: half.map(|half| around(2.0, half)),
        rate_per_s: None,
    }
}

fn finished(contender: &str, cost_ns: u64) -> Happened {
    let Happened::RoundEnded(end) = ended(Some(0), Outcome::Finished) else { unreachable!() };
    let (requests, window_ns) = (1_000, SECOND);
    let server_cpu_ns = Some(1_000 * cost_ns);
    let contender = contender.into();
    let end = RoundEnd { contender, requests, window_ns, server_cpu_ns, ..*end };
    Happened::RoundEnded(Box::new(end))
}

/// The fixture's race with only one load.
fn with_one_load() -> Asked {
    let loads = vec![LoadShape::closed(64, 1)];
    Asked { loads, ..summary().asked }
}

#[test]
fn the_table_fills_in_and_its_intervals_narrow() {
    let judge = |pass, changed| Happened::PassJudged { pass, changed };
    let events = [
        Happened::RaceStarted(header(with_one_load())),
        pass(None),
        round(0, Some(0)),
        finished("epoll", 4_000),
        finished("node", 9_000),
        round(2, Some(0)),
        judge(0, vec![judged("epoll", 1, None), judged("node", 1, None)]),
        judge(1, vec![judged("node", 2, Some(0.8))]),
        round(3, Some(1)),
        judge(2, vec![judged("node", 3, Some(0.1))]),
        round(4, Some(1)),
    ];
    let shown = shown(TERMINAL, events.clone());
    let texts = progress(&shown);
    let row = |text: &str, name: &str| {
        let found = text.lines().find(|line| line.trim_start_matches(['▶', ' ']).starts_with(name));
        let found = found.unwrap_or_else(|| panic!("no {name}:\n{text}"));
        found.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(texts[0].starts_with("round 1 of 2 · 64 conn\n"), "{}", texts[0]);
    assert_eq!(row(texts[0], "node"), "node 0", "nothing is known yet");
    assert!(row(texts[0], "epoll").starts_with("▶ epoll"), "it runs now");
    assert_eq!(row(texts[1], "node"), "node 9.00 2.25 1000 1", "one round has no interval");
    assert!(row(texts[2], "node").starts_with("node 8.00 2.0 [1.2–2.8]"), "{}", texts[2]);
    assert!(row(texts[3], "node").starts_with("node 8.00 2.00 [1.90–2.10]"), "{}", texts[3]);
    // Without a terminal: a line for each round from the second on.
    let plain = lines(&self::shown(PLAIN, events));
    assert!(
        plain
            .contains("after round 2, cost as a multiple of the baseline's: node 2.0× [1.2–2.8]\n")
    );
    assert!(!plain.contains("after round 1"), "{plain}");
}

#[test]
fn the_progress_fits_the_terminal() {
    let events = || {
        [
            Happened::RaceStarted(header(with_one_load())),
            pass(None),
            Happened::PassJudged { pass: 0, changed: vec![judged("node", 2, Some(0.1))] },
            round(0, Some(0)),
        ]
    };
    for height in [1, 5, 8, 12, 50] {
        for width in [40, 80, 120, 200] {
            let looks = Looks { progress: Some(Room { width, height }), ..PLAIN };
            let shown = shown(looks, events());
            let text = progress(&shown)[0].to_owned();
            assert!(text.lines().count() <= height.max(3), "{height}:\n{text}");
            let widest = text.lines().map(unicode_width::UnicodeWidthStr::width).max();
            assert!(widest.unwrap() < width, "{width}:\n{text}");
        }
    }
}

#[test]
fn announces_counted_requests_before_they_are_sent() {
    let load = LoadShape { requests: Some(2_000), ..LoadShape::closed(8, 1) };
    let window = Window::Requests { n: 2_000 };
    let (pass, contender) = (Some(0), "a".into());
    let start =
        RoundStart { pass, observes_s: None, done: 0, all: 1, contender, load, window, next: None };
    let shown = shown(TERMINAL, [Happened::RoundStarted(start), phase(Phase::Connecting), open(8)]);
    let last = progress(&shown).pop().unwrap().to_owned();
    assert!(last.ends_with("  a · 8 conn, 2000 requests · 2,000 requests"), "{last}");
}

#[test]
fn announces_a_pilot_pass_but_not_its_rounds() {
    let failed = Outcome::Failed { because: "epoll exited".into() };
    let load = LoadShape::closed(8, 1);
    let unsteady = PilotRate {
        contender: "epoll".into(),
        load,
        rate_per_s: 2_600.0,
        failed: None,
        window_rate_per_s: None,
        unsteady_after_s: Some(5.9),
        took_s: 7.0,
    };
    let raced = PilotRate { load: asked().loads[0], ..unsteady.clone() };
    let share_of = |load| PilotShare { load, of: Extreme::Slowest };
    let more_left_out = Asked {
        left_out: [&asked().left_out[..], &["a rate".into()]].concat(),
        pilot_shares: vec![share_of(load), share_of(raced.load)],
        pilot: vec![unsteady, raced],
        ..asked()
    };
    let events = [
        Happened::RaceStarted(header(asked())),
        Happened::PilotStarted { rounds: 3 },
        round(0, None),
        ended(None, failed),
        Happened::RatesSettled { asked: Box::new(more_left_out) },
        Happened::RaceInterrupted { stored: None },
    ];
    let text = lines(&shown(PLAIN, events.clone()));
    let (_, text) = text.split_once('\n').unwrap();
    assert_eq!(
        text,
        "left out: 8 conn on 9 CPUs: there are 2 to use\n\
         pilot: short rounds, each once its rate is steady, to determine the rates: 3\n\
         left out: a rate\n\
         pilot: the rate of epoll at 8 conn is not known to have been steady after 5.9 s of its pilot, so loads at a \
         share of it may have a rate that is too low or too high; give the rate as a number, or allow longer warm-ups \
         (--settle, up to 20 s)\n\
         interrupted in the pilot pass; nothing is saved\n"
    );
    let on_terminal = shown(TERMINAL, events);
    let first = progress(&on_terminal)[0];
    assert!(first.starts_with("now: epoll · 64 conn · starting\n"), "{first}");
    assert!(first.ends_with(" left · pilot, before the first round"), "{first}");
    assert!(!lines(&on_terminal).contains("pilot: short rounds"));
}

#[test]
fn reports_rounds_that_did_not_finish() {
    let exchange =
        Exchange { sent: "1".into(), expected: "2".into(), received: "3".into(), reply_index: 0 };
    let outcomes = [
        Outcome::Failed { because: "epoll exited\nits last words".into() },
        Outcome::CannotHold { because: "epoll holds 10".into() },
        Outcome::Disqualified { because: "a reply is missing".into(), exchange: None },
        Outcome::Disqualified { because: "wrong".into(), exchange: Some(exchange) },
    ];
    for looks in [PLAIN, TERMINAL] {
        let events = outcomes.clone().map(|outcome| ended(Some(0), outcome));
        assert_eq!(
            lines(&shown(looks, events)),
            "failed: epoll exited\nits last words\n\
             cannot-hold: epoll holds 10\n\
             disqualified: epoll: a reply is missing\n\
             disqualified: epoll: wrong\n  sent      1\n  expected  2\n  received  3\n"
        );
    }
}

#[test]
fn prints_the_judgement_to_stdout_in_the_requested_form() {
    let summary = summary();
    let judged = |stdout, saved| {
        let judged = Judged { summary: summary.clone(), stdout, saved };
        let started = Happened::RaceStarted(header(summary.asked.clone()));
        let mut shown = shown(PLAIN, [started, Happened::Judged(Box::new(judged))]);
        let last = shown.pop();
        assert_eq!(shown.pop(), Some(Shown::NoProgress));
        last.unwrap()
    };
    let table = terminal(&summary, 100, false);
    let with_page = format!("{table}\nreport: out/report.html\n");
    assert_eq!(judged(Form::Text, true), Shown::Stdout(with_page));
    assert_eq!(judged(Form::Text, false), Shown::Stdout(table));
    assert_eq!(judged(Form::Json, true), Shown::Stdout(json(&summary)));
    assert_eq!(judged(Form::Markdown, true), Shown::Stdout(markdown(&summary)));
}

#[test]
fn early_ends_report_how_to_resume() {
    let end = |end| lines(&shown(PLAIN, [Happened::RaceStarted(header(summary().asked)), end]));
    let resume = "regatta race --resume out\n";
    let interrupted = end(Happened::RaceInterrupted { stored: Some(3) });
    assert!(
        interrupted.ends_with(&format!("\ninterrupted; 3 starts are saved; resume with: {resume}"))
    );
    let because = "the disk is full".into();
    let stopped = end(Happened::RaceStopped { because, stored: 2 });
    let text = "\nregatta: the race stopped: the disk is full\nregatta: 2 starts are saved; resume \
                with: ";
    assert!(stopped.ends_with(&format!("{text}{resume}")), "{stopped}");
    let failed = end(Happened::Failed { because: "no".into() });
    assert!(failed.ends_with("\nregatta: no\n"), "{failed}");
}

#[test]
fn a_resumed_race_repeats_its_notes_and_announces_passes() {
    let notes = vec!["the load takes two processes".to_owned()];
    let resumed = RaceHeader { events_missing: true, notes, ..*header(asked()) };
    let events = [
        Happened::RaceStarted(header(asked())),
        round(0, Some(0)),
        Happened::RaceInterrupted { stored: Some(1) },
        Happened::RaceResumed(Box::new(resumed)),
        round(1, Some(0)),
    ];
    let text = lines(&shown(PLAIN, events));
    let (_, resumed) = text.split_once("--resume out\n").unwrap();
    assert!(resumed.starts_with("note: this race has no events of earlier rounds"), "{text}");
    assert!(resumed.contains("\nnote: the load takes two processes\n"), "{text}");
    assert!(resumed.contains("\nskipped: erlang") && resumed.contains("\nleft out: 8 conn"));
    assert!(resumed.contains("\nround 1: 1 of 8 starts are done, "), "{text}");
}

/// The result of a search.
fn between_two_levels() -> Capacity {
    Capacity {
        format: 1,
        server: "line://127.0.0.1:1".into(),
        workload: "double".into(),
        over: None,
        load: CapacityLoad::Clients { pipeline: 1, in_flight: None },
        limit: Limit { quantile: 0.95, ns: 250_000_000 },
        limited: Operation::REQUESTS,
        fresh_starts: false,
        agents: Vec::new(),
        clients: Some(CapacityInterval { best: 4_850, low: 4_600, high: Some(5_050) }),
        rate_per_s: None,
        memory_bytes: None,
        settling: None,
        one_sided: None,
        unverified: None,
        steps: Vec::new(),
        setup: None,
        contender: None,
    }
}

#[test]
fn a_capacity_search_shows_each_step_at_once_and_all_at_its_end() {
    let limit = Limit { quantile: 0.95, ns: 1_000_000 };
    let step = CapacityStep {
        level: 1_500,
        phase: CapacityPhase::StepUp,
        percentile_ns: Some(900_000),
        reply_rate_per_s: 20_000.0,
        window_s: 1.0,
        load_busy: 0.5,
        server_busy: None,
        memory_bytes: None,
        passed: Some(true),
        because: None,
    };
    let found = Capacity {
        limit,
        clients: Some(CapacityInterval { best: 1_500, low: 1_500, high: None }),
        one_sided: Some("--max".into()),
        steps: vec![step.clone()],
        ..between_two_levels()
    };
    let events = |stdout| {
        [
            Happened::CapacityStarted { load: found.load },
            Happened::LevelStarted { done: 0, level: 1_500, phase: CapacityPhase::StepUp },
            phase(Phase::WarmUp),
            Happened::LevelEnded(step.clone()),
            Happened::CapacityFound { found: Box::new(found.clone()), stdout },
        ]
    };
    let on_terminal = shown(TERMINAL, events(Form::Text));
    assert_eq!(
        progress(&on_terminal),
        [
            "1s  step 1 · step up · 1,500 clients · starting",
            "2s  step 1 · step up · 1,500 clients · warming up, then measuring",
        ]
    );
    assert_eq!(lines(&on_terminal), "step up       1,500     900 µs       20,000  passed\n");
    let plain = shown(PLAIN, events(Form::Text));
    let [Shown::Stderr(line), Shown::NoProgress, Shown::Stdout(text)] = &plain[..] else {
        panic!("{plain:?}")
    };
    assert_eq!(line, "step 1 · step up · 1,500 clients: passed\n");
    assert!(text.contains("step up       1,500     900 µs       20,000  passed\n"), "{text}");
    assert!(text.contains("capacity  ≥ 1,500 clients (--max) at p95 ≤ 1 ms\n"), "{text}");
    let as_json = shown(PLAIN, events(Form::Json));
    let [.., Shown::Stdout(text)] = &as_json[..] else { panic!("{as_json:?}") };
    assert_eq!(serde_json::from_str::<Capacity>(text).unwrap(), found);
}

#[test]
fn the_levels_around_a_capacity_are_no_95_percent_interval_and_the_reason_is_given_once() {
    let found = between_two_levels();
    let end = |found| {
        let found = Happened::CapacityFound { found: Box::new(found), stdout: Form::Text };
        let shown = shown(PLAIN, [found]);
        let [_, Shown::Stdout(text)] = &shown[..] else { panic!("{shown:?}") };
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let text = end(found.clone());
    let said =
        "4,850 clients at p95 ≤ 250 ms; every try of 4,600 passed, every try of 5,050 failed";
    assert!(text.contains(said), "{text}");
    assert!(!text.contains('['), "{text}");

    // One over another protocol names it.
    let over = Some("http2".to_string());
    let text = end(Capacity { over, workload: "hello".into(), ..found.clone() });
    assert!(text.contains("load hello over HTTP/2 · closed loop"), "{text}");

    // A search that was cut short says why once.
    let why = || Some("it was interrupted".to_string());
    let text = end(Capacity { unverified: why(), ..found.clone() });
    assert!(text.contains("failed not verified: it was interrupted server"), "{text}");
    let open = Some(CapacityInterval { best: 4_600, low: 4_600, high: None });
    let text = end(Capacity { unverified: why(), one_sided: why(), clients: open, ..found });
    let said = "≥ 4,600 clients (it was interrupted) at p95 ≤ 250 ms not verified server";
    assert!(text.contains(said), "{text}");
}
