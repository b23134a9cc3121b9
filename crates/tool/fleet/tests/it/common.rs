//! A server, agents with a mark that finds their processes, and loads over them.

use regatta_fleet::{Build, Fleet, FleetRun, Machine, Settings, Void};
use regatta_load::{Arrivals, Drive, Moment, Plan, Progress, Until, Watch};
use regatta_script::Workload;
use regatta_testkit::child::example;
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    num::NonZeroU32,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

/// A server for the workload `double` that keeps every line that it receives.
pub struct Recorder {
    pub address: SocketAddr,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    pub fn start() -> Recorder {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = lines.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, kept) = (stream.unwrap(), kept.clone());
                thread::spawn(move || answer(&stream, &kept));
            }
        });
        Recorder { address, lines }
    }

    /// Takes the lines so far, sorted.
    pub fn take(&self) -> Vec<String> {
        let mut lines = std::mem::take(&mut *self.lines.lock().unwrap());
        lines.sort_unstable();
        lines
    }
}

fn answer(stream: &TcpStream, kept: &Mutex<Vec<String>>) {
    stream.set_nodelay(true).unwrap();
    let mut writer = stream;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let reply = format!("{}\n", line.parse::<i128>().unwrap() * 2);
        kept.lock().unwrap().push(line);
        if writer.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// A mark that no other process has.
pub fn mark() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("mark-{}-{}", std::process::id(), NEXT.fetch_add(1, SeqCst))
}

/// The living processes with this argument, and all their arguments.
pub fn marked(mark: &str) -> Vec<(u32, Vec<String>)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let read = |pid: u32, name: &str| fs::read_to_string(format!("/proc/{pid}/{name}"));
    let alive = |pid: &u32| {
        let stat = read(*pid, "stat").unwrap_or_default();
        // The state (proc_pid_stat(5)).
        !matches!(
            stat.rsplit(')').next().map(str::trim_start).and_then(|s| s.chars().next()),
            None | Some('Z')
        )
    };
    let arguments = |pid: u32| -> Vec<String> {
        let line = read(pid, "cmdline").unwrap_or_default();
        line.split('\0').map(str::to_owned).collect()
    };
    let all = pids.filter(alive).map(|pid| (pid, arguments(pid)));
    all.filter(|(_, arguments)| arguments.iter().any(|one| one == mark)).collect()
}

/// An agent whose load processes are of a kind (see the helper).
pub fn machine(name: &str, kind: &str, mark: &str) -> Machine {
    let arguments = ["agent", kind, mark].map(Into::into).to_vec();
    Machine { name: name.into(), program: example("fleet_test_helper").into(), arguments }
}

/// The same agent behind a shell command, in which `$agent` starts it.
pub fn behind(command: &str, machine: Machine) -> Machine {
    let Machine { name, program, arguments } = machine;
    let words: Vec<String> =
        [program].into_iter().chain(arguments).map(|word| word.into_string().unwrap()).collect();
    let script = format!("agent='{}'; {command}", words.join(" "));
    Machine { name, program: "sh".into(), arguments: vec!["-c".into(), script.into()] }
}

/// An agent with this number of cores.
pub fn with_cores(cores: u32, machine: Machine) -> Machine {
    let change = format!("s/\"cores\":[0-9]*/\"cores\":{cores}/");
    behind(&format!("$agent | sed -u '{change}'"), machine)
}

/// A plan with a window of 300 ms and no warm-up.
pub fn plan(target: SocketAddr) -> Plan {
    Plan {
        until: Until::Elapsed(Duration::from_millis(300)),
        seed: 42,
        ..Plan::closed(target, Workload::parse("double").unwrap())
    }
}

/// A load of this many seconds. Its rate leaves the CPU to other tests.
pub fn of_seconds(seconds: u64, server: &Recorder) -> Plan {
    let rate = NonZeroU32::new(400).unwrap();
    Plan {
        connections: 8,
        until: Until::Elapsed(Duration::from_secs(seconds)),
        drive: Drive::Open { rate, arrivals: Arrivals::Constant },
        ..plan(server.address)
    }
}

/// The program of the agents.
pub fn build() -> Build {
    Build::of(&example("fleet_test_helper"), "test").unwrap()
}

pub fn connect(machines: &[Machine]) -> Result<Fleet, regatta_fleet::Error> {
    connect_with(machines, Settings::default())
}

pub fn connect_with(
    machines: &[Machine],
    settings: Settings,
) -> Result<Fleet, regatta_fleet::Error> {
    Fleet::connect(machines, &build(), settings, &AtomicBool::new(false))
}

/// Runs a plan. `progress` is called as the load's progress is.
pub fn run_watched(
    fleet: &mut Fleet,
    plan: &Plan,
    progress: &mut dyn FnMut(&Progress),
) -> Result<FleetRun, Box<Void>> {
    let never = AtomicBool::new(false);
    let mut nothing = |_: Moment| {};
    fleet.run(plan, Watch { observer: &mut nothing, progress, stop: &never })
}

pub fn run(fleet: &mut Fleet, plan: &Plan) -> FleetRun {
    run_watched(fleet, plan, &mut |_| {}).unwrap()
}
