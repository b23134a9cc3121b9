//! Histories of rooms, on every model that can have them: members that come back, with a client from another crate.

use crate::{
    hub::{
        api::{call, files},
        recovering::Client,
        slow::{MANY, small_member, small_member_of},
    },
    support::{
        Server,
        hub::{closed, hear, hub, long_broadcast, member_of, metric},
        on_models, refused, regatta, until,
    },
};
use serde_json::json;
use std::thread;
use tungstenite::{Message, protocol::frame::coding::CloseCode};

/// Declares a test for each model on which rooms may have a history.
macro_rules! on_models_with_history {
    ($test:ident) => {
        on_models! { $test: threads, select, poll, epoll, percore, green, on_async, uring }
    };
}

on_models_with_history!(a_member_that_comes_back_gets_what_it_missed_and_then_what_is_new);

fn a_member_that_comes_back_gets_what_it_missed_and_then_what_is_new(model: &str) {
    let (server, page) = hub(model, &["--history", "100", "--cores", "2"]);
    let (mut speaker, first) = Client::joins(&server, None);
    assert_eq!(first, json!({"type": "position", "epoch": speaker.epoch, "offset": 0}), "{model}");
    let (mut other, _) = Client::joins(&server, None);
    for n in 1..=3 {
        speaker.says(&json!(n));
        assert_eq!((speaker.takes(), other.takes()), (json!(n), json!(n)), "{model}");
    }
    for n in 4..=50 {
        speaker.says(&json!(n));
        assert_eq!(speaker.takes(), n, "{model}");
    }
    // The connection that it leaves is lost with all that is in it.
    other.comes_back(&server);
    (4..=50).for_each(|n| assert_eq!(other.takes(), n, "{model}"));
    speaker.says(&json!(51));
    assert_eq!((speaker.takes(), other.takes()), (json!(51), json!(51)), "{model}");
    other.comes_back(&server);
    other.says(&json!(52));
    assert_eq!((speaker.takes(), other.takes()), (json!(52), json!(52)), "{model}");
    assert_eq!(metric(page, "regatta_hub_recoveries_total{recovered=\"true\"}"), 2, "{model}");
    assert_eq!(metric(page, "regatta_hub_recovered_messages_total"), 47, "{model}");
    assert_eq!(metric(page, "regatta_hub_history_messages"), 52, "{model}");
}

on_models_with_history!(members_that_come_and_go_see_the_one_order_of_all_messages);

/// Members on two cores send at the same time, while others lose their connections again and again.
fn members_that_come_and_go_see_the_one_order_of_all_messages(model: &str) {
    const SENDERS: u64 = 3;
    const EACH: u64 = 150;
    const ALL: u64 = SENDERS * EACH;
    let server = Server::of("hub", model, &["--history", "1000", "--cores", "2"]);
    let (mut witness, _) = Client::joins(&server, None);
    let order = thread::scope(|scope| {
        let server = &server;
        let readers: Vec<_> = (0..3)
            .map(|own| {
                let (mut reader, _) = Client::joins(server, None);
                assert_eq!(reader.offset, 0, "{model}");
                scope.spawn(move || {
                    let mut got = Vec::new();
                    while got.len() < ALL as usize {
                        got.push(reader.takes());
                        if got.len() % (20 + own) == 0 {
                            reader.comes_back(server);
                        }
                    }
                    got
                })
            })
            .collect();
        for sender in 0..SENDERS {
            let (mut client, _) = Client::joins(server, None);
            scope.spawn(move || {
                for n in 0..EACH {
                    client.says(&json!([sender, n]));
                    while client.takes() != json!([sender, n]) {}
                }
            });
        }
        let order: Vec<_> = (0..ALL).map(|_| witness.takes()).collect();
        for reader in readers {
            assert_eq!(reader.join().unwrap(), order, "{model}");
        }
        order
    });
    for sender in 0..SENDERS {
        let own = order.iter().filter(|payload| payload[0] == sender);
        assert!(own.map(|payload| payload[1].as_u64().unwrap()).eq(0..EACH), "{model}");
    }
}

on_models_with_history!(a_position_that_cannot_be_continued_is_a_gap);

fn a_position_that_cannot_be_continued_is_a_gap(model: &str) {
    let start = || Server::of("hub", model, &["--history", "5"]);
    let server = start();
    let (mut speaker, _) = Client::joins(&server, None);
    for n in 1..=8 {
        speaker.says(&json!(n));
        assert_eq!(speaker.takes(), n, "{model}");
    }
    let epoch = speaker.epoch.clone();
    let gap = |epoch: &str, offset: u64| json!({"type": "gap", "recovered": false, "epoch": epoch, "offset": offset});
    let (mut late, first) = Client::joins(&server, Some((&epoch, 2)));
    assert_eq!(first, gap(&epoch, 3), "{model}: the oldest that is kept is 4");
    (4..=8).for_each(|n| assert_eq!(late.takes(), n, "{model}"));
    let (_, first) = Client::joins(&server, Some((&epoch, 9)));
    assert_eq!(first, gap(&epoch, 8), "{model}: no such message");
    // After a restart the messages are gone, and offsets begin again.
    let server = start();
    let (client, first) = Client::joins(&server, Some((&epoch, 8)));
    assert_eq!(first, gap(&client.epoch, 0), "{model}");
    assert_ne!(client.epoch, epoch, "{model}");
}

on_models_with_history!(a_slow_member_is_closed_or_gets_a_gap_and_the_others_do_not_wait);

/// On `green` and `async`, messages are queued outside of the member, so it is closed as without a history.
fn a_slow_member_is_closed_or_gets_a_gap_and_the_others_do_not_wait(model: &str) {
    let (server, page) = hub(model, &["--history", "20", "--backlog-messages", "20"]);
    let mut slow = small_member(&server);
    assert_eq!(hear(&mut slow)["type"], "position", "{model}");
    let (mut quick, _) = Client::joins_at(&server, "/ws", None);
    for n in 0..MANY {
        quick.socket.send(long_broadcast(n, 8_000)).unwrap();
        assert_eq!(quick.takes()[0], n, "{model}");
    }
    if ["green", "async"].contains(&model) {
        assert_eq!(closed(&mut slow), Some(CloseCode::Again), "{model}");
        return;
    }
    let (mut last, mut gaps, mut messages) = (0, 0, 0);
    while last < MANY {
        let heard = hear(&mut slow);
        let offset = heard["offset"].as_u64().unwrap();
        match heard["type"].as_str().unwrap() {
            "gap" => {
                assert!(offset > last && heard["recovered"] == false, "{model}: {heard}");
                gaps += 1;
            }
            "broadcast" => {
                assert_eq!((offset, &heard["payload"][0]), (last + 1, &json!(last)), "{model}");
                messages += 1;
            }
            other => panic!("{model}: {other}"),
        }
        last = offset;
    }
    assert!(gaps > 0 && messages > 20 && messages < MANY, "{model}: {gaps} {messages}");
    assert_eq!(metric(page, "regatta_hub_gaps_total"), gaps, "{model}");
}

on_models_with_history!(a_dismissed_member_that_is_behind_gets_no_more_of_the_history);

fn a_dismissed_member_that_is_behind_gets_no_more_of_the_history(model: &str) {
    let (_folder, options) = files();
    let history = MANY.to_string();
    let server = Server::of("hub", model, &["--history", &history, "--api-key-file", &options[1]]);
    let (mut speaker, _) = Client::joins_at(&server, "/ws", None);
    for n in 0..MANY {
        speaker.socket.send(long_broadcast(n, 8_000)).unwrap();
        assert_eq!(speaker.takes()[0], n, "{model}");
    }
    let mut slow = small_member_of(&server, &format!("/ws?epoch={}&offset=0", speaker.epoch));
    assert_eq!(hear(&mut slow)["recovered"], true, "{model}");
    drop(speaker);
    let clients = || {
        let presence = call(&server, "presence", &json!({"channel": ""}));
        presence["result"]["presence"].as_object().unwrap().clone()
    };
    until("only the slow one is left", || clients().len() == 1);
    let asked = json!({"client": clients().keys().next(), "disconnect": {"code": 4001}});
    assert_eq!(call(&server, "disconnect", &asked), json!({"result": {}}), "{model}");
    let mut messages = 0;
    let code = loop {
        match slow.read().unwrap() {
            Message::Close(frame) => break frame.map(|frame| frame.code),
            _ => messages += 1,
        }
    };
    assert_eq!(code, Some(CloseCode::from(4001)), "{model}");
    assert!(messages < MANY, "{model}: all of them");
}

on_models_with_history!(a_backend_reads_the_history_and_gets_the_offset_of_what_it_publishes);

fn a_backend_reads_the_history_and_gets_the_offset_of_what_it_publishes(model: &str) {
    let (_folder, options) = files();
    let server = Server::of("hub", model, &["--history", "3", "--api-key-file", &options[1]]);
    let publishes =
        |n| call(&server, "publish", &json!({"channel": "red", "data": n}))["result"].clone();
    assert_eq!(publishes(1)["offset"], 1, "{model}");
    let (mut member, first) = Client::joins(&server, None);
    assert_eq!(first["offset"], 1, "{model}");
    member.says(&json!(2));
    assert_eq!(member.takes(), 2, "{model}");
    (3..=5).for_each(|n| {
        assert_eq!(
            (publishes(n)["offset"].clone(), member.takes()),
            (n.into(), n.into()),
            "{model}"
        )
    });
    let asked =
        json!({"channel": "red", "limit": 2, "since": {"offset": 2, "epoch": member.epoch}});
    let publications = json!([{"offset": 3, "data": 3}, {"offset": 4, "data": 4}]);
    let expected = json!({"publications": publications, "offset": 5, "epoch": member.epoch});
    assert_eq!(call(&server, "history", &asked)["result"], expected, "{model}");
}

#[test]
fn options_that_exclude_each_other_are_refused_with_the_reason() {
    for (arguments, expected) in [
        (&["--history", "9", "--model", "cluster"][..], "its processes have no memory in common"),
        (&["--history", "9", "--slow", "skip"], "--slow skip and --history: a slow member"),
        (&["--history", "9", "--slow", "conflate"], "--slow conflate and --history"),
        (&["--history-ttl", "9s"], "--history-ttl has no effect without --history"),
        (&["--history", "9", "--history-ttl", "9ms"], "expected a time from 1s to 1d"),
    ] {
        let printed = refused(regatta!("hub --check").args(arguments));
        assert!(printed.contains(expected), "{arguments:?}: {printed}");
    }
}

#[test]
fn a_member_of_a_room_without_a_history_that_names_a_position_gets_a_gap() {
    let server = Server::of("hub", "cluster", &["--cores", "2"]);
    let mut socket = member_of(&server, "/ws/red?epoch=0123456789abcdef&offset=7");
    assert_eq!(hear(&mut socket), json!({"type": "gap", "recovered": false}));
    socket.send(Message::text(r#"{"type":"broadcast","payload":1}"#)).unwrap();
    assert_eq!(hear(&mut socket), json!({"type": "broadcast", "payload": 1}));
}
