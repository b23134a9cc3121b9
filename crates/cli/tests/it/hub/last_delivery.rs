//! The time to the last member, in the metrics: a member that does not read counts.

use crate::{
    hub::stop::{LONG, MANY, slow_connection},
    support::{
        hub::{Patient, hear, hub, long_broadcast, member, metric, metrics, on_hub_models, send},
        until,
    },
};
use serde_json::json;
use tungstenite::client::client;

/// Number of broadcasts: the last is sampled, and the kernel has no room for it.
const ALL: u64 = MANY + 73;
/// Number of sampled ones: 0, 34, 89, 178, 233, 267 and 322.
const SAMPLED: u64 = 7;

on_hub_models!(the_time_of_a_delivery_runs_while_the_last_member_does_not_read);

fn the_time_of_a_delivery_runs_while_the_last_member_does_not_read(model: &str) {
    let (server, page) = hub(model, &["--cores", "2", "--backlog", "100000000"]);
    let url = format!("ws://{}/ws", server.addr);
    let mut slow = client(url, Patient(slow_connection(&server))).unwrap().0;
    let mut quick = member(&server);
    for socket in [&mut slow, &mut quick] {
        send(socket, &json!({"type": "echo", "payload": 0}));
        assert_eq!(hear(socket)["type"], "echo");
    }
    for n in 0..ALL {
        quick.send(long_broadcast(n, LONG)).unwrap();
        assert_eq!(hear(&mut quick)["payload"][0], n, "{model}");
        assert_eq!(hear(&mut quick)["listenerCount"], 2, "{model}");
    }
    if model == "cluster" {
        assert!(!metrics(page).contains("last_delivery"), "no process sees all members");
        return;
    }
    let (count, pending) =
        ("regatta_hub_last_delivery_seconds_count", "regatta_hub_last_delivery_pending");
    // The first is in the socket of the slow member, and the last is not.
    until(&format!("{model}: the first is delivered"), || metric(page, count) > 0);
    assert!(metric(page, pending) > 0, "{model}");
    assert_eq!(metric(page, count) + metric(page, pending), SAMPLED, "{model}");
    for n in 0..ALL {
        assert_eq!(hear(&mut slow)["payload"][0], n, "{model}");
    }
    until(&format!("{model}: all are delivered"), || metric(page, pending) == 0);
    assert_eq!(metric(page, count), SAMPLED, "{model}");
}
