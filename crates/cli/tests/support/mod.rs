//! Starts the built binary as a server, and waits for conditions.
#![allow(dead_code, unused_imports, reason = "each of the two programs uses its own part")]

pub mod action;
pub mod conformance;
pub mod connections;
pub mod contender;
pub mod cpus;
pub mod docs;
pub mod example;
pub mod hello;
pub mod hub;
pub mod hubs;
pub mod lab;
pub mod liar;
pub mod processes;
pub mod race;
pub mod serial;
pub mod shard;
pub mod transcript;

use regatta_serve::Model;
use regatta_testkit::{
    child::{Ended, run_within},
    skip,
};
pub use regatta_testkit::{
    client::{expect, expect_end},
    deadline::{DEADLINE, until, until_within},
};
use rustix::{
    io::Errno,
    process::{Pid, test_kill_process_group},
};
use std::{
    borrow::BorrowMut,
    fs,
    io::{BufRead, BufReader, ErrorKind, Write},
    net::{SocketAddr, TcpStream},
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

/// Returns every model that runs on this machine, and reports that the test is skipped for the others.
pub fn models() -> Vec<&'static str> {
    let mut all = Model::ALL.to_vec();
    all.retain(|model| match model.refused() {
        Some(why) => {
            skip(&format!("{}: {why}", model.name()));
            false
        }
        None => true,
    });
    all.into_iter().map(Model::name).collect()
}

/// Calls `test` with a model, unless this machine lacks what the model needs. `name` is the model's, or that with
/// `on_` before it.
pub fn on_model(name: &str, test: impl FnOnce(&'static str)) {
    let name = name.strip_prefix("on_").unwrap_or(name);
    let model = Model::ALL.into_iter().find(|model| model.name() == name).expect("a model");
    match model.refused() {
        Some(why) => skip(&why.to_string()),
        None => test(model.name()),
    }
}

/// Declares a test for each of these models, in a module with the name of the function `fn(model: &'static str)`
/// that it calls. An attribute before the name of the function is that of each test.
macro_rules! on_models {
    ($test:ident: $($name:ident),+) => {
        $crate::support::on_models! { #[cfg(test)] $test: $($name),+ }
    };
    (#[$attribute:meta] $test:ident: $($name:ident),+) => {
        mod $test {
            $(
                #[test]
                #[$attribute]
                fn $name() {
                    $crate::support::on_model(stringify!($name), super::$test);
                }
            )+
        }
    };
}
pub(crate) use on_models;

/// The command `regatta WORDS`. The arguments are those of `format!`, whose text has the words; none has a space.
macro_rules! regatta {
    ($($words:tt)*) => { $crate::support::program(&format!($($words)*)) };
}
pub(crate) use regatta;

/// See [`regatta!`].
pub fn program(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
    command.args(words.split_whitespace());
    command
}

/// Runs a command until it exits. Kills it, and panics with its stderr, after two minutes.
#[track_caller]
pub fn run(command: impl BorrowMut<Command>) -> Ended {
    run_within(Duration::from_secs(120), command)
}

/// Runs a command whose arguments are wrong: it exits with status 2. Returns what it prints to stderr.
#[track_caller]
pub fn refused(command: impl BorrowMut<Command>) -> String {
    run(command).with_status(2).stderr
}

/// Parses the output of `--json -`.
#[track_caller]
pub fn json(ended: &Ended) -> serde_json::Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// A running regatta server, killed and reaped when dropped.
pub struct Server {
    pub child: Child,
    pub addr: SocketAddr,
}

impl Server {
    /// Starts `regatta serve double --model MODEL` with more arguments.
    pub fn double(model: &str, more: &[&str]) -> Server {
        Server::of("double", model, more)
    }

    /// Starts `regatta serve SERVICE --model MODEL` with more arguments. Unless these set `--max-connections`,
    /// `prefork` gets 32 processes instead of 256, which start and end faster.
    pub fn of(service: &str, model: &str, more: &[&str]) -> Server {
        let few: &[&str] = match model == "prefork" && !more.contains(&"--max-connections") {
            true => &["--max-connections", "32"],
            false => &[],
        };
        let args = [&["serve", service, "--model", model][..], more, few].concat();
        Server::start(regatta!("").args(args))
    }

    /// Starts `command` and waits for its line `listening on ADDR`.
    pub fn start(mut command: impl BorrowMut<Command>) -> Server {
        let command: &mut Command = command.borrow_mut();
        let mut child = command.stdout(Stdio::piped()).process_group(0).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let addr = line.trim().strip_prefix("listening on ").expect("`listening on ADDR`");
        Server { addr: addr.parse().unwrap(), child }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Sends a signal to the server's main process, not to its children.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Sends a signal to all of the server's processes, as a terminal does.
    pub fn signal_all(&self, name: &str) {
        let group = format!("-{}", self.child.id());
        assert!(Command::new("kill").args([name, "--", &group]).status().unwrap().success());
    }

    /// Waits until the server exits.
    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the server ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Memory of all its processes in bytes, shared pages counted once. Excludes the pages of the
    /// program, because other tests' servers share them.
    pub fn memory(&self) -> u64 {
        let of_one = |(pid, _): (u32, Vec<String>)| {
            let rollup =
                fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
            let counts =
                |line: &&str| line.starts_with("Pss_Anon:") || line.starts_with("Pss_Shmem:");
            let kib = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
            rollup.lines().filter(counts).filter_map(kib).sum::<u64>()
        };
        self.processes().into_iter().map(of_one).sum::<u64>() * 1024
    }

    /// CPU time used so far by its running processes.
    pub fn cpu(&self) -> Duration {
        let ticks = |(_, stat): &(u32, Vec<String>)| -> u64 {
            stat[11].parse::<u64>().unwrap() + stat[12].parse::<u64>().unwrap()
        };
        Duration::from_millis(self.processes().iter().map(ticks).sum::<u64>() * 10)
    }

    /// All processes of its process group: their IDs, and the fields of /proc/PID/stat from the third
    /// (proc_pid_stat(5)).
    pub fn processes(&self) -> Vec<(u32, Vec<String>)> {
        let group = self.child.id().to_string();
        let of_one = |entry: fs::DirEntry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let fields = stat.rsplit(')').next()?;
            let is_own = fields.split_whitespace().nth(2) == Some(&group);
            is_own.then(|| (pid, fields.split_whitespace().map(String::from).collect()))
        };
        fs::read_dir("/proc").unwrap().filter_map(|entry| of_one(entry.ok()?)).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Most servers are one process, and then nobody is left in its group. To know more reads all of /proc.
        let group = Pid::from_child(&self.child);
        let is_empty = test_kill_process_group(group) == Err(Errno::SRCH);
        if !is_empty && !thread::panicking() {
            // A zombie has exited. Its parent may reap it later.
            until("the server's processes have exited", || {
                self.processes().iter().all(|(_, stat)| stat[0] == "Z")
            });
        }
    }
}

/// Sends the same request again and again, until the server has taken nothing for half a second. Returns how many bytes it
/// has taken.
pub fn send_until_stuck(mut stream: &TcpStream, request: &[u8]) -> usize {
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let chunk = request.repeat(1 + (1 << 14) / request.len());
    let mut sent = 0;
    loop {
        assert!(sent < 1 << 28, "the server never stops reading");
        match stream.write(&chunk[sent % request.len()..]) {
            Ok(wrote) => sent += wrote,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    stream.set_write_timeout(None).unwrap();
    sent
}

/// Says that something is over when it is dropped, also if the test fails.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Runs `test` for every model at once, with shared and with hand-written code. Names those that fail.
pub fn on_every_model(test: impl Fn(&str, &[&str]) + Sync) {
    at_once(&[&[], &["--by-hand"]], test);
}

/// Runs `test` for every model at once, for services without hand-written code.
pub fn on_every_shared(test: impl Fn(&str) + Sync) {
    at_once(&[&[]], |model, _| test(model));
}

/// Runs `test` for each model and form in a thread named after them, so that messages name the model.
fn at_once(forms: &[&[&str]], test: impl Fn(&str, &[&str]) + Sync) {
    let test = &test;
    let failed: Vec<String> = thread::scope(|scope| {
        let ways = models().into_iter().flat_map(|m| forms.iter().map(move |&more| (m, more)));
        let running: Vec<_> = ways
            .map(|(model, more)| {
                let name = [&[model], more].concat().join(" ");
                let thread = thread::Builder::new().name(name.clone());
                (name, thread.spawn_scoped(scope, move || test(model, more)).unwrap())
            })
            .collect();
        let ended = running.into_iter().map(|(name, thread)| (name, thread.join()));
        ended.filter(|(_, result)| result.is_err()).map(|(name, _)| name).collect()
    });
    assert!(failed.is_empty(), "failed on {}; the messages are above", failed.join(", "));
}
