//! Many members that disconnect and reconnect at the same time do not delay deliveries to the others.
//!
//! There are 5,000 in each of three storms; `select` gets as many as it can hold, in more storms.

use crate::support::{
    Server,
    hub::{Patient, Socket, hear, member, on_hub_models, send},
};
use regatta_testkit::machine;
use serde_json::json;
use socket2::SockRef;
use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};
use tungstenite::client::client;

/// How many members vanish in all storms together.
const VANISHED: usize = 15_000;
/// Maximum time of a delivery to the others.
const DELIVERY: Duration = Duration::from_millis(250);
/// Maximum time until a new client is connected.
const CONNECT: Duration = Duration::from_secs(1);
/// Interval between two messages of the others.
const EVERY: Duration = Duration::from_millis(5);

/// Limits the number of members to what the model can hold. With `select`, the members that vanish and
/// their replacements must fit into its 1,024 descriptors together.
fn held(model: &str, members: usize) -> usize {
    if model == "select" { members.min(450) } else { members }
}

/// Requests a WebSocket in another room, without waiting for the reply.
fn open(server: &Server) -> TcpStream {
    let mut stream = server.connect();
    let request = "GET /ws/storm HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn answered(stream: &mut TcpStream) {
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 101");
}

/// Closes with a reset.
fn vanish(stream: TcpStream) {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
}

/// One of the others broadcasts until `over` is set. Returns the longest time until the listener
/// received a message, and the number of messages.
fn talk(mut speaker: Socket, mut listener: Socket, over: &AtomicBool) -> (Duration, u64) {
    let (mut longest, mut messages) = (Duration::ZERO, 0);
    while !over.load(Relaxed) {
        let began = Instant::now();
        send(&mut speaker, &json!({"type": "broadcast", "payload": messages}));
        assert_eq!(hear(&mut listener)["payload"], messages);
        longest = longest.max(began.elapsed());
        assert_eq!(hear(&mut speaker)["type"], "broadcast");
        assert_eq!(hear(&mut speaker)["listenerCount"], 2);
        messages += 1;
        thread::sleep(EVERY.saturating_sub(began.elapsed()));
    }
    (longest, messages)
}

on_hub_models!(a_storm_of_reconnecting_members_does_not_delay_others);

fn a_storm_of_reconnecting_members_does_not_delay_others(model: &str) {
    let _turn = machine::alone();
    let count = held(model, 5_000);
    // With two cores the processes of a cluster exchange messages.
    let cores = if model == "cluster" { "2" } else { "1" };
    let server = Server::of("hub", model, &["--cores", cores]);
    let (speaker, listener) = (member(&server), member(&server));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let others = scope.spawn(|| talk(speaker, listener, &over));
        let mut longest_connect = Duration::ZERO;
        let mut members: Vec<TcpStream> = (0..count).map(|_| open(&server)).collect();
        members.iter_mut().for_each(answered);
        for _ in 0..VANISHED / count {
            members.drain(..).for_each(vanish);
            members.extend((0..count).map(|_| open(&server)));
            let began = Instant::now();
            let newcomer =
                client(format!("ws://{}/ws/new", server.addr), Patient(server.connect()));
            newcomer.expect("a new client is served").0.close(None).unwrap();
            longest_connect = longest_connect.max(began.elapsed());
            members.iter_mut().for_each(answered);
        }
        over.store(true, Relaxed);
        let (longest, messages) = others.join().unwrap();
        println!(
            "{model}: {messages} messages, the slowest delivery {longest:?}, the slowest of \
             the new clients {longest_connect:?}"
        );
        assert!(messages > 10, "{model}: {messages}");
        assert!(longest < DELIVERY, "{model}: a delivery took {longest:?}");
        assert!(longest_connect < CONNECT, "{model}: a new client waited {longest_connect:?}");
    });
}
