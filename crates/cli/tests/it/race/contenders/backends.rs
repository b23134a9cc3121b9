//! Contenders with several roles: a server and its backends.

use crate::support::{
    race::course::{Course, until},
    regatta, run,
};
use regatta_record::{Kind, Round};
use std::{fs, process::Command};

const RACE: [&str; 5] = ["race.toml", "--out", "out", "--json", "-"];

/// Writes the manifest of a server with two backends of one kind, which it does not use.
fn with_backends(course: &Course, backend: &str) {
    let manifest = format!(
        "name = 'front'\nabout = 'a server and two behind it'\nworkloads = ['double']\n\
         start = ['sh', '-c', 'exec \"$ILL\" {{port}}']\n\
         [[backend]]\nname = 'app'\ncount = 2\nstart = ['sh', '-c', '{backend}']\n"
    );
    course.write("peers/front/manifest.toml", &manifest);
}

/// Returns the number of client connections to a server on `port`.
fn clients(port: u16) -> usize {
    const ESTABLISHED: &str = "01";
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let is_one = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields[1].ends_with(&format!(":{port:04X}")) && fields[3] == ESTABLISHED
    };
    table.lines().skip(1).filter(is_one).count()
}

#[test]
#[cfg_attr(not(has_nginx), ignore = "nginx is not installed (scripts/setup)")]
fn a_race_of_nginx_with_two_backends_shows_the_cost_of_each_role() {
    let course = Course::new();
    course.write(
        "race.toml",
        "name = 'test'\nworkload = 'hello'\ncontenders = ['nginx-proxy', 'null']\n\
         twin_of = 'nobody'\nrounds = 2\nwindow = '100ms'\nwarm_up = '0s'\n\
         [[load]]\nconnections = 8\nrate = 200\n",
    );
    // The exit status is not checked: whether the cost is trusted depends on the machine.
    let ended = course.race(&RACE);
    course.assert_nothing_left();
    let summary = ended.summary();
    let cell = summary.cells.iter().find(|cell| cell.contender == "nginx-proxy").unwrap();
    assert_eq!(cell.rounds, 2, "{cell:?}");
    let [server, hello] = &cell.roles[..] else { panic!("{cell:?}") };
    assert_eq!((server.name.as_str(), server.count), ("server", 1));
    assert_eq!((hello.name.as_str(), hello.count), ("hello", 2));
    for role in [server, hello] {
        let cost = role.cost_ns_per_request.unwrap().mean;
        assert!(cost > 500.0, "{role:?}: both read and write for each request");
        assert!(role.busy.unwrap() > 0.0 && role.memory_bytes.unwrap() > 100_000, "{role:?}");
        assert!(!role.cpus.is_empty(), "{role:?}");
    }
    let share = server.share.unwrap() + hello.share.unwrap();
    assert!((share - 1.0).abs() < 1e-9, "{share}");
    for line in course.rounds().split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let round: Round = serde_json::from_slice(line).unwrap();
        let used = round.roles.iter().map(|role| role.used.as_ref().unwrap());
        if round.contender == "null" {
            assert!(round.roles.is_empty(), "{:?}", round.roles);
            continue;
        }
        let whole = round.server.unwrap();
        assert_eq!(used.clone().map(|used| used.cpu_ns).sum::<u64>(), whole.cpu_ns);
        assert_eq!(used.map(|used| used.processes).sum::<u32>(), whole.processes);
    }
    let shown = run(regatta!("report").arg(course.out())).stdout;
    let table: Vec<&str> =
        shown.lines().skip_while(|line| *line != "cost by role · hello · 8 conn, 200/s").collect();
    assert!(table.len() > 5 && table[1].starts_with("contender"), "{shown}");
    // The second line of the titles has the units.
    let rows = table[3..5].iter().map(|row| row.split_whitespace().take(3).collect::<Vec<_>>());
    let expected = [["nginx-proxy", "server", "1"], ["nginx-proxy", "hello", "2"]];
    assert!(rows.eq(expected), "{shown}");
}

/// A life has several loads, and under each a block that does not count. Neither is in the figures of a round.
#[test]
fn a_round_has_the_requests_and_the_cost_of_its_own_counted_slices() {
    let course = Course::new();
    with_backends(&course, "exec \"$ILL\" {port}");
    let loads = "connections = 2\n[[load]]\nconnections = 4";
    course.write_quiet_race("'front', 'null'", "300ms", loads);
    // The exit status is not checked: whether the cost is trusted depends on the machine.
    course.race(&RACE);
    course.assert_nothing_left();
    let rounds = course.rounds();
    let rounds: Vec<Round> = rounds
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(rounds.len(), 4, "two contenders under two loads");
    for round in rounds {
        let slices = &round.life.as_ref().expect("it is raced in duels").slices;
        let requests: u64 = slices.iter().map(|slice| slice.count).sum();
        assert_eq!((requests > 0, round.requests), (true, requests), "{round:?}");
        if round.contender == "front" {
            let of_roles = round.roles.iter().map(|role| role.used.as_ref().unwrap().cpu_ns);
            assert_eq!(of_roles.sum::<u64>(), round.server.as_ref().unwrap().cpu_ns, "{round:?}");
        }
    }
}

#[test]
fn a_backend_that_is_killed_under_load_fails_the_cell_and_its_role_is_named() {
    let course = Course::new();
    with_backends(&course, "exec \"$ILL\" {port}");
    course.write_quiet_race("'front', 'null'", "3s", "connections = 8");
    let started = course.start(&RACE);
    let listens = || -> Vec<(u32, u16)> {
        let log = course.log().into_iter();
        log.filter_map(|(pid, what)| Some((pid, what.strip_prefix("listens ")?.parse().ok()?)))
            .collect()
    };
    // The null server may run first; it logs nothing.
    until("the backends and the server listen", || listens().len() == 3);
    let [(backend, _), _, (_, port)] = listens()[..] else { unreachable!("three listen") };
    until("the load is connected", || clients(port) >= 8);
    let killed = Command::new("kill").args(["-s", "KILL", &backend.to_string()]).status().unwrap();
    assert!(killed.success());
    let ended = started.ended().with_status(1);
    course.assert_nothing_left();
    let said = ["front's backend app ", "was killed by signal 9 (SIGKILL) under load"];
    ended.assert_verdict("front", Kind::Failed, &said);
    ended.assert_printed(&["failed: front's backend app "]);
}

#[test]
fn a_backend_that_does_not_start_fails_the_cell_before_its_server_starts() {
    let course = Course::new();
    with_backends(&course, "exec \"$ILL\" {port} refuses");
    course.write_quiet_race("'front', 'null'", "300ms", "connections = 8");
    let ended = course.race(&RACE).with_status(1);
    course.assert_nothing_left();
    let said =
        ["front's backend app 1 exited with status 4 before it was ready", "no licence for this"];
    ended.assert_verdict("front", Kind::Failed, &said);
    assert_eq!(course.log(), [], "the server was started");
}
