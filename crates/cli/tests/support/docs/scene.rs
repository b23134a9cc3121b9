//! The folder in which the commands of a page run, with free ports, a deadline for each block, and a stop of
//! all that the commands started.

use super::root;
use regatta_testkit::port;
use regex::Regex;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::HashMap,
    fs::{self, File},
    net::TcpStream,
    os::unix::{fs::symlink, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Deadline of a block of commands.
const DEADLINE: Duration = Duration::from_secs(90);

/// Deadline of a server's graceful stop.
const STOP: Duration = Duration::from_secs(20);

/// The folder of a page's commands.
pub struct Scene {
    folder: TempDir,
    /// The free port that stands for a port of the page.
    ports: HashMap<String, u16>,
    /// In the environment of every process that the page's commands start.
    mark: String,
    /// Servers that are not regatta's.
    others: Vec<Child>,
}

/// How a block of commands ended.
pub struct Ended {
    /// The exit status, or `None` if the block was killed at its deadline or by a signal.
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Scene {
    /// A new folder.
    pub fn new() -> Scene {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("state")).expect("a folder");
        fs::create_dir_all(folder.path().join("page")).expect("a folder");
        // The commands are those of somebody in a clone.
        symlink(root().join("workloads"), folder.path().join("page/workloads")).expect("a link");
        let mark = format!("{}-{count}", std::process::id());
        Scene { folder, ports: HashMap::new(), mark, others: Vec::new() }
    }

    /// The path of a file of the page.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("page").join(name)
    }

    /// Writes a file, with the ports of this scene.
    pub fn write(&mut self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, self.with_free_ports(text)).expect("a file");
    }

    /// Runs commands with bash until they end. `settings` are environment variables.
    pub fn run(&mut self, commands: &str, settings: &[(&str, &str)]) -> Ended {
        let (out, err) = (self.folder.path().join("stdout"), self.folder.path().join("stderr"));
        let mut bash = self.bash(commands, &out, &err);
        let mut child = bash.envs(settings.iter().copied()).spawn().expect("bash starts");
        let end = Instant::now() + DEADLINE;
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status.code();
            }
            if Instant::now() > end {
                self.kill_all();
                child.wait().expect("a child");
                break None;
            }
            thread::sleep(Duration::from_millis(5));
        };
        let read = |path| String::from_utf8_lossy(&fs::read(path).expect("output")).into_owned();
        Ended { status, stdout: read(out), stderr: read(err) }
    }

    /// Starts a server and waits until it accepts connections on `port`, a port of the page. Fails with its
    /// output if it does not.
    pub fn serve(&mut self, command: &str, port: &str) -> Result<(), String> {
        let log = self.folder.path().join(format!("state/log-{port}"));
        let addr = self.with_free_ports(&format!("127.0.0.1:{port}"));
        let mut bash = self.bash(&format!("exec {}", command.trim()), &log, &log);
        let mut child = bash.spawn().expect("bash starts");
        let end = Instant::now() + STOP;
        while TcpStream::connect(&addr).is_err() {
            let has_ended = child.try_wait().expect("a child").is_some();
            if has_ended || Instant::now() > end {
                let _ = child.kill();
                let _ = child.wait();
                let log = fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("does not listen on {addr}: {command}: {log}"));
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.others.push(child);
        Ok(())
    }

    /// Returns a command that runs `commands` with bash in the page's folder.
    fn bash(&mut self, commands: &str, out: &Path, err: &Path) -> Command {
        let commands = self.with_free_ports(commands);
        let stand_ins = root().join("crates/cli/tests/support/docs/bin");
        let path = std::env::var("PATH").expect("PATH");
        let mut bash = Command::new("bash");
        bash.args(["-euc", &commands])
            .current_dir(self.folder.path().join("page"))
            .env("PATH", format!("{}:{path}", stand_ins.display()))
            .env("DOCS_REGATTA", env!("CARGO_BIN_EXE_regatta"))
            .env("DOCS_ROOT", root())
            .env("DOCS_STATE", self.folder.path().join("state"))
            .env("DOCS_SCENE", &self.mark)
            .stdin(Stdio::null())
            .stdout(File::create(out).expect("a file"))
            .stderr(File::create(err).expect("a file"))
            .process_group(0);
        bash
    }

    /// Stops the servers, in the reverse order of their starts. Returns what went wrong: servers that did
    /// not stop with exit status 0, and other processes that the commands left behind.
    pub fn stop(mut self) -> Vec<String> {
        let mut wrong = Vec::new();
        for mut other in self.others.drain(..).rev() {
            other.kill().expect("a child");
            other.wait().expect("a child");
        }
        let servers = fs::read_to_string(self.folder.path().join("state/servers"));
        for line in servers.unwrap_or_default().lines().rev() {
            // `bin/regatta` starts servers with a parent of their own, which keeps their exit status.
            let (server, parent) = line.split_once(' ').expect("a server and its parent");
            let [server, parent] = [server, parent].map(|pid| {
                Pid::from_raw(pid.parse().expect("a process ID")).expect("a process ID")
            });
            // It may have ended.
            let _ = kill_process(server, Signal::TERM);
            if !self.is_gone_within(STOP, parent) {
                let _ = kill_process(server, Signal::KILL);
                self.is_gone_within(STOP, parent);
            }
            let status =
                self.folder.path().join(format!("state/status-{}", server.as_raw_nonzero()));
            let status = fs::read_to_string(status).unwrap_or_default();
            if status.trim() != "0" {
                wrong.push(format!("a server stopped with {:?}, expected status 0", status.trim()));
            }
        }
        let left = self.kill_all();
        wrong.extend(left.into_iter().map(|command| format!("left behind: {command}")));
        wrong
    }

    /// Kills all processes of this scene. Returns their command lines.
    fn kill_all(&self) -> Vec<String> {
        let mut killed = Vec::new();
        for entry in fs::read_dir("/proc").expect("/proc") {
            let path = entry.expect("an entry").path();
            let pid = path.file_name().and_then(|name| name.to_str()?.parse().ok());
            let Some(pid) = pid.and_then(Pid::from_raw) else { continue };
            if self.is_ours(pid) {
                let command = fs::read(path.join("cmdline")).unwrap_or_default();
                killed.push(String::from_utf8_lossy(&command).replace('\0', " "));
                let _ = kill_process(pid, Signal::KILL);
                self.is_gone_within(STOP, pid);
            }
        }
        killed
    }

    /// Whether this scene started a process and it still runs. One that has exited has no environment.
    fn is_ours(&self, pid: Pid) -> bool {
        let mark = format!("DOCS_SCENE={}", self.mark);
        let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
        environment.unwrap_or_default().split(|byte| *byte == 0).any(|one| one == mark.as_bytes())
    }

    /// Waits until a process of this scene has exited. Returns whether it has.
    fn is_gone_within(&self, limit: Duration, pid: Pid) -> bool {
        let end = Instant::now() + limit;
        while self.is_ours(pid) {
            if Instant::now() > end {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Replaces the ports of addresses of this machine by free ones, the same ones in the whole page.
    pub fn with_free_ports(&mut self, text: &str) -> String {
        let address =
            Regex::new(r"(?:127\.0\.0\.1|localhost|0\.0\.0\.0):([1-9]\d{2,4})\b").unwrap();
        for found in address.captures_iter(text) {
            self.ports.entry(found[1].to_owned()).or_insert_with(port::free);
        }
        let mut text = text.to_owned();
        for (port, free) in &self.ports {
            let whole = Regex::new(&format!(r"\b{port}\b")).unwrap();
            text = whole.replace_all(&text, free.to_string()).into_owned();
        }
        text
    }
}
