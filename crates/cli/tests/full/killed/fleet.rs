//! A standing fleet with a tap before its broker.

use super::tap::{Tap, Trap};
use crate::support::{Server, race::course::Course, until};
use regatta_testkit::{port, prerequisite};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Instant,
};

pub const AGENTS: [&str; 2] = ["gen1", "gen2"];

/// A broker.
pub struct Broker {
    folder: PathBuf,
    port: u16,
    child: Mutex<Option<Child>>,
}

impl Broker {
    pub fn start(&self) {
        let mut command = Command::new(prerequisite::find("nats-server").unwrap());
        command.args(["-c", "nats.conf"]).current_dir(&self.folder).stderr(Stdio::null());
        *self.child.lock().unwrap() = Some(command.spawn().unwrap());
        until("the broker listens", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    pub fn kill(&self) {
        if let Some(mut child) = self.child.lock().unwrap().take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// Kills a process.
pub fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
}

/// Standing agents, their broker, and a server that they may load.
pub struct Fleet {
    pub course: Course,
    pub broker: Arc<Broker>,
    tap: Tap,
    server: Server,
    agents: BTreeMap<&'static str, Child>,
    /// The names of the fleet's files.
    files: Vec<PathBuf>,
}

impl Fleet {
    pub fn new() -> Fleet {
        let course = Course::new();
        let port = port::free();
        let tap = Tap::before(port);
        let at = format!("127.0.0.1:{}", tap.port);
        let init = ["fleet", "init", "--broker", &at, "--agents", "gen1,gen2", "fleet"];
        course.started(course.regatta(&init)).ended().with_status(0);
        let config = course.path("fleet/nats.conf");
        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, text.replace(&at, &format!("127.0.0.1:{port}"))).unwrap();
        let broker = Broker { folder: course.path("fleet"), port, child: Mutex::default() };
        broker.start();
        let server = Server::double("epoll", &[]);
        let (broker, agents) = (Arc::new(broker), BTreeMap::new());
        let mut fleet = Fleet { course, broker, tap, server, agents, files: Vec::new() };
        fleet.files = fleet.files_now();
        fleet.make_ready();
        fleet
    }

    /// Starts the agents that do not run, and waits until all of them wait for a leader.
    pub fn make_ready(&mut self) {
        for name in AGENTS {
            let child = self.agents.get_mut(name);
            if child.is_none_or(|child| child.try_wait().unwrap().is_some()) {
                let file = format!("fleet/{name}.toml");
                let targets = ["--targets", "127.0.0.1:1-65535"];
                let mut agent = self.course.regatta(&["agent", "--fleet", &file]);
                agent.args(targets).stdout(Stdio::null());
                let log = File::create(self.log_of(name)).unwrap();
                self.agents.insert(name, agent.stderr(log).spawn().unwrap());
            }
        }
        until("all agents wait for a leader", || {
            let agents = self.course.regatta(&["agents", "--fleet", "fleet/leader.toml"]).output();
            String::from_utf8(agents.unwrap().stdout).unwrap().matches("idle").count()
                == AGENTS.len()
        });
    }

    fn log_of(&self, name: &str) -> PathBuf {
        self.course.path(&format!("{name}.log"))
    }

    /// How many sessions have ended, by the logs of the agents.
    pub fn sessions_over(&self) -> usize {
        let of = |name: &&str| fs::read_to_string(self.log_of(name)).unwrap();
        AGENTS.iter().map(|name| of(name).matches("session ends").count()).sum()
    }

    /// The process of an agent that waits for leaders.
    pub fn standing(&self, name: &str) -> u32 {
        self.agents[name].id()
    }

    /// A load over all agents, whose result is in `out.json`.
    pub fn load(&self) -> Command {
        let url = format!("line://{}", self.server.addr);
        let mut load = self.course.regatta(&["load", &url, "--on", &AGENTS.join(",")]);
        load.args(["-c", "8", "--rate", "400", "-d", "2s", "--warm-up", "300ms"]);
        load.args(["--fleet", "fleet/leader.toml", "--json", "out.json"]);
        load
    }

    /// What is done when a text passes the tap for the `nth` time. Returns when it was done, once it was.
    pub fn trap(
        &self,
        (text, nth): (&'static str, usize),
        does: impl FnOnce() + Send + 'static,
    ) -> Arc<Mutex<Option<Instant>>> {
        let done = Arc::new(Mutex::new(None));
        let when = done.clone();
        let does = Box::new(move || {
            does();
            *when.lock().unwrap() = Some(Instant::now());
        });
        self.tap.set(Trap { text, nth, does });
        done
    }

    /// The processes of sessions, by the words of their command lines.
    pub fn of_sessions(&self) -> Vec<(u32, Vec<String>)> {
        let standing: Vec<u32> = self.agents.values().map(Child::id).collect();
        let words = |pid: u32| {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<String> = line.split('\0').map(str::to_owned).collect();
            // Empty if it has ended.
            (words.len() > 1).then_some((pid, words))
        };
        let all = self.course.processes().into_iter().filter(|pid| !standing.contains(pid));
        all.filter_map(words).collect()
    }

    /// Processes and files of a load that still exist.
    pub fn left(&self) -> Vec<String> {
        let mut left: Vec<String> =
            self.of_sessions().into_iter().map(|(pid, words)| format!("{pid} {words:?}")).collect();
        let temporary = fs::read_dir(self.course.path("tmp")).unwrap().flatten();
        left.extend(temporary.map(|entry| entry.path().display().to_string()));
        if self.files_now() != self.files {
            left.push(format!("{:?} instead of {:?}", self.files_now(), self.files));
        }
        left
    }

    fn files_now(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.course.path("fleet")).unwrap().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.sort_unstable();
        files
    }

    /// Ends the agents and the broker, and checks that neither a process nor a control group is left.
    pub fn end(mut self) {
        self.stop();
        self.course.assert_nothing_left_soon();
    }

    fn stop(&mut self) {
        for agent in self.agents.values_mut() {
            // It may have ended.
            let _ = agent.kill();
            let _ = agent.wait();
        }
        self.broker.kill();
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.stop();
    }
}
