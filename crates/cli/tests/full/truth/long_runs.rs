//! Contenders that warm up: a race reports the same ratio as long runs of warm servers. A race freezes each contender
//! while others run, and says so if one then costs more; that share is not warm-up.

use crate::{
    support::{contender::Running, regatta},
    truth::{
        raced::{cell, shown},
        stage::{Turn, turn},
    },
};
use regatta_race::{Contender, RoleCpus, Store, built_in, peers_folder};
use regatta_record::{Doubt, Estimate, Finding, LoadResult, Summary};
use regatta_testkit::{
    child::{in_own_process, run_within},
    skip,
};
use std::{collections::BTreeMap, fs, path::Path, time::Duration};
use tempfile::TempDir;

const BASELINE: &str = "epoll";
const HELLO: &[&str] = &["netty", "helidon", "grizzly", "node"];
const HASH: &[&str] = &["tomcat", "jetty", "node"];
/// Starting a contender makes its process adopt the orphans of all tests, hence a process for each test. This is its
/// deadline.
const LIMIT: Duration = Duration::from_secs(3600);
/// Number of long runs of each contender, each after one of the baseline.
const PAIRS: usize = 2;
/// Maximum relative difference between a ratio and that of the long runs, unless the interval of the race contains the
/// latter: then lives differ, and the race says so.
const WITHIN: f64 = 0.08;
/// Highest ratio of the ends of such an interval. A wider one would say nothing.
const WIDEST: f64 = 1.4;
/// Maximum extra warm-up per round of a contender with a flat cost, due to the observation.
const FLAT_NEEDS: Duration = Duration::from_millis(200);
/// Shortest warm-up without observation: the rate is steady after at least three slices of 100 ms.
const SHORTEST: Duration = Duration::from_millis(300);

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_race_reports_the_ratios_of_long_runs_of_hello() {
    let Some(turn) = turn() else { return };
    in_own_process(LIMIT, || of_long_runs(&turn, "hello", "connections = 64", HELLO));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_race_reports_the_ratios_of_long_runs_of_hash() {
    let Some(turn) = turn() else { return };
    in_own_process(LIMIT, || of_long_runs(&turn, "hash", "connections = 64\nn = 1", HASH));
}

fn of_long_runs(turn: &Turn, workload: &str, load: &str, names: &[&str]) {
    let peers = Contender::find_all(&peers_folder().unwrap()).unwrap();
    let here: Vec<&Contender> = peers
        .iter()
        .filter(|one| names.contains(&one.manifest.name.as_str()))
        .filter(|one| match one.missing() {
            Some(why) => {
                skip(&format!("{}: {why}", one.manifest.name));
                false
            }
            None => true,
        })
        .collect();
    let ours = built_in();
    let baseline = ours.iter().find(|one| one.manifest.name == BASELINE).unwrap();
    let folder = TempDir::new().unwrap();
    let summary = race(turn, folder.path(), workload, load, &here);
    check_flat(&summary, folder.path());
    println!(
        "\n{workload}: ratio to {BASELINE} in the race × in long slices, where the race says that it differs there; in \
         seconds 20 to 40 of long runs; difference; warm-up"
    );
    let mut wrong = Vec::new();
    for peer in here {
        let name = &peer.manifest.name;
        let logs: Vec<f64> = (0..PAIRS)
            .map(|_| long_run(turn, baseline, workload, load))
            .map(|base| (long_run(turn, peer, workload, load) / base).ln())
            .collect();
        let long = (logs.iter().sum::<f64>() / PAIRS as f64).exp();
        let raced = cell(&summary, name);
        let (ratio, unfrozen) = (raced.ratio_to_baseline, in_long_slices(&summary, name));
        let ratio = ratio.map(|Estimate { mean, low, high }| {
            let [mean, low, high] = [mean, low, high].map(|value| value * unfrozen);
            Estimate { mean, low, high }
        });
        let off = ratio.map(|ratio| ratio.mean / long - 1.0);
        let settling = raced.settling.map(|s| {
            let class = s.class.in_words();
            format!(
                "{class}, steady after {:.1} s of {:.1}",
                s.after_ns as f64 / 1e9,
                s.observed_ns as f64 / 1e9
            )
        });
        let off_percent = off.map_or("?".to_owned(), |off| format!("{:+.1}%", off * 100.0));
        println!(
            "{name:10} {} × {unfrozen:.3}  {long:.3}  {off_percent}  {}",
            shown(raced),
            settling.unwrap_or_default()
        );
        if !ratio.is_some_and(|ratio| agrees(&ratio, long)) {
            wrong.push(name.clone());
        }
    }
    assert!(wrong.is_empty(), "other ratios than those of long runs: {wrong:?}");
}

/// The cost in long slices over that in usual ones, relative to the baseline's, if the race says that it differs.
fn in_long_slices(summary: &Summary, name: &str) -> f64 {
    let of = |one: &Finding| match one.doubt {
        Doubt::LongSlices { factor, .. } if one.contender.as_deref() == Some(name) => Some(factor),
        _ => None,
    };
    summary.findings.iter().find_map(of).unwrap_or(1.0)
}

/// Whether the ratio of a race agrees with that of long runs.
fn agrees(raced: &Estimate, long: f64) -> bool {
    let contains = (raced.low..=raced.high).contains(&long) && raced.high / raced.low <= WIDEST;
    contains || (raced.mean / long - 1.0).abs() <= WITHIN
}

#[test]
fn an_interval_agrees_if_it_contains_the_ratio_or_is_near_it() {
    let interval = |low, mean, high| Estimate { mean, low, high };
    assert!(agrees(&interval(2.19, 2.53, 2.92), 2.29));
    assert!(agrees(&interval(1.39, 1.42, 1.46), 1.53));
    assert!(!agrees(&interval(1.39, 1.42, 1.46), 1.56));
    assert!(!agrees(&interval(0.1, 2.53, 9.0), 2.29));
}

fn race(turn: &Turn, folder: &Path, workload: &str, load: &str, peers: &[&Contender]) -> Summary {
    let mut names: Vec<&str> = vec![BASELINE];
    // The null server cannot serve `hash`.
    names.extend((workload != "hash").then_some("null"));
    names.extend(peers.iter().map(|peer| peer.manifest.name.as_str()));
    let file = format!(
        "name = 'long'\nworkload = '{workload}'\ncontenders = {names:?}\nbaseline = '{BASELINE}'\n\
         rounds = 7\n[[load]]\n{load}\n"
    );
    fs::write(folder.join("race.toml"), file).unwrap();
    let mut race = regatta!("race race.toml --out out --json - --seed 40 {}", turn.cpus());
    let ended = run_within(Duration::from_secs(1800), race.current_dir(folder));
    serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", ended.stdout, ended.stderr))
}

/// Checks that no round of a contender with a flat cost is longer by more than [`FLAT_NEEDS`].
fn check_flat(summary: &Summary, folder: &Path) {
    let (_, rounds) = Store::read(&folder.join("out")).unwrap();
    let mut longest = BTreeMap::new();
    for round in &rounds {
        let needed = round.warm_up.map_or(0, |warm_up| warm_up.needed_ns);
        let most: &mut u64 = longest.entry(round.contender.as_str()).or_default();
        *most = needed.max(*most);
    }
    for cell in &summary.cells {
        let Some(settling) = cell.settling else { continue };
        let needed =
            Duration::from_nanos(longest.get(cell.contender.as_str()).copied().unwrap_or(0));
        println!("{}: {}, rounds need {needed:?}", cell.contender, settling.class.in_words());
        let is_flat = settling.class == regatta_record::WarmUpClass::Flat;
        assert!(!is_flat || needed <= SHORTEST + FLAT_NEEDS, "{needed:?}");
    }
}

/// Returns the CPU time per request in nanoseconds, in seconds 20 to 40 after a fresh start.
fn long_run(turn: &Turn, contender: &Contender, workload: &str, load: &str) -> f64 {
    let cpus = [turn.server_cpu];
    let cpus = RoleCpus { server: &cpus, backends: &[] };
    let running = Running::start(contender, workload, 1, &cpus).unwrap();
    let connections = load.lines().find_map(|line| line.strip_prefix("connections = ")).unwrap();
    let (addr, cpu, pid) = (running.addr, turn.load_cpu, running.server_pid());
    let load = regatta!(
        "load http://{addr} --workload {workload} -c {connections} --warm-up 20s -d 20s
         --busy-poll --json - --cpus {cpu} --pid {pid}"
    );
    let ended = run_within(Duration::from_secs(90), load);
    let result: LoadResult = serde_json::from_str(&ended.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", ended.stdout, ended.stderr));
    running.stop().unwrap();
    result.server_cpu_ns_per_request.expect("a cost")
}
