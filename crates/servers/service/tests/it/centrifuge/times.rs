//! What happens with time: pings, silence, clients that do not connect, and the end of the hub.

use super::{Cores, settings};
use regatta_service::hub::Settings;
use serde_json::json;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_client_that_does_not_connect_is_closed_after_15_s() {
    let mut cores = Cores::new(settings());
    let mut stale = cores.opens(0, "/connection/websocket");
    let mut client = cores.client(0);
    cores.passes(14 * SECOND);
    cores.sends(&stale, "{}");
    assert!(cores.hears(&mut stale).is_empty() && stale.closed.is_none());
    cores.passes(2 * SECOND);
    cores.hears(&mut stale);
    cores.hears(&mut client);
    assert_eq!((stale.code(), client.code()), (Some(3502), None));
}

#[test]
fn pings_come_at_regular_times_and_a_client_that_does_not_answer_is_closed() {
    let settings = Settings { ping: Some(20 * SECOND), silence: 60 * SECOND, ..settings() };
    let mut cores = Cores::new(settings);
    let mut client = cores.opens(0, "/connection/websocket");
    let reply = cores.asks(&mut client, json!({"connect": {}}));
    assert_eq!((&reply["connect"]["ping"], &reply["connect"]["pong"]), (&json!(20), &json!(true)));
    for _ in 0..5 {
        // A client counts the time between pings, also while it sends.
        cores.passes(10 * SECOND);
        cores.sends(&client, r#"{"id":7,"rpc":{}}"#);
        assert_eq!(cores.hears(&mut client).len(), 1);
        cores.passes(10 * SECOND);
        assert_eq!(cores.hears(&mut client), [json!({})]);
        cores.sends(&client, "{}");
    }
    for _ in 0..2 {
        cores.passes(20 * SECOND);
        assert_eq!(cores.hears(&mut client), [json!({})]);
    }
    cores.passes(20 * SECOND);
    cores.hears(&mut client);
    assert_eq!(client.closed, Some((3012, "no pong".into())));
}

#[test]
fn a_stop_sends_what_waits_and_closes_with_3001() {
    let mut cores = Cores::new(Settings { presence: false, ..settings() });
    let (mut slow, mut fast) = (cores.client(0), cores.client(1));
    cores.subscribes(&mut slow, "red");
    let long = "x".repeat(30_000);
    for n in 0..10 {
        cores.publishes(&mut fast, "red", json!([n, long]));
        cores.delivers();
    }
    cores.cores[0].ended(slow.conn);
    let got = cores.hears(&mut slow);
    assert_eq!((got.len(), slow.closed), (10, Some((3001, "shutdown".into()))));
}
