//! Where the tests run: one at a time, servers on one CPU and the load on another, everything ended
//! after its time.

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

/// Whether the full form was asked for.
pub fn is_full() -> bool {
    let full = env::var("REGATTA_TRUTH").is_ok_and(|size| size == "full");
    assert!(!full || !cfg!(debug_assertions), "figures of a debug build mean nothing: --release");
    full
}

/// The turn of a test: while it is held no other one runs.
pub struct Turn {
    /// The servers' CPU.
    pub server_cpu: u32,
    /// The load's CPU.
    pub load_cpu: u32,
    _alone: MutexGuard<'static, ()>,
}

/// Waits for the turn. `None`, which is told, where there are not two CPUs: a load that takes its
/// server's CPU shows nothing that is known.
pub fn turn() -> Option<Turn> {
    static ALONE: Mutex<()> = Mutex::new(());
    // A test that failed has ended its servers all the same.
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    match two_cpus() {
        Some((server_cpu, load_cpu)) => Some(Turn { server_cpu, load_cpu, _alone }),
        None => {
            eprintln!("skipped: server and load need a CPU each, and there is one");
            None
        }
    }
}

impl Turn {
    /// `regatta serve double --model epoll`, with more arguments, on the servers' CPU.
    pub fn server(&self, more: &str) -> Server {
        on_cpu(self.server_cpu, || {
            Server::double("epoll", &more.split_whitespace().collect::<Vec<_>>())
        })
    }

    /// `regatta load` of the server, observed, from the load's CPU.
    pub fn load(&self, server: &Server, more: &str) -> Loaded {
        self.load_by("line", server, more)
    }

    /// The same by another protocol.
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

    /// A process that does nothing but take the CPU of the load; ended when dropped.
    pub fn spinner(&self) -> Spinner {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Spinner(on_cpu(self.load_cpu, || command.spawn().unwrap()))
    }
}

/// What `regatta load` said.
pub struct Loaded {
    /// Its exit status.
    pub code: i32,
    /// Its JSON.
    pub result: LoadResult,
}

/// See [`Turn::spinner`].
pub struct Spinner(Child);

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A process that has ended, and what it said.
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

/// Runs a command to its end; it is killed, and the test fails, after `limit`.
pub fn run(mut command: Command, limit: Duration) -> Ended {
    let folder = TempDir::new().unwrap();
    let (stdout, stderr) = (folder.path().join("stdout"), folder.path().join("stderr"));
    // Files, not pipes: nobody need read them for it to go on.
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
                panic!("{command:?} was not through after {limit:?}: {said}");
            }
        }
    };
    let read = |path| fs::read_to_string(path).unwrap();
    Ended { status, stdout: read(&stdout), stderr: read(&stderr) }
}
