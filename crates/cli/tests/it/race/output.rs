//! Output on stdout: colours only on a terminal, and valid JSON and Markdown.

use crate::support::race::{
    course::{Course, SHORT},
    terminal::{On, run_on_terminal},
};

const GOOD: &str = "good=sh -c 'exec \"$ILL\" {port}'";

#[test]
fn json_on_stdout_has_the_documented_keys() {
    let course = Course::new();
    // Several rounds, so that costs have intervals.
    let args = ["--rounds", "4", "--json", "-", "--out", "out", "--contender", GOOD];
    let ended = course.race(&[&SHORT[..], &args].concat());
    course.assert_nothing_left();
    let race: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert!(race["noise_floor"].is_number(), "there is a twin, but no noise floor");
    let cells = race["cells"].as_array().unwrap();
    let names: Vec<_> = cells.iter().map(|cell| cell["contender"].as_str().unwrap()).collect();
    assert!(["good", "good-twin", "null"].iter().all(|name| names.contains(name)), "{names:?}");
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

#[test]
fn markdown_on_stdout_is_a_table_and_nothing_else() {
    let course = Course::new();
    let args = [&SHORT[..], &["--md", "-", "--contender", GOOD]].concat();
    let ended = course.race(&args).raced();
    assert!(ended.stdout.contains("| good |"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("report: "), "{}", ended.stdout);
    assert!(!ended.stdout.contains('\x1b') && !ended.stderr.contains('\x1b'));
}

#[test]
fn without_a_terminal_there_are_no_colours() {
    let course = Course::new();
    let bad = "bad=sh -c 'exec \"$ILL\" {port} wrong-at 10'";
    let args = [&SHORT[..], &["--out", "out", "--contender", bad]].concat();
    let ended = course.race(&args).with_status(1);
    for part in ["bad", "null", "disqualified", "report: out/report.html"] {
        assert!(ended.stdout.contains(part), "no {part:?} in {}", ended.stdout);
    }
    assert!(!ended.stdout.contains('\x1b') && !ended.stderr.contains('\x1b'));
    assert!(ended.stderr.contains("round 1: 0 of 2 starts are done, "), "{}", ended.stderr);
}

#[test]
fn on_a_terminal_there_are_colours_unless_no_color() {
    let coloured = on_terminal(&[]);
    assert!(coloured.contains("good") && coloured.contains("\x1b["), "{coloured:?}");
    let plain = on_terminal(&[("NO_COLOR", "1")]);
    assert!(plain.contains("good") && !plain.contains('\x1b'), "{plain:?}");
    // no-color.org: when present and not an empty string.
    let coloured = on_terminal(&[("NO_COLOR", "")]);
    assert!(coloured.contains("\x1b["), "{coloured:?}");
}

/// Returns the output of a short race whose stdout, but not stderr, is a terminal.
fn on_terminal(env: &[(&str, &str)]) -> String {
    let course = Course::new();
    let args = [&SHORT[..], &["--contender", GOOD]].concat();
    let mut command = course.command(&args);
    command.envs(env.iter().copied());
    let printed = run_on_terminal(command, On::Stdout);
    assert!(printed.status.success());
    course.assert_nothing_left();
    printed.text()
}
