//! Parameters of a load besides connections and pipelining: cores, silent connections, bursts.

use crate::support::race::course::Course;
use regatta_record::Kind;
use std::{num::NonZeroUsize, thread::available_parallelism};

/// Logs the number of CPUs that it may use, and the value of `{cores}`.
const COUNTS: &str =
    "good=sh -c 'echo \"$$ cpus $(nproc) {cores}\" >> \"$ILL_BEHAVED_LOG\"; exec \"$ILL\" {port}'";
const GOOD: &str = "good=sh -c 'exec \"$ILL\" {port}'";

fn available() -> u32 {
    available_parallelism().map_or(1, NonZeroUsize::get) as u32
}

#[test]
fn a_contender_gets_as_many_cpus_as_the_load_says() {
    let course = Course::new();
    course.write_race(
        "'null'",
        "200ms",
        "connections = 8\ncores = [1, 'all', 9999]\nrate_when_shared = 200",
    );
    let args = ["race.toml", "--only", "null", "--out", "out", "--json", "-"];
    // A busy machine may not reach the rate, so the exit status is not checked.
    let ended = course.race(&[&args[..], &["--contender", COUNTS]].concat());
    course.assert_nothing_left();
    let all = available();
    ended.assert_printed(&[&format!("left out: 8 conn on 9999 CPUs: only {all} available")]);
    let mut logged: Vec<String> =
        course.log().into_iter().map(|(_, what)| what).filter(|w| w.starts_with("cpus")).collect();
    logged.sort();
    let mut expected = vec!["cpus 1 1".to_owned(), format!("cpus {all} {all}")];
    expected.dedup();
    assert_eq!(logged, expected);
    let summary = ended.summary();
    let shared = summary.cells.iter().filter(|cell| cell.load.cores == Some(all));
    for cell in shared {
        assert!(cell.shared_cpus, "{cell:?}");
        assert!(matches!(cell.verdict.kind(), Kind::CostOnly | Kind::Overloaded), "{cell:?}");
        assert_eq!((cell.rate_per_s, cell.headroom), (None, None));
        assert!(cell.requests > 0);
    }
}

#[test]
fn silent_connections_are_counted_and_their_memory_is_reported() {
    let course = Course::new();
    course.write_quiet_race("'null', 'epoll'", "1s", "connections = 4\nidle = 200");
    let args = ["race.toml", "--only", "epoll", "--out", "out", "--json", "-"];
    let ended = course.race(&args).raced();
    course.assert_nothing_left();
    let cell = &ended.summary().cells[0];
    assert_eq!((cell.load.max_open_connections(), cell.rounds), (204, 1));
    let user = cell.user_bytes_per_connection.unwrap();
    assert!((-10_000.0..100_000.0).contains(&user), "{user} bytes of each");
}

#[test]
fn a_burst_is_timed_by_its_instances() {
    let course = Course::new();
    let load = "connections = 20\npipeline = 3\nburst = { instances = 4, requests = 10 }";
    course.write_race("'null'", "1s", load);
    let args = ["race.toml", "--only", "null", "--out", "out", "--json", "-", "--rounds", "2"];
    let ended = course.race(&[&args[..], &["--contender", GOOD]].concat()).judged();
    course.assert_nothing_left();
    for cell in &ended.summary().cells {
        assert_eq!(cell.requests, 2 * 20 * 10, "{cell:?}");
        let slowest = cell.slowest_instance_s.unwrap();
        // Intervals that are too wide are omitted.
        let mean = cell.instance_s.map_or(slowest, |seconds| seconds.mean);
        assert!(0.0 < mean && mean <= slowest && slowest < 60.0, "{cell:?}");
    }
    let rounds = String::from_utf8(course.rounds()).unwrap();
    assert!(rounds.lines().all(|line| line.contains("\"instances_ns\":[")), "{rounds}");
}
