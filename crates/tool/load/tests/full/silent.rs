//! Members that have nothing to send for long.

use crate::common::{Server, plan, run, workload};
use regatta_load::Plan;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use tungstenite::{Message, accept};

/// The hub answers a broadcast only after a heartbeat, so nothing else can arrive meanwhile.
#[test]
fn a_member_of_phoenix_sends_a_heartbeat_although_nothing_arrives() {
    let beats = Arc::new(AtomicU64::new(0));
    let seen = beats.clone();
    let server = Server::start(move |stream, _| {
        let mut socket = accept(stream).unwrap();
        let mut owed = Vec::new();
        while let Ok(Message::Text(text)) = socket.read() {
            let message: Value = serde_json::from_str(&text).unwrap();
            let [joined_as, number, topic, event, payload] = &message.as_array().unwrap()[..]
            else {
                panic!("{message}")
            };
            let reply = json!({"response": {}, "status": "ok"});
            let reply = json!([joined_as, number, topic, "phx_reply", reply]);
            match event.as_str().unwrap() {
                "broadcast" => owed = vec![json!([null, null, topic, event, payload]), reply],
                event => {
                    seen.fetch_add(u64::from(event == "heartbeat"), SeqCst);
                    for message in [reply].into_iter().chain(owed.drain(..)) {
                        socket.send(Message::text(message.to_string())).unwrap();
                    }
                }
            }
        }
    });
    let workload = workload("hub").adapted("phoenix").unwrap();
    let timeout = Duration::from_secs(60);
    let began = Instant::now();
    let tally = run(&Plan { workload, timeout, ..plan(server.address) }).unwrap();
    assert!(tally.first_wrong.is_none(), "{:?}", tally.first_wrong);
    assert_eq!((tally.errors.total(), tally.replies), (0, 2), "a join and a broadcast");
    assert_eq!(beats.load(SeqCst), 1);
    // Phoenix expects a message every half minute, and closes the connection after a minute.
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}
