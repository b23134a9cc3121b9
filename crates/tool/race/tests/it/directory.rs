//! A result directory stores the whole race and all measurements. One of an earlier version can be read.

use crate::simulated::{LOAD, QUIET, asked, on, rounds, truth};
use regatta_judge::judge;
use regatta_race::Store;
use regatta_record::{Asked, Burst, Drive, HistoricResult, LoadShape, Round};
use std::fs;

const NAMES: [&str; 4] = ["epoll", "epoll-twin", "null", "percore"];

/// The race of these loads on a machine of two CPUs.
fn race(loads: &[LoadShape]) -> (Asked, Vec<Round>) {
    let costs = [5_000.0, 5_000.0, 4_000.0, 5_000.0];
    let field: Vec<_> = NAMES.iter().zip(costs).map(|(n, c)| truth(n, c)).collect();
    (asked(&NAMES, 7, loads), rounds(&field, loads, 7, QUIET, 7))
}

#[test]
fn a_directory_restores_the_whole_race() {
    let burst = on(2, Drive::Burst(Burst { instances: 2, requests: 10 }));
    let (mut asked, mut rounds) = race(&[burst, LoadShape { idle: 7, ..LOAD }]);
    asked.left_out = vec!["64 conn on 8 CPUs: only 2 available".into()];
    asked.then_source = Some("an article".into());
    let (contender, figure) = ("epoll".into(), Some("8.94 s".into()));
    asked.then = vec![HistoricResult {
        contender,
        figure,
        note: Some("8 cores".into()),
        loads: vec![burst],
    }];
    asked.entries[3].one_core_as = Some("epoll".into());
    rounds[0].instances_ns = vec![1, 2];
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create(&folder.path().join("out"), &asked).unwrap();
    rounds.iter().for_each(|round| _ = store.append(round.clone()).unwrap());
    assert_eq!(Store::read(store.dir()).unwrap(), (asked, rounds));
}

/// A directory as written before the keys `idle`, `left_out` and `then` existed.
#[test]
fn a_directory_of_an_earlier_version_is_read() {
    let (asked, _) = race(&[LOAD]);
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("out");
    Store::create(&dir, &asked).unwrap();
    let text = fs::read_to_string(dir.join("race.toml")).unwrap();
    let is_new = |line: &&str| {
        let key = line.split(' ').next().unwrap_or_default();
        !["idle", "left_out", "then"].contains(&key)
    };
    let old: Vec<&str> = text.lines().filter(is_new).collect();
    assert!(old.len() + 3 <= text.lines().count(), "{text}");
    fs::write(dir.join("race.toml"), old.join("\n")).unwrap();
    let line = r#"{"format":1,"round":0,"contender":"epoll","workload":"double","load":{"connections":64,"pipeline":1,"drive":"closed"},"seed":7,"started_unix_s":1,"outcome":{"kind":"finished"},"requests":5,"window_ns":9,"slices":[5],"errors":{"connect":0,"read":0,"write":0,"timeout":0,"wrong_reply":0,"closed_early":0},"load_cpu_ns":3,"load_cpus":1,"server":{"cpu_ns":4,"user_ns":1,"system_ns":3,"source":"cgroup-v2","cpus":1,"voluntary_switches":0,"involuntary_switches":0,"memory_bytes":10,"processes":1,"threads":1},"histogram":""}"#;
    fs::write(dir.join("rounds.jsonl"), format!("{line}\n")).unwrap();
    let (read, old) = Store::read(&dir).unwrap();
    assert_eq!(read, asked);
    assert_eq!((old[0].load, &old[0].instances_ns), (LOAD, &vec![]));
    assert_eq!(judge(&read, &old).cells[0].load, LOAD);
}
