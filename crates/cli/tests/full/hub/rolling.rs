//! A rolling restart: two of three hubs at one broker are restarted under 5,000 members of a room with a history. Each
//! member goes to another hub when and after the pause that its hub asks for, names its position, and must get every
//! message once, in order, without a gap.

use crate::support::{
    Server,
    hub::{Patient, with_metrics},
    regatta,
    shard::nodes::Node,
    until_within,
};
use regatta_testkit::machine;
use serde_json::{Value, json};
use std::{
    net::{SocketAddr, TcpStream},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};
use tungstenite::{Message, WebSocket, client::client};

const MEMBERS: usize = 5_000;
const DRAIN: Duration = Duration::from_secs(20);
/// The pause between two messages.
const BETWEEN: Duration = Duration::from_millis(500);
/// Of a member's thread, which only reads.
const STACK: usize = 128 << 10;

fn start(broker: &Node) -> Server {
    let broker = broker.addr();
    let command = regatta!(
        "hub --model percore --cores 2 --metrics 127.0.0.1:0 --broker redis://{broker}
         --drain 20s --history 1000"
    );
    with_metrics(command).0
}

fn opened(address: SocketAddr, query: &str) -> WebSocket<Patient> {
    let stream = TcpStream::connect(address).expect("the hub accepts");
    let url = format!("ws://{address}/ws/crowd{query}");
    client(url, Patient(stream)).expect("the hub opens a WebSocket").0
}

/// The members, and where they may connect.
struct Crowd {
    /// The address of each hub that takes members.
    hubs: Mutex<Vec<Option<SocketAddr>>>,
    /// Number of members that have their position.
    here: AtomicUsize,
    /// Number of members at each hub.
    at: [AtomicUsize; 3],
    /// When members came back.
    reconnects: Mutex<Vec<Instant>>,
    /// Messages that are published.
    published: AtomicU64,
    /// Messages that members have got, those of them that were recovered, and what was wrong.
    deliveries: AtomicU64,
    recoveries: AtomicUsize,
    wrong: Mutex<Vec<String>>,
    is_over: AtomicBool,
}

/// Where a member is in the room.
#[derive(Default)]
struct Place {
    epoch: String,
    offset: u64,
    /// The number of the last message.
    last: Option<u64>,
}

/// Why a member stops reading.
enum End {
    /// Its hub asks it to come back, after this pause.
    Moves(Duration),
    Over,
    Wrong(String),
}

impl Crowd {
    /// The life of a member: from hub to hub. Returns the number of the last message that it has got.
    fn member(&self, number: usize) -> Option<u64> {
        let mut place = Place::default();
        for visit in 0.. {
            let (hub, address) = self.choose(number + visit)?;
            let query = match visit {
                0 => String::new(),
                _ => format!("?epoch={}&offset={}", place.epoch, place.offset),
            };
            let mut socket = opened(address, &query);
            self.at[hub].fetch_add(1, SeqCst);
            if visit > 0 {
                self.reconnects.lock().unwrap().push(Instant::now());
            }
            let end = self.stays(&mut socket, &mut place, visit > 0);
            self.at[hub].fetch_sub(1, SeqCst);
            match end {
                End::Moves(pause) => thread::sleep(pause),
                End::Over => break,
                End::Wrong(why) => {
                    self.wrong.lock().unwrap().push(format!("member {number}: {why}"));
                    break;
                }
            }
        }
        place.last
    }

    /// Reads until its hub closes.
    fn stays(&self, socket: &mut WebSocket<Patient>, place: &mut Place, recovers: bool) -> End {
        let mut pause = Duration::ZERO;
        let mut is_here = false;
        let end = loop {
            let text = match socket.read() {
                Ok(Message::Text(text)) => text,
                Ok(Message::Close(_)) => break End::Moves(pause),
                Ok(_) => continue,
                Err(_) if self.is_over.load(SeqCst) => break End::Over,
                Err(error) => break End::Wrong(error.to_string()),
            };
            let heard: Value = serde_json::from_str(&text).expect("JSON");
            match heard["type"].as_str() {
                Some("reconnect") => {
                    pause = Duration::from_millis(heard["after_ms"].as_u64().expect("a pause"));
                }
                Some("position") if !is_here && (heard["recovered"] == true) == recovers => {
                    is_here = true;
                    self.here.fetch_add(1, SeqCst);
                    self.recoveries.fetch_add(usize::from(recovers), SeqCst);
                    place.epoch = heard["epoch"].as_str().expect("an epoch").to_owned();
                    place.offset = heard["offset"].as_u64().expect("an offset");
                }
                Some("broadcast") if is_here => {
                    let number = heard["payload"].as_u64().expect("a number");
                    let is_next = place.last.is_none_or(|last| last + 1 == number)
                        && heard["offset"] == place.offset + 1;
                    if !is_next {
                        break End::Wrong(format!("{heard} after {:?}", place.last));
                    }
                    (place.offset, place.last) = (place.offset + 1, Some(number));
                    self.deliveries.fetch_add(1, SeqCst);
                }
                _ => break End::Wrong(format!("{heard} after {:?}", place.last)),
            }
        };
        self.here.fetch_sub(usize::from(is_here), SeqCst);
        end
    }

    /// A hub that takes members; they are spread evenly.
    fn choose(&self, number: usize) -> Option<(usize, SocketAddr)> {
        let hubs = self.hubs.lock().unwrap();
        let open: Vec<_> =
            hubs.iter().enumerate().filter_map(|(hub, at)| Some((hub, (*at)?))).collect();
        (!open.is_empty()).then(|| open[number % open.len()])
    }

    /// Publishes numbers at the hub that stays, until all is over.
    fn publishes(&self, address: SocketAddr) {
        let mut socket = opened(address, "");
        let mut number = 0;
        while !self.is_over.load(SeqCst) {
            number += 1;
            let text = json!({"type": "broadcast", "payload": number}).to_string();
            socket.send(Message::text(text)).expect("it is sent");
            loop {
                let Message::Text(text) = socket.read().expect("a result") else { continue };
                let heard: Value = serde_json::from_str(&text).expect("JSON");
                assert!(!["error", "gap"].map(Value::from).contains(&heard["type"]), "{heard}");
                if heard["type"] == "broadcastResult" {
                    break;
                }
            }
            self.published.store(number, SeqCst);
            thread::sleep(BETWEEN);
        }
    }

    fn are_all_here(&self) -> bool {
        let wrong = self.wrong.lock().unwrap();
        assert!(wrong.is_empty(), "{} members, first {}", wrong.len(), wrong[0]);
        self.here.load(SeqCst) == MEMBERS
    }

    /// Restarts a hub. Returns the number of its members, and the most that came back in a second.
    fn restart(&self, hub: usize, server: &mut Server, broker: &Node) -> (usize, usize) {
        self.reconnects.lock().unwrap().clear();
        let members = self.at[hub].load(SeqCst);
        self.hubs.lock().unwrap()[hub] = None;
        server.signal("-TERM");
        let ends = DRAIN + Duration::from_secs(40);
        until_within(ends, "the hub ends", || server.child.try_wait().unwrap().is_some());
        until_within(ends, "all are back", || self.are_all_here());
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

#[test]
fn members_of_restarted_hubs_lose_nothing() {
    let _turn = machine::alone();
    let broker = Node::start(&[]);
    let servers: Vec<Server> = (0..3).map(|_| start(&broker)).collect();
    let stays = servers[2].addr;
    let crowd = Crowd {
        hubs: Mutex::new(servers.iter().map(|server| Some(server.addr)).collect()),
        here: AtomicUsize::new(0),
        at: [0; 3].map(AtomicUsize::new),
        reconnects: Mutex::default(),
        published: AtomicU64::new(0),
        deliveries: AtomicU64::new(0),
        recoveries: AtomicUsize::new(0),
        wrong: Mutex::default(),
        is_over: AtomicBool::new(false),
    };
    thread::scope(|scope| {
        let mut hubs = Hubs { crowd: &crowd, servers };
        let mut members = Vec::new();
        for number in 0..MEMBERS {
            let crowd = &crowd;
            let member = move || crowd.member(number);
            let member = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, member);
            members.push(member.expect("a thread"));
        }
        until_within(Duration::from_secs(60), "all have joined", || crowd.are_all_here());
        let publisher = scope.spawn(|| crowd.publishes(stays));
        println!(
            "\n| hub | members | came back in a second, at most | even rate |\n|---|---|---|---|"
        );
        for hub in [0, 1] {
            let (members, peak) = crowd.restart(hub, &mut hubs.servers[hub], &broker);
            let even = members as f64 / DRAIN.as_secs_f64();
            println!("| {} | {members} | {peak} | {even:.0} |", hub + 1);
        }
        // The publisher ends before the hubs do.
        crowd.is_over.store(true, SeqCst);
        publisher.join().expect("it has published");
        let published = crowd.published.load(SeqCst);
        let all = published * MEMBERS as u64;
        until_within(Duration::from_secs(30), "everything is delivered", || {
            crowd.deliveries.load(SeqCst) >= all || !crowd.wrong.lock().unwrap().is_empty()
        });
        drop(hubs);
        let last: Vec<_> = members.into_iter().map(|one| one.join().expect("it ends")).collect();
        let wrong = crowd.wrong.lock().unwrap();
        assert!(wrong.is_empty(), "{} members, first {}", wrong.len(), wrong[0]);
        assert!(last.iter().all(|last| *last == Some(published)), "a member lacks the end");
        let (deliveries, back) = (crowd.deliveries.load(SeqCst), crowd.recoveries.load(SeqCst));
        assert_eq!(deliveries, all, "each message once");
        println!(
            "| all | {back} recoveries | {deliveries} deliveries of {published} messages | 0 lost |"
        );
    });
}
