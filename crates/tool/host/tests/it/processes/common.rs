//! Helpers to start contenders, and to check that nothing is left of them.

use regatta_host::{Cgroup, Containment, Launch, Running, is_taken};
use regatta_testkit::{child::example, port, skip};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

pub const LIMIT: Duration = Duration::from_secs(10);

/// The example `host_test_helper`.
pub fn helper() -> &'static Path {
    static PATH: LazyLock<PathBuf> = LazyLock::new(|| example("host_test_helper"));
    &PATH
}

/// Returns a launch of `script` in a shell, in which `$PORT` is the port and `$HELPER` the helper.
pub fn launch(containment: Containment, script: &str) -> Launch {
    let port = port::free();
    let helper = helper().to_str().expect("a path in UTF-8").to_string();
    Launch {
        container: None,
        name: "probe".into(),
        command: ["sh", "-c", script].map(String::from).to_vec(),
        dir: std::env::temp_dir(),
        env: [("PORT".into(), port.to_string()), ("HELPER".into(), helper)].into(),
        host: Ipv4Addr::LOCALHOST.into(),
        port,
        cpus: vec![],
        containment,
    }
}

/// Checks a property under a containment, if the machine has it.
pub fn check(containment: Containment, property: fn(Containment)) {
    match containment {
        Containment::Only(version) if !Cgroup::is_available(version) => {
            skip(&format!("no control groups {version:?} here"));
        }
        _ => property(containment),
    }
}

/// Makes a test of a function with each of these containments.
macro_rules! tests_of {
    ($property:ident: $($test:ident $containment:expr),*) => {
        mod $property {
            use crate::processes::common::check;
            use regatta_host::{CgroupVersion::*, Containment::*};

            $(#[test]
            fn $test() {
                check($containment, super::$property);
            })*
        }
    };
}

/// Makes tests of each of these functions without containment, and with each version of control groups.
macro_rules! under_each_containment {
    ($($property:ident),* $(,)?) => {
        $($crate::processes::common::tests_of!($property: without Without, in_a_group_v1 Only(V1),
            in_a_group_v2 Only(V2));)*
    };
}

/// Makes tests of each of these functions with each version of control groups.
macro_rules! in_each_control_group {
    ($($property:ident),* $(,)?) => {
        $($crate::processes::common::tests_of!($property: v1 Only(V1), v2 Only(V2));)*
    };
}

pub(crate) use {in_each_control_group, tests_of, under_each_containment};

/// Starts a contender.
pub fn start(launch: &Launch) -> (Running, Traces) {
    let running = Running::start(helper(), launch).expect("started");
    let traces = Traces::of(&running);
    (running, traces)
}

/// Traces of a contender that must be gone in the end.
pub struct Traces {
    pids: Vec<u32>,
    port: u16,
    cgroup: Option<PathBuf>,
}

impl Traces {
    pub fn new(pids: Vec<u32>, port: u16, cgroup: Option<PathBuf>) -> Traces {
        Traces { pids, port, cgroup }
    }

    fn of(running: &Running) -> Traces {
        let cgroup = running.cgroup().map(|group| group.path().to_path_buf());
        let mut traces = Traces::new(vec![running.supervisor_pid()], running.port(), cgroup);
        traces.add(running);
        traces
    }

    /// Returns the id of the supervisor.
    pub fn supervisor(&self) -> u32 {
        self.pids[0]
    }

    /// Adds the current processes.
    pub fn add(&mut self, running: &Running) {
        self.pids.extend(running.processes().iter().map(|process| process.pid));
    }

    /// Asserts that all are gone now: for a contender that was stopped and waited for.
    pub fn assert_gone(&self) {
        let left: Vec<u32> = self.pids.iter().copied().filter(|&pid| is_there(pid)).collect();
        assert!(left.is_empty(), "processes {left:?} are left");
        assert!(!is_taken(self.port).unwrap(), "port {} is still taken", self.port);
        if let Some(name) = self.cgroup.as_ref().and_then(|path| path.file_name()) {
            let left = groups_named(name);
            assert!(left.is_empty(), "control groups {left:?} are left");
        }
    }

    /// Waits until all are gone: for a contender that this process does not wait for.
    pub fn assert_gone_soon(&self) {
        let left = || self.pids.iter().any(|&pid| is_there(pid));
        let cgroup_left = || self.cgroup.as_ref().is_some_and(|path| path.exists());
        wait_until("everything is gone", || !left() && !cgroup_left());
        self.assert_gone();
    }
}

/// The control groups with this name. In version 1 there is one for each controller.
fn groups_named(name: &OsStr) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::from("/sys/fs/cgroup")]);
    while let Some(folder) = folders.pop() {
        // It may have been removed meanwhile.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.extend((entry.file_name() == name).then(|| entry.path()));
                folders.push(entry.path());
            }
        }
    }
    found
}

/// Whether `pid` is running. Reaps it if it has ended as a child of this process. A zombie that init
/// has not reaped yet counts as gone (state Z, proc_pid_stat(5)).
fn is_there(pid: u32) -> bool {
    let _ = waitpid(Pid::from_raw(pid as i32), WaitOptions::NOHANG);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "not true within {LIMIT:?}: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until a process called `name` runs in the contender (its shell forks before that).
pub fn wait_for(running: &Running, name: &str) {
    let is_there = || running.processes().iter().any(|process| process.name == name);
    wait_until(&format!("{name} runs"), is_there);
}

/// Sends a command to the helper's server. Returns its answer; `None` if it closes the connection.
pub fn ask(port: u16, command: &str) -> Option<u64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    writeln!(stream, "{command}").unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).ok()?;
    answer.trim().parse().ok()
}
