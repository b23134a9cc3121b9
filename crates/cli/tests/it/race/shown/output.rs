//! Output on stdout: colours only on a terminal, and valid JSON and Markdown.

use crate::support::race::{
    course::{Course, SHORT},
    terminal::{On, run_on_terminal},
};

const GOOD: &str = "good=sh -c 'exec \"$ILL\" {port}'";

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
    assert!(ended.stderr.contains("life 1: 0 of 2 starts are done, "), "{}", ended.stderr);
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
    // A busy machine may void a cost, which is status 1.
    assert!(matches!(printed.status.code(), Some(0 | 1)));
    course.assert_nothing_left();
    printed.text()
}
