//! Standing fleets by the commands of a user: `fleet init`, a broker, `agent --fleet`, `agents`, `load --fleet`.

mod hub;

use crate::{
    manifests,
    support::{Server, regatta, run, until, until_within},
};
use regatta_testkit::{
    child::{Ended, Killed},
    port, prerequisite,
};
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    fs::{self, File},
    net::TcpStream,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

const MARK: &str = "REGATTA_TEST_MARK";

/// Runs a command of regatta to its end.
fn regatta(args: &[&str]) -> Ended {
    run(regatta!("").args(args))
}

/// The last line on stderr of a command that fails with status 2.
#[track_caller]
fn refused(args: &[&str]) -> String {
    crate::support::refused(regatta!("").args(args))
}

/// A fleet with the agents gen1 and gen2, and its broker.
struct Fleet {
    folder: TempDir,
    children: Vec<Killed>,
}

impl Fleet {
    fn new() -> Fleet {
        let folder = TempDir::new().unwrap();
        let port = port::free();
        let mut fleet = Fleet { folder, children: Vec::new() };
        let broker = format!("127.0.0.1:{port}");
        let written =
            regatta(&["fleet", "init", "--broker", &broker, "--agents", "gen1,gen2", &fleet.dir()]);
        assert_eq!(written.code(), 0, "{written:?}");
        let start = format!("cd {} && nats-server -c nats.conf\n", fleet.dir());
        assert!(written.stdout.contains(&start), "{written:?}");
        let mut command = Command::new(prerequisite::find("nats-server").unwrap());
        command.args(["-c", "nats.conf"]).current_dir(fleet.dir());
        fleet.start("broker", command);
        until("the broker listens", || TcpStream::connect(&broker).is_ok());
        fleet
    }

    fn dir(&self) -> String {
        self.folder.path().join("fleet").display().to_string()
    }

    fn leader(&self) -> String {
        format!("{}/leader.toml", self.dir())
    }

    /// What all processes of the fleet have in their environment.
    fn mark(&self) -> String {
        self.dir()
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.log"))
    }

    fn start(&mut self, name: &str, mut command: Command) {
        let log = File::create(self.log(name)).unwrap();
        command.stdout(Stdio::null()).stderr(log).env(MARK, self.mark());
        self.children.push(Killed::start(&mut command));
    }

    fn agent(&mut self, name: &str, more: &[&str]) {
        let file = format!("{}/{name}.toml", self.dir());
        let mut command = regatta!("agent --fleet {file}");
        command.args(more);
        self.start(name, command);
        let log = self.log(name);
        until("the agent waits for a leader", || {
            fs::read_to_string(&log).unwrap().contains("waits for a leader")
        });
    }

    fn load(&self, server: &Server, more: &[&str]) -> Ended {
        let url = format!("line://{}", server.addr);
        let args = ["load", &url, "-c", "10", "-d", "300ms", "--warm-up", "50ms", "--json", "-"];
        regatta(&[&args, &["--fleet", &self.leader()][..], more].concat())
    }
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_fleet_is_made_listed_and_loads_a_server() {
    let mut fleet = Fleet::new();
    let absent = regatta(&["agents", "--fleet", &fleet.leader()]);
    assert_eq!((absent.code(), absent.stdout.matches("absent").count()), (1, 2), "{absent:?}");
    for name in ["gen1", "gen2"] {
        fleet.agent(name, &["--targets", "127.0.0.1:1-65535", "--max-connections", "100"]);
    }
    until("both are there", || {
        let listed = regatta(&["agents", "--fleet", &fleet.leader()]);
        listed.code() == 0 && listed.stdout.matches("idle").count() == 2
    });
    let listed = regatta(&["agents", "--fleet", &fleet.leader()]).stdout;
    assert!(listed.starts_with("agent  cores  state"), "{listed}");
    assert!(listed.lines().skip(1).all(|line| line.ends_with("this one")), "{listed}");
    let server = Server::double("epoll", &[]);
    let done = fleet.load(&server, &["--on", "gen1,gen2"]);
    assert_eq!(done.code(), 0, "{done:?}");
    let result: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let agents = result["agents"]["agents"].as_array().unwrap();
    let names: Vec<&str> = agents.iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["gen1", "gen2"]);
    let sum: u64 = agents.iter().map(|agent| agent["requests"].as_u64().unwrap()).sum();
    assert_eq!(result["requests"], sum);
    assert!(sum > 0 && result["failed"] == 0.0, "{result:#}");
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_load_beyond_the_limits_of_an_agent_is_refused_with_its_words() {
    let mut fleet = Fleet::new();
    fleet.agent("gen1", &["--targets", "127.0.0.1:1-65535", "--max-connections", "9"]);
    let server = Server::double("epoll", &[]);
    let done = fleet.load(&server, &["--on", "gen1"]);
    assert_eq!(done.code(), 2, "{done:?}");
    let expected =
        "agent gen1 refused: its share is 10 connections, more than 9 (--max-connections)\n";
    assert!(done.stderr.ends_with(expected), "{}", done.stderr);
    let void: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert!(void["void"].as_str().unwrap().contains("more than 9"), "{void}");
}

/// The living load processes whose environment has this mark.
fn load_processes(mark: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let has = |folder: &Path, name: &str, what: &str| {
        let text = fs::read(folder.join(name)).unwrap_or_default();
        text.split(|byte| *byte == 0).any(|one| one == what.as_bytes())
    };
    let mark = format!("{MARK}={mark}");
    let all = entries.map(|entry| entry.path());
    all.filter(|path| has(path, "environ", &mark) && has(path, "cmdline", "load-process")).count()
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_killed_leader_leaves_no_load() {
    let mut fleet = Fleet::new();
    let mark = fleet.mark();
    fleet.agent("gen1", &["--targets", "127.0.0.1:1-65535"]);
    fleet.agent("gen2", &["--targets", "127.0.0.1:1-65535"]);
    let server = Server::double("epoll", &[]);
    let url = format!("line://{}", server.addr);
    let mut leader = regatta!("load {url} -d 60s --on gen1,gen2 --fleet {}", fleet.leader());
    let mut leader = leader.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("both agents load", || load_processes(&mark) == 2);
    leader.kill().unwrap();
    leader.wait().unwrap();
    // At once, because its relays see that it is gone.
    until_within(Duration::from_secs(5), "no load remains", || load_processes(&mark) == 0);
    until("the agents wait for the next leader", || {
        let listed = regatta(&["agents", "--fleet", &fleet.leader()]);
        listed.stdout.matches("idle").count() == 2
    });
}

/// A child and all others in its process group, which are killed when dropped.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_batch_script_of_slurm_starts_an_agent() {
    let fleet = Fleet::new();
    let args = ["fleet", "manifest", "slurm", &fleet.dir(), "--agents", "gen1"];
    let script = regatta(&[&args[..], &["--targets", "127.0.0.1:1-65535"]].concat());
    assert_eq!(script.code(), 0, "{script:?}");
    let folder = fleet.folder.path().to_owned();
    fs::write(folder.join("script"), script.stdout).unwrap();
    manifests::srun(&folder, 1);
    let mut slurm = manifests::bash(&folder.join("script"), &folder);
    let slurm = slurm.process_group(0).env(MARK, fleet.mark()).stdin(Stdio::null());
    let _slurm = Group(slurm.stderr(File::create(fleet.log("slurm")).unwrap()).spawn().unwrap());
    until("the agent is there", || {
        let listed = regatta(&["agents", "--fleet", &fleet.leader()]);
        listed.stdout.lines().any(|line| line.starts_with("gen1") && line.ends_with("this one"))
    });
}

#[test]
fn wrong_arguments_are_refused_with_what_to_do() {
    let agent = |more: &[&str]| refused(&[&["agent"][..], more].concat());
    let error = agent(&[]);
    assert!(error.contains("--fleet <NAME.toml>") && error.contains("--targets"), "{error}");
    let error = agent(&["--fleet", "x.toml"]);
    assert!(error.contains("--targets <NETWORK:PORTS,…>"), "{error}");
    let error = agent(&["--fleet", "x.toml", "--targets", "8.8.0.0/16:80"]);
    assert!(error.contains("8.8.0.0/16:80 has public addresses: list each"), "{error}");
    let error = agent(&["--fleet", "/nonexistent.toml", "--targets", "10.0.0.1:80"]);
    assert_eq!(
        error,
        "regatta: cannot read /nonexistent.toml: No such file or directory (os error 2)\n"
    );
    let error = refused(&["load", "line://127.0.0.1:1", "--fleet", "leader.toml"]);
    assert!(error.contains("--on <HOST,…>"), "{error}");
    let error = refused(&["fleet", "init", "--broker", "127.0.0.1", "--agents", "a.b", "x"]);
    assert!(error.starts_with("regatta: expected up to 40 lower-case letters"), "{error}");
}
