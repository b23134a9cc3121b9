//! Loads that run in several processes.

use crate::support::{Server, processes::assert_right, regatta, run, until};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::Read,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

const REGATTA: &str = env!("CARGO_BIN_EXE_regatta");

#[test]
fn takes_several_processes_for_more_connections_than_one_may_open() {
    let server = Server::double("cluster", &["--cores", "3"]);
    let load = |more: &[&str]| {
        let url = format!("line://{}", server.addr);
        let limited = ["-c", "ulimit -n 1100; exec \"$0\" \"$@\"", REGATTA, "load", &url];
        let args = [&limited[..], &["-c", "3000", "--json", "-"], more].concat();
        run(Command::new("sh").args(args))
    };
    let counted = load(&["-n", "12000"]);
    let result = assert_right(&counted, 3_000, 3);
    assert_eq!(result["requests"], 12_000);
    let note = &counted.stderr;
    assert!(note.starts_with("3000 connections need 3 load processes: the file limit"), "{note}");

    let more = load(&["-d", "300ms", "--processes", "4", "--warm-up", "100ms"]);
    let result = assert_right(&more, 3_000, 4);
    assert!(result["requests"].as_u64().unwrap() > 0);
    assert!(more.stderr.is_empty(), "a note, although --processes is given: {more:?}");
}

/// Starts a load of half a minute in two processes, and waits until both are connected.
fn long(server: &Server) -> (Child, Vec<u32>) {
    let url = format!("line://{}", server.addr);
    let mut leader = regatta!("load {url} -c 20 --processes 2 -d 30s");
    leader.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let leader = leader.spawn().unwrap();
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
    // In the order of their starts: the numbers of processes rise, and begin again at their maximum.
    children.sort_unstable_by_key(|pid| pid.wrapping_sub(parent));
    children
}

/// Returns a field of /proc/PID/stat, counted from the state; empty if the process is gone.
pub fn field(pid: u32, nth: usize) -> String {
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
