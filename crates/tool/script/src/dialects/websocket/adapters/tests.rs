use super::{
    super::message::{Payload, Request},
    Adapter, Incoming, Next,
};
use proptest::prelude::*;
use regatta_proto::websocket::{Decoder, Event, Role};
use serde_json::{Value, json};

const PAYLOAD: Payload = Payload { sender: 0xa, id: 0xbc, at: 0xdef };
const DIGITS: &str = "0000000a00000000000000bc0000000000000def";

fn payloads() -> impl Strategy<Value = Payload> {
    any::<(u32, u64, u64)>().prop_map(|(sender, id, at)| Payload { sender, id, at })
}

/// The digits of a payload, as text.
fn digits(payload: Payload) -> String {
    String::from_utf8(payload.digits().to_vec()).unwrap()
}

/// A copy as each server writes it.
fn copy(adapter: Adapter, digits: &str) -> String {
    match adapter {
        Adapter::Phoenix => {
            format!(r#"[null,null,"room:lobby","broadcast",{{"body":"{digits}"}}]"#)
        }
        Adapter::ActionCable => format!(
            r#"{{"identifier":"{{\"channel\":\"HubChannel\"}}","message":{{"payload":"{digits}"}}}}"#
        ),
        Adapter::Centrifuge => {
            format!(r#"{{"push":{{"channel":"hub","pub":{{"data":"{digits}"}}}}}}"#)
        }
        Adapter::Nats => format!("MSG hub 1 42\r\n\"{digits}\"\r\n"),
    }
}

/// Returns what a server reads from a request, as JSON.
fn requested(adapter: Adapter, request: Request, number: u64, mask: [u8; 4]) -> Vec<Value> {
    let mut frame = Vec::new();
    adapter.write(request, number, mask, &mut frame);
    let mut server = Decoder::new(Role::Server, 1 << 20);
    let length = frame.len();
    let (taken, event) = server.next(&mut frame).unwrap();
    assert_eq!(taken, length);
    let text = match event {
        Some(Event::Text(text)) if !adapter.is_stream() => text,
        Some(Event::Binary(bytes)) if adapter.is_stream() => str::from_utf8(bytes).unwrap(),
        other => panic!("{other:?}"),
    };
    match adapter {
        Adapter::Nats => text.split_inclusive("\r\n").map(Value::from).collect(),
        _ => text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
    }
}

proptest! {
    #[test]
    fn requests_have_equal_length_and_the_right_content(
        payload in payloads(),
        number in 2..=u64::from(u32::MAX),
        mask: [u8; 4],
    ) {
        for adapter in Adapter::ALL {
            let (joins, asks) = (Request::Echo(payload), Request::Broadcast(payload));
            let lengths = [adapter.text(joins, 1).len(), adapter.text(asks, number).len()];
            prop_assert_eq!(lengths[0], lengths[1], "{:?}", adapter);
            let body = digits(payload);
            let cable = r#"{"channel":"HubChannel"}"#;
            let (joined, asked) = match adapter {
                Adapter::Phoenix => (
                    vec![json!(["1", "1", "room:lobby", "phx_join", {}])],
                    vec![json!(["1", number.to_string(), "room:lobby", "broadcast", {"body": body}])],
                ),
                Adapter::ActionCable => (
                    vec![json!({"command": "subscribe", "identifier": cable})],
                    vec![json!({
                        "command": "message",
                        "identifier": cable,
                        "data": format!(r#"{{"action":"broadcast","payload":"{body}"}}"#),
                    })],
                ),
                Adapter::Centrifuge => (
                    vec![
                        json!({"id": 1, "connect": {}}),
                        json!({"id": 2, "subscribe": {"channel": "hub"}}),
                    ],
                    vec![json!({"id": number + 1, "publish": {"channel": "hub", "data": body}})],
                ),
                Adapter::Nats => (
                    vec![
                        json!(format!("CONNECT {{\"verbose\":false{}}}\r\n", " ".repeat(18))),
                        json!("SUB hub 1\r\n"),
                        json!("PING\r\n"),
                    ],
                    vec![
                        json!("PUB hub 42\r\n"),
                        json!(format!("\"{body}\"\r\n")),
                        json!("PING\r\n"),
                    ],
                ),
            };
            prop_assert_eq!(requested(adapter, joins, 1, mask), joined);
            prop_assert_eq!(requested(adapter, asks, number, mask), asked);
        }
    }

    #[test]
    fn reads_a_copy_with_spaces_after_colons(payload in payloads()) {
        for adapter in Adapter::ALL {
            let text = copy(adapter, &digits(payload));
            let incoming = |text: &str| Next::Incoming(Incoming::Copy(payload), text.len());
            prop_assert_eq!(adapter.next(text.as_bytes()), incoming(&text), "{}", &text);
            if adapter != Adapter::Nats {
                let spaced = text.replace(':', ": ").replace("\\\": ", "\\\":").replace("room: ", "room:");
                prop_assert_eq!(adapter.next(spaced.as_bytes()), incoming(&spaced), "{}", &spaced);
            }
        }
    }

    #[test]
    fn a_changed_byte_never_gives_the_same_copy(payload in payloads(), at: usize, bit in 0..8_u8) {
        for adapter in Adapter::ALL {
            let mut text = copy(adapter, &digits(payload)).into_bytes();
            let at = at % text.len();
            text[at] ^= 1 << bit;
            let next = adapter.next(&text);
            prop_assert!(!matches!(next, Next::Incoming(Incoming::Copy(it), _) if it == payload), "{:?}", text);
        }
    }

    /// A server may send anything: parsing stays within the bytes, and never hangs or panics.
    #[test]
    fn never_reads_beyond_the_received_bytes(bytes: Vec<u8>) {
        for adapter in Adapter::ALL {
            if let Next::Incoming(_, taken) = adapter.next(&bytes) {
                prop_assert!(0 < taken && taken <= bytes.len());
            }
        }
    }
}

#[test]
fn recognises_server_messages() {
    use Adapter::{ActionCable, Centrifuge, Nats, Phoenix};
    for (adapter, text, incoming) in [
        (
            Phoenix,
            r#"["1","1","room:lobby","phx_reply",{"response":{},"status":"ok"}]"#,
            Incoming::Done(Some(1)),
        ),
        (
            Phoenix,
            r#"["1","77","room:lobby","phx_reply",{"status":"ok","response":{}}]"#,
            Incoming::Done(Some(77)),
        ),
        (
            Phoenix,
            r#"[null,"0","phoenix","phx_reply",{"response":{},"status":"ok"}]"#,
            Incoming::Ignored,
        ),
        (
            // A copy that the member's channel forwarded itself.
            Phoenix,
            r#"["1",null,"room:lobby","broadcast",{"body":"0000000a00000000000000bc0000000000000def"}]"#,
            Incoming::Copy(PAYLOAD),
        ),
        (ActionCable, r#"{"type":"welcome"}"#, Incoming::Greeting),
        (ActionCable, r#"{"type":"ping","message":1795000000}"#, Incoming::Ignored),
        (
            ActionCable,
            r#"{"identifier":"{\"channel\":\"HubChannel\"}","type":"confirm_subscription"}"#,
            Incoming::Subscribed,
        ),
        (Centrifuge, "{}", Incoming::Ping),
        (
            Centrifuge,
            r#"{"id":1,"connect":{"client":"x","ping":25,"pong":true}}"#,
            Incoming::Ignored,
        ),
        (Centrifuge, r#"{"id":2,"subscribe":{}}"#, Incoming::Subscribed),
        (Centrifuge, r#"{"id":9,"publish":{}}"#, Incoming::Done(Some(8))),
        (
            Centrifuge,
            r#"{"push":{"channel":"hub","pub":{"data":"0000000a00000000000000bc0000000000000def","offset":7}}}"#,
            Incoming::Copy(PAYLOAD),
        ),
        (Nats, "INFO {\"server_id\":\"x\"}\r\n", Incoming::Greeting),
        (Nats, "PING\r\n", Incoming::Ping),
        (Nats, "PONG\r\n", Incoming::Done(None)),
        (
            Nats,
            "MSG  hub\t1 42 \r\n\"0000000a00000000000000bc0000000000000def\"\r\n",
            Incoming::Copy(PAYLOAD),
        ),
    ] {
        let expected = Next::Incoming(incoming, text.len());
        assert_eq!(adapter.next(text.as_bytes()), expected, "{adapter:?} {text}");
    }
}

#[test]
fn rejects_unsolicited_messages() {
    use Adapter::{ActionCable, Centrifuge, Nats, Phoenix};
    for (adapter, text) in [
        (Phoenix, ""),
        (Phoenix, "{}"),
        (Phoenix, r#"["1","1","room:lobby","phx_reply",{"response":{},"status":"error"}]"#),
        (Phoenix, r#"["1","1","room:other","phx_reply",{"response":{},"status":"ok"}]"#),
        (Phoenix, r#"["1","1","room:lobby","phx_error",{}]"#),
        (Phoenix, r#"["1",null,"room:lobby","phx_close",{}]"#),
        (Phoenix, r#"[null,null,"room:lobby","broadcast",{"body":"1"}]"#),
        (ActionCable, ""),
        (ActionCable, r#"{"type":"disconnect","reason":"unauthorized","reconnect":false}"#),
        (
            ActionCable,
            r#"{"identifier":"{\"channel\":\"HubChannel\"}","type":"reject_subscription"}"#,
        ),
        (ActionCable, r#"{"identifier":"{\"channel\":\"Other\"}","type":"confirm_subscription"}"#),
        (Centrifuge, ""),
        (Centrifuge, "\n{}"),
        (Centrifuge, r#"{"id":2,"error":{"code":103,"message":"permission denied"}}"#),
        (Centrifuge, r#"{"push":{"channel":"hub","join":{"info":{}}}}"#),
        (
            Centrifuge,
            r#"{"push":{"channel":"other","pub":{"data":"0000000a00000000000000bc0000000000000def"}}}"#,
        ),
        (Centrifuge, r#"{"push":{"disconnect":{"code":3012}}}"#),
        (Nats, "-ERR 'Stale Connection'\r\n"),
        (Nats, "+OK\r\n"),
        (Nats, "PONG\n"),
        (Nats, "MSG hub 2 42\r\n"),
        (Nats, "MSG other 1 42\r\n"),
        (Nats, "MSG hub 1 43\r\n"),
        (Nats, "MSG hub 1 reply 42\r\n"),
    ] {
        assert_eq!(adapter.next(text.as_bytes()), Next::Unknown, "{adapter:?} {text}");
    }
    let endless = vec![b'a'; (1 << 16) + 1];
    assert_eq!(Nats.next(&endless), Next::Unknown);
}

#[test]
fn the_start_of_a_message_is_incomplete() {
    let stream = format!("INFO {{}}\r\nPING\r\nMSG hub 1 42\r\n\"{DIGITS}\"\r\n");
    let begins = [0, 9, 15];
    for begin in begins {
        let rest = &stream.as_bytes()[begin..];
        let Next::Incoming(_, length) = Adapter::Nats.next(rest) else { panic!("{begin}") };
        for cut in 0..length {
            assert_eq!(Adapter::Nats.next(&rest[..cut]), Next::Part, "{begin}, {cut} bytes");
        }
    }
    // Only the first line of a Centrifuge frame is consumed.
    let lines = format!("{{}}\n{}", copy(Adapter::Centrifuge, DIGITS));
    assert_eq!(Adapter::Centrifuge.next(lines.as_bytes()), Next::Incoming(Incoming::Ping, 3));
}

#[test]
fn each_name_belongs_to_one_adapter() {
    for (name, adapter) in Adapter::NAMES.iter().zip(Adapter::ALL) {
        assert_eq!(Adapter::parse(name), Some(adapter));
        assert_eq!(serde_json::to_value(adapter).unwrap(), *name);
    }
    assert_eq!(Adapter::parse("cable"), None);
}
