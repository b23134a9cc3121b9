//! A paced drain: members are closed one after the other, and are served until it is their turn.

use crate::support::{
    DEADLINE, Server,
    hub::{Socket, closed, hear, member, member_of, page, parsed, send, with_metrics},
    on_models, refused, regatta, until,
};
use serde_json::json;
use std::{
    net::{SocketAddr, TcpStream},
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};
use tungstenite::{Message, protocol::frame::coding::CloseCode};

/// Starts a hub on two cores that drains for so long, with pages for operators.
fn hub(model: &str, drain: &str, more: &[&str]) -> (Server, SocketAddr) {
    with_metrics(
        regatta!("hub --model {model} --cores 2 --drain {drain} --metrics 127.0.0.1:0").args(more),
    )
}

/// What a member receives until it is closed.
#[derive(Default)]
struct Heard {
    /// The payloads of broadcasts.
    broadcasts: Vec<u64>,
    /// The pause before a reconnect.
    after_ms: Option<u64>,
}

/// Listens until the Close frame, which must be the last.
fn listen(socket: &mut Socket) -> Heard {
    let mut heard = Heard::default();
    loop {
        match socket.read().unwrap() {
            Message::Text(text) => {
                let message = parsed(&text);
                assert_eq!(heard.after_ms, None, "nothing but a Close frame follows: {message}");
                match message["type"].as_str().unwrap() {
                    "reconnect" => heard.after_ms = message["after_ms"].as_u64(),
                    "broadcast" => heard.broadcasts.push(message["payload"].as_u64().unwrap()),
                    other => panic!("{other}"),
                }
            }
            Message::Close(frame) => {
                assert_eq!(frame.map(|frame| frame.code), Some(CloseCode::Away));
                return heard;
            }
            _ => {}
        }
    }
}

on_models!(members_are_closed_evenly_over_the_drain: select, poll, epoll, percore, cluster, uring);

fn members_are_closed_evenly_over_the_drain(model: &str) {
    const MEMBERS: usize = 200;
    // Long enough that what a busy machine delays is a small part of it.
    const DRAIN: Duration = Duration::from_secs(4);
    const PARTS: u32 = 4;
    let (mut server, pages) = hub(model, &format!("{}s", DRAIN.as_secs()), &[]);
    let members: Vec<Socket> = (0..MEMBERS).map(|_| member(&server)).collect();
    let mut start = Instant::now();
    let begins = Barrier::new(MEMBERS + 1);
    let closed: Vec<(Instant, u64)> = thread::scope(|scope| {
        let each = |mut socket: Socket| {
            let begins = &begins;
            scope.spawn(move || {
                begins.wait();
                let heard = listen(&mut socket);
                (Instant::now(), heard.after_ms.expect("a pause before a reconnect"))
            })
        };
        let threads: Vec<_> = members.into_iter().map(each).collect();
        begins.wait();
        start = Instant::now();
        server.signal("-TERM");
        until("the stop is announced", || page(pages, "/ready").0 == 503);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let even = MEMBERS / PARTS as usize;
    for part in 0..PARTS {
        let from = start + DRAIN / PARTS * part;
        let here = |(at, _): &&(Instant, u64)| (from..from + DRAIN / PARTS).contains(at);
        let count = closed.iter().filter(here).count();
        // The last ones may be late.
        assert!(count <= even * 7 / 5, "{model}: {count} in part {part}, {even} are even");
    }
    let last = closed.iter().map(|(at, _)| *at - start).max().unwrap();
    assert!(last > DRAIN * 4 / 5 && last < DRAIN + DEADLINE, "{model}: {last:?}");
    assert!(!closed.iter().map(|(at, _)| at).is_sorted(), "{model}: the order of their arrival");
    let pauses: Vec<u64> = closed.iter().map(|(_, pause)| *pause).collect();
    assert!(pauses.iter().all(|pause| *pause <= 1000), "{model}: {pauses:?}");
    let early = pauses.iter().filter(|pause| **pause <= 500).count();
    assert!((60..=140).contains(&early), "{model}: {early} of {MEMBERS} reconnect within 500 ms");
    assert!(server.ended().success(), "{model}");
}

on_models!(a_member_is_served_until_its_turn: select, poll, epoll, percore, cluster, uring);

/// Speakers broadcast one after the other, each until it is closed. Each listener receives every broadcast until its own
/// turn, and fewer and fewer listeners are there.
fn a_member_is_served_until_its_turn(model: &str) {
    let (mut server, pages) = hub(model, "2s", &[]);
    let mut speakers: Vec<Socket> = (0..6).map(|_| member_of(&server, "/ws/room")).collect();
    let mut listeners: Vec<Socket> = (0..30).map(|_| member_of(&server, "/ws/room")).collect();
    for socket in speakers.iter_mut().chain(&mut listeners) {
        // A member whose echo is answered has joined.
        let echo = json!({"type": "echo", "payload": 0});
        send(socket, &echo);
        assert_eq!(hear(socket), echo, "{model}");
    }
    let counts = thread::scope(|scope| {
        let threads: Vec<_> = listeners
            .into_iter()
            .map(|mut socket| scope.spawn(move || listen(&mut socket).broadcasts))
            .collect();
        server.signal("-TERM");
        until("the stop has begun", || page(pages, "/ready").1.starts_with("stopping: no more"));
        until("nobody is admitted", || TcpStream::connect(server.addr).is_err());
        let mut counts = Vec::new();
        for speaker in speakers.iter_mut().rev() {
            speak(speaker, &mut counts);
        }
        for thread in threads {
            let heard = thread.join().unwrap();
            let expected: Vec<u64> = (0..heard.len() as u64).collect();
            assert_eq!(heard, expected, "{model}: every broadcast until its turn");
        }
        counts
    });
    // The other cores may be counted a little earlier or later, and the speakers listen, too.
    let (first, last) = (counts[0], counts[counts.len() - 1]);
    assert!(first > last + 5, "{model}: from {first} to {last} members");
    assert!(server.ended().success(), "{model}");
}

/// Broadcasts numbers, each after the result of the one before, until the speaker is closed, at a pace that leaves CPU to
/// other tests. `counts`: the numbers of listeners in all results so far.
fn speak(speaker: &mut Socket, counts: &mut Vec<u64>) {
    loop {
        let next = counts.len() as u64;
        let text = json!({"type": "broadcast", "payload": next}).to_string();
        // It may have been closed by now.
        if speaker.send(Message::text(text)).is_err() {
            return;
        }
        loop {
            match speaker.read() {
                Ok(Message::Text(text)) => {
                    let message = parsed(&text);
                    if message["type"] == "broadcastResult" && message["payload"] == next {
                        counts.push(message["listenerCount"].as_u64().unwrap());
                        thread::sleep(Duration::from_millis(2));
                        break;
                    }
                }
                Ok(Message::Close(_)) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}

on_models!(echoes_and_requests_are_closed_without_a_pause: epoll, percore, uring);

/// Only members of the hub's own protocol know the message.
fn echoes_and_requests_are_closed_without_a_pause(model: &str) {
    let (mut server, _) = hub(model, "300ms", &["--echo"]);
    let mut echo = member_of(&server, "/echo");
    let mut idle = server.connect();
    echo.send(Message::text("hello")).unwrap();
    assert_eq!(echo.read().unwrap(), Message::text("hello"), "{model}");
    server.signal("-TERM");
    assert!(
        matches!(echo.read(), Ok(Message::Close(Some(frame))) if frame.code == CloseCode::Away)
    );
    crate::support::expect_end(&mut idle);
    drop((echo, idle));
    assert!(server.ended().success(), "{model}");
}

on_models!(a_drain_over_tls_ends_with_a_close_frame: epoll, percore, cluster, uring);

fn a_drain_over_tls_ends_with_a_close_frame(model: &str) {
    let (_folder, options, trusts) = crate::support::hub::made();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let (mut server, _) = hub(model, "300ms", &options);
    let name = "localhost".try_into().unwrap();
    let tls = rustls::ClientConnection::new(trusts, name).unwrap();
    let stream = rustls::StreamOwned::new(tls, server.connect());
    let url = format!("wss://localhost:{}/ws", server.addr.port());
    let (mut socket, _) = tungstenite::client::client(url, stream).unwrap();
    server.signal("-TERM");
    let mut texts = Vec::new();
    let close = loop {
        match socket.read().unwrap() {
            Message::Text(text) => texts.push(parsed(&text)["type"].clone()),
            Message::Close(frame) => break frame,
            _ => {}
        }
    };
    assert_eq!(
        (texts, close.map(|one| one.code)),
        (vec![json!("reconnect")], Some(CloseCode::Away))
    );
    drop(socket);
    assert!(server.ended().success(), "{model}");
}

#[test]
fn models_that_close_all_members_at_once_refuse_a_drain() {
    for model in ["threads", "green", "async"] {
        let error = refused(regatta!("hub --model {model} --drain 1s"));
        assert!(error.contains(&format!("`{model}` runs `hub` only without --drain")), "{error}");
    }
}

#[test]
fn without_a_drain_members_get_no_pause() {
    let mut server = Server::start(regatta!("hub"));
    let mut socket = member(&server);
    server.signal("-TERM");
    assert!(matches!(socket.read(), Ok(Message::Close(_))));
    assert_eq!(closed(&mut socket), None);
    assert!(server.ended().success());
}
