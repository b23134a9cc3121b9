//! Small hubs that speak the protocols of other projects.

use crate::{
    common::{Server, assert_undisturbed, at, plan, run, workload},
    hub::{
        MEMBERS, broadcasts, count,
        own::Own,
        server::{Fault, Heard, Protocol, frame, serve},
    },
};
use regatta_load::{Arrivals, Plan, Until};
use regatta_script::Workload;
use serde_json::{Value, json};
use std::time::Duration;

/// A protocol by the name of its adapter.
pub struct Named {
    pub name: &'static str,
    pub hub: fn(Fault) -> Server,
    /// The confirmation of a broadcast must follow the sender's own copy.
    results_follow: bool,
    /// The confirmation names the broadcast.
    results_name: bool,
}

pub const ALL: [Named; 4] = [
    Named {
        name: "phoenix",
        hub: |fault| serve(Phoenix, fault, MEMBERS),
        results_follow: true,
        results_name: true,
    },
    Named {
        name: "actioncable",
        hub: |fault| serve(ActionCable, fault, MEMBERS),
        results_follow: false,
        results_name: false,
    },
    Named {
        name: "centrifuge",
        hub: |fault| serve(Centrifuge, fault, MEMBERS),
        results_follow: false,
        results_name: true,
    },
    Named {
        name: "nats",
        hub: |fault| serve(Nats, fault, MEMBERS),
        results_follow: true,
        results_name: false,
    },
];

pub fn through(name: &str) -> Workload {
    workload("hub").adapted(name).expect("there is such an adapter")
}

struct Phoenix;

impl Protocol for Phoenix {
    fn read(&self, message: &[u8], _: &mut Vec<u8>) -> Vec<Heard> {
        let message: Value = serde_json::from_slice(message).unwrap();
        let [joined_as, number, topic, event, payload] = &message.as_array().unwrap()[..] else {
            panic!("{message}")
        };
        assert_eq!([joined_as, topic], ["1", "room:lobby"]);
        vec![match event.as_str().unwrap() {
            "phx_join" => {
                let reply = json!({"response": {}, "status": "ok"});
                Heard::Joins(json!([joined_as, number, topic, "phx_reply", reply]).to_string())
            }
            "broadcast" => Heard::Broadcast {
                digits: payload["body"].as_str().unwrap().into(),
                number: number.as_str().unwrap().into(),
            },
            other => panic!("{other}"),
        }]
    }

    fn copy(&self, digits: &str) -> String {
        json!([null, null, "room:lobby", "broadcast", {"body": digits}]).to_string()
    }

    fn result(&self, _: &str, number: &str, _: usize, misreports: bool) -> Option<String> {
        let number = if misreports { "999" } else { number };
        let reply = json!({"response": {}, "status": "ok"});
        Some(json!(["1", number, "room:lobby", "phx_reply", reply]).to_string())
    }
}

struct ActionCable;

const IDENTIFIER: &str = r#"{"channel":"HubChannel"}"#;

impl Protocol for ActionCable {
    fn subprotocol(&self) -> Option<&'static str> {
        Some("actioncable-v1-json")
    }

    fn greeting(&self) -> Option<String> {
        Some(json!({"type": "welcome"}).to_string())
    }

    fn read(&self, message: &[u8], _: &mut Vec<u8>) -> Vec<Heard> {
        let message: Value = serde_json::from_slice(message).unwrap();
        assert_eq!(message["identifier"], IDENTIFIER);
        vec![match message["command"].as_str().unwrap() {
            "subscribe" => Heard::Joins(
                json!({"identifier": IDENTIFIER, "type": "confirm_subscription"}).to_string(),
            ),
            "message" => {
                let data: Value = serde_json::from_str(message["data"].as_str().unwrap()).unwrap();
                assert_eq!(data["action"], "broadcast");
                let digits = data["payload"].as_str().unwrap().into();
                Heard::Broadcast { digits, number: String::new() }
            }
            other => panic!("{other}"),
        }]
    }

    fn copy(&self, digits: &str) -> String {
        json!({"identifier": IDENTIFIER, "message": {"payload": digits}}).to_string()
    }

    fn result(&self, _: &str, _: &str, _: usize, _: bool) -> Option<String> {
        None
    }
}

struct Centrifuge;

impl Protocol for Centrifuge {
    fn asks(&self) -> Option<&'static str> {
        Some("{}")
    }

    fn read(&self, message: &[u8], _: &mut Vec<u8>) -> Vec<Heard> {
        let text = str::from_utf8(message).unwrap();
        let commands: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        if let [connect, subscribe] = &commands[..] {
            assert!(connect["connect"].is_object() && subscribe["subscribe"]["channel"] == "hub");
            let (one, two) = (&connect["id"], &subscribe["id"]);
            let replies = [json!({"id": one, "connect": {}}), json!({"id": two, "subscribe": {}})];
            return vec![Heard::Joins(replies.map(|reply| reply.to_string()).join("\n"))];
        }
        let [command] = &commands[..] else { panic!("{text}") };
        let publish = &command["publish"];
        vec![match publish["data"].as_str() {
            Some(digits) => {
                Heard::Broadcast { digits: digits.into(), number: command["id"].to_string() }
            }
            None => Heard::IsThere,
        }]
    }

    fn copy(&self, digits: &str) -> String {
        json!({"push": {"channel": "hub", "pub": {"data": digits}}}).to_string()
    }

    fn result(&self, _: &str, number: &str, _: usize, misreports: bool) -> Option<String> {
        let number: u64 = if misreports { 999 } else { number.parse().unwrap() };
        Some(json!({"id": number, "publish": {}}).to_string())
    }
}

struct Nats;

impl Protocol for Nats {
    fn greeting(&self) -> Option<String> {
        Some("INFO {\"server_id\":\"a small one\"}\r\n".into())
    }

    fn asks(&self) -> Option<&'static str> {
        Some("PING\r\n")
    }

    fn read(&self, message: &[u8], kept: &mut Vec<u8>) -> Vec<Heard> {
        // Each PUB comes in one message with its PING, so nothing is ever kept.
        let text = String::from_utf8([&kept[..], message].concat()).unwrap();
        kept.clear();
        let (mut lines, mut all, mut digits) = (text.split_terminator("\r\n"), vec![], None);
        while let Some(line) = lines.next() {
            match line.split(' ').next().unwrap() {
                "CONNECT" => assert!(line.contains("{\"verbose\":false")),
                "SUB" => assert_eq!(line, "SUB hub 1"),
                "PUB" => {
                    assert_eq!(line, "PUB hub 42");
                    digits = Some(lines.next().unwrap().trim_matches('"').to_owned());
                }
                "PING" => all.push(match digits.take() {
                    Some(digits) => Heard::Broadcast { digits, number: String::new() },
                    None => Heard::Joins("PONG\r\n".into()),
                }),
                "PONG" => all.push(Heard::IsThere),
                other => panic!("{other}"),
            }
        }
        all
    }

    fn copy(&self, digits: &str) -> String {
        format!("MSG hub 1 42\r\n\"{digits}\"\r\n")
    }

    fn result(&self, _: &str, _: &str, _: usize, _: bool) -> Option<String> {
        Some("PONG\r\n".into())
    }

    /// Splits the message into two frames.
    fn frames(&self, text: &str) -> Vec<u8> {
        let (one, other) = text.as_bytes().split_at(text.len() / 2);
        [frame(0x82, one), frame(0x82, other)].concat()
    }
}

#[test]
fn each_broadcast_is_delivered_to_every_member_through_each_adapter() {
    for Named { name, hub, .. } in ALL {
        for threads in [1, 3] {
            let server = hub(Fault::None);
            let plan = broadcasts(server.address, through(name));
            let tally = run(&Plan { threads, ..plan }).unwrap();
            assert_undisturbed(&tally);
            let (all, last) = (count(&tally, "deliveries"), count(&tally, "last_deliveries"));
            // The first request of each member subscribes, and all have joined before the first
            // broadcast.
            assert_eq!(last, tally.replies - MEMBERS as u64, "{name}, {threads} threads");
            assert!(
                last < all && all <= MEMBERS as u64 * last,
                "{name}: {all} deliveries of {last}"
            );
        }
    }
}

#[test]
fn an_open_loop_works_through_each_adapter() {
    for Named { name, hub, .. } in ALL {
        let server = hub(Fault::None);
        let drive = at(500, Arrivals::Constant);
        let until = Until::Elapsed(Duration::from_millis(500));
        let plan = plan(server.address);
        let plan = Plan { connections: MEMBERS, drive, until, workload: through(name), ..plan };
        let tally = run(&plan).unwrap();
        assert!(tally.first_wrong.is_none(), "{name}: {:?}", tally.first_wrong);
        assert_eq!(tally.errors.failed(), 0, "{name}: {:?}", tally.errors);
        let (all, last) = (count(&tally, "deliveries"), count(&tally, "last_deliveries"));
        assert!(last > 0 && all > last, "{name}: {all} deliveries of {last}");
    }
}

#[test]
fn a_wrong_delivery_is_found_and_named_through_each_adapter() {
    for Named { name, hub, results_follow, results_name } in ALL {
        let faults = [
            (Fault::Doubled(100), "each broadcast once", true),
            (Fault::Reordered(100), "in order", true),
            (Fault::Altered(100), "only broadcasts that a member has sent", true),
            (Fault::Invented(100), "only broadcasts that a member has sent", true),
            (Fault::ResultFirst(100), "own copy of the broadcast before", results_follow),
            (Fault::Misreported(100), "or the result of this one", results_name),
        ];
        for (fault, named, is_fault) in faults {
            let server = hub(fault);
            let tally = run(&broadcasts(server.address, through(name))).unwrap();
            match tally.first_wrong {
                Some(wrong) => {
                    assert!(is_fault, "{name}, {fault:?} is none: {wrong:?}");
                    assert!(wrong.expected.contains(named), "{name}, {fault:?}: {wrong:?}");
                }
                None => assert!(!is_fault, "{name}: {fault:?} was not found"),
            }
        }
    }
}

#[test]
fn a_lost_delivery_is_found_through_each_adapter() {
    for Named { name, hub, .. } in ALL {
        let server = hub(Fault::Lost(100));
        let timeout = Duration::from_secs(1);
        let plan = broadcasts(server.address, through(name));
        let tally = run(&Plan { timeout, ..plan }).unwrap();
        let wrong =
            tally.first_wrong.clone().unwrap_or_else(|| panic!("{name}: a delivery is missing"));
        assert!(wrong.expected.contains("a copy for each of 8 members"), "{name}: {wrong:?}");
        assert!(wrong.received.contains("no copy for 1 of them"), "{name}: {wrong:?}");
    }
}

#[test]
fn a_hub_without_the_subprotocol_is_named() {
    let server = serve(Own, Fault::None, MEMBERS);
    let tally = run(&broadcasts(server.address, through("actioncable"))).unwrap();
    let wrong = tally.first_wrong.clone().expect("it is no Action Cable");
    assert!(wrong.sent.contains("Sec-WebSocket-Protocol: actioncable-v1-json"), "{wrong:?}");
    assert!(wrong.received.contains("does not choose the subprotocol"), "{wrong:?}");
}
