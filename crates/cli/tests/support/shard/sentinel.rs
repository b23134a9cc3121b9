//! Real Redis Sentinels.

use super::{
    FAILOVER,
    client::Client,
    nodes::{Node, REDIS},
};
use crate::support::{until, until_within};
use regatta_testkit::{child::Killed, port};
use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// After so many milliseconds without an answer a server counts as down, and a failover that makes no progress is given
/// up: while a test wants one of the master `one`, and otherwise. Sentinels that get no CPU for as long see no answer of a
/// server that works, and fail over by themselves.
const EAGER: [u32; 2] = [500, 3_000];
const CALM: [u32; 2] = [600_000, 60_000];

/// A Sentinel, killed and reaped when dropped.
pub struct Sentinel {
    child: Killed,
    _folder: TempDir,
    port: u16,
}

impl Sentinel {
    /// Starts a Sentinel for masters with these names. Two must agree that one is down.
    fn start(masters: &[(&str, &Node)]) -> Sentinel {
        let port = port::free();
        let sentinel = Sentinel::start_with(masters, port, &format!("port {port}\n"));
        // It makes a master that has returned a replica after four of these periods and a look at it, which take up to
        // 18 s by default. Sentinels before 7.0 have no such command.
        Client::connect(sentinel.addr())
            .say("SENTINEL DEBUG INFO-PERIOD 1000 PUBLISH-PERIOD 500 ASK-PERIOD 500");
        sentinel
    }

    /// Starts one that is reached only over TLS, and reaches its masters so. `options`: those of a node.
    pub fn start_tls(masters: &[(&str, &Node)], options: &[String]) -> Sentinel {
        let port = port::free();
        let mut text = format!("port 0\ntls-port {port}\ntls-replication yes\n");
        for option in options.chunks(2) {
            text.push_str(&format!("{}\n", option.join(" ").trim_start_matches('-')));
        }
        Sentinel::start_with(masters, port, &text)
    }

    fn start_with(masters: &[(&str, &Node)], port: u16, options: &str) -> Sentinel {
        let folder = tempfile::tempdir().expect("a folder");
        let mut text = format!("{options}bind 127.0.0.1\ndir .\nlogfile sentinel.log\n");
        let [down_after, failover] = CALM;
        for (name, node) in masters {
            let (ip, port) = (node.addr().ip(), node.addr().port());
            text.push_str(&format!(
                "sentinel monitor {name} {ip} {port} 2\n\
                 sentinel down-after-milliseconds {name} {down_after}\n\
                 sentinel failover-timeout {name} {failover}\n"
            ));
        }
        fs::write(folder.path().join("sentinel.conf"), text).expect("a file");
        let mut command = Command::new(REDIS);
        command.args(["sentinel.conf", "--sentinel"]).current_dir(folder.path());
        let child = Killed::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        let sentinel = Sentinel { child, _folder: folder, port };
        until("the Sentinel listens", || Client::try_connect(sentinel.addr()).is_ok());
        sentinel
    }

    /// The address on which it listens.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The port of a master, as it knows it.
    pub fn master(&self, name: &str) -> u16 {
        let question = format!("SENTINEL GET-MASTER-ADDR-BY-NAME {name}");
        let reply = Client::connect(self.addr()).say(&question);
        reply.lines().nth(4).and_then(|port| port.parse().ok()).expect("a port")
    }

    /// Kills it, like a crash.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child process can be killed");
        self.child.wait().expect("a killed process exits");
    }
}

/// Masters `one` and `two`, a replica of the first, and the Sentinels.
pub struct Park {
    pub one: Node,
    pub two: Node,
    pub replica: Node,
    pub sentinels: Vec<Sentinel>,
}

impl Park {
    /// Starts all, and waits until a failover is possible.
    pub fn start() -> Park {
        let eager = ["--repl-diskless-sync-delay", "0"];
        let (one, two) = (Node::start(&eager), Node::start(&eager));
        let (ip, port) = (one.addr().ip().to_string(), one.addr().port().to_string());
        let replica = Node::start(&[&eager[..], &["--replicaof", &ip, &port]].concat());
        until("the replica is one", || {
            one.client().say("INFO replication").contains("state=online")
        });
        let start = |_| Sentinel::start(&[("one", &one), ("two", &two)]);
        let sentinels: Vec<Sentinel> = (0..3).map(start).collect();
        let park = Park { one, two, replica, sentinels };
        until("a failover is possible", || {
            park.sentinels.iter().all(|sentinel| {
                let info = Client::connect(sentinel.addr()).say("INFO sentinel");
                let line =
                    |name: &str| info.lines().find(|line| line.contains(&format!("name={name},")));
                let of_one = line("one").unwrap_or_default();
                of_one.contains("status=ok") && of_one.ends_with("slaves=1,sentinels=3")
            })
        });
        park
    }

    /// The addresses of the Sentinels as an option.
    pub fn addresses(&self) -> String {
        let all: Vec<String> = self.sentinels.iter().map(|one| one.addr().to_string()).collect();
        all.join(",")
    }

    /// Kills the master `one`, like a crash. Returns when a majority of the Sentinels has made the replica the master.
    pub fn kill_master(&mut self) {
        self.one.kill();
        self.set_times(EAGER);
        self.see_failover();
        self.set_times(CALM);
    }

    /// The same at the request of an operator, while the old master still answers.
    pub fn replace(&mut self) {
        // A Sentinel that has got no CPU for three seconds knows no good replica.
        until("the failover begins", || {
            Client::connect(self.sentinels[0].addr()).say("SENTINEL FAILOVER one") == "+OK\r\n"
        });
        self.see_failover();
    }

    fn see_failover(&self) {
        until_within(FAILOVER, "a majority knows the new master", || self.know(&self.replica) >= 2);
    }

    fn set_times(&self, [down_after, failover]: [u32; 2]) {
        for sentinel in &self.sentinels {
            let set = format!(
                "SENTINEL SET one down-after-milliseconds {down_after} failover-timeout {failover}"
            );
            assert_eq!(Client::connect(sentinel.addr()).say(&set), "+OK\r\n");
        }
    }

    /// Waits until the old master, which runs again, has become a replica.
    pub fn see_old_master_demoted(&self) {
        until_within(FAILOVER, "the old master is a replica", || {
            let mut client = self.one.client();
            // A Sentinel that makes it one closes its connections.
            let role = client.try_send(&["ROLE"]).and_then(|()| client.try_next());
            role.ok().flatten().is_some_and(|role| role.windows(5).any(|word| word == b"slave"))
        });
    }

    /// How many Sentinels know this server as the master `one`.
    fn know(&self, node: &Node) -> usize {
        let port = node.addr().port();
        self.sentinels.iter().filter(|sentinel| sentinel.master("one") == port).count()
    }
}
