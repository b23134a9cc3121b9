//! The stage for the tests: one test at a time, servers on one CPU and the load on another, and a
//! deadline for every process.

use crate::support::{
    Server,
    cpus::{on_cpu, two_cpus},
    regatta,
};
use regatta_record::LoadResult;
use regatta_testkit::{
    child::{Killed, run_within},
    machine, skip,
};
use std::{
    process::{Command, Stdio},
    time::Duration,
};

/// The turn of a test: while one is held, no other test runs.
pub struct Turn {
    /// The servers' CPU.
    pub server_cpu: u32,
    /// The load's CPU.
    pub load_cpu: u32,
    _alone: machine::Turn,
}

/// Waits for the turn. Skips the test and returns `None` if there are not two CPUs: the results are not known if
/// the load takes its server's CPU.
pub fn turn() -> Option<Turn> {
    let _alone = machine::alone();
    match two_cpus() {
        Some((server_cpu, load_cpu)) => Some(Turn { server_cpu, load_cpu, _alone }),
        None => {
            skip("server and load need one CPU each, and there is only one");
            None
        }
    }
}

impl Turn {
    /// Starts `regatta serve double --model epoll` with more arguments on the servers' CPU.
    pub fn server(&self, more: &str) -> Server {
        on_cpu(self.server_cpu, || {
            Server::double("epoll", &more.split_whitespace().collect::<Vec<_>>())
        })
    }

    /// Runs `regatta load` against the server on the load's CPU, and observes the server (`--pid`).
    pub fn load(&self, server: &Server, more: &str) -> Loaded {
        self.load_by("line", server, more)
    }

    /// The options of a race.
    pub fn cpus(&self) -> String {
        format!("--server-cpus {} --load-cpus {}", self.server_cpu, self.load_cpu)
    }

    /// Like [`Turn::load`], with another protocol.
    pub fn load_by(&self, scheme: &str, server: &Server, more: &str) -> Loaded {
        let (url, pid) = (format!("{scheme}://{}", server.addr), server.child.id().to_string());
        let command = regatta!("load {url} --pid {pid} --json - --cpus {} {more}", self.load_cpu);
        let ended = run_within(Duration::from_secs(90), command);
        let result = serde_json::from_str(&ended.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", ended.stdout, ended.stderr));
        Loaded { code: ended.code(), result }
    }

    /// Starts a process that only takes the CPU of the load. It is killed when dropped.
    pub fn spinner(&self) -> Killed {
        self.spinner_at(0)
    }

    /// Starts a process that only takes the CPU of the load, in a session of this priority (sched(7), autogroup): that
    /// of a race is -20, if it may, and others then take little from it. It is killed when dropped.
    pub fn spinner_at(&self, priority: i32) -> Killed {
        let mut command = Command::new("setsid");
        let spins = format!("echo {priority} >/proc/self/autogroup; while :; do :; done");
        command.args(["sh", "-c", &spins]).stderr(Stdio::null());
        on_cpu(self.load_cpu, || Killed::start(&mut command))
    }
}

/// The result of `regatta load`.
pub struct Loaded {
    /// Its exit status.
    pub code: i32,
    /// Its JSON.
    pub result: LoadResult,
}
