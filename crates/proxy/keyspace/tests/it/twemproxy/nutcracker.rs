//! A real nutcracker, and a client for it.

use regatta_testkit::{
    child::Killed,
    deadline::{DEADLINE, until},
};
use std::{
    fmt::Write as _,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A pool of the configuration.
pub struct Pool {
    pub hash: &'static str,
    pub distribution: &'static str,
    pub tag: Option<&'static str>,
    /// Server lines of twemproxy's configuration.
    pub servers: Vec<String>,
}

/// A running nutcracker. It stops when dropped.
pub struct Nutcracker {
    child: Killed,
    folder: PathBuf,
}

impl Nutcracker {
    /// Starts the program with these pools in an empty directory, and waits until all of them
    /// listen.
    pub fn start(program: &Path, folder: &Path, pools: &[Pool]) -> Nutcracker {
        fs::write(folder.join("nutcracker.yml"), configuration(folder, pools)).expect("a file");
        // It needs a port for its statistics, and cannot choose one itself. If another program
        // takes the port meanwhile, nutcracker exits, and the next port is tried.
        for _ in 0..5 {
            let free = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = free.local_addr().expect("an address").port();
            drop(free);
            let mut command = Command::new(program);
            command
                .args(["--conf-file", "nutcracker.yml", "--output", "nutcracker.log"])
                .args(["--pid-file", "nutcracker.pid"])
                .args(["--stats-addr", "127.0.0.1", "--stats-port", &port.to_string()])
                .current_dir(folder)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let child = Killed::start(&mut command);
            let mut started = Nutcracker { child, folder: folder.to_owned() };
            if started.listens(pools.len()) {
                return started;
            }
        }
        let log = fs::read_to_string(folder.join("nutcracker.log")).unwrap_or_default();
        panic!("nutcracker exits at once:\n{log}");
    }

    /// Waits until all pools listen. Returns `false` if the program exits.
    fn listens(&mut self, pools: usize) -> bool {
        let mut has_ended = false;
        for pool in 0..pools {
            until(&format!("pool {pool} listens"), || {
                has_ended = self.child.try_wait().expect("its state").is_some();
                has_ended || UnixStream::connect(socket(&self.folder, pool)).is_ok()
            });
        }
        !has_ended
    }

    /// Connects to a pool.
    pub fn connect(&self, pool: usize) -> Client {
        let stream = UnixStream::connect(socket(&self.folder, pool)).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_write_timeout(Some(DEADLINE)).expect("a timeout");
        Client { replies: BufReader::new(stream) }
    }
}

fn socket(folder: &Path, pool: usize) -> PathBuf {
    folder.join(format!("{pool}.sock"))
}

fn configuration(folder: &Path, pools: &[Pool]) -> String {
    let mut text = String::new();
    for (number, pool) in pools.iter().enumerate() {
        writeln!(text, "pool{number}:").unwrap();
        writeln!(text, "  listen: {}", socket(folder, number).display()).unwrap();
        writeln!(text, "  hash: {}", pool.hash).unwrap();
        writeln!(text, "  distribution: {}", pool.distribution).unwrap();
        if let Some(tag) = pool.tag {
            writeln!(text, "  hash_tag: \"{tag}\"").unwrap();
        }
        writeln!(text, "  redis: true\n  auto_eject_hosts: false\n  servers:").unwrap();
        for server in &pool.servers {
            writeln!(text, "   - {server}").unwrap();
        }
    }
    text
}

/// A client of a pool.
pub struct Client {
    replies: BufReader<UnixStream>,
}

impl Client {
    /// Returns the numbers of the nodes to which the proxy sends GETs of these keys.
    pub fn nodes(&mut self, keys: &[Vec<u8>]) -> Vec<usize> {
        let mut requests = Vec::new();
        for key in keys {
            requests.extend_from_slice(format!("*2\r\n$3\r\nGET\r\n${}\r\n", key.len()).as_bytes());
            requests.extend_from_slice(key);
            requests.extend_from_slice(b"\r\n");
        }
        self.replies.get_mut().write_all(&requests).expect("the proxy reads");
        keys.iter().map(|key| self.node(key)).collect()
    }

    fn node(&mut self, key: &[u8]) -> usize {
        let mut line = String::new();
        self.replies.read_line(&mut line).expect("a reply in time");
        let length = line.strip_prefix('$').and_then(|line| line.trim_end().parse().ok());
        let length: usize = length.unwrap_or_else(|| panic!("{line:?} for {}", key.escape_ascii()));
        let mut reply = vec![0; length + 2];
        self.replies.read_exact(&mut reply).expect("the complete reply");
        let reply = &reply[..length];
        let space = reply.iter().position(|byte| *byte == b' ').expect("number and key");
        assert_eq!(&reply[space + 1..], key, "the reply is for another key");
        std::str::from_utf8(&reply[..space]).expect("digits").parse().expect("a number")
    }
}
