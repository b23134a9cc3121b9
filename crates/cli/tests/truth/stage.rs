//! The stage for the tests: one test at a time, servers on one CPU and the load on another, and a
//! deadline for every process.

use crate::support::{
    Server,
    cpus::{on_cpu, two_cpus},
};
use regatta_record::LoadResult;
use std::{
    env,
    fs::{self, File},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Returns whether the full form is requested (`REGATTA_TRUTH=full`).
pub fn is_full() -> bool {
    let full = env::var("REGATTA_TRUTH").is_ok_and(|size| size == "full");
    assert!(
        !full || !cfg!(debug_assertions),
        "figures of a debug build mean nothing: use --release"
    );
    full
}

/// The turn of a test: while one is held, no other test runs.
pub struct Turn {
    /// The servers' CPU.
    pub server_cpu: u32,
    /// The load's CPU.
    pub load_cpu: u32,
    _alone: MutexGuard<'static, ()>,
}

/// Waits for the turn. Prints a message and returns `None` if there are not two CPUs: the results are
/// not known if the load takes its server's CPU.
pub fn turn() -> Option<Turn> {
    static ALONE: Mutex<()> = Mutex::new(());
    // A test that failed has stopped its servers, so a poisoned lock can be used.
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    match two_cpus() {
        Some((server_cpu, load_cpu)) => Some(Turn { server_cpu, load_cpu, _alone }),
        None => {
            eprintln!("skipped: server and load need one CPU each, and there is only one");
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

    /// Like [`Turn::load`], with another protocol.
    pub fn load_by(&self, scheme: &str, server: &Server, more: &str) -> Loaded {
        let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
        let (url, pid) = (format!("{scheme}://{}", server.addr), server.child.id().to_string());
        command.args(["load", &url, "--pid", &pid, "--json", "-"]);
        command.args(["--cpus", &self.load_cpu.to_string()]).args(more.split_whitespace());
        let ended = run(command, Duration::from_secs(90));
        let result = serde_json::from_str(&ended.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", ended.stdout, ended.stderr));
        Loaded { code: ended.code(), result }
    }

    /// Starts a process that only takes the CPU of the load. It is killed when dropped.
    pub fn spinner(&self) -> Spinner {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Spinner(on_cpu(self.load_cpu, || command.spawn().unwrap()))
    }
}

/// The result of `regatta load`.
pub struct Loaded {
    /// Its exit status.
    pub code: i32,
    /// Its JSON.
    pub result: LoadResult,
}

/// A busy process: see [`Turn::spinner`].
pub struct Spinner(Child);

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A process that has exited, and its output.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("killed: {self:?}"))
    }
}

/// Runs a command until it exits. Kills it, and fails the test, after `limit`.
pub fn run(mut command: Command, limit: Duration) -> Ended {
    let folder = TempDir::new().unwrap();
    let (stdout, stderr) = (folder.path().join("stdout"), folder.path().join("stderr"));
    // Files, not pipes, so that the command does not block if nothing reads its output.
    command.stdout(File::create(&stdout).unwrap()).stderr(File::create(&stderr).unwrap());
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + limit;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                let said = fs::read_to_string(&stderr).unwrap();
                panic!("{command:?} did not exit within {limit:?}: {said}");
            }
        }
    };
    let read = |path| fs::read_to_string(path).unwrap();
    Ended { status, stdout: read(&stdout), stderr: read(&stderr) }
}
