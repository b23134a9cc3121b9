//! Contenders whose cost changes while they run are observed until the cost is steady. Contenders that
//! become more expensive are among the planted lies (`truth::lies`).

use crate::support::race::course::Course;
use regatta_record::{Cell, Round, Settled, Summary, WarmUpClass};
use std::fs;

fn cell<'s>(summary: &'s Summary, contender: &str) -> &'s Cell {
    summary.cells.iter().find(|cell| cell.contender == contender).unwrap()
}

fn rounds(course: &Course) -> Vec<Round> {
    let text = course.rounds();
    let lines = text.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn liar(name: &str, lie: &str) -> String {
    format!("{name}=sh -c 'exec \"$LIAR\" {{port}} {lie}'")
}

/// Races an honest contender and one that lies, each with a warm-up of at most 4 s.
fn race_with(course: &Course, name: &str, lie: &str) -> Summary {
    course.write_race("'null'", "300ms", "connections = 2");
    let (honest, liar) = (liar("honest", "honest"), liar(name, lie));
    let mut args = vec!["race.toml", "--skip", "null", "--baseline", "honest"];
    args.extend(["--contender", &honest, "--contender", &liar]);
    args.extend(["--schedule", "rounds", "--rounds", "2", "--settle", "4s"]);
    args.extend(["--out", "out", "--json", "-"]);
    course.race(&args).judged().summary()
}

#[test]
fn a_contender_that_warms_up_is_measured_warm_and_its_cold_cost_is_reported() {
    let course = Course::alone();
    let summary = race_with(&course, "warms", "warms 1.5");
    let [honest, warms] = ["honest", "warms"].map(|name| cell(&summary, name).settling.unwrap());
    assert_eq!(warms.class, WarmUpClass::WarmsUp, "{warms:?}");
    assert!((0.7..3.0).contains(&(warms.after_ns as f64 / 1e9)), "{warms:?}");
    assert!(warms.cold_ns_per_request > 3.0 * warms.warm_ns_per_request, "{warms:?}");
    // In every round the contender is loaded for at least the time that it needs; a flat one needs
    // none. Other programs may make the honest one look unsteady, so no time is required of it then.
    for round in rounds(&course) {
        let done = round.warm_up.unwrap();
        assert!(done.ns >= done.needed_ns, "{done:?}");
        let needs = round.contender == "warms";
        let is_flat = honest.class == WarmUpClass::Flat;
        let is_right = (done.needed_ns > 400_000_000) == needs;
        assert!(is_right || !needs && !is_flat, "{}: {done:?}", round.contender);
    }
    // Two rounds may not yield a ratio. If they do, it is the ratio of warm contenders.
    let ratio = cell(&summary, "warms").ratio_to_baseline;
    let is_warm = ratio.is_none_or(|ratio| (0.8..1.25).contains(&ratio.mean));
    assert!(is_warm, "a cold contender costs five times as much: {ratio:?}");
    // Observed twice, because it was not steady from the start. The twin is not observed.
    let seen: Vec<Settled> = fs::read_to_string(course.path("out/settling.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut seen: Vec<(&str, usize)> =
        seen.iter().map(|one| (one.contender.as_str(), one.slices.len())).collect();
    seen.sort_unstable();
    // Other programs on the machine may make the honest one look unsteady once.
    assert!(matches!(seen[..], [("honest", 1 | 2), ("warms", 2)]), "{seen:?}");
    let text = course.regatta(&["report", "out"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("warm-up · double · 2 conn") && text.contains("warms up"), "{text}");
    course.assert_nothing_left();
}

#[test]
fn a_resumed_race_does_not_repeat_the_observation_of_warm_ups() {
    let course = Course::new();
    course.write_race("'null'", "300ms", "connections = 2");
    let honest = liar("honest", "honest");
    let args = [
        "race.toml",
        "--skip",
        "null",
        "--contender",
        &honest,
        "--rounds",
        "1",
        "--settle",
        "1s",
        "--out",
        "out",
    ];
    course.race(&args).judged();
    let before = fs::read(course.path("out/settling.jsonl")).unwrap();
    fs::write(course.path("out/rounds.jsonl"), "").unwrap();
    course.race(&["--resume", "out"]).judged();
    assert_eq!(fs::read(course.path("out/settling.jsonl")).unwrap(), before);
    assert!(rounds(&course).iter().all(|round| round.settling.is_some()));
    course.assert_nothing_left();
}
