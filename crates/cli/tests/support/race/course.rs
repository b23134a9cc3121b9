//! A folder in which a test races: starts `regatta race` in it with ill-behaved contenders, and finds
//! leftover processes and control groups afterwards.

pub use crate::support::example::example;
use crate::support::{
    race::started::{Ended, Started},
    regatta,
};
use regatta_host::is_taken;
use regatta_testkit::{child::Killed, deadline::until_within, machine};
use std::{
    collections::BTreeSet,
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Deadline of every wait. A race that hangs is killed after it.
pub const LIMIT: Duration = Duration::from_secs(120);

/// A race of `null` in one short window, to which tests add contenders and more. Every course has its file.
pub const SHORT: [&str; 1] = ["short.toml"];

/// Many connections, so that a daemon that shares the port gets some of them. Several rounds have a twin. On a busy machine
/// a contender may get no CPU for some hundred milliseconds, and one without a reply in its window has failed.
const SHORT_FILE: &str = "name = 'short'\nworkload = 'double'\ncontenders = ['null']\nrounds = 1\n\
                          window = '1s'\nwarm_up = '0s'\n[[load]]\nconnections = 64\nrate = 400\n";

pub struct Course {
    folder: TempDir,
    /// In the environment of every process of this course's races, unless the process was started with
    /// another environment.
    mark: String,
    /// Whether its races are in rounds, instead of duels.
    in_rounds: bool,
    /// The control groups of supervisors when it began: those of other tests, and what earlier runs left behind.
    groups_before: BTreeSet<PathBuf>,
    _turn: machine::Turn,
}

impl Course {
    pub fn new() -> Course {
        Course::in_turn(machine::shared())
    }

    /// A course whose races are in rounds, for tests of what happens between and in rounds.
    pub fn in_rounds() -> Course {
        Course { in_rounds: true, ..Course::new() }
    }

    /// A course for a test that compares costs: no other test of this program races meanwhile.
    pub fn alone() -> Course {
        Course::in_turn(machine::alone())
    }

    fn in_turn(_turn: machine::Turn) -> Course {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("tmp")).unwrap();
        // Some servers switch to another user, who must be able to read their folder.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.path().join("short.toml"), SHORT_FILE).unwrap();
        Course {
            folder,
            mark: format!("REGATTA_TEST={}-{count}.", std::process::id()),
            in_rounds: false,
            groups_before: groups(|_| true),
            _turn,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The result directory of races with `--out out`.
    pub fn out(&self) -> PathBuf {
        self.path("out")
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes a race file as [`Course::write_race`] does, for loads of a few requests per second: many such races
    /// run beside one another, and have replies even on a busy machine.
    pub fn write_quiet_race(&self, contenders: &str, window: &str, load: &str) {
        let at_a_rate = |line: &str| match line.starts_with("connections = ") {
            true => format!("{line}\nrate = 200\n"),
            false => format!("{line}\n"),
        };
        self.write_race(contenders, window, &load.lines().map(at_a_rate).collect::<String>());
    }

    /// Writes a race file with one round, and so without a twin. Several rounds may get the verdict that
    /// they drift, which is not tested here.
    pub fn write_race(&self, contenders: &str, window: &str, load: &str) {
        self.write(
            "race.toml",
            &format!(
                "name = 'test'\nworkload = 'double'\ncontenders = [{contenders}]\n\
                 twin_of = 'nobody'\nrounds = 1\nwindow = '{window}'\nwarm_up = '0s'\n\
                 [[load]]\n{load}\n"
            ),
        );
    }

    /// Runs `regatta race ARGS` in this folder until it exits.
    pub fn race(&self, args: &[&str]) -> Ended {
        self.start(args).ended()
    }

    /// Runs a short race of `null` and `contender`, with JSON output.
    pub fn race_short(&self, contender: &str) -> Ended {
        self.race(
            &[&SHORT[..], &["--json", "-", "--out", "out", "--contender", contender]].concat(),
        )
    }

    /// Starts `regatta race ARGS` in this folder.
    pub fn start(&self, args: &[&str]) -> Started {
        self.started(self.command(args))
    }

    /// Runs `regatta report --replay DIR` in this folder until it exits.
    pub fn replay(&self, dir: &str) -> Ended {
        self.started(self.regatta(&["report", "--replay", dir])).ended()
    }

    /// Starts a command with its output redirected to files.
    pub fn started(&self, mut command: Command) -> Started {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let file = |what: &str| self.path(&format!("{what}-{count}"));
        let (stdout, stderr) = (file("stdout"), file("stderr"));
        // Files, not pipes, so that the race does not block if nothing reads its output.
        command.stdout(File::create(&stdout).unwrap()).stderr(File::create(&stderr).unwrap());
        Started { child: Killed(command.spawn().unwrap()), stdout, stderr }
    }

    /// Returns the command of a race, whose output is not redirected. Unless `args` resume a race, its load
    /// sleeps when it is idle, and it has `--settle 0s` if `args` do not set that.
    pub fn command(&self, args: &[&str]) -> Command {
        let has = |name: &str| args.contains(&name);
        let more: &[&str] = match (has("--resume"), has("--settle")) {
            (true, _) => &[],
            (false, true) => &["--load-sleeps"],
            (false, false) => &["--load-sleeps", "--settle", "0s"],
        };
        let is_new = !has("--resume");
        let schedule: &[&str] =
            if self.in_rounds && is_new { &["--schedule", "rounds"] } else { &[] };
        self.regatta(&[&["race", "--debug-build"], args, more, schedule].concat())
    }

    /// Returns the command `regatta ARGS` in this folder. Its output is not redirected.
    pub fn regatta(&self, args: &[&str]) -> Command {
        let (name, value) = self.mark.split_once('=').unwrap();
        let mut command = regatta!("");
        command
            .args(args)
            .current_dir(self.folder.path())
            .env(name, value)
            .env("ILL", example("ill_behaved"))
            .env("LIAR", example("liar"))
            .env("SLOW_HASH", example("slow_hash"))
            .env("STREAMS", example("streams"))
            .env("HUB_LIAR", example("hub_liar"))
            .env("ILL_BEHAVED_LOG", self.path("log"))
            // Races that are killed leave their folders there. They go with this course.
            .env("TMPDIR", self.folder.path().join("tmp"))
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    /// The log entries of the contenders: `(pid, what)`.
    pub fn log(&self) -> Vec<(u32, String)> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        let parse = |line: &str| {
            let (pid, what) = line.split_once(' ').unwrap();
            (pid.parse().unwrap(), what.to_owned())
        };
        text.lines().map(parse).collect()
    }

    /// Running processes of this course's races: `race`, supervisors and contenders, except processes
    /// without the mark in their environment.
    pub fn processes(&self) -> Vec<u32> {
        let is_ours = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|b| *b == 0).any(|entry| entry == self.mark.as_bytes())
        };
        let names = fs::read_dir("/proc").unwrap().flatten();
        names.filter_map(|e| e.file_name().to_str()?.parse().ok()).filter(is_ours).collect()
    }

    /// Ports on which these processes listen.
    pub fn listening(&self) -> BTreeSet<u16> {
        let fds = self.processes().into_iter().filter_map(|pid| {
            fs::read_dir(format!("/proc/{pid}/fd")).ok() // gone meanwhile
        });
        let sockets: BTreeSet<PathBuf> =
            fds.flatten().flatten().filter_map(|fd| fs::read_link(fd.path()).ok()).collect();
        let tables = ["tcp", "tcp6"].map(|t| fs::read_to_string(format!("/proc/net/{t}")));
        let listens = |line: &str| {
            const LISTEN: &str = "0A";
            let fields: Vec<&str> = line.split_whitespace().collect();
            let socket = PathBuf::from(format!("socket:[{}]", fields[9]));
            let (_, port) = fields[1].rsplit_once(':')?;
            (fields[3] == LISTEN && sockets.contains(&socket))
                .then(|| u16::from_str_radix(port, 16).unwrap())
        };
        let lines = tables.iter().flatten().flat_map(|table| table.lines().skip(1));
        lines.filter_map(listens).collect()
    }

    /// For use after a race that ended by itself: its processes are already gone, and its ports and
    /// control groups are released.
    pub fn assert_nothing_left(&self) {
        let left = self.processes();
        assert!(left.is_empty(), "processes {left:?} still run");
        for (pid, _) in self.log() {
            assert!(!Path::new(&format!("/proc/{pid}")).exists(), "contender {pid} still runs");
        }
        // Waits, because another test's contender may hold the port for a moment.
        for (_, what) in self.log() {
            let Some(port) = what.strip_prefix("listens ") else { continue };
            self.assert_free(port.parse().unwrap());
        }
        // Waits, because another test's supervisor may be exiting.
        let is_gone = |pid: u32| !Path::new(&format!("/proc/{pid}")).exists();
        until("no control group is left", || groups(is_gone).is_subset(&self.groups_before));
    }

    /// For use after a race that was killed: its supervisors need a moment.
    pub fn assert_nothing_left_soon(&self) {
        let began = Instant::now();
        until("all processes are gone", || self.processes().is_empty());
        assert!(began.elapsed() < Duration::from_secs(10), "gone after {:?}", began.elapsed());
        self.assert_nothing_left();
    }

    pub fn assert_free(&self, port: u16) {
        until("the port is free", || !is_taken(port).unwrap());
    }

    /// The content of `rounds.jsonl`.
    pub fn rounds(&self) -> Vec<u8> {
        fs::read(self.out().join("rounds.jsonl")).unwrap_or_default()
    }
}

/// Returns the control groups of supervisors whose process number `counts`. They are in the groups of this process.
fn groups(counts: impl Fn(u32) -> bool) -> BTreeSet<PathBuf> {
    let supervisor = |group: &PathBuf| {
        group.file_name()?.to_str()?.strip_prefix("regatta-")?.parse::<u32>().ok()
    };
    // One may have been removed meanwhile.
    let groups = own_groups().into_iter().filter_map(|own| fs::read_dir(own).ok());
    let groups = groups.flatten().flatten().map(|entry| entry.path());
    groups.filter(|group| supervisor(group).is_some_and(&counts)).collect()
}

/// Folders that may be the groups of this process, one of them in each hierarchy. In a container, a hierarchy may show
/// only the last part of a path (cgroups(7)). A search through all groups of the machine would take a tenth of a second.
fn own_groups() -> BTreeSet<PathBuf> {
    let root = PathBuf::from("/sys/fs/cgroup");
    let below = fs::read_dir(&root).into_iter().flatten().flatten().map(|entry| entry.path());
    let hierarchies: Vec<PathBuf> = below.chain([root]).collect();
    let memberships = fs::read_to_string("/proc/self/cgroup").unwrap();
    let mut found = BTreeSet::new();
    for path in memberships.lines().filter_map(|line| line.splitn(3, ':').nth(2)) {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        for skipped in 0..=parts.len() {
            let end = parts[skipped..].join("/");
            found.extend(hierarchies.iter().map(|hierarchy| hierarchy.join(&end)));
        }
    }
    found
}

/// Polls a condition until it is true. Panics after [`LIMIT`].
#[track_caller]
pub fn until(what: &str, condition: impl FnMut() -> bool) {
    until_within(LIMIT, what, condition);
}
