//! Real redis-servers.

use super::client::Client;
use regatta_testkit::{child::Killed, deadline::until, port};
use std::{
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// The program of a node, unless another one is given.
pub const REDIS: &str = "redis-server";

/// A redis-server, killed and reaped when dropped.
pub struct Node {
    program: PathBuf,
    child: Option<Killed>,
    folder: TempDir,
    ip: Ipv4Addr,
    port: u16,
    more: Vec<String>,
}

impl Node {
    /// Starts a server on a port of its own, with more options.
    pub fn start(more: &[&str]) -> Node {
        Node::of(Path::new(REDIS), more)
    }

    /// Like [`Node::start`], with this program, which takes the options of redis-server.
    pub fn of(program: &Path, more: &[&str]) -> Node {
        let more = more.iter().map(ToString::to_string).collect();
        Node::start_at(program, (Ipv4Addr::LOCALHOST, port::free()), more)
    }

    /// Starts a server that serves only over TLS, with more options.
    pub fn start_tls(more: &[String]) -> Node {
        let port = port::free();
        let more = Node::with_tls(port, more);
        Node::start_at(Path::new(REDIS), (Ipv4Addr::LOCALHOST, port), more)
    }

    /// Restarts it on the same port.
    pub fn restart_tls(&mut self, more: &[String]) {
        self.kill();
        self.more = Node::with_tls(self.port, more);
        self.revive();
    }

    fn with_tls(port: u16, more: &[String]) -> Vec<String> {
        // The last `--port` counts.
        let own = ["--port".into(), "0".into(), "--tls-port".into(), port.to_string()];
        own.into_iter().chain(more.iter().cloned()).collect()
    }

    fn start_at(program: &Path, (ip, port): (Ipv4Addr, u16), more: Vec<String>) -> Node {
        let folder = tempfile::tempdir().expect("a folder");
        let mut node = Node { program: program.to_owned(), child: None, folder, ip, port, more };
        assert!(node.launch(), "its port is taken");
        node
    }

    /// Starts another server with the same port and options, on another address of this machine.
    pub fn moved_to(&self, ip: &str) -> Node {
        let ip = ip.parse().expect("an address");
        Node::start_at(&self.program, (ip, self.port), self.more.clone())
    }

    /// Starts the process. Returns whether it listens; `false` if it exits first, e.g. because the port
    /// is taken.
    fn launch(&mut self) -> bool {
        let mut command = Command::new(&self.program);
        command
            .args(["--port", &self.port.to_string(), "--bind", &self.ip.to_string(), "--save", ""])
            .args(["--logfile", "redis.log"])
            .args(&self.more)
            .current_dir(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = self.child.insert(Killed::start(&mut command));
        let mut listens = false;
        until("redis-server listens", || {
            let has_ended = child.try_wait().unwrap().is_some();
            listens = !has_ended && TcpStream::connect((self.ip, self.port)).is_ok();
            listens || has_ended
        });
        listens
    }

    /// The address on which it listens.
    pub fn addr(&self) -> SocketAddr {
        (self.ip, self.port).into()
    }

    /// Connects a new client.
    pub fn client(&self) -> Client {
        Client::connect(self.addr())
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Sends the server a signal, e.g. `STOP`.
    pub fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().expect("kill runs");
        assert!(sent.success());
    }

    /// Kills the server, like a crash.
    pub fn kill(&mut self) {
        self.child = None;
    }

    /// Restarts the server on the same port with other options, without its data.
    pub fn restart(&mut self, more: &[&str]) {
        self.kill();
        self.more = more.iter().map(ToString::to_string).collect();
        self.revive();
    }

    /// Restarts the server on the same port.
    pub fn revive(&mut self) {
        assert!(self.launch(), "its port was taken meanwhile");
    }
}
