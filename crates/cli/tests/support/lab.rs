//! Machines that `scripts/lab` makes out of network namespaces on this one.

use regatta_testkit::{child::exit_within, deadline::DEADLINE, skip};
use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

/// Only one lab can be up.
static TURN: Mutex<()> = Mutex::new(());

/// Waits until no other test of this program has a lab. `None`, and the test is skipped, without the rights for one.
pub fn turn() -> Option<MutexGuard<'static, ()>> {
    if !rustix::process::geteuid().is_root() {
        skip("network namespaces need root");
        return None;
    }
    // The lock guards no data, so a poisoned one can be used.
    Some(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// `scripts/lab`, without arguments.
pub fn script() -> Command {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new("scripts/lab");
    command.current_dir(checkout);
    command
}

/// The machines lab1, lab2, …, which are removed when dropped.
pub struct Lab {
    child: Child,
    /// The program that `REGATTA_SSH` names.
    pub ssh: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Lab {
    /// Makes machines with these options of `scripts/lab run`, separated by spaces. `None`, and the test is skipped,
    /// without the rights for it.
    pub fn up(options: &str) -> Option<Lab> {
        let turn = turn()?;
        let mut command = script();
        command.arg("run").args(options.split(' '));
        // Until the end of its stdin.
        command.args(["sh", "-c", "echo \"$REGATTA_SSH\"; exec cat"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut ssh = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ssh).unwrap();
        let ssh = PathBuf::from(ssh.trim());
        assert!(ssh.is_file(), "expected the program of REGATTA_SSH, got {ssh:?}");
        Some(Lab { child, ssh, _turn: turn })
    }

    /// A command that runs `line` in a shell on the machine `lab1` and so on.
    pub fn command(&self, machine: &str, line: &str) -> Command {
        let mut command = Command::new(&self.ssh);
        command.args(["-T", machine, line]);
        command
    }

    /// Cuts the cable of a machine.
    pub fn cut(&self, machine: &str) {
        let mut ip = Command::new("ip");
        ip.args(["-n", "regatta-switch", "link", "set", machine, "down"]);
        assert!(ip.status().unwrap().success());
    }

    /// The number of living processes on a machine that have this argument.
    pub fn processes(&self, machine: &str, argument: &str) -> usize {
        let network = |path: PathBuf| fs::metadata(path).map(|of| of.ino()).ok();
        let own = network(format!("/run/netns/regatta-{machine}").into());
        let is_there = |folder: &PathBuf| own.is_some() && network(folder.join("ns/net")) == own;
        let has_it = |folder: &PathBuf| {
            let line = fs::read(folder.join("cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
        };
        let folders = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        folders.filter(is_there).filter(has_it).count()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let status = exit_within(DEADLINE, &mut self.child);
        if !thread::panicking() {
            assert!(status.is_some_and(|status| status.success()), "scripts/lab: {status:?}");
        }
    }
}

/// What a lab has made that is still there: namespaces, the network interface, the folder.
pub fn left_behind() -> Vec<String> {
    let namespaces = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let namespaces = String::from_utf8(namespaces.stdout).unwrap();
    let mut left: Vec<String> =
        namespaces.lines().filter(|line| line.starts_with("regatta-")).map(String::from).collect();
    let paths = ["/sys/class/net/regatta-lab", "/tmp/regatta-lab"].map(PathBuf::from);
    left.extend(paths.iter().filter(|path| path.exists()).map(|path| path.display().to_string()));
    left
}
