//! A stop delivers pending messages to members that are behind.

use crate::support::{
    Server,
    hub::{
        Patient, Socket, closed, hear, long_broadcast, member, members, on_hub_models, parsed, send,
    },
};
use serde_json::json;
use socket2::{Domain, SockRef, Socket as Raw, Type};
use std::net::TcpStream;
use tungstenite::{
    Message,
    client::client,
    protocol::{CloseFrame, frame::coding::CloseCode},
};

/// Number of broadcasts: together more than the kernel holds for a member that does not read.
pub const MANY: u64 = 250;
/// Bytes of padding in each broadcast.
pub const LONG: usize = 20_000;

/// Opens a connection with a small receive buffer.
pub fn slow_connection(server: &Server) -> TcpStream {
    let socket = Raw::new(Domain::for_address(server.addr), Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&server.addr.into()).unwrap();
    let stream = TcpStream::from(socket);
    let usual = server.connect();
    stream.set_read_timeout(usual.read_timeout().unwrap()).unwrap();
    stream
}

fn slow_member(server: &Server) -> Socket {
    let stream = slow_connection(server);
    let url = format!("ws://{}/ws", server.addr);
    let mut slow = client(url, Patient(stream)).unwrap().0;
    send(&mut slow, &json!({"type": "echo", "payload": 0}));
    assert_eq!(hear(&mut slow)["type"], "echo");
    slow
}

/// Returns the messages that a member receives, and the Close frame.
fn heard_to_the_end(socket: &mut Socket, model: &str) -> (Vec<u64>, Option<CloseFrame>) {
    let mut heard = Vec::new();
    loop {
        match socket.read().unwrap_or_else(|error| panic!("{model}: {error}, after {heard:?}")) {
            Message::Text(text) => {
                heard.push(parsed(&text)["payload"][0].as_u64().unwrap());
            }
            Message::Close(frame) => return (heard, frame),
            _ => {}
        }
    }
}

/// Starts a hub and sends broadcasts that a slow member does not read yet.
fn behind(model: &str) -> (Server, Socket) {
    let server = Server::of("hub", model, &["--cores", "2", "--backlog", "10000000"]);
    let (slow, mut quick) = (slow_member(&server), member(&server));
    for n in 0..MANY {
        quick.send(long_broadcast(n, LONG)).unwrap();
        assert_eq!(hear(&mut quick)["payload"][0], n, "{model}");
        assert_eq!(hear(&mut quick)["listenerCount"], 2, "{model}");
    }
    (server, slow)
}

on_hub_models!(a_member_that_is_behind_gets_all_queued_messages_before_1001);

fn a_member_that_is_behind_gets_all_queued_messages_before_1001(model: &str) {
    let (mut server, mut slow) = behind(model);
    server.signal("-TERM");
    let (heard, close) = heard_to_the_end(&mut slow, model);
    assert_eq!(heard.len() as u64, MANY, "{model}: {:?}", heard.last());
    assert!(heard.is_sorted(), "{model}");
    assert_eq!(close.map(|close| close.code), Some(CloseCode::Away), "{model}");
    assert!(server.ended().success(), "{model}");
}

on_hub_models!(a_member_that_closes_its_side_gets_all_queued_messages);

/// The member half-closes and keeps reading.
fn a_member_that_closes_its_side_gets_all_queued_messages(model: &str) {
    let (_server, mut slow) = behind(model);
    SockRef::from(&slow.get_ref().0).shutdown(std::net::Shutdown::Write).unwrap();
    let (heard, close) = heard_to_the_end(&mut slow, model);
    assert_eq!(heard.len() as u64, MANY, "{model}: {:?}", heard.last());
    assert_eq!(close.map(|close| close.code), Some(CloseCode::Away), "{model}");
}

on_hub_models!(a_broadcast_right_before_a_stop_gets_its_result);

/// The other core may have no member, and then nothing else to do.
fn a_broadcast_right_before_a_stop_gets_its_result(model: &str) {
    for others in [0, 0, 0, 3] {
        let mut server = Server::of("hub", model, &["--cores", "2"]);
        let mut members = members(&server, 1 + others);
        let message = json!({"type": "broadcast", "payload": "last"});
        send(&mut members[0], &message);
        server.signal("-TERM");
        assert_eq!(hear(&mut members[0]), message, "{model}");
        let result = hear(&mut members[0]);
        assert_eq!(result["type"], "broadcastResult", "{model}");
        assert_eq!(closed(&mut members[0]), Some(CloseCode::Away), "{model}");
        drop(members);
        assert!(server.ended().success(), "{model}");
    }
}

on_hub_models!(a_close_frame_right_behind_a_broadcast_is_answered_after_the_result);

fn a_close_frame_right_behind_a_broadcast_is_answered_after_the_result(model: &str) {
    let server = Server::of("hub", model, &["--cores", "2"]);
    for _ in 0..5 {
        let mut sender = member(&server);
        for n in 0..3 {
            sender
                .write(Message::text(format!(r#"{{"type":"broadcast","payload":{n}}}"#)))
                .unwrap();
        }
        sender.close(None).unwrap();
        let mut results = 0;
        let close = loop {
            match sender.read().unwrap() {
                Message::Text(text) => results += u32::from(text.contains("broadcastResult")),
                Message::Close(frame) => break frame.map(|frame| frame.code),
                _ => {}
            }
        };
        assert_eq!((results, close), (3, Some(CloseCode::Normal)), "{model}");
    }
}
