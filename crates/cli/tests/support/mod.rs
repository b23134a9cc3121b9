//! Starting the built binary as a server, and waiting for conditions.
#![allow(dead_code)] // each test file uses its own part

use std::{
    io::{BufRead, BufReader, Read},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

/// Every model with and without its by-hand form: `(model, extra arguments)`.
pub const MODELS: [&str; 4] = ["threads", "epoll", "green", "async"];

/// Longest wait for anything in these tests.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// A server of ours, killed and reaped when dropped.
pub struct Server {
    pub child: Child,
    pub addr: SocketAddr,
}

impl Server {
    /// `regatta serve double --model MODEL`, with more arguments.
    pub fn double(model: &str, more: &[&str]) -> Server {
        let args = [&["serve", "double", "--model", model][..], more].concat();
        let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
        command.args(args);
        Server::start(command)
    }

    /// Starts `command` and waits for its `listening on ADDR`.
    pub fn start(mut command: Command) -> Server {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let addr = line.trim().strip_prefix("listening on ").expect("tells where it listens");
        Server { addr: addr.parse().unwrap(), child }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Waits for its end.
    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the server ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// CPU time used so far.
    pub fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a condition, polling, up to the deadline.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < end, "waited {DEADLINE:?} in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Reads exactly as many bytes as are expected, and compares.
pub fn expect(stream: &mut TcpStream, expected: &[u8]) {
    let mut got = vec![0; expected.len()];
    if let Err(error) = stream.read_exact(&mut got) {
        panic!("expected {:?}, but: {error}", expected.escape_ascii().to_string());
    }
    assert_eq!(got.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

/// The server has closed: nothing more comes.
pub fn expect_end(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("expected the end, but: {error}"),
    }
    assert_eq!(rest.escape_ascii().to_string(), "", "expected the end");
}
