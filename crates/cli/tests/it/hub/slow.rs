//! Slow consumers: what each policy does to members that do not read, without affecting the others.

use crate::{
    hub::stop::slow_connection,
    support::{
        Server,
        hub::{
            Patient, Socket, closed, hear, hub, long_broadcast, member, metric, models,
            on_hub_models, parsed, send,
        },
        regatta,
    },
};
use regatta_testkit::deadline::until_within;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::{
    process::{Command, Stdio},
    time::Duration,
};
use tungstenite::{client::client, protocol::frame::coding::CloseCode};

/// Bytes of a payload.
const LONG: usize = 8_000;
/// Maximum number of broadcasts that wait for a slow member.
const WAITING: u64 = 20;
/// Number of broadcasts: more than the kernel and the hub can hold for a member that does not read.
pub const MANY: u64 = 1_000;

/// A member with a small receive buffer.
pub fn small_member(server: &Server) -> Socket {
    small_member_of(server, "/ws")
}

/// The same, for any path.
pub fn small_member_of(server: &Server, path: &str) -> Socket {
    let url = format!("ws://{}{path}", server.addr);
    client(url, Patient(slow_connection(server))).unwrap().0
}

/// Connects two members, one with a small receive buffer, and waits until they have joined.
fn two(server: &Server) -> (Socket, Socket) {
    let mut both = [small_member(server), member(server)];
    for socket in &mut both {
        send(socket, &json!({"type": "echo", "payload": 0}));
        assert_eq!(hear(socket)["type"], "echo");
    }
    let [slow, quick] = both;
    (slow, quick)
}

/// One member broadcasts `MANY` messages, and the other reads none of them. Returns, for each message,
/// the number of members that it was queued for.
fn broadcasts(quick: &mut Socket) -> Vec<u64> {
    let broadcast = |n| {
        quick.send(long_broadcast(n, LONG)).unwrap();
        assert_eq!(hear(quick)["payload"][0], n);
        hear(quick)["listenerCount"].as_u64().unwrap()
    };
    (0..MANY).map(broadcast).collect()
}

const BOUNDS: [&str; 2] = ["--backlog-messages", "20"];

on_hub_models!(a_slow_member_is_closed_with_1013_after_its_queued_messages);

fn a_slow_member_is_closed_with_1013_after_its_queued_messages(model: &str) {
    let (server, page) = hub(model, &BOUNDS);
    let (mut slow, mut quick) = two(&server);
    let queued = broadcasts(&mut quick);
    assert_eq!((queued[0], queued[MANY as usize - 1]), (2, 1), "{model}");
    assert!(queued.is_sorted_by(|a, b| a >= b), "{model}: it is counted again");
    assert_eq!(metric(page, "regatta_hub_slow_total{policy=\"close\"}"), 1, "{model}");
    let mut next = 0;
    let code = loop {
        match slow.read().unwrap() {
            tungstenite::Message::Text(text) => {
                assert_eq!(parsed(&text)["payload"][0], next, "{model}");
                next += 1;
            }
            tungstenite::Message::Close(frame) => break frame.map(|frame| frame.code),
            _ => {}
        }
    };
    assert_eq!(code, Some(CloseCode::Again), "{model}");
    let queued = queued.iter().filter(|queued| **queued == 2).count() as u64;
    assert!(next > 0 && next <= queued && queued < MANY, "{model}: {next} of {queued}");
}

/// Lets a slow member read again. Returns the broadcasts that it receives before its echo.
fn heard_late(slow: &mut Socket) -> Vec<u64> {
    let mut all = Vec::new();
    send(slow, &json!({"type": "echo", "payload": "over"}));
    loop {
        let heard = hear(slow);
        match heard["type"].as_str() {
            Some("broadcast") => all.push(heard["payload"][0].as_u64().unwrap()),
            Some("echo") => break,
            other => panic!("{other:?}"),
        }
    }
    all
}

on_hub_models!(a_slow_member_skips_messages_without_room_and_gets_the_others_in_order);

fn a_slow_member_skips_messages_without_room_and_gets_the_others_in_order(model: &str) {
    let (server, page) = hub(model, &[&BOUNDS[..], &["--slow", "skip"]].concat());
    let (mut slow, mut quick) = two(&server);
    let queued = broadcasts(&mut quick);
    let for_both = queued.iter().filter(|queued| **queued == 2).count() as u64;
    let skipped = metric(page, "regatta_hub_slow_total{policy=\"skip\"}");
    assert_eq!((queued[0], for_both + skipped), (2, MANY), "{model}");
    assert!(skipped > MANY / 4, "{model}: {skipped}");
    let mut heard = heard_late(&mut slow);
    // Messages that are still queued may come after the echo; they are newer.
    while (heard.len() as u64) < for_both {
        let late = hear(&mut slow);
        heard.push(late["payload"][0].as_u64().unwrap());
    }
    assert!(heard.is_sorted_by(|a, b| a < b), "{model}: {heard:?}");
    let expected: Vec<u64> = (0..MANY).filter(|n| queued[*n as usize] == 2).collect();
    assert_eq!(heard, expected, "{model}: not every queued message was delivered");
    // It has caught up.
    send(&mut quick, &json!({"type": "broadcast", "payload": ["again"]}));
    assert_eq!(hear(&mut slow)["payload"][0], "again", "{model}");
}

on_hub_models!(a_conflated_member_gets_the_newest_message);

fn a_conflated_member_gets_the_newest_message(model: &str) {
    let (server, page) = hub(model, &[&BOUNDS[..], &["--slow", "conflate"]].concat());
    let (mut slow, mut quick) = two(&server);
    let queued = broadcasts(&mut quick);
    assert!(queued.iter().all(|queued| *queued == 2), "{model}");
    let dropped = metric(page, "regatta_hub_slow_total{policy=\"conflate\"}");
    assert!(dropped > MANY / 4, "{model}: {dropped}");
    let mut heard = Vec::new();
    while heard.last() != Some(&(MANY - 1)) {
        heard.push(hear(&mut slow)["payload"][0].as_u64().unwrap());
    }
    assert!(heard.is_sorted_by(|a, b| a < b), "{model}: {heard:?}");
    assert_eq!(heard.len() as u64 + dropped, MANY, "{model}");
    assert!(WAITING < heard.len() as u64, "{model}");
    assert_eq!(closed_by(slow), Some(CloseCode::Normal), "{model}");
}

fn closed_by(mut socket: Socket) -> Option<CloseCode> {
    socket.close(None).unwrap();
    closed(&mut socket)
}

on_hub_models!(a_load_with_a_member_that_never_reads_succeeds);

/// The policy acts on the load's own slow member, and every other delivery is correct: a wrong one ends the load.
fn a_load_with_a_member_that_never_reads_succeeds(model: &str) {
    // Each policy on a third of the models.
    let nth = models().iter().position(|one| *one == model).unwrap();
    let policy = ["close", "skip", "conflate"][nth % 3];
    // On a busy machine, members that read may be behind by a quarter of this backlog.
    let (server, page) = hub(model, &["--slow", policy, "--backlog", "1048576"]);
    let slow = format!("regatta_hub_slow_total{{policy=\"{policy}\"}}");
    let mut load = load_with_a_stalled_member(&server, "100s").spawn().unwrap();
    until_within(Duration::from_secs(90), "the policy has acted, or the load has ended", || {
        metric(page, &slow) > 0 || load.try_wait().unwrap().is_some()
    });
    // It may have ended.
    let _ = kill_process(Pid::from_child(&load), Signal::INT);
    let ended = load.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{model}: {policy}: {ended:?}");
}

#[test]
fn a_load_reports_its_idle_and_stalled_members() {
    let (server, _) = hub("epoll", &[]);
    let ended = load_with_a_stalled_member(&server, "200ms").output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let printed = String::from_utf8(ended.stdout).unwrap();
    assert!(printed.contains("2 idle (1 never read)"), "{printed}");
}

fn load_with_a_stalled_member(server: &Server, time: &str) -> Command {
    let url = format!("ws://{}/ws", server.addr);
    let mut command =
        regatta!("load {url} -c 4 --idle 2 --stalled 1 --pipeline 64 -d {time} --warm-up 100ms");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}
