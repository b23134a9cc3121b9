//! Loads that run in several processes.

mod support;

use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process};
use std::{
    fs,
    io::Read,
    os::unix::process::CommandExt,
    process::{Child, Command, Output, Stdio},
};
use support::{Server, until};

const REGATTA: &str = env!("CARGO_BIN_EXE_regatta");

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Runs a program. Returns the largest number of TCP sockets in use on this machine meanwhile.
fn sockets_while(mut command: Command) -> (u64, Output) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut most, mut ended) = (0, false);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(300);
    while !ended {
        if std::time::Instant::now() > deadline {
            child.kill().unwrap();
        }
        most = most.max(sockets_in_use());
        std::thread::sleep(std::time::Duration::from_millis(20));
        ended = child.try_wait().unwrap().is_some();
    }
    (most, child.wait_with_output().unwrap())
}

/// `TCP: inuse N …` of /proc/net/sockstat (Documentation/filesystems/proc.rst).
fn sockets_in_use() -> u64 {
    let text = fs::read_to_string("/proc/net/sockstat").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("TCP: inuse ")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Checks the result of an undisturbed load in `processes` processes.
fn assert_right(output: &Output, connections: u64, processes: u64) -> serde_json::Value {
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let result = json(output);
    assert_eq!(result["connections"], connections);
    assert_eq!(result["processes"], processes);
    let errors = result["errors"].as_object().unwrap();
    assert!(errors.values().all(|n| n == 0), "{errors:?}");
    let histogram = regatta_record::decode_histogram(result["histogram"].as_str().unwrap());
    // `requests` counts replies inside the window, and the histogram has the latencies of requests sent
    // inside it. They differ by the requests in flight at its edges, at most one per connection.
    let differ = result["requests"].as_u64().unwrap().abs_diff(histogram.unwrap().len());
    assert!(differ <= connections, "{differ} of {connections}");
    result
}

#[test]
fn takes_several_processes_for_more_connections_than_one_may_open() {
    let server = Server::double("cluster", &["--cores", "3"]);
    let load = |more: &[&str]| {
        let url = format!("line://{}", server.addr);
        let limited = ["-c", "ulimit -n 1100; exec \"$0\" \"$@\"", REGATTA, "load", &url];
        let args = [&limited[..], &["-c", "3000", "--json", "-"], more].concat();
        Command::new("sh").args(args).output().unwrap()
    };
    let counted = load(&["-n", "12000"]);
    let result = assert_right(&counted, 3_000, 3);
    assert_eq!(result["requests"], 12_000);
    let note = String::from_utf8_lossy(&counted.stderr).into_owned();
    assert!(note.starts_with("3000 connections need 3 load processes: the file limit"), "{note}");

    let more = load(&["-d", "300ms", "--processes", "4", "--warm-up", "100ms"]);
    let result = assert_right(&more, 3_000, 4);
    assert!(result["requests"].as_u64().unwrap() > 0);
    assert!(more.stderr.is_empty(), "a note, although --processes is given: {more:?}");
}

#[test]
fn opens_forty_five_thousand_connections_from_three_processes() {
    const CONNECTIONS: u64 = 45_000;
    // Each process of the server gets a third of them, plus or minus a few hundred.
    let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    if limit < CONNECTIONS / 3 + 1_500 {
        return eprintln!("skipped: {limit} open files are too few (ulimit -Hn)");
    }
    let server = Server::double("cluster", &["--cores", "3"]);
    let mut command = Command::new(REGATTA);
    command.args(["load", &format!("line://{}", server.addr), "--processes", "3", "--json", "-"]);
    command.args(["-c", &CONNECTIONS.to_string(), "-d", "2s", "--timeout", "60s"]);
    let (most, output) = sockets_while(command);
    let result = assert_right(&output, CONNECTIONS, 3);
    assert!(result["requests"].as_u64().unwrap() > 0);
    // Both ends are on this machine.
    assert!(most >= 2 * CONNECTIONS, "{most} sockets");
}

/// Starts a load of half a minute in two processes, and waits until both are connected.
fn long(server: &Server) -> (Child, Vec<u32>) {
    let url = format!("line://{}", server.addr);
    let args = ["load", &url, "-c", "20", "--processes", "2", "-d", "30s"];
    let mut command = Command::new(REGATTA);
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let leader = command.spawn().unwrap();
    let mut processes = Vec::new();
    until("two processes load", || {
        processes = children(leader.id());
        processes.len() == 2 && sockets(&processes) >= 20
    });
    (leader, processes)
}

/// Children of a process (proc_pid_stat(5)).
fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut children: Vec<u32> = pids.filter(|pid| field(*pid, 1) == parent.to_string()).collect();
    children.sort_unstable();
    children
}

/// Returns a field of /proc/PID/stat, counted from the state; empty if the process is gone.
fn field(pid: u32, nth: usize) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    fields.split_whitespace().nth(nth).unwrap_or_default().to_owned()
}

fn sockets(pids: &[u32]) -> usize {
    let files = pids.iter().filter_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).ok());
    let links = files.flatten().flatten().filter_map(|file| fs::read_link(file.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
}

fn are_gone(pids: &[u32]) -> bool {
    pids.iter().all(|pid| matches!(field(*pid, 0).as_str(), "" | "Z"))
}

fn ended(mut leader: Child) -> (Option<i32>, String) {
    until("the load ends", || leader.try_wait().unwrap().is_some());
    let mut said = String::new();
    leader.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (leader.wait().unwrap().code(), said)
}

#[test]
fn a_killed_process_fails_the_load_and_its_number_is_reported() {
    let server = Server::double("epoll", &[]);
    let (leader, processes) = long(&server);
    kill_process(Pid::from_raw(processes[0] as i32).unwrap(), Signal::KILL).unwrap();
    let (status, said) = ended(leader);
    assert_eq!(status, Some(2), "{said}");
    let expected = "load process 1 of 2 ended before its counts were reported: signal: 9 (SIGKILL)";
    assert!(said.contains(expected), "{said}");
    assert!(are_gone(&processes));
}

#[test]
fn ctrl_c_ends_all_processes() {
    let server = Server::double("epoll", &[]);
    let (leader, processes) = long(&server);
    // To the whole process group, as a terminal does.
    let group = Pid::from_raw(leader.id() as i32).unwrap();
    rustix::process::kill_process_group(group, Signal::INT).unwrap();
    let (status, said) = ended(leader);
    assert_eq!(status, Some(130), "{said}");
    assert!(said.starts_with("interrupted ") && said.lines().count() == 1, "{said}");
    assert!(are_gone(&processes));
}

#[test]
fn the_processes_of_a_killed_load_exit() {
    let server = Server::double("epoll", &[]);
    let (mut leader, processes) = long(&server);
    leader.kill().unwrap();
    leader.wait().unwrap();
    until("its processes are gone", || are_gone(&processes));
}
