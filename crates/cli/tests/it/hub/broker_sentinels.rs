//! Hubs whose broker Sentinels manage: real ones, and some that say what the test wants.

use crate::{
    hub::{broker::member, talk},
    support::{
        Server,
        hub::{
            Socket, hear, hub, hub_command, metric, page, printed_through, send,
            with_metrics_and_lines,
        },
        hubs::{hubs_at, joined_at},
        shard::{
            nodes::Node,
            sentinel::{Park, Sentinel},
        },
        until,
    },
};
use serde_json::json;
use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

const UP: &str = "regatta_hub_broker_up";
const LOST: &str = "regatta_hub_broker_lost_total";
const FAILED: &str = "regatta_hub_broker_failed_total";
const SWITCHES: &str = "regatta_hub_broker_master_switches_total";
const MASTER_AGE: &str = "regatta_hub_broker_master_age_seconds";

/// A metric of one of the Sentinels.
fn of_sentinel(page: SocketAddr, name: &str, sentinel: SocketAddr) -> u64 {
    metric(page, &format!("regatta_hub_broker_sentinel_{name}{{sentinel=\"{sentinel}\"}}"))
}

/// Members of two hubs talk while the replica of the master `one` replaces it. Returns the hubs.
fn talk_during(park: &mut Park, fails: impl FnOnce(&mut Park)) -> Vec<(Server, SocketAddr)> {
    let url = format!("redis+sentinel://{}/one", park.addresses());
    let hubs = talk::talk_during(&url, || {
        assert_eq!((hubs_at(&park.one), hubs_at(&park.replica)), (2, 0));
        fails(park);
        until("all hubs are there", || hubs_at(&park.replica) == 2);
    });
    assert_eq!(hubs_at(&park.replica), 2);
    for (_, page) in &hubs {
        assert_eq!(metric(*page, SWITCHES), 1);
        let answers = |sentinel: &Sentinel| of_sentinel(*page, "up", sentinel.addr()) == 1;
        until("all Sentinels answer", || park.sentinels.iter().all(answers));
    }
    hubs
}

#[test]
fn a_master_that_is_killed_is_left_and_not_used_when_it_returns() {
    let mut park = Park::start();
    let hubs = talk_during(&mut park, Park::kill_master);
    let losses = || hubs.iter().map(|(_, page)| metric(*page, LOST));
    let before: Vec<u64> = losses().collect();
    // It does not know that it is none any longer.
    park.one.restart(&[]);
    park.see_old_master_demoted();
    assert_eq!((hubs_at(&park.replica), hubs_at(&park.one)), (2, 0));
    // Nor were they there meanwhile.
    assert!(losses().eq(before) && hubs.iter().all(|(_, page)| metric(*page, SWITCHES) == 1));
}

#[test]
fn a_failover_that_an_operator_wants_is_followed_while_the_old_master_answers() {
    let mut park = Park::start();
    talk_during(&mut park, Park::replace);
}

/// A server that answers as a Sentinel does.
struct Fake {
    addr: SocketAddr,
    /// The master that it gives. `None`: it does not answer.
    says: Arc<Mutex<Option<SocketAddr>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Fake {
    fn start(says: Option<&Node>) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let says = Arc::new(Mutex::new(says.map(Node::addr)));
        let is_over = Arc::new(AtomicBool::new(false));
        let (master, over) = (Arc::clone(&says), Arc::clone(&is_over));
        let serve = move || {
            // Those that get no answer stay open.
            let mut open = Vec::new();
            for stream in listener.incoming() {
                if over.load(SeqCst) {
                    return;
                }
                let mut stream = stream.unwrap();
                let says = *master.lock().unwrap();
                if let Some(master) = says {
                    answers(&mut stream, master);
                }
                open.push(stream);
            }
        };
        Fake { addr, says, is_over, thread: Some(thread::spawn(serve)) }
    }

    fn gives(&self, node: &Node) {
        *self.says.lock().unwrap() = Some(node.addr());
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.is_over.store(true, SeqCst);
        _ = TcpStream::connect(self.addr);
        _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Answers a question; after AUTH with another password than `s3cret` with an error.
fn answers(stream: &mut TcpStream, master: SocketAddr) {
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.ends_with(b"\r\n$1\r\nm\r\n") {
        match stream.read(&mut buffer) {
            Ok(read @ 1..) => request.extend_from_slice(&buffer[..read]),
            _ => return,
        }
    }
    let request = String::from_utf8(request).unwrap();
    let (ip, port) = (master.ip().to_string(), master.port().to_string());
    let answer = format!("*2\r\n${}\r\n{ip}\r\n${}\r\n{port}\r\n", ip.len(), port.len());
    let reply = match request.strip_prefix("*2\r\n$4\r\nAUTH\r\n") {
        None => answer,
        Some(rest) if rest.starts_with("$6\r\ns3cret\r\n") => format!("+OK\r\n{answer}"),
        // Servers that do not know a command repeat what was sent.
        Some(_) => {
            format!("-ERR unknown command, with args beginning with: {request:?}\r\n{answer}")
        }
    };
    _ = stream.write_all(reply.as_bytes());
}

fn url(sentinels: &[&Fake]) -> String {
    let all: Vec<String> = sentinels.iter().map(|one| one.addr.to_string()).collect();
    format!("redis+sentinel://{}/m", all.join(","))
}

fn broadcast(socket: &mut Socket, payload: &str) {
    send(socket, &json!({"type": "broadcast", "payload": payload}));
    for expected in ["broadcast", "broadcastResult"] {
        assert_eq!(hear(socket), json!({"type": expected, "payload": payload}));
    }
}

/// One hub learns of a failover later than the other. What it publishes at the old master meanwhile reaches nobody at the
/// new one, after their own gap.
#[test]
fn members_get_a_gap_when_another_hub_comes_later_from_the_old_master() {
    let (old, new) = (Node::start(&[]), Node::start(&[]));
    let (early, late) = (Fake::start(Some(&old)), Fake::start(Some(&old)));
    let (one, _) = joined_at("percore", &url(&[&early]), &[]);
    let (other, _) = joined_at("percore", &url(&[&late]), &[]);
    let (mut here, mut there) = (member(&one, "/red"), member(&other, "/red"));
    broadcast(&mut here, "both");
    assert_eq!(hear(&mut there)["payload"], "both");
    early.gives(&new);
    let gap = json!({"type": "gap", "recovered": false});
    assert_eq!(hear(&mut here), gap);
    assert_eq!((hubs_at(&old), hubs_at(&new)), (1, 1), "the old master still answers");
    broadcast(&mut there, "lost");
    late.gives(&new);
    assert_eq!(hear(&mut there), gap);
    assert_eq!(hear(&mut here), gap);
    broadcast(&mut there, "again");
    assert_eq!(hear(&mut here)["payload"], "again");
    assert_eq!((hubs_at(&old), hubs_at(&new)), (0, 2));
}

#[test]
fn only_what_most_of_the_configured_sentinels_give_counts() {
    let (right, wrong) = (Node::start(&[]), Node::start(&[]));
    let sentinels: Vec<Fake> =
        [Some(&right), Some(&right), Some(&wrong), None].map(Fake::start).into();
    let all: Vec<&Fake> = sentinels.iter().collect();
    // Two of four are no majority, although only one other answers.
    let (_waits, operators) = hub("percore", &["--broker", &url(&all)]);
    until("attempts have failed", || metric(operators, FAILED) > 3);
    assert_eq!((page(operators, "/ready").0, hubs_at(&right)), (503, 0));
    until("no majority has given a master", || metric(operators, MASTER_AGE) > 0);
    let mute = sentinels[3].addr;
    until("one does not answer", || of_sentinel(operators, "failures_total", mute) > 0);
    assert!(of_sentinel(operators, "age_seconds", mute) > 0);
    for (sentinel, is_up) in sentinels.iter().zip([1, 1, 1, 0]) {
        assert_eq!(of_sentinel(operators, "up", sentinel.addr), is_up);
    }
    // Two of three are one.
    let (_server, operators) = joined_at("percore", &url(&all[..3]), &[]);
    assert_eq!((metric(operators, MASTER_AGE) < 3, metric(operators, SWITCHES)), (true, 0));
    assert_eq!((hubs_at(&right), hubs_at(&wrong)), (1, 0));
    // The fourth decides.
    sentinels[3].gives(&right);
    until("the other one is there, too", || hubs_at(&right) == 2);
    sentinels[0].gives(&wrong);
    until("the new majority is followed", || hubs_at(&wrong) == 1);
    until("it is up", || metric(operators, UP) == 1);
    assert_eq!(hubs_at(&right), 1, "of four, two say so");
}

#[test]
fn a_sentinel_with_two_names_has_one_vote() {
    let broker = Node::start(&[]);
    let fake = Fake::start(Some(&broker));
    let port = fake.addr.port();
    let url = format!("redis+sentinel://127.0.0.1:{port},localhost:{port},127.0.0.1:1/m");
    let (_server, operators) = hub("percore", &["--broker", &url]);
    until("attempts have failed", || metric(operators, FAILED) > 3);
    assert_eq!((metric(operators, UP), hubs_at(&broker)), (0, 0));
}

#[test]
fn a_replica_is_not_used_even_if_all_sentinels_give_it() {
    let master = Node::start(&[]);
    let (ip, port) = (master.addr().ip().to_string(), master.addr().port().to_string());
    let replica = Node::start(&["--replicaof", &ip, &port]);
    let fake = Fake::start(Some(&replica));
    let (_server, operators) = hub("percore", &["--broker", &url(&[&fake])]);
    until("attempts have failed", || metric(operators, FAILED) > 3);
    assert_eq!((metric(operators, UP), hubs_at(&replica)), (0, 0));
    // It is not there at the first attempt, and later it is.
    fake.gives(&master);
    until("it is up", || metric(operators, UP) == 1);
    assert_eq!(hubs_at(&master), 1);
}

#[test]
fn sentinels_may_want_a_password_which_is_not_shown() {
    let broker = Node::start(&[]);
    let fake = Fake::start(Some(&broker));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "wr0ng").unwrap();
    let url = url(&[&fake]);
    let password = ["--broker-sentinel-password-file", file.to_str().unwrap()];
    let options = [&["--broker", &url], &password[..]].concat();
    let (mut server, operators, before) = with_metrics_and_lines(hub_command("percore", &options));
    until("attempts have failed", || metric(operators, FAILED) > 3);
    assert_eq!(metric(operators, UP), 0);
    fs::write(&file, "s3cret").unwrap();
    until("it is up", || metric(operators, UP) == 1);
    let follows = format!("the master of m is {}", broker.addr());
    let printed = printed_through(&mut server, before, &follows);
    let why = "regatta: broker m: the master of m is not known: 1 of 1 Sentinels must agree; ";
    assert_eq!(printed.matches(why).count(), 1, "{printed}");
    assert!(printed.contains("it does not accept a password"), "{printed}");
    assert!(!printed.contains("wr0ng") && !printed.contains("s3cret"), "{printed}");
}
