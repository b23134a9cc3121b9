//! The members of a hub on several machines: each must get each broadcast of the others exactly once. A relay in
//! front of a right hub makes the errors.

use super::{Place, ended};
use crate::support::{Server, json, run};
use regatta_testkit::skip;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::BTreeSet,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

/// What the relay does to the fifth copy of a broadcast of the other member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Drops,
    Doubles,
    /// Changes the time at which it was sent.
    Alters,
    /// Also sends one with a number that no broadcast has yet.
    Invents,
    /// Closes the connection of member 2 or 3, after it has withheld copies of two senders. A member that joins again
    /// gets everything: the load could end between its first copy that is withheld and the second.
    Closes,
    /// Closes the connection, if the member only listens, after that copy. When the member connects again, it waits for
    /// [`JOINS_AFTER`].
    Dismisses,
    /// Nothing, but everything that member 1 gets is delayed by [`DELAY`].
    Delays,
    /// Nothing, but every copy of a broadcast of another member is delayed by [`LONG_DELAY`].
    DelaysOthers,
}

const DELAY: Duration = Duration::from_millis(20);
/// Much longer than a load on a busy machine is late, and shorter than the time between two copies.
const LONG_DELAY: Duration = Duration::from_millis(40);
const JOINS_AFTER: Duration = Duration::from_millis(300);
/// Number of members of the loads with [`Fault::Closes`] and [`Fault::Dismisses`].
const MEMBERS: usize = 4;

/// Starts a relay of WebSocket connections to a hub.
pub(crate) fn relay(hub: SocketAddr, fault: Fault) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
            let joins_again = number >= MEMBERS;
            if fault == Fault::Dismisses && joins_again {
                thread::sleep(JOINS_AFTER);
            }
            let hub = TcpStream::connect(hub).unwrap();
            hub.set_nodelay(true).unwrap();
            stream.set_nodelay(true).unwrap();
            let (mut from, mut to) = (stream.try_clone().unwrap(), hub.try_clone().unwrap());
            thread::spawn(move || {
                let _ = io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
            thread::spawn(move || {
                let closes = fault == Fault::Closes && !joins_again;
                let _ = pass_on(hub, &stream, fault, closes);
                let _ = stream.shutdown(Shutdown::Both);
            });
        }
    });
    address
}

/// Passes on what the hub sends to a member, until one of both closes.
fn pass_on(
    mut hub: TcpStream,
    mut member: &TcpStream,
    fault: Fault,
    closes: bool,
) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        hub.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    member.write_all(&head)?;
    let (mut own, mut copies, mut withheld) = (None, 0, BTreeSet::new());
    loop {
        let mut frame = vec![0; 2];
        hub.read_exact(&mut frame)?;
        assert!(frame[1] < 126, "messages are short");
        frame.resize(2 + usize::from(frame[1]), 0);
        hub.read_exact(&mut frame[2..])?;
        let text = String::from_utf8_lossy(&frame).into_owned();
        let Some((_, payload)) = text.split_once("\"payload\":\"") else {
            member.write_all(&frame)?;
            continue;
        };
        // The first eight digits are the number of the sender; the first message answers the member's own echo.
        let sender = payload[..8].to_owned();
        let is_own = *own.get_or_insert_with(|| sender.clone()) == sender;
        copies += u32::from(!is_own && text.contains("\"broadcast\""));
        if fault == Fault::Delays && own.as_deref() == Some("00000001") {
            thread::sleep(DELAY);
        }
        if fault == Fault::DelaysOthers && !is_own {
            thread::sleep(LONG_DELAY);
        }
        if closes && own.as_deref() > Some("00000001") && copies >= 5 {
            withheld.insert(sender);
            if withheld.len() == 2 {
                return Ok(());
            }
            continue;
        }
        if is_own || copies != 5 {
            member.write_all(&frame)?;
            continue;
        }
        if fault == Fault::Dismisses && own.as_deref() > Some("00000001") {
            return member.write_all(&frame);
        }
        let at = frame.len() - payload.len();
        match fault {
            Fault::Drops => {}
            Fault::Closes | Fault::Dismisses | Fault::Delays | Fault::DelaysOthers => {
                member.write_all(&frame)?;
            }
            Fault::Doubles => member.write_all(&[&frame[..], &frame].concat())?,
            Fault::Alters => {
                flip(&mut frame[at + 39]);
                member.write_all(&frame)?;
            }
            Fault::Invents => {
                let mut invented = frame.clone();
                // The number, in 16 digits after the sender: 4096 more.
                flip(&mut invented[at + 20]);
                member.write_all(&[&frame[..], &invented].concat())?;
            }
        }
        copies += 1;
    }
}

/// Changes a digit.
fn flip(digit: &mut u8) {
    *digit = if *digit == b'0' { b'1' } else { b'0' };
}

/// A load of two members, one on each of two machines, through the relay: its exit status, its verdict, and the
/// wrong exchange in words.
fn loaded(fault: Fault) -> (Option<i32>, String, String) {
    let place = Place::new();
    let hub = Server::of("hub", "epoll", &[]);
    let url = format!("ws://{}/ws", relay(hub.addr, fault));
    let first = ["load", &url, "--on", "one,two", "-c", "2", "--rate", "500/s"];
    let more = ["-d", "400ms", "--warm-up", "200ms", "--timeout", "1s", "--json", "-"];
    let ended = run(place.of(&first, &more));
    let result = json(&ended);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let wrong = &result["first_wrong"];
    let exchange = [&wrong["expected"], &wrong["received"]].map(text).join(" / ");
    (ended.status.code(), text(&result["verdict"]["kind"]), exchange)
}

#[track_caller]
fn is_found(fault: Fault, expected: &str) {
    let (status, verdict, exchange) = loaded(fault);
    assert_eq!((status, &*verdict), (Some(1), "disqualified"), "{exchange}");
    assert!(exchange.contains(expected), "{exchange}");
}

#[test]
fn a_copy_that_is_dropped_between_machines_is_found() {
    is_found(Fault::Drops, "1 of these are missing, although the load has waited");
}

#[test]
fn a_copy_that_is_doubled_between_machines_is_found() {
    is_found(Fault::Doubles, "each broadcast once; this one was delivered before");
}

#[test]
fn a_copy_that_is_changed_between_machines_is_found() {
    is_found(Fault::Alters, "copies with another sender, number or time");
}

#[test]
fn a_copy_that_is_invented_is_found() {
    // The member counts it as a later broadcast of the other one, and refuses the ones before that, or the leader
    // finds that no member has sent it.
    let (status, verdict, exchange) = loaded(Fault::Invents);
    assert_eq!((status, &*verdict), (Some(1), "disqualified"), "{exchange}");
    let is_found = |text: &str| exchange.contains(text);
    assert!(
        is_found("only broadcasts that a member") || is_found("broadcasts of one sender in order")
    );
}

/// What a member was owed by its own machine is missing. What it got from the other one is not checked.
#[test]
fn a_closed_connection_of_a_member_is_no_error_of_deliveries_between_machines() {
    let place = Place::new();
    let hub = Server::of("hub", "epoll", &[]);
    let url = format!("ws://{}/ws", relay(hub.addr, Fault::Closes));
    let first = ["load", &url, "--on", "one,two", "-c", "2", "--idle", "2", "--rate", "500/s"];
    let more = ["-d", "400ms", "--warm-up", "200ms", "--timeout", "1s"];
    let text = run(place.of(&first, &more)).with_status(1).stdout;
    assert!(text.contains("with deliveries owed"), "{text}");
    assert!(text.contains("void: the connections of 2 members were closed"), "{text}");
    assert!(!text.contains("although the load has waited"), "{text}");
}

/// Nobody owes it anything until it has joined again, also from the other machine.
#[test]
fn a_member_that_joins_again_late_voids_rate_and_latency() {
    let place = Place::new();
    let hub = Server::of("hub", "epoll", &[]);
    let url = format!("ws://{}/ws", relay(hub.addr, Fault::Dismisses));
    let first = ["load", &url, "--on", "one,two", "-c", "2", "--idle", "2", "--rate", "50/s"];
    let more = ["-d", "1s", "--warm-up", "100ms", "--timeout", "2s", "--json", "-"];
    let result = json(&run(place.of(&first, &more)));
    // Two members were away for 0.3 s, in which about 15 broadcasts were sent.
    assert!(result["absent"].as_u64().is_some_and(|absent| absent > 10), "{result:#}");
    let void = result["verdict"]["void"].as_array().unwrap();
    let is_void = |figure: &str| void.iter().any(|one| one == figure);
    assert!(is_void("rate") && is_void("latency"), "{void:?}");
}

/// The first step of a search for the capacity of a hub at a rate, from two machines, through the relay.
fn first_step(fault: Fault, connections: &str, rate: &str) -> serde_json::Value {
    let (place, hub) = (Place::new(), Server::of("hub", "epoll", &[]));
    let url = format!("ws://{}/ws", relay(hub.addr, fault));
    let first = ["capacity", &url, "--on", "one,two", "--limit", "p50=20ms", "--by", "rate"];
    let more = ["-c", connections, "--step", rate, "--max", rate, "--window", "2s", "--json", "-"];
    json(&run(place.of(&first, &more)))["steps"][0].clone()
}

#[test]
fn late_copies_between_machines_fail_a_level() {
    // At this rate a member is delayed by copies of the other one for less than a third of the time, so its own results are not late.
    let step = first_step(Fault::DelaysOthers, "2", "15");
    let because = step["because"].as_str().unwrap();
    assert_eq!(step["passed"], false, "{step:#}");
    let p50 = because.split_once("p50 of deliveries between agents is ").expect(because).1;
    let p50 = p50.split(' ').next().expect(because);
    // More than a second, or as many milliseconds as the copies are late, or more.
    let late = p50.strip_suffix("ms").map_or(1_000.0, |ms| ms.parse::<f64>().expect(because));
    assert!(p50.ends_with('s') && !p50.ends_with("µs") && late >= 40.0, "{because}");
}

#[test]
fn a_closed_connection_of_a_member_fails_a_level_and_ends_no_search() {
    let step = first_step(Fault::Closes, "4", "30");
    let because = step["because"].as_str().unwrap();
    // A load that was late on a busy machine decides nothing. Both sentences count the closed connections.
    let is_late = because.contains("the load itself was late");
    assert_eq!(step["passed"], if is_late { serde_json::Value::Null } else { false.into() });
    assert!(because.contains("closed"), "{because}");
}

#[test]
fn a_delay_to_one_machine_is_in_the_latencies_to_it() {
    let is_root = rustix::process::geteuid().is_root();
    let on = if is_root { "one,ahead" } else { "one,two" };
    let place = Place::new();
    let hub = Server::of("hub", "epoll", &[]);
    let url = format!("ws://{}/ws", relay(hub.addr, Fault::Delays));
    let first = ["load", &url, "--on", on, "-c", "2", "--rate", "20/s", "--json", "-"];
    let across =
        &json(&run(place.of(&first, &["-d", "1s", "--warm-up", "100ms"])))["agents"]["across"];
    assert_eq!(across["impossible"], 0, "{across:#}");
    let pairs = across["pairs"].as_array().unwrap();
    let to_second = pairs.iter().find(|pair| pair["from"] == "one").unwrap();
    let ns = |value: &serde_json::Value| Duration::from_nanos(value.as_u64().unwrap());
    let most = ns(&to_second["latency_ns"]["min"]) + ns(&to_second["bound_ns"]);
    // Values of histograms are rounded by at most 0.1%.
    assert!(most >= DELAY.mul_f64(0.999), "{across:#}");
    assert!(ns(&to_second["bound_ns"]) < DELAY / 2, "{across:#}");
}

#[test]
fn a_lost_agent_voids_the_load() {
    let (place, hub) = (Place::new(), Server::of("hub", "epoll", &[]));
    let leader = place.long_of(&format!("ws://{}/ws", hub.addr), &["--in-flight", "2"]);
    let agent = place.with("agent").into_iter().max().unwrap();
    kill_process(Pid::from_raw(agent as i32).unwrap(), Signal::KILL).unwrap();
    let (status, text) = ended(leader);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains(": the load is void: agent ") && text.contains(" is gone: "), "{text}");
}

#[test]
fn nothing_is_missing_from_a_load_that_is_stopped() {
    let (place, hub) = (Place::new(), Server::of("hub", "epoll", &[]));
    let leader = place.long_of(&format!("ws://{}/ws", hub.addr), &["--in-flight", "2"]);
    kill_process(Pid::from_child(&leader), Signal::INT).unwrap();
    let (status, text) = ended(leader);
    assert_eq!(status, Some(130), "{text}");
}

/// A load of a right hub.
fn right(on: &str, members: u64) -> serde_json::Value {
    let place = Place::new();
    let hub = Server::of("hub", "epoll", &[]);
    let (url, count) = (format!("ws://{}/ws", hub.addr), members.to_string());
    let first = ["load", &url, "--on", on, "-c", &count, "--json", "-"];
    let result =
        json(&run(place.of(&first, &["-d", "400ms", "--warm-up", "100ms"])).with_status(0));
    let deliveries = &result["operations"][0];
    assert_eq!(deliveries["operation"]["name"], "deliveries");
    let whole_run = deliveries["whole_run"].as_u64().unwrap();
    assert!(whole_run > 0 && whole_run.is_multiple_of(members), "a copy for each: {whole_run}");
    let across = &result["agents"]["across"];
    assert!(across["deliveries"].as_u64().unwrap() > 0, "{across:#}");
    assert_eq!(across["impossible"], 0, "{across:#}");
    assert_eq!(across["unchecked"], 0, "{across:#}");
    assert_eq!(across["pairs"].as_array().unwrap().len(), 2, "{across:#}");
    result
}

#[test]
fn each_member_gets_the_broadcasts_of_both_machines() {
    let result = right("one,two", 12);
    let across = &result["agents"]["across"];
    let sum: u64 = (0..2).map(|pair| across["pairs"][pair]["deliveries"].as_u64().unwrap()).sum();
    assert_eq!(across["deliveries"], sum, "{across:#}");
    let deliveries = result["operations"][0]["count"].as_u64().unwrap();
    assert!(sum < deliveries, "deliveries on the sender's machine are not across: {result:#}");
}

#[test]
fn processes_of_one_machine_share_their_members() {
    let result = right("tight,two", 80);
    assert!(result["agents"]["agents"][0]["processes"].as_u64().unwrap() > 1, "{result:#}");
}

#[test]
fn a_clock_that_is_ahead_is_within_the_bound() {
    if !rustix::process::geteuid().is_root() {
        return skip("clocks of their own need root");
    }
    let result = right("one,ahead", 4);
    let pairs = result["agents"]["across"]["pairs"].as_array().unwrap();
    for (pair, truth) in pairs.iter().zip([1_000_000_000_000_i64, -1_000_000_000_000]) {
        let [least, most] = [0, 1].map(|end| pair["offset_ns"][end].as_i64().unwrap());
        assert!((least..=most).contains(&truth), "{pair:#}");
        assert!(pair["bound_ns"].as_i64().unwrap() < 1_000_000_000, "{pair:#}");
    }
}
