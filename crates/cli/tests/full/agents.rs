//! `regatta load --on` and `regatta race --server` over real SSH servers, on machines made by `scripts/lab`, which share the
//! CPUs of this one.

use crate::support::{
    DEADLINE, Server, lab::Lab, processes::assert_right, regatta, run, until, until_within,
};
use regatta_testkit::child::exit_within;
use std::{
    fs,
    io::Read,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// `regatta load` of a server on this machine from machines of a lab, to which it is copied.
fn load(lab: &Lab, server: &Server, on: &str, more: &[&str]) -> Command {
    let url = format!("line://198.18.0.1:{}", server.addr.port());
    let mut load = regatta!("load {url} --on {on} --deploy --warm-up 100ms");
    load.args(more).env("REGATTA_SSH", &lab.ssh);
    load
}

fn server() -> Server {
    Server::double("epoll", &["--listen", "0.0.0.0:0"])
}

#[test]
#[cfg_attr(
    not(all(has_ip, has_sshd)),
    ignore = "ip or sshd is not installed (scripts/setup --all)"
)]
fn machines_with_clocks_1000_s_apart_open_their_windows_together() {
    let Some(lab) = Lab::up("--machines 3 --clocks 0,7,1000") else { return };
    let server = server();
    let more = ["-c", "30", "-d", "1s", "--json", "-"];
    let result = assert_right(&run(load(&lab, &server, "lab1,lab2,lab3", &more)), 30, 3);
    let on = &result["agents"];
    let all = |field: &str| -> Vec<u64> {
        let agents = on["agents"].as_array().unwrap().iter();
        agents.map(|agent| agent[field].as_u64().unwrap()).collect()
    };
    assert_eq!(all("connections"), [10, 10, 10]);
    assert!(all("requests").iter().all(|requests| *requests > 100), "{on:#}");
    assert!(all("clock_bound_ns").iter().all(|bound| (1..10_000_000).contains(bound)), "{on:#}");
    let within = on["edges_within_ns"].as_u64().unwrap();
    assert!((1..100_000_000).contains(&within), "{on:#}");
}

#[test]
#[cfg_attr(
    not(all(has_ip, has_sshd)),
    ignore = "ip or sshd is not installed (scripts/setup --all)"
)]
fn a_cut_cable_voids_the_load_and_the_agent_behind_it_ends_with_its_lease() {
    let Some(lab) = Lab::up("--machines 2") else { return };
    let server = server();
    let mut load = load(&lab, &server, "lab1,lab2", &["-c", "4", "-d", "60s"]);
    let mut leader = load.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let count = |machine: &str| lab.processes(machine, "load-process");
    until("both machines load", || count("lab1") > 0 && count("lab2") > 0);
    lab.cut("lab2");
    let cut = Instant::now();
    let status = exit_within(DEADLINE, &mut leader).expect("the leader ends");
    let took = cut.elapsed();
    let mut message = String::new();
    leader.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert_eq!(status.code(), Some(2), "{message}");
    assert!(message.contains("agent lab2 is gone: it has not answered for 2s"), "{message}");
    assert!(took < Duration::from_secs(4), "reported after {took:?}");
    until_within(Duration::from_secs(3), "lab1 has ended", || count("lab1") == 0);
    until_within(Duration::from_secs(12), "lab2 has ended", || {
        count("lab2") == 0 && lab.processes("lab2", "agent") == 0
    });
    println!("reported after {took:?}, nothing left after {:?}", cut.elapsed());
}

#[test]
#[cfg_attr(
    not(all(has_ip, has_sshd)),
    ignore = "ip or sshd is not installed (scripts/setup --all)"
)]
fn a_race_on_a_machine_1000_s_ahead_ends_with_its_cable_and_leaves_nothing_there() {
    let Some(lab) = Lab::up("--machines 1 --clocks 1000") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut race =
        regatta!("race epoll green --server lab1 --deploy --debug-build -c 8 --rate 500");
    race.args(["--rounds", "50", "--time", "100s", "--settle", "0s", "--load-sleeps"]);
    race.args(["--out", "out"])
        .current_dir(&folder)
        .env("REGATTA_SSH", &lab.ssh)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut leader = race.spawn().unwrap();
    let count = |what: &str| lab.processes("lab1", what);
    let stored = folder.path().join("out/rounds.jsonl");
    until("a life is stored and the next is under way", || {
        let is_stored = fs::metadata(&stored).is_ok_and(|file| file.len() > 0);
        is_stored && count("supervise") >= 2 && count("serve") >= 2
    });
    let rounds = fs::read_to_string(&stored).unwrap();
    let first: regatta_record::Round =
        serde_json::from_str(rounds.lines().next().unwrap()).unwrap();
    assert!(first.life.is_some_and(|life| !life.slices.is_empty()), "{rounds}");
    lab.cut("lab1");
    let cut = Instant::now();
    assert_eq!(exit_within(DEADLINE, &mut leader).and_then(|status| status.code()), Some(2));
    assert!(cut.elapsed() < Duration::from_secs(3), "it took {:?}", cut.elapsed());
    let mut text = String::new();
    leader.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(text.contains("the race stopped: agent lab1 is gone: it has not answered"), "{text}");
    until_within(Duration::from_secs(12), "the lease ends", || {
        ["agent", "supervise", "serve"].iter().all(|what| count(what) == 0)
    });
}
