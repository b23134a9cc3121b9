//! Every peer that speaks `double` and can run here answers the transcripts, holds back a client
//! that does not read, and leaves no process behind.
//!
//! A peer whose programs are missing is skipped, and said so.

mod transcript;

use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group},
};
use serde::Deserialize;
use std::{
    env, fs,
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

#[derive(Deserialize)]
struct Manifest {
    name: String,
    workloads: Vec<String>,
    needs: Vec<String>,
    #[serde(default)]
    setup: Vec<String>,
    start: Vec<String>,
}

#[test]
fn every_peer_found_here_answers_the_transcripts_of_double() {
    let transcripts = transcript::load_dir(&root().join("conformance/double"));
    let failures: Vec<_> = peers()
        .iter()
        .flat_map(|peer| {
            let mut server = Server::start(peer);
            let wrong: Vec<_> =
                transcripts.iter().filter_map(|t| transcript::play(t, server.addr).err()).collect();
            server.stop();
            wrong.into_iter().map(|e| format!("{}: {e}", peer.1.name))
        })
        .collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn a_client_that_does_not_read_is_held_back_and_loses_nothing() {
    const REQUESTS: &[u8] = b"1234567\n";
    const ANSWERS: &[u8] = b"2469134\n";
    /// Far above what the two ends' socket buffers may hold together.
    const TOO_MUCH: usize = 96 << 20;
    for peer in peers() {
        let name = &peer.1.name;
        let mut server = Server::start(&peer);
        let mut stream = TcpStream::connect(server.addr).expect("a connection");
        stream.set_write_timeout(Some(Duration::from_millis(500))).expect("a timeout");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");

        let block = REQUESTS.repeat(8192);
        let mut sent = 0;
        loop {
            match stream.write(&block[sent % REQUESTS.len()..]) {
                Ok(n) => sent += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => panic!("{name}: expected the write to block, got {e}"),
            }
            assert!(sent < TOO_MUCH, "{name} took {sent} bytes from a client that does not read");
        }

        let mut answers = vec![0; block.len()];
        let mut left = sent / REQUESTS.len() * ANSWERS.len();
        let expected = ANSWERS.repeat(8192);
        while left > 0 {
            let part = left.min(answers.len());
            stream
                .read_exact(&mut answers[..part])
                .unwrap_or_else(|e| panic!("{name}: {left} bytes of answers missing: {e}"));
            assert!(answers[..part] == expected[..part], "{name}: a wrong answer");
            left -= part;
        }
        server.stop();
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The peers of `double` whose programs are here, built.
fn peers() -> Vec<(PathBuf, Manifest)> {
    let folders = fs::read_dir(root().join("peers")).expect("the folder of peers");
    let mut found: Vec<_> = folders
        .map(|folder| folder.expect("a directory entry").path())
        .filter(|folder| folder.join("manifest.toml").exists())
        .map(|folder| {
            let text = fs::read_to_string(folder.join("manifest.toml")).expect("a manifest");
            let manifest: Manifest = toml::from_str(&text).expect("a manifest");
            (folder, manifest)
        })
        .filter(|(_, manifest)| manifest.workloads.iter().any(|w| w == "double"))
        .filter(|(_, manifest)| {
            let missing = manifest.needs.iter().find(|program| !on_path(program));
            if let Some(program) = missing {
                eprintln!("{}: skipped, {program} is not here (scripts/setup)", manifest.name);
            }
            missing.is_none()
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    for (folder, manifest) in &found {
        for command in &manifest.setup {
            let status = Command::new("sh").args(["-c", command]).current_dir(folder).status();
            assert!(status.expect("a shell").success(), "{}: {command} failed", manifest.name);
        }
    }
    found
}

fn on_path(program: &str) -> bool {
    env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(|d| d.join(program).exists())
}

/// A peer that runs, in a process group of its own.
struct Server {
    name: String,
    addr: SocketAddr,
    child: Child,
}

impl Server {
    fn start((folder, manifest): &(PathBuf, Manifest)) -> Server {
        let addr = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|free| free.local_addr())
            .expect("a free port");
        let port = addr.port().to_string();
        let start: Vec<_> = manifest
            .start
            .iter()
            .map(|part| part.replace("{port}", &port).replace("{cores}", "2"))
            .collect();
        let child = Command::new(&start[0])
            .args(&start[1..])
            .current_dir(folder)
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|e| panic!("{}: {start:?}: {e}", manifest.name));
        let server = Server { name: manifest.name.clone(), addr, child };
        server.within_ten_seconds("listen", || TcpStream::connect(addr).is_ok());
        server
    }

    /// Ends the peer as a race does, and checks that all of it ends.
    fn stop(&mut self) {
        kill_process(self.pid(), Signal::TERM).expect("a process to end");
        let mut child_ended = false;
        let pid = self.pid();
        let deadline = Instant::now() + Duration::from_secs(10);
        while !child_ended && Instant::now() < deadline {
            child_ended = self.child.try_wait().expect("a child").is_some();
            thread::sleep(Duration::from_millis(1));
        }
        assert!(child_ended, "{}: expected it to end on SIGTERM within 10 s", self.name);
        self.within_ten_seconds("leave no process behind", || {
            test_kill_process_group(pid) == Err(Errno::SRCH)
        });
        assert!(TcpStream::connect(self.addr).is_err(), "{}: the port still answers", self.name);
    }

    fn within_ten_seconds(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !holds() {
            assert!(Instant::now() < deadline, "{}: expected it to {what} within 10 s", self.name);
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Server {
    /// After a failure too, nothing is left running.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = kill_process_group(self.pid(), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
