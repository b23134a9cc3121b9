//! Gates and precision from the command line. The judged rounds are simulated with known costs, so exit
//! statuses and messages do not depend on how busy this machine is.

use crate::support::{race::course::Course, regatta, run};
use regatta_race::Store;
use regatta_record::{Asked, Gate, Judgement, Kind, Outcome};
use simulated::{LOAD, Machine, Truth, asked, rounds, truth};

#[path = "../../../../../tool/judge/tests/simulated/mod.rs"]
#[allow(dead_code)]
mod simulated;

const PASSES: u32 = 10;
const STEADY: Machine = Machine { noise: 0.01, drift: 0.05, load_ns: 3_600.0, samples: 20 };

/// Writes a finished race of `old`, `null` and a `new` that costs `by` times as much as `old`. All costs
/// are multiplied by `slower`.
fn result(course: &Course, dir: &str, by: f64, slower: f64, change: impl Fn(&mut Asked)) {
    result_of(course, dir, &["old", "null", "new"], (by, slower), change);
}

/// Like [`result`], of these contenders; a twin costs as much as `old`.
fn result_of(
    course: &Course,
    dir: &str,
    names: &[&'static str],
    (by, slower): (f64, f64),
    change: impl Fn(&mut Asked),
) {
    let mut asked = asked(names, PASSES, &[LOAD]);
    for entry in &mut asked.entries {
        entry.manifest = format!(
            "name = '{}'\nabout = 'simulated'\nworkloads = ['double']\nstart = ['true', '{{port}}']\n\
             ready = 'tcp'\n",
            entry.name
        );
    }
    change(&mut asked);
    let cost = |name: &str| match name {
        "null" => 0.8,
        "new" => by,
        _ => 1.0,
    };
    let field: Vec<Truth> =
        names.iter().map(|name| truth(name, 5_000.0 * cost(name) * slower)).collect();
    let seed = (1_000.0 * by * slower) as u64;
    let mut store = Store::create(&course.path(dir), &asked).unwrap();
    for round in rounds(&field, &[LOAD], PASSES, STEADY, seed) {
        store.append(round).unwrap();
    }
}

/// Runs `regatta diff ARGS`. Returns exit status, stdout and stderr.
fn diff(course: &Course, args: &[&str]) -> (i32, String, String) {
    let ended = run(regatta!("diff").args(args).current_dir(course.path("")));
    (ended.code(), ended.stdout, ended.stderr)
}

#[test]
fn the_exit_status_of_a_race_with_a_gate_is_its_result() {
    let course = Course::new();
    let gated = |asked: &mut Asked| asked.fail_over = Some(0.05);
    result(&course, "same", 1.0, 1.0, gated);
    result(&course, "costlier", 1.1, 1.0, gated);
    let passed = course.race(&["--resume", "same"]).with_status(0).stdout;
    assert!(passed.contains("passed: every cost is within 5%, with 95% confidence"), "{passed}");
    assert!(passed.contains("✔ no difference"), "{passed}");
    // Simulated rounds whose mean is at the limit.
    result(&course, "near", 1.05, 1.0, gated);
    let open = course.race(&["--resume", "near"]).with_status(3).stdout;
    assert!(
        open.contains("NOT DECIDED: the rounds do not show whether these are within 5%: new at"),
        "{open}"
    );
    assert!(open.contains("? not decided"), "{open}");
    assert!(open.contains("an interval that includes the limit of 5%"), "{open}");
    let failed = course.race(&["--resume", "costlier", "--md", "pr.md"]).with_status(1).stdout;
    assert!(
        failed.contains("FAILED: significantly above the limit of 5%: new at 64 conn"),
        "{failed}"
    );
    let comment = std::fs::read_to_string(course.path("pr.md")).unwrap();
    assert!(comment.contains("| new | 64 conn | 1."), "{comment}");
    assert!(comment.contains("**✘ worse**"), "{comment}");
    let page = std::fs::read_to_string(course.path("costlier/report.html")).unwrap();
    assert!(page.contains("FAILED: significantly above the limit of 5%: new at 64 conn"));
}

#[test]
fn a_race_fails_if_a_contender_is_disqualified_unless_it_is_an_exhibit() {
    let course = Course::new();
    for (dir, about, status) in
        [("exhibit", "exhibit: doubles wrongly", 0), ("other", "no exhibit: doubles wrongly", 1)]
    {
        result(&course, dir, 1.0, 1.0, |asked| {
            for entry in asked.entries.iter_mut().filter(|entry| entry.name == "new") {
                entry.about = about.to_owned();
            }
        });
        let (_, mut rounds) = Store::read(&course.path(dir)).unwrap();
        for round in rounds.iter_mut().filter(|round| round.contender == "new") {
            round.outcome =
                Outcome::Disqualified { because: "a reply was wrong".to_owned(), exchange: None };
        }
        let lines = rounds.iter().map(|round| serde_json::to_string(round).unwrap() + "\n");
        std::fs::write(course.path(dir).join("rounds.jsonl"), lines.collect::<String>()).unwrap();
        let ended = course.race(&["--resume", dir, "--json", "-"]).with_status(status);
        ended.assert_verdict("new", Kind::Disqualified, &["a reply was wrong"]);
    }
    assert!(course.log().is_empty(), "a contender was started");
}

#[test]
fn a_race_that_does_not_reach_its_precision_fails() {
    let course = Course::new();
    let precise = |width: f64| move |asked: &mut Asked| asked.precision = Some(width);
    result(&course, "easy", 1.1, 1.0, precise(0.05));
    result(&course, "hard", 1.1, 1.0, precise(0.004));
    let easy = course.race(&["--resume", "easy"]).with_status(0).stdout;
    assert!(easy.contains("precision ±5.0%: reached after 10 rounds"), "{easy}");
    let hard = course.race(&["--resume", "hard"]).with_status(1).stdout;
    assert!(hard.contains("precision ±0.40%: NOT REACHED after 10 rounds"), "{hard}");
    assert!(hard.contains("±0.4% takes longer than ten minutes"), "{hard}");
    assert!(course.log().is_empty(), "a contender was started");
}

#[test]
fn a_race_for_precision_stops_when_it_is_reached() {
    let course = Course::new();
    result(&course, "out", 1.1, 1.0, |asked| {
        asked.precision = Some(0.05);
        asked.rounds = 50;
    });
    let summary = course.race(&["--resume", "out", "--json", "-"]).with_status(0).summary();
    let precision = summary.precision.unwrap();
    assert!(precision.reached && precision.rounds == PASSES, "{precision:?}");
    assert!(summary.complete);
    assert!(course.log().is_empty(), "a contender was started");
}

#[test]
fn two_results_are_compared() {
    let course = Course::new();
    result(&course, "before", 1.0, 1.0, |_| {});
    result(&course, "after", 1.3, 1.2, |asked| asked.setup.kernel = "6.18".to_owned());
    let (status, printed, _) = diff(&course, &["before", "after", "--fail-over", "5%"]);
    assert_eq!(status, 1, "{printed}");
    assert!(printed.starts_with("after against before\n"), "{printed}");
    assert!(
        printed.contains("FAILED: significantly above the limit of 5%: new at 64 conn\n"),
        "{printed}"
    );
    let line = printed.lines().find(|line| line.starts_with("old ")).unwrap();
    assert!(line.ends_with("✔ no difference"), "slower alike is no difference: {line}");
    assert!(printed.contains("doubt: the kernel differs ("), "{printed}");
    let (status, printed, _) = diff(&course, &["before", "after"]);
    assert_eq!(status, 0, "without a limit nothing fails: {printed}");
    let (status, json, _) = diff(&course, &["after", "after", "--fail-over", "5%", "--json", "-"]);
    let gate: Gate = serde_json::from_str(&json).unwrap();
    assert_eq!((status, gate.passes(), gate.lines.len()), (0, true, 2), "{json}");
    assert!(gate.lines.iter().all(|line| line.judgement == Judgement::Same));
    result(&course, "near", 1.05, 1.2, |_| {});
    let (status, printed, _) = diff(&course, &["before", "near", "--fail-over", "5%"]);
    assert_eq!(status, 3, "{printed}");
    assert!(printed.contains("NOT DECIDED"), "{printed}");
    let (status, comment, _) = diff(&course, &["before", "after", "--md", "-"]);
    assert_eq!(status, 0);
    assert!(comment.contains("| contender | load | new/old | judgement |\n"), "{comment}");
}

#[test]
fn a_contender_that_vanished_fails_a_gate() {
    let course = Course::new();
    result(&course, "before", 1.0, 1.0, |_| {});
    result(&course, "after", 1.0, 1.0, |asked| {
        asked.contenders.retain(|name| name != "new");
        asked.entries.retain(|entry| entry.name != "new");
    });
    let (status, printed, _) = diff(&course, &["before", "after", "--fail-over", "5%"]);
    assert_eq!(status, 1, "{printed}");
    assert!(printed.contains("NOT PASSED: new at 64 conn could not be judged"), "{printed}");
    assert!(printed.contains("after does not contain it"), "{printed}");
    let (status, printed, _) = diff(&course, &["before", "after"]);
    assert_eq!(status, 0, "{printed}");
    assert!(
        printed.contains("only in before, therefore not compared: new at 64 conn"),
        "{printed}"
    );
    let (status, printed, _) = diff(&course, &["after", "before", "--fail-over", "5%"]);
    assert_eq!(status, 0, "what is new is no loss: {printed}");
}

#[test]
fn wrong_usage_is_reported() {
    let course = Course::new();
    result(&course, "one", 1.0, 1.0, |_| {});
    result(&course, "other", 1.0, 1.0, |asked| asked.workload = "dialogue".to_owned());
    for (args, said) in [
        (&["one"][..], "<NEW>"),
        (&["one", "nowhere"], "nowhere cannot be compared: expected a result directory"),
        (&["one", "other"], "one raced the workload double, and other dialogue"),
        (&["one", "one", "--fail-over", "5"], "with the % sign, e.g. 5%"),
        (&["one", "one", "--fail-over", "0%"], "above 0%"),
        (&["one", "one", "--json", "-", "--md", "-"], "cannot both write to stdout"),
    ] {
        let (status, stdout, stderr) = diff(&course, args);
        assert_eq!((status, stdout.as_str()), (2, ""), "{args:?}: {stderr}");
        assert!(stderr.contains(said), "{args:?}: {stderr}");
    }
}

#[test]
fn json_on_stdout_has_the_documented_keys() {
    let course = Course::new();
    result_of(&course, "out", &["old", "old-twin", "null", "new"], (1.1, 1.0), |_| {});
    let ended = course.race(&["--resume", "out", "--json", "-"]).with_status(0);
    let race: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(race["noise_floor"].is_number(), "there is a twin, but no noise floor");
    let cells = race["cells"].as_array().unwrap();
    let names: Vec<_> = cells.iter().map(|cell| cell["contender"].as_str().unwrap()).collect();
    assert!(
        ["old", "old-twin", "null", "new"].iter().all(|name| names.contains(name)),
        "{names:?}"
    );
    for cell in cells {
        for key in [
            "workload",
            "load",
            "contender",
            "rounds",
            "cost_ns_per_request",
            "rate_per_s",
            "latency_ns",
            "memory_bytes",
            "ratio_to_baseline",
            "band",
            "verdict",
        ] {
            assert!(cell.get(key).is_some(), "no {key} in {cell}");
        }
        for key in ["kind", "void", "because"] {
            assert!(cell["verdict"].get(key).is_some(), "no {key} in {cell}");
        }
        for key in ["mean", "low", "high"] {
            assert!(cell["cost_ns_per_request"][key].as_f64().is_some_and(|cost| cost > 0.0));
        }
        assert!(cell["memory_bytes"].as_u64().is_some_and(|bytes| bytes > 0));
        assert_eq!(cell["load"]["connections"], 64);
    }
    let saved = std::fs::read_to_string(course.out().join("summary.json")).unwrap();
    assert_eq!(saved, ended.stdout);
}
