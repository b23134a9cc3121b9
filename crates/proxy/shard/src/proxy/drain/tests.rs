//! A drain of a proxy without sockets.

use super::*;
use crate::{Nodes, Settings, Shared};
use regatta_engine::{Core, Limits, Next, Now};
use regatta_keyspace::map::{Map, Slots};
use std::{sync::Arc, time::Instant};

const OVER: Duration = Duration::from_secs(10);

/// A core in front of a node that nobody reaches.
fn core(hands_over: bool) -> Core<Proxy> {
    let nodes = Nodes::new([("node".to_owned(), ([127, 0, 0, 1], 1).into())]);
    let mut settings = Settings::new(Map::new(1, Slots::even(1).unwrap()), nodes);
    settings.hands_over = hands_over;
    let now = Now { instant: Instant::now(), unix_s: 1_800_000_000 };
    Core::new(Proxy::new(Arc::new(Shared::new(settings)), 1), Limits::default(), now)
}

/// Sends a line, and returns all output. It ends with `FIN` if the proxy closes its side.
fn say(core: &mut Core<Proxy>, conn: Conn, line: &str) -> String {
    core.received(conn, format!("{line}\r\n").into_bytes().as_mut_slice());
    hear(core, conn)
}

fn hear(core: &mut Core<Proxy>, conn: Conn) -> String {
    let mut heard = String::new();
    loop {
        match core.next(conn, &()) {
            Next::Write { .. } => {
                let output = core.output(conn).to_vec();
                heard.push_str(std::str::from_utf8(&output).unwrap());
                core.wrote(conn, output.len());
            }
            Next::Wait => return heard,
            Next::ShutdownWrite | Next::Close => return heard + "FIN",
        }
    }
}

/// Starts a drain, and ends it for all clients.
fn all_turns(core: &mut Core<Proxy>) {
    let start = core.now();
    core.drain(OVER, 7);
    core.turn(Now { instant: start.instant + OVER, ..start });
    core.tick(&());
    assert!(core.is_drained());
}

#[test]
fn an_idle_client_leaves_at_its_turn_and_a_transaction_ends_first() {
    let mut core = core(false);
    let [idle, partial, multi] = [(); 3].map(|()| core.accept());
    assert_eq!(say(&mut core, idle, "PING"), "+PONG\r\n");
    core.received(partial, b"PI".to_vec().as_mut_slice());
    assert_eq!(say(&mut core, multi, "MULTI"), "+OK\r\n");
    all_turns(&mut core);
    assert_eq!(hear(&mut core, idle), "FIN");
    assert_eq!((hear(&mut core, partial), hear(&mut core, multi)), Default::default());
    assert_eq!(say(&mut core, partial, "NG"), "+PONG\r\nFIN");
    assert_eq!(say(&mut core, multi, "PING"), "+QUEUED\r\n");
    assert_eq!(say(&mut core, multi, "DISCARD"), "+OK\r\nFIN");
}

#[test]
fn a_client_that_sends_requests_leaves_right_behind_a_reply() {
    let mut core = core(false);
    let conn = core.accept();
    let start = core.now();
    core.drain(OVER, 7);
    let turn = Now { instant: core.due().unwrap(), ..start };
    core.turn(Now { instant: turn.instant - Duration::from_millis(900), ..start });
    assert_eq!(say(&mut core, conn, "PING"), "+PONG\r\n");
    core.turn(turn);
    core.tick(&());
    assert_eq!(hear(&mut core, conn), "", "its next request may be on its way");
    assert_eq!(say(&mut core, conn, "PING"), "+PONG\r\nFIN");
}

#[test]
fn a_client_that_asks_is_requested_to_reconnect_and_stays() {
    let mut core = core(true);
    let [asks, stops, other, multi] = [(); 4].map(|()| core.accept());
    for conn in [asks, stops, other, multi] {
        assert!(say(&mut core, conn, "HELLO 3").starts_with("%7\r\n"));
    }
    let on = "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none";
    for conn in [asks, stops, multi] {
        assert_eq!(say(&mut core, conn, on), "+OK\r\n");
    }
    assert_eq!(say(&mut core, stops, "client maint_notifications off"), "+OK\r\n");
    assert_eq!(say(&mut core, multi, "MULTI"), "+OK\r\n");
    all_turns(&mut core);
    let push = ">4\r\n$6\r\nMOVING\r\n:1800000000\r\n:10\r\n_\r\n";
    assert_eq!(hear(&mut core, asks), push);
    assert_eq!(say(&mut core, asks, "PING"), "+PONG\r\n");
    assert_eq!((hear(&mut core, stops), hear(&mut core, other)), ("FIN".into(), "FIN".into()));
    assert_eq!(hear(&mut core, multi), "", "a push would come in its transaction");
    assert_eq!(say(&mut core, multi, "DISCARD"), "+OK\r\nFIN");
}

#[test]
fn the_command_is_known_only_in_resp3_of_a_proxy_that_hands_over() {
    // Otherwise a node is asked first whether it knows the command.
    for (hands_over, hello, expected) in
        [(true, "HELLO 3", "+OK\r\n"), (true, "HELLO 2", ""), (false, "HELLO 3", "")]
    {
        let mut core = core(hands_over);
        let conn = core.accept();
        say(&mut core, conn, hello);
        assert_eq!(say(&mut core, conn, "CLIENT MAINT_NOTIFICATIONS ON"), expected);
    }
    let mut core = core(true);
    let conn = core.accept();
    say(&mut core, conn, "HELLO 3");
    let reply = say(&mut core, conn, "CLIENT MAINT_NOTIFICATIONS MAYBE");
    assert_eq!(reply, "-ERR syntax error\r\n");
    say(&mut core, conn, "CLIENT MAINT_NOTIFICATIONS ON");
    assert_eq!(say(&mut core, conn, "RESET"), "+RESET\r\n");
    core.drain(OVER, 1);
    assert_eq!(hear(&mut core, conn), "", "RESET ends it");
}

#[test]
fn a_client_that_asks_for_handoffs_when_the_drain_has_begun_is_asked_at_once() {
    let mut core = core(true);
    let late = core.accept();
    assert!(say(&mut core, late, "HELLO 3").starts_with('%'));
    core.drain(OVER, 7);
    let reply = say(&mut core, late, "CLIENT MAINT_NOTIFICATIONS ON");
    let push = reply.strip_prefix("+OK\r\n").unwrap();
    assert_eq!(push, ">4\r\n$6\r\nMOVING\r\n:1800000000\r\n:10\r\n_\r\n");
}
