//! A load with more connections than one process may open.

use crate::support::{Server, processes::assert_right, regatta};
use regatta_testkit::{child::Ended, machine, skip};
use rustix::process::{Resource, getrlimit};
use std::{
    fs,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Runs a program. Returns the largest number of TCP sockets in use on this machine meanwhile.
fn sockets_while(mut command: Command) -> (u64, Ended) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut most, mut ended) = (0, false);
    let deadline = Instant::now() + Duration::from_secs(300);
    while !ended {
        if Instant::now() > deadline {
            child.kill().unwrap();
        }
        most = most.max(sockets_in_use());
        thread::sleep(Duration::from_millis(20));
        ended = child.try_wait().unwrap().is_some();
    }
    (most, child.wait_with_output().unwrap().into())
}

/// `TCP: inuse N …` of /proc/net/sockstat (Documentation/filesystems/proc.rst).
fn sockets_in_use() -> u64 {
    let text = fs::read_to_string("/proc/net/sockstat").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("TCP: inuse ")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn opens_forty_five_thousand_connections_from_three_processes() {
    const CONNECTIONS: u64 = 45_000;
    let _turn = machine::alone();
    // Each process of the server gets a third of them, plus or minus a few hundred.
    let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    if limit < CONNECTIONS / 3 + 1_500 {
        return skip(&format!("{limit} open files are too few (ulimit -Hn)"));
    }
    let server = Server::double("cluster", &["--cores", "3"]);
    let url = format!("line://{}", server.addr);
    let command =
        regatta!("load {url} --processes 3 --json - -c {CONNECTIONS} -d 2s --timeout 60s");
    let (most, output) = sockets_while(command);
    let result = assert_right(&output, CONNECTIONS, 3);
    assert!(result["requests"].as_u64().unwrap() > 0);
    // Both ends are on this machine.
    assert!(most >= 2 * CONNECTIONS, "{most} sockets");
}
