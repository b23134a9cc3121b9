//! Child processes of tests: run until they exit, or until a deadline.

use std::{
    borrow::BorrowMut,
    env,
    fs::File,
    io::{self, Read, Seek, Write},
    ops::{Deref, DerefMut},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A process that has exited, and its output.
#[derive(Debug)]
pub struct Ended {
    /// The command, for messages.
    pub command: String,
    /// Its exit status.
    pub status: ExitStatus,
    /// All that it wrote to stdout.
    pub stdout: String,
    /// All that it wrote to stderr.
    pub stderr: String,
}

impl Ended {
    /// Returns the exit code. Panics if a signal killed the process.
    #[track_caller]
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("killed: {self:?}"))
    }

    /// Checks the exit code.
    #[track_caller]
    pub fn with_status(self, code: i32) -> Ended {
        assert_eq!(self.code(), code, "{self:?}");
        self
    }
}

/// Of a command that the test started by itself.
impl From<Output> for Ended {
    fn from(Output { status, stdout, stderr }: Output) -> Ended {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ended { command: String::new(), status, stdout: text(stdout), stderr: text(stderr) }
    }
}

/// A child process, killed and reaped when dropped.
#[derive(Debug)]
pub struct Killed(pub Child);

impl Killed {
    /// Starts it without stdin.
    #[track_caller]
    pub fn start(command: &mut Command) -> Killed {
        match command.stdin(Stdio::null()).spawn() {
            Ok(child) => Killed(child),
            Err(error) => panic!("{command:?}: {error}"),
        }
    }
}

impl Deref for Killed {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Killed {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command until it exits, without stdin. Kills it, and panics with its stderr, after `limit`.
#[track_caller]
pub fn run_within(limit: Duration, mut command: impl BorrowMut<Command>) -> Ended {
    let command: &mut Command = command.borrow_mut();
    // Files, not pipes, so that the command does not block if nothing reads its output.
    let (mut stdout, mut stderr) = (unnamed_file(), unnamed_file());
    command.stdout(stdout.try_clone().unwrap()).stderr(stderr.try_clone().unwrap());
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let status = exit_within(limit, &mut child);
    let (stdout, stderr) = (text(&mut stdout), text(&mut stderr));
    match status {
        Some(status) => Ended { command: format!("{command:?}"), status, stdout, stderr },
        None => panic!("{command:?} did not exit within {limit:?}: {stderr}"),
    }
}

/// Waits until a child exits. Kills and reaps it, and returns `None`, after `limit`.
pub fn exit_within(limit: Duration, child: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return Some(status),
            None if Instant::now() < deadline => thread::sleep(Duration::from_millis(2)),
            None => {
                // It may exit at this moment.
                let _ = child.kill();
                child.wait().unwrap();
                return None;
            }
        }
    }
}

/// Returns the path of an example of the calling test's package: a program that only the tests start. Cargo
/// builds it with the tests, unless only one target is tested (`cargo test --test it`).
#[track_caller]
pub fn example(name: &str) -> PathBuf {
    // target/debug/deps/it-0123456789abcdef
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.set_file_name("examples");
    path.push(name);
    assert!(path.is_file(), "{} is not built yet: cargo build --example {name}", path.display());
    path
}

/// Runs a test in a process of its own, because it changes the state of its process: the calling test starts its
/// program again with only itself. It has no other statement but one that takes its turn, which both processes take:
/// `test` must not take it again. Fails if that fails or takes longer than `limit`.
#[track_caller]
pub fn in_own_process(limit: Duration, test: impl FnOnce()) {
    const MARK: &str = "TESTKIT_OWN_PROCESS";
    if env::var_os(MARK).is_some() {
        return test();
    }
    let thread = thread::current();
    let name = thread.name().expect("the harness names the thread of a test");
    let mut command = Command::new(env::current_exe().unwrap());
    // With one thread, the harness would not name it.
    command.args(["--exact", name, "--nocapture", "--test-threads=2"]).env(MARK, "1");
    let ended = run_within(limit, command);
    println!("{}", ended.stdout);
    for line in ended.stderr.lines() {
        match line.starts_with("skipped: ") {
            // Not by eprintln!, which the harness captures.
            true => drop(writeln!(io::stderr(), "{line}")),
            false => eprintln!("{line}"),
        }
    }
    assert!(ended.status.success(), "{name} failed; its output is above");
    assert!(ended.stdout.contains("1 passed"), "{name} did not run");
}

/// A file that is removed as soon as it exists.
fn unnamed_file() -> File {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("testkit-{}-{count}", std::process::id()));
    let file = File::options().read(true).append(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}
