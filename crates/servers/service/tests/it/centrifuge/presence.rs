//! Who is in a room, and who joins and leaves.

use super::{Cores, settings};
use serde_json::{Value, json};

fn events(all: &[Value]) -> Vec<(&str, &str)> {
    let one = |one: &Value| -> Option<(&'static str, String)> {
        ["join", "leave"]
            .into_iter()
            .find_map(|name| Some((name, one["push"][name]["info"]["client"].as_str()?.to_owned())))
    };
    all.iter()
        .map(|value| one(value).map_or(("other", ""), |(name, _)| (name, client(value, name))))
        .collect()
}

fn client<'a>(value: &'a Value, name: &str) -> &'a str {
    value["push"][name]["info"]["client"].as_str().unwrap_or("")
}

#[test]
fn those_who_ask_are_notified_who_joins_and_leaves() {
    let mut cores = Cores::new(settings());
    let mut ann = cores.opens(0, "/connection/websocket");
    let id = cores.asks(&mut ann, json!({"connect": {}}))["connect"]["client"].clone();
    let id = id.as_str().unwrap();
    let join = json!({"subscribe": {"channel": "red", "join_leave": true}});
    let all = cores.asks_all(&mut ann, join);
    assert_eq!(events(&all[1..]), [("join", id)], "its own, behind the reply");
    let mut silent = cores.client(0);
    let reply = cores.asks_all(&mut silent, json!({"subscribe": {"channel": "red"}}));
    assert_eq!(reply, [json!({"subscribe": {}})]);
    let mut member = cores.opens(1, "/ws/red?name=eve");
    let here = cores.hears(&mut member);
    assert_eq!((&here[0]["count"], here.len()), (&json!(3), 1), "{here:?}");
    let heard = cores.hears(&mut ann);
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert_eq!(heard[1]["push"]["join"]["info"]["chan_info"], json!({"name": "eve"}));
    assert!(cores.hears(&mut silent).is_empty());

    let reply = cores.asks(&mut ann, json!({"presence": {"channel": "red"}}));
    let there = reply["presence"]["presence"].as_object().unwrap();
    assert!(there.len() == 3 && there[id]["client"] == id, "{there:?}");
    let reply = cores.asks(&mut ann, json!({"presence_stats": {"channel": "red"}}));
    assert_eq!(reply["presence_stats"], json!({"num_clients": 3, "num_users": 1}));

    cores.asks(&mut silent, json!({"unsubscribe": {"channel": "red"}}));
    assert_eq!(events(&cores.hears(&mut ann)).len(), 1);
    let left = cores.hears(&mut member);
    assert_eq!((&left[0]["event"], &left[0]["count"]), (&json!("leave"), &json!(2)));
    cores.loses(ann);
    let left = cores.hears(&mut member);
    assert_eq!((&left[0]["event"], &left[0]["count"]), (&json!("leave"), &json!(1)));
}
