//! Measuring a contender with very many threads does not disturb it: reading their counters does not
//! block the load or the server.

use crate::{
    support::{example::example, regatta},
    truth::stage::{Turn, turn},
};
use regatta_race::{Store, StoredEvents};
use regatta_record::{Happened, HistogramReader, Phase, Round, Summary};
use regatta_testkit::child::run_within;
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

/// Numbers of connections to test, each with a thread.
const SIZES: [u32; 2] = [1_000, 15_000];

/// Races one contender under one load, with this number of rounds and this window.
fn race(
    turn: &Turn,
    folder: &Path,
    (rounds, window): (usize, &str),
    contender: &str,
    load: &str,
) -> Summary {
    let file = format!(
        "name = 'threads'\nworkload = 'double'\ncontenders = ['null']\ntwin_of = 'nobody'\n\
         schedule = 'rounds'\nrounds = {rounds}\nwindow = '{window}'\nwarm_up = '500ms'\nsettle = '0s'\n[[load]]\n{load}\n"
    );
    fs::write(folder.join("race.toml"), file).unwrap();
    let mut race = regatta!("race race.toml --skip null --out out --json - {}", turn.cpus());
    race.args(["--contender", contender]).current_dir(folder);
    // With 15,000 threads a start takes 20 s.
    let ended = run_within(Duration::from_secs(900), race);
    serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", ended.stdout, ended.stderr))
}

/// Returns the Unix times in nanoseconds at which the windows of a race opened.
fn windows(dir: &Path) -> Vec<u128> {
    let (mut start_ns, mut opened) = (0, Vec::new());
    for event in StoredEvents::open(dir).unwrap() {
        let event = event.unwrap();
        match event.happened {
            Happened::RaceStarted(header) => {
                start_ns = u128::from(header.unix_ms) * 1_000_000 - u128::from(event.ns);
            }
            Happened::PhaseStarted { phase: Phase::Window } => {
                opened.push(start_ns + u128::from(event.ns));
            }
            _ => {}
        }
    }
    opened
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn the_printed_rate_matches_the_servers_own_log() {
    let Some(turn) = turn() else { return };
    for connections in SIZES {
        let folder = TempDir::new().unwrap();
        let logs = folder.path().join("logs");
        fs::create_dir(&logs).unwrap();
        // The shell ignores SIGTERM, so that the server has the grace period to write its log.
        let logging = format!(
            "logging=sh -c 'trap \"\" TERM; exec {} {{port}} {}'",
            example("logging").display(),
            logs.display()
        );
        // With thousands of runnable threads, Linux lets some wait for longer than the load's timeout. So
        // only a few requests are in flight, on all connections in turn.
        let load = format!("connections = {connections}\nin_flight = 64");
        let (asked, window) = (3, "4s");
        let summary = race(&turn, folder.path(), (asked, window), &logging, &load);
        let (_, rounds) = Store::read(&folder.path().join("out")).unwrap();
        let opened = windows(&folder.path().join("out"));
        assert_eq!(rounds.len(), opened.len(), "{:?}", summary.cells);
        assert!(rounds.len() >= asked, "{:?}", summary.cells);
        let mut replies: Vec<u128> = files(&logs).iter().flat_map(|file| times(file)).collect();
        replies.sort_unstable();
        for (round, opened) in rounds.iter().zip(opened) {
            let printed = rate(round);
            let closed = opened + u128::from(round.window_ns);
            let count = |until: u128| replies.partition_point(|at| *at < until);
            let logged = (count(closed) - count(opened)) as f64 / (round.window_ns as f64 / 1e9);
            let off = printed / logged - 1.0;
            println!(
                "{connections} threads: {printed:.0}/s printed, {logged:.0}/s logged, {:+.2}%; \
                 {} threads seen",
                off * 100.0,
                round.server.as_ref().map_or(0, |server| server.threads)
            );
            assert!(off.abs() < 0.01, "{printed} and {logged}");
        }
    }
}

/// Reading the counters at the edges of a window would delay the server in every round; other programs
/// delay it only in some. So the test takes the median of the rounds.
#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn the_p99_is_the_servers_delay_without_a_pause_at_the_edges_of_the_window() {
    const DELAY: Duration = Duration::from_millis(50);
    let Some(turn) = turn() else { return };
    // First the p99 of few threads at the same rate, for comparison.
    for connections in [300].into_iter().chain(SIZES) {
        let folder = TempDir::new().unwrap();
        let logs = folder.path().display();
        let logging = example("logging");
        let delayed =
            format!("delayed={} {{port}} {logs} {}", logging.display(), DELAY.as_millis());
        let load = format!("connections = {connections}\nrate = 2000");
        let asked = (9, "2s");
        let summary = race(&turn, folder.path(), asked, &delayed, &load);
        let (_, rounds) = Store::read(&folder.path().join("out")).unwrap();
        assert!(rounds.len() >= asked.0, "{:?}", summary.cells);
        let mut p99s: Vec<u64> = rounds.iter().map(p99_ns).collect();
        p99s.sort_unstable();
        let (least, median) = (p99s[0], p99s[p99s.len() / 2]);
        let ms = |ns: u64| ns as f64 / 1e6;
        println!(
            "{connections} threads, {DELAY:?} of delay: p99 of a round: minimum {:.2} ms, median \
             {:.2} ms, maximum {:.2} ms",
            ms(least),
            ms(median),
            ms(p99s[p99s.len() - 1])
        );
        let (typical, most) = (median, 10);
        let most = DELAY + Duration::from_millis(most);
        assert!(least >= DELAY.as_nanos() as u64, "{p99s:?}");
        assert!(typical < most.as_nanos() as u64, "{p99s:?}");
    }
}

/// Returns the p99 of a round's latencies in nanoseconds.
fn p99_ns(round: &Round) -> u64 {
    let counts = HistogramReader::default().read(&round.histogram).unwrap();
    counts.latency(0).p99.expect("there are enough samples")
}

fn rate(round: &Round) -> f64 {
    round.requests as f64 / (round.window_ns as f64 / 1e9)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn times(file: &Path) -> Vec<u128> {
    fs::read_to_string(file).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}
