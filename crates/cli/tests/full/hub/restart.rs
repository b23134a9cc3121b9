//! A rolling restart: two of three hubs at one broker are restarted under 5,000 members, which go to another hub when
//! and after the pause that their hub asks for. They come evenly, and members of another room do not notice.

use crate::support::{
    Server,
    hub::{Patient, with_metrics},
    shard::nodes::Node,
    until_within,
};
use regatta_testkit::{child::run_within, machine};
use serde_json::Value;
use std::{
    net::{SocketAddr, TcpStream},
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};
use tungstenite::{Message, client::client};

const MEMBERS: usize = 5_000;
const DRAIN: Duration = Duration::from_secs(20);
/// Of a member's thread, which only reads.
const STACK: usize = 128 << 10;
/// Reconnects per second, at most, relative to an even rate.
const PEAK: f64 = 1.2;
/// The p99 of deliveries to members that stay, at most, relative to the quiet one.
const SLOWER: f64 = 2.0;

fn start(broker: &Node) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
    command.args(["hub", "--model", "percore", "--cores", "2", "--metrics", "127.0.0.1:0"]);
    command.args(["--broker", &format!("redis://{}", broker.addr()), "--drain", "20s"]);
    with_metrics(command).0
}

/// The members, and where they may connect.
struct Crowd {
    /// The address of each hub that takes members.
    hubs: Mutex<Vec<Option<SocketAddr>>>,
    /// Number of members at each hub.
    at: [AtomicUsize; 3],
    /// When members came back.
    reconnects: Mutex<Vec<Instant>>,
    is_over: AtomicBool,
}

impl Crowd {
    /// The life of a member: from hub to hub.
    fn member(&self, number: usize) {
        for visit in 0.. {
            let Some((hub, address)) = self.choose(number + visit) else { return };
            let stream = TcpStream::connect(address).expect("the hub accepts");
            let url = format!("ws://{address}/ws/crowd");
            let mut socket = client(url, Patient(stream)).expect("the hub opens a WebSocket").0;
            self.at[hub].fetch_add(1, SeqCst);
            if visit > 0 {
                self.reconnects.lock().unwrap().push(Instant::now());
            }
            let mut pause = Duration::ZERO;
            loop {
                match socket.read() {
                    Ok(Message::Text(text)) => {
                        let message: Value = serde_json::from_str(&text).unwrap();
                        let after_ms = message["after_ms"].as_u64();
                        pause = Duration::from_millis(after_ms.expect("only the pause is said"));
                    }
                    Ok(Message::Close(_)) => break,
                    Ok(_) => {}
                    Err(_) if self.is_over.load(SeqCst) => return,
                    Err(error) => panic!("member {number}: {error}"),
                }
            }
            self.at[hub].fetch_sub(1, SeqCst);
            drop(socket);
            thread::sleep(pause);
        }
    }

    /// A hub that takes members; they are spread evenly.
    fn choose(&self, number: usize) -> Option<(usize, SocketAddr)> {
        let hubs = self.hubs.lock().unwrap();
        let open: Vec<_> =
            hubs.iter().enumerate().filter_map(|(hub, at)| Some((hub, (*at)?))).collect();
        (!open.is_empty()).then(|| open[number % open.len()])
    }

    fn joined(&self) -> usize {
        self.at.iter().map(|at| at.load(SeqCst)).sum()
    }

    /// Restarts a hub. Returns the number of its members, and the most that came back in a second.
    fn restart(&self, hub: usize, server: &mut Server, broker: &Node) -> (usize, usize) {
        self.reconnects.lock().unwrap().clear();
        let members = self.at[hub].load(SeqCst);
        self.hubs.lock().unwrap()[hub] = None;
        server.signal("-TERM");
        let ends = DRAIN + Duration::from_secs(15);
        until_within(ends, "the hub ends", || server.child.try_wait().unwrap().is_some());
        until_within(ends, "all are back", || self.joined() == MEMBERS);
        *server = start(broker);
        self.hubs.lock().unwrap()[hub] = Some(server.addr);
        let mut times = self.reconnects.lock().unwrap().clone();
        times.sort_unstable();
        assert_eq!(times.len(), members, "each came back once");
        let within = |from: &Instant| {
            times.iter().filter(|at| *at >= from && **at - *from < Duration::from_secs(1)).count()
        };
        (members, times.iter().map(within).max().unwrap_or_default())
    }
}

/// The hubs. Dropped, also by a panic, they end, and with them the members.
struct Hubs<'a> {
    crowd: &'a Crowd,
    servers: Vec<Server>,
}

impl Drop for Hubs<'_> {
    fn drop(&mut self) {
        self.crowd.is_over.store(true, SeqCst);
        self.crowd.hubs.lock().unwrap().fill(None);
        self.servers.clear();
    }
}

/// The p99 of deliveries to the last of 100 members of another room, in seconds, while `beside` is done.
fn p99(address: SocketAddr, length: &str, beside: impl FnOnce()) -> f64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
    command.args(["load", &format!("ws://{address}/ws/others"), "-c", "100", "--rate", "50/s"]);
    command.args(["-d", length, "--json", "-"]);
    let ended = thread::scope(|scope| {
        let load = scope.spawn(|| run_within(Duration::from_secs(180), command));
        beside();
        assert!(!load.is_finished(), "the load lasts as long as the restarts");
        load.join().expect("the load ends")
    });
    assert_eq!(ended.code(), 0, "{ended:?}");
    let result: Value = serde_json::from_str(&ended.stdout).expect("a result");
    let ns = result["operations"][1]["latency_ns"]["p99"].as_f64().expect("a p99");
    ns / 1e9
}

#[test]
fn members_of_restarted_hubs_come_back_evenly_and_others_do_not_notice() {
    let _turn = machine::alone();
    let broker = Node::start(&[]);
    let servers: Vec<Server> = (0..3).map(|_| start(&broker)).collect();
    let stays = servers[2].addr;
    let crowd = Crowd {
        hubs: Mutex::new(servers.iter().map(|server| Some(server.addr)).collect()),
        at: [0; 3].map(AtomicUsize::new),
        reconnects: Mutex::default(),
        is_over: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        let mut hubs = Hubs { crowd: &crowd, servers };
        for number in 0..MEMBERS {
            let crowd = &crowd;
            let member = move || crowd.member(number);
            thread::Builder::new().stack_size(STACK).spawn_scoped(scope, member).unwrap();
        }
        until_within(Duration::from_secs(60), "all have joined", || crowd.joined() == MEMBERS);
        let quiet = p99(stays, "15s", || {});
        let mut peaks = Vec::new();
        let busy = p99(stays, "75s", || {
            for hub in [0, 1] {
                peaks.push(crowd.restart(hub, &mut hubs.servers[hub], &broker));
            }
        });
        drop(hubs);
        println!(
            "\n| hub | members | reconnects in a second, at most | even rate |\n|---|---|---|---|"
        );
        for (hub, (members, peak)) in peaks.iter().enumerate() {
            let even = *members as f64 / DRAIN.as_secs_f64();
            println!("| {} | {members} | {peak} | {even:.0} |", hub + 1);
            assert!(*peak as f64 <= even * PEAK, "{peak} in a second; {even} are even");
        }
        let [quiet_ms, busy_ms] = [quiet, busy].map(|p99| p99 * 1e3);
        println!("| others | p99 quiet {quiet_ms:.2} ms | p99 meanwhile {busy_ms:.2} ms | |");
        assert!(busy <= quiet * SLOWER, "{busy_ms} ms instead of {quiet_ms} ms");
    });
}
