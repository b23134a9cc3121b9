//! Races over HTTP/2, with many streams on each connection.

use crate::support::race::{course::Course, started::Ended};
use regatta_record::{Kind, Round};

/// Requests for `/N`, whose content is `item N`.
const ITEMS: &str = "protocol = 'http'\n[[request]]\npath = '/{n=int:0..99999}'\nstatus = 200\n\
                     exact = 'item {n}'\n";

/// A contender of these tests, under the name `one`.
fn one(how: &str) -> String {
    format!("one=sh -c 'exec \"$STREAMS\" {{port}} {how}'")
}

/// Races a contender beside an honest one, with 4 streams on each of 2 connections.
fn race(course: &Course, how: &str) -> Ended {
    course.write("items.toml", ITEMS);
    course.write(
        "race.toml",
        "name = 'test'\nhttp = 2\nworkload = 'items.toml'\ncontenders = ['nobody']\n\
         twin_of = 'nobody'\nrounds = 1\nwindow = '1s'\nwarm_up = '0s'\n\
         [[load]]\nconnections = 2\npipeline = 4\nrate = 1000\n",
    );
    let honest = "honest=sh -c 'exec \"$STREAMS\" {port} honest'";
    let one = one(how);
    course.race(&[
        "race.toml",
        "--skip",
        "nobody",
        "--contender",
        honest,
        "--contender",
        &one,
        "--out",
        "out",
        "--json",
        "-",
    ])
}

fn assert_raced(summary: &regatta_record::Summary) {
    for cell in &summary.cells {
        let kind = cell.verdict.kind();
        let failed = matches!(kind, Kind::Failed | Kind::Disqualified | Kind::CannotHold);
        assert!(cell.requests > 0 && !failed, "{cell:?}");
    }
}

#[test]
fn two_copies_race_and_every_form_of_the_result_names_the_protocol() {
    let course = Course::new();
    let ended = race(&course, "honest").raced();
    course.assert_nothing_left();
    let summary = ended.summary();
    assert_eq!(summary.asked.over.as_deref(), Some("http2"));
    assert_eq!(summary.cells.len(), 2);
    assert_raced(&summary);
    let shown = course.started(course.regatta(&["report", "out"])).ended().stdout;
    assert!(shown.contains("items over HTTP/2"), "{shown}");
    let page = std::fs::read_to_string(course.out().join("report.html")).unwrap();
    assert!(page.contains("workload items over HTTP&#x2f;2"), "the page");
}

#[test]
fn a_contender_that_swaps_the_contents_of_two_streams_is_disqualified() {
    let course = Course::new();
    race(&course, "swaps").with_status(1).assert_verdict("one", Kind::Disqualified, &["item "]);
    course.assert_nothing_left();
}

#[test]
fn a_contender_that_does_not_end_a_stream_is_out() {
    let course = Course::new();
    let ended = race(&course, "drops").with_status(1);
    ended.assert_verdict("one", Kind::Disqualified, &["replies are missing: timeout"]);
}

#[test]
fn a_contender_that_permits_fewer_streams_is_not_raced() {
    let course = Course::new();
    let permits = "one permits 3 requests in flight per connection; this load has 4";
    race(&course, "few 3").assert_verdict("one", Kind::CannotHold, &[permits]);
    let course = Course::new();
    assert_raced(&race(&course, "few 4").raced().summary());
}

#[test]
fn a_contender_that_closes_connections_loses_nothing() {
    let course = Course::new();
    assert_raced(&race(&course, "leaves 20").raced().summary());
    let rounds = String::from_utf8(course.rounds()).unwrap();
    for line in rounds.lines() {
        let round: Round = serde_json::from_str(line).unwrap();
        assert_eq!(round.errors.total(), 0, "{round:?}");
        // More than it answers on its first two connections.
        assert!(round.requests > 40, "{round:?}");
    }
}

#[test]
fn null_races_hello_over_http2() {
    let course = Course::new();
    course.write(
        "race.toml",
        "name = 'test'\nhttp = 2\nworkload = 'hello'\ncontenders = ['null']\ntwin_of = 'nobody'\n\
         rounds = 1\nwindow = '1s'\nwarm_up = '0s'\n\
         [[load]]\nconnections = 4\n\
         [[load]]\nconnections = 4\npipeline = 16\n\
         [[load]]\nconnections = 4\nchurn = true\n\
         [[load]]\nconnections = 4\nidle = 10\npipeline = 8\nrate = 1000\n",
    );
    let one = one("honest");
    let args = ["race.toml", "--contender", &one, "--out", "out", "--json", "-"];
    let summary = course.race(&args).raced().summary();
    course.assert_nothing_left();
    assert_eq!(summary.cells.len(), 8);
    assert_raced(&summary);
}

#[test]
fn a_race_over_http2_takes_the_contenders_that_speak_it() {
    let course = Course::new();
    let args = ["race", "hello", "--http2", "--dry-run", "--json", "-"];
    let plan = course.started(course.regatta(&args)).ended().with_status(0).stdout;
    assert!(plan.contains("\"over\": \"http2\"") && plan.contains("--on-streams"), "{plan}");
    assert!(!plan.contains("does not serve"), "those that cannot are left out: {plan}");
    // Named ones must speak it.
    let args = ["race", "hello", "--http2", "--only", "libev,null", "--dry-run"];
    let ended = course.started(course.regatta(&args)).ended().with_status(2);
    ended.assert_printed(&["libev does not serve hello over HTTP/2; these do: epoll", "null"]);
    let args = ["race", "libev", "null", "--workload", "hello", "--http2", "--dry-run"];
    let ended = course.started(course.regatta(&args)).ended().with_status(2);
    ended.assert_printed(&["libev cannot race: it does not serve hello over HTTP/2"]);
}

#[test]
fn what_http2_does_not_carry_is_refused() {
    let course = Course::new();
    let args = ["race", "double", "--http2", "--dry-run"];
    let ended = course.started(course.regatta(&args)).ended().with_status(2);
    ended.assert_printed(&["this race is over HTTP/2, but", "double is not one of HTTP"]);
}
