//! Drawing progress does not disturb the measurement.

use crate::support::race::{
    course::{Course, until},
    terminal::{On, run_on_terminal},
};
use regatta_record::Asked;
use regatta_testkit::skip;
use std::{fs, path::Path, time::Duration};

const GOOD: &str = "good=sh -c 'exec \"$ILL\" {port}'";

#[test]
fn nothing_is_drawn_during_the_measured_window() {
    let course = Course::in_rounds();
    let window = Duration::from_secs(3);
    course.write_quiet_race("'null'", "3s", "connections = 4");
    let args = ["race.toml", "--skip", "null", "--out", "out", "--contender", GOOD];
    let race = run_on_terminal(course.command(&args), On::Both);
    course.assert_nothing_left();
    assert!(race.text().contains("connect"), "nothing was drawn at all: {}", race.text());
    let times: Vec<_> = race.chunks.iter().map(|(at, _)| *at).collect();
    let longest = times.windows(2).map(|two| two[1] - two[0]).max().unwrap();
    // Drawing that starts just before the window may end inside it.
    assert!(longest > window.mul_f64(0.95), "the longest time without output is {longest:?}");
}

#[test]
fn the_drawing_thread_does_not_run_on_the_servers_cpus() {
    let course = Course::new();
    course.write_quiet_race("'null'", "30s", "connections = 4");
    let args = ["race.toml", "--skip", "null", "--out", "out", "--contender", GOOD];
    let race = course.start(&args);
    until("it listens", || !course.log().is_empty());
    let asked = fs::read_to_string(course.out().join("race.toml")).unwrap();
    let asked: Asked = toml::from_str(&asked).unwrap();
    if asked.cpus.server.iter().all(|cpu| asked.cpus.load.contains(cpu)) {
        return skip("there is only one CPU");
    }
    let pid = race.child.id();
    let main_thread = format!("/proc/{pid}/task/{pid}/status");
    until("the thread that draws has left the server's CPUs", || {
        let cpus = allowed(Path::new(&main_thread));
        !cpus.is_empty() && cpus.iter().all(|cpu| !asked.cpus.server.contains(cpu))
    });
    race.signal("INT");
    race.ended().with_status(130);
    course.assert_nothing_left();
}

/// Returns the CPUs that a thread may run on (proc_pid_status(5), `Cpus_allowed_list`).
fn allowed(status: &Path) -> Vec<u32> {
    let status = fs::read_to_string(status).unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let ranges = list.unwrap_or_default().trim().split(',').filter(|range| !range.is_empty());
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        first.parse::<u32>().unwrap()..=last.parse().unwrap()
    };
    ranges.flat_map(range).collect()
}
