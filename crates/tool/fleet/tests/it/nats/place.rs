//! A broker, standing agents, and their files.

use crate::common::{build, mark, marked};
use regatta_fleet::{
    Error, Fleet, Settings,
    nats::{Listed, agents, init, list},
};
use regatta_testkit::{child::example, deadline::until, port, prerequisite};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Mutex, atomic::AtomicBool},
    thread,
    time::Duration,
};
use tempfile::TempDir;

/// A fleet on this machine.
pub struct Place {
    folder: TempDir,
    pub port: u16,
    pub mark: String,
    broker: Mutex<Option<Child>>,
    agents: Mutex<BTreeMap<String, Child>>,
}

impl Place {
    /// A fleet with these agents, whose broker runs.
    pub fn new(names: &[&str]) -> Place {
        Place::at("127.0.0.1", names)
    }

    /// The same with TLS, because LOCALHOST is not known to be this machine.
    pub fn over_tls(names: &[&str]) -> Place {
        Place::at("LOCALHOST", names)
    }

    fn at(host: &str, names: &[&str]) -> Place {
        let port = port::free();
        let folder = files(host, names, port);
        let (broker, agents) = Default::default();
        let place = Place { folder, port, mark: mark(), broker, agents };
        place.start_broker();
        place
    }

    /// The files of another fleet with the same names and the same broker.
    pub fn files(names: &[&str], port: u16) -> TempDir {
        files("127.0.0.1", names, port)
    }

    /// The same with TLS.
    pub fn over_tls_files(names: &[&str], port: u16) -> TempDir {
        files("LOCALHOST", names, port)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The word of the fleet in subjects.
    pub fn fleet_name(&self) -> String {
        let text = fs::read_to_string(self.path("leader.toml")).unwrap();
        text.split('"').nth(1).unwrap().to_owned()
    }

    /// The leader reaches the broker at this port.
    pub fn leader_goes_over(&self, port: u16) {
        let file = fs::read_to_string(self.path("leader.toml")).unwrap();
        let file = file.replace(&format!(":{}\"", self.port), &format!(":{port}\""));
        fs::write(self.path("leader.toml"), file).unwrap();
    }

    pub fn start_broker(&self) {
        self.start_broker_after(Duration::ZERO);
    }

    pub fn start_broker_after(&self, wait: Duration) {
        let program = prerequisite::find("nats-server").unwrap();
        // The shell becomes the broker.
        let script = format!("sleep {}; exec {} -c nats.conf", wait.as_secs(), program.display());
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(self.folder.path());
        let log = File::options().append(true).create(true).open(self.path("broker.log")).unwrap();
        *self.broker.lock().unwrap() =
            Some(command.stderr(log).stdout(Stdio::null()).spawn().unwrap());
        if wait.is_zero() {
            until("the broker listens", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
        }
    }

    pub fn kill_broker(&self) {
        if let Some(mut broker) = self.broker.lock().unwrap().take() {
            let _ = broker.kill();
            broker.wait().unwrap();
        }
    }

    /// Number of bytes that the broker has read so far (proc_pid_io(5)).
    pub fn read_by_broker(&self) -> u64 {
        let broker = self.broker.lock().unwrap();
        let io = fs::read_to_string(format!("/proc/{}/io", broker.as_ref().unwrap().id())).unwrap();
        io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
    }

    /// Starts a standing agent with this number of CPUs, and waits until it is at the broker.
    pub fn agent(&self, name: &str, cores: u32, kind: &str) {
        self.limited_agent(name, cores, kind, "-");
    }

    /// The same, with a limit of its sessions (see the helper).
    pub fn limited_agent(&self, name: &str, cores: u32, kind: &str, limit: &str) {
        self.start_agent(name, cores, kind, limit);
        until("the agent is at the broker", || {
            let listed = list(&self.path("leader.toml")).unwrap_or_default();
            listed.iter().any(|agent| agent.name == name && agent.seen.is_some())
        });
    }

    /// Starts a standing agent.
    pub fn start_agent(&self, name: &str, cores: u32, kind: &str, limit: &str) {
        let file = self.path(&format!("{name}.toml")).display().to_string();
        let mut command = Command::new(example("fleet_test_helper"));
        command.args(["standing", &file, &cores.to_string(), limit, kind, &self.mark]);
        let log = File::create(self.path(&format!("{name}.log"))).unwrap();
        let agent = command.stdin(Stdio::null()).stderr(log).spawn().unwrap();
        if let Some(mut old) = self.agents.lock().unwrap().insert(name.to_owned(), agent) {
            let _ = old.kill();
            old.wait().unwrap();
        }
    }

    /// Starts a second agent with the same file.
    pub fn second_agent(&self, name: &str, kind: &str) {
        let first = self.agents.lock().unwrap().remove(name).unwrap();
        self.agents.lock().unwrap().insert(format!("{name} before"), first);
        self.start_agent(name, 2, kind, "-");
    }

    pub fn pid(&self, name: &str) -> u32 {
        self.agents.lock().unwrap()[name].id()
    }

    /// What a standing agent has logged.
    pub fn log(&self, name: &str) -> String {
        fs::read_to_string(self.path(&format!("{name}.log"))).unwrap()
    }

    pub fn list(&self) -> Vec<Listed> {
        list(&self.path("leader.toml")).unwrap()
    }

    /// Connects a leader that is patient, because other tests may take the CPUs.
    pub fn connect(&self, names: &[&str]) -> Result<Fleet, Error> {
        let patience = Duration::from_secs(60);
        let settings =
            Settings { lease: patience, starts_within: patience, answers_within: patience };
        self.connect_with(names, settings)
    }

    /// Connects a leader with the usual times.
    pub fn connect_usual(&self, names: &[&str]) -> Result<Fleet, Error> {
        self.connect_with(names, Settings::default())
    }

    pub fn connect_with(&self, names: &[&str], settings: Settings) -> Result<Fleet, Error> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let relay = [example("fleet_test_helper").into(), "relay".into(), (&self.mark).into()];
        let machines = agents(&self.path("leader.toml"), &names, &relay)?;
        Fleet::connect(&machines, &build(), settings, &AtomicBool::new(false))
    }

    /// The process ID of the only relay.
    pub fn relay_pid(&self) -> u32 {
        let relays: Vec<u32> = self.of_kind("relay");
        assert_eq!(relays.len(), 1);
        relays[0]
    }

    /// Whether no process of a session is alive.
    pub fn is_idle(&self) -> bool {
        ["agent", "load-process", "scripted"].iter().all(|kind| self.of_kind(kind).is_empty())
    }

    fn of_kind(&self, kind: &str) -> Vec<u32> {
        let all = marked(&self.mark).into_iter();
        all.filter(|(_, words)| words[1] == kind).map(|(pid, _)| pid).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for agent in self.agents.get_mut().unwrap().values_mut() {
            let _ = agent.kill();
            let _ = agent.wait();
        }
        self.kill_broker();
        if thread::panicking() {
            for name in ["broker.log", "gen1.log", "gen2.log"] {
                println!("{name}:\n{}", fs::read_to_string(self.path(name)).unwrap_or_default());
            }
        }
    }
}

fn files(host: &str, names: &[&str], port: u16) -> TempDir {
    let folder = TempDir::new().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    init(folder.path(), &format!("{host}:{port}"), &names).unwrap();
    folder
}
