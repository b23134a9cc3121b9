//! Clients that come back with a position, or are slow, in rooms whose messages are kept.

use super::{Cores, publication, with_history};
use regatta_service::hub::Settings;
use serde_json::{Value, json};

fn quiet(messages: usize) -> Settings {
    Settings { presence: false, ..with_history(messages) }
}

fn recover(channel: &str, epoch: &Value, offset: u64) -> Value {
    json!({"subscribe": {"channel": channel, "recover": true, "epoch": epoch, "offset": offset}})
}

#[test]
fn a_client_gets_what_it_has_missed_in_the_reply_and_what_is_long_behind_it() {
    let mut cores = Cores::new(quiet(10));
    let (mut ann, mut bob) = (cores.client(0), cores.client(1));
    let first = cores.subscribes(&mut ann, "red");
    let epoch = first["epoch"].clone();
    assert_eq!(
        first,
        json!({"recoverable": true, "positioned": true, "epoch": epoch, "offset": 0})
    );
    cores.publishes(&mut bob, "red", json!({"n": 1}));
    assert_eq!(cores.hears(&mut ann), [publication("red", json!({"n": 1}), Some(1))]);
    cores.loses(ann);
    for n in 2..5 {
        cores.publishes(&mut bob, "red", json!({"n": n}));
    }
    cores.delivers();
    let mut ann = cores.client(1);
    let all = cores.asks_all(&mut ann, recover("red", &epoch, 1));
    let publications: Vec<_> = (2..5).map(|n| json!({"offset": n, "data": {"n": n}})).collect();
    let expected = json!({"recoverable": true, "positioned": true, "epoch": epoch, "offset": 4,
        "publications": publications, "recovered": true, "was_recovering": true});
    assert_eq!(all, [json!({"subscribe": expected})]);
    // Long ones follow the reply, which names the position that is behind its own.
    cores.loses(ann);
    let long = "x".repeat(30_000);
    for n in 5..10 {
        cores.publishes(&mut bob, "red", json!([n, long]));
    }
    cores.delivers();
    let mut ann = cores.client(0);
    let all = cores.asks_all(&mut ann, recover("red", &epoch, 4));
    let result = &all[0]["subscribe"];
    assert_eq!((&result["recovered"], &result["offset"]), (&json!(true), &json!(6)));
    let offsets = result["publications"].as_array().unwrap().iter().map(|one| &one["offset"]);
    let offsets = offsets.chain(all[1..].iter().map(|one| &one["push"]["pub"]["offset"]));
    assert_eq!(offsets.map(|one| one.as_u64().unwrap()).collect::<Vec<_>>(), [5, 6, 7, 8, 9]);
}

#[test]
fn what_cannot_be_recovered_is_said() {
    let mut cores = Cores::new(quiet(2));
    let (mut ann, mut bob) = (cores.client(0), cores.client(1));
    let epoch = cores.subscribes(&mut bob, "red")["epoch"].clone();
    for n in 1..6 {
        cores.publishes(&mut bob, "red", json!(n));
    }
    cores.delivers();
    let other = json!("0123456789abcdef");
    for (epoch, offset) in
        [(&epoch, 2), (&epoch, 6), (&other, 5), (&json!(""), 0), (&json!("x"), 5)]
    {
        let reply = cores.asks(&mut ann, recover("red", epoch, offset));
        let result = &reply["subscribe"];
        assert_eq!((&result["recovered"], &result["publications"]), (&Value::Null, &Value::Null));
        assert_eq!((&result["was_recovering"], &result["offset"]), (&json!(true), &json!(5)));
        cores.asks(&mut ann, json!({"unsubscribe": {"channel": "red"}}));
        let mut strict = recover("red", epoch, offset);
        strict["subscribe"]["flag"] = json!(3);
        assert_eq!(cores.asks(&mut ann, strict)["error"]["code"], 112);
    }
    let mut strict = recover("red", &epoch, 3);
    strict["subscribe"]["flag"] = json!(3);
    assert_eq!(cores.asks(&mut ann, strict)["subscribe"]["recovered"], true);
    // A room without a history keeps nothing that could be missed without notice.
    let mut cores = Cores::new(quiet(0));
    let mut ann = cores.client(0);
    let reply = cores.asks(&mut ann, recover("red", &epoch, 3));
    assert_eq!(reply, json!({"subscribe": {"was_recovering": true}}));
}

#[test]
fn a_client_that_is_too_slow_for_a_history_must_subscribe_again() {
    let mut cores = Cores::new(quiet(3));
    let (mut slow, mut bob) = (cores.client(0), cores.client(1));
    let epoch = cores.subscribes(&mut slow, "red")["epoch"].clone();
    cores.subscribes(&mut slow, "blue");
    let long = "x".repeat(40_000);
    // Beyond the limit, a room keeps 1 MiB for members that are about to get it.
    for n in 1..40 {
        cores.publishes(&mut bob, "red", json!([n, long]));
        cores.delivers();
    }
    let got = cores.hears(&mut slow);
    let (end, before) = got.split_last().unwrap();
    let gap =
        json!({"channel": "red", "unsubscribe": {"code": 2500, "reason": "insufficient state"}});
    assert_eq!(*end, json!({"push": gap}));
    let last = before.len() as u64;
    for (one, n) in before.iter().zip(1..) {
        assert_eq!(one["push"]["pub"]["offset"], n, "in order and without a hole");
    }
    assert!(last < 20 && slow.closed.is_none(), "{last}");
    cores.publishes(&mut bob, "red", json!("not for it"));
    cores.publishes(&mut bob, "blue", json!("it is still there"));
    assert_eq!(cores.hears(&mut slow), [publication("blue", json!("it is still there"), Some(1))]);
    let reply = cores.asks(&mut slow, recover("red", &epoch, last));
    assert_eq!(reply["subscribe"]["recovered"], Value::Null);
    cores.publishes(&mut bob, "red", json!("again"));
    assert_eq!(cores.hears(&mut slow), [publication("red", json!("again"), Some(41))]);
}

#[test]
fn the_history_is_read_forwards_and_backwards() {
    let mut cores = Cores::new(quiet(3));
    let mut ann = cores.client(0);
    let epoch = cores.subscribes(&mut ann, "red")["epoch"].clone();
    for n in 1..6 {
        cores.publishes(&mut ann, "red", json!(n));
    }
    let mut history = |mut asked: Value| {
        asked["channel"] = json!("red");
        let reply = cores.asks(&mut ann, json!({"history": asked}));
        let Some(all) = reply["history"]["publications"].as_array() else {
            return (reply["error"]["code"].clone(), Vec::<u64>::new());
        };
        assert_eq!((&reply["history"]["epoch"], &reply["history"]["offset"]), (&epoch, &json!(5)));
        (Value::Null, all.iter().map(|one| one["offset"].as_u64().unwrap()).collect::<Vec<u64>>())
    };
    assert!(history(json!({})).1.is_empty());
    assert_eq!(history(json!({"limit": -1})).1, [3, 4, 5]);
    assert_eq!(history(json!({"limit": 2, "reverse": true})).1, [5, 4]);
    assert_eq!(history(json!({"limit": 9, "since": {"offset": 3, "epoch": ""}})).1, [4, 5]);
    assert_eq!(history(json!({"limit": 9, "since": {"offset": 1}})).0, 112);
    assert_eq!(history(json!({"limit": 9, "since": {"offset": 3, "epoch": "other"}})).0, 112);
    // Also of rooms in which the client is not.
    let mut bob = cores.client(1);
    for (channel, messages) in [("red", 3), ("never", 0)] {
        let history = json!({"history": {"channel": channel, "limit": 9}});
        let reply = cores.asks(&mut bob, history);
        assert_eq!(reply["history"]["publications"].as_array().map(Vec::len), Some(messages));
    }
}
