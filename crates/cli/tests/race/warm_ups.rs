//! Contenders whose cost changes while they run are observed until the cost is steady. Contenders that
//! become more expensive are among the planted lies (`truth::lies`).

use crate::course::Course;
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

/// A race of an honest contender with one that lies, both observed for at most 4 s.
fn race_with(course: &Course, name: &str, lie: &str) -> Summary {
    course.write_race("'null'", "300ms", "connections = 2");
    let (honest, liar) = (liar("honest", "honest"), liar(name, lie));
    let mut args = vec!["race.toml", "--skip", "null", "--baseline", "honest"];
    args.extend(["--contender", &honest, "--contender", &liar]);
    args.extend(["--rounds", "2", "--settle", "4s", "--out", "out", "--json", "-"]);
    course.race(&args).judged().summary()
}

#[test]
fn a_contender_that_warms_up_is_measured_warm_and_told_cold() {
    let course = Course::alone();
    let summary = race_with(&course, "warms", "warms 1.5");
    let [honest, warms] = ["honest", "warms"].map(|name| cell(&summary, name).settling.unwrap());
    assert_eq!(warms.class, WarmUpClass::WarmsUp, "{warms:?}");
    assert!((0.7..3.0).contains(&(warms.after_ns as f64 / 1e9)), "{warms:?}");
    assert!(warms.cold_ns_per_request > 3.0 * warms.warm_ns_per_request, "{warms:?}");
    // In every round it was loaded for as long as that takes, and more; one that is flat was not. Others
    // on the machine may make the honest one look restless: the planted lies are tried twice for that.
    for round in rounds(&course) {
        let done = round.warm_up.unwrap();
        assert!(done.ns >= done.needed_ns, "{done:?}");
        let needs = round.contender == "warms";
        let is_flat = honest.class == WarmUpClass::Flat;
        let is_right = (done.needed_ns > 400_000_000) == needs;
        assert!(is_right || !needs && !is_flat, "{}: {done:?}", round.contender);
    }
    // Two rounds may not tell the ratio; one that they tell is that of warm contenders.
    let ratio = cell(&summary, "warms").ratio_to_baseline;
    let is_warm = ratio.is_none_or(|ratio| (0.8..1.25).contains(&ratio.mean));
    assert!(is_warm, "cold it costs five times as much: {ratio:?}");
    // Seen twice, since it was not steady from the start; of the twin nothing is seen.
    let seen: Vec<Settled> = fs::read_to_string(course.path("out/settling.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut seen: Vec<(&str, usize)> =
        seen.iter().map(|one| (one.contender.as_str(), one.slices.len())).collect();
    seen.sort_unstable();
    // Others on the machine may make an honest one look restless, once.
    assert!(matches!(seen[..], [("honest", 1 | 2), ("warms", 2)]), "{seen:?}");
    let text = course.regatta(&["report", "out"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("warm-up · double · 2 conn") && text.contains("warms up"), "{text}");
    course.assert_nothing_left();
}

#[test]
fn what_was_seen_is_not_seen_again_after_an_interruption() {
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
