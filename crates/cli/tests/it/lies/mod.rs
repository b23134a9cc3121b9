//! `regatta load` against small servers that lie or fail: whether it finds the fault, and whether its
//! message describes it. Each server does at most one thing wrong, so nothing else can explain the exit
//! status.
//!
//! With `REGATTA_BINARY` the tests run another build of the program, e.g. an older one, to show that a
//! test fails without its change.

mod cheats;
mod churn;
mod closes;
mod faults;
mod heads;
mod json;
mod memory;
mod open;
mod progress;
mod server;
mod shown;
mod surplus;
mod tls;
mod tolerate;
mod unreachable;

use std::{
    env,
    ffi::OsString,
    io::Read,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// No load of these tests takes longer, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// Returns a command for the program under test.
fn regatta() -> Command {
    let built = || OsString::from(env!("CARGO_BIN_EXE_regatta"));
    Command::new(env::var_os("REGATTA_BINARY").unwrap_or_else(built))
}

/// The result of a load.
#[derive(Debug)]
struct Ended {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs `regatta load URL` with more arguments. Kills it after the deadline; then it has no status.
fn load(url: &str, more: &[&str]) -> Ended {
    let mut command = regatta();
    command.args(["load", url]).args(more);
    run(command)
}

fn run(mut command: Command) -> Ended {
    let until = Instant::now() + DEADLINE;
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (stdout, stderr, status) = thread::scope(|scope| {
        let stdout = scope.spawn(|| read(&mut out));
        let stderr = scope.spawn(|| read(&mut err));
        let status = wait(&mut child, until);
        (stdout.join().unwrap(), stderr.join().unwrap(), status)
    });
    Ended { status, stdout, stderr }
}

fn read(from: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the exit status, or `None` if a signal ended the process. Kills it after `until`.
fn wait(child: &mut Child, until: Instant) -> Option<i32> {
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if Instant::now() > until {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

impl Ended {
    fn with_status(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "{}{}", self.stdout, self.stderr);
        self
    }

    /// Returns everything that was printed.
    fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Returns the value of a line such as `errors      none`.
    fn line(&self, name: &str) -> &str {
        let line = self.stdout.lines().find_map(|line| line.trim_start().strip_prefix(name));
        line.unwrap_or_else(|| panic!("no line {name:?} in {}", self.text())).trim()
    }

    /// Parses the output of `--json -`.
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
