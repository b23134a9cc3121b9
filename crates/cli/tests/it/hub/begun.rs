//! Requests and messages that a client starts and does not finish.

use crate::support::{
    DEADLINE, Server,
    hub::{hear, member, on_hub_models, send},
};
use serde_json::json;
use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

/// The request timeout: the maximum time from the first byte to the last.
const LIMIT: Duration = Duration::from_secs(2);

/// A client that sends one byte at a time and never finishes.
struct Dripping {
    what: &'static str,
    stream: TcpStream,
    begun: Instant,
    bytes: Box<dyn Iterator<Item = u8>>,
}

impl Dripping {
    fn new(what: &'static str, mut stream: TcpStream, first: &[u8], then: &'static [u8]) -> Self {
        let begun = Instant::now();
        stream.write_all(first).unwrap();
        stream.set_nonblocking(true).unwrap();
        Dripping { what, stream, begun, bytes: Box::new(then.iter().copied().cycle()) }
    }

    /// Sends its next byte. Returns whether the server has closed it.
    fn send_next(&mut self) -> bool {
        // A write to a closed connection fails, and so does the next read.
        let _ = self.bytes.next().map(|byte| self.stream.write(&[byte]));
        loop {
            match self.stream.read(&mut [0; 64]) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(_) => return true,
            }
        }
    }
}

/// The TCP stream of an open WebSocket, without the library around it.
fn opened(server: &Server) -> TcpStream {
    member(server).get_ref().0.try_clone().unwrap()
}

on_hub_models!(a_handshake_and_a_message_must_be_complete_within_the_request_timeout);

fn a_handshake_and_a_message_must_be_complete_within_the_request_timeout(model: &str) {
    let server = Server::of("hub", model, &["--request-timeout", "2s"]);
    let mut patient = member(&server);
    let head = b"GET /ws HTTP/1.1\r\n";
    // A masked text frame of 100 bytes; one of 1 byte that is not the last of its message.
    let (begun, first) = (&[0x81, 0x80 | 100, 0, 0, 0, 0][..], &[0x01, 0x81, 0, 0, 0, 0, b'x']);
    let mut all = vec![
        Dripping::new("a head, and nothing more", server.connect(), head, b""),
        Dripping::new("a head, byte by byte", server.connect(), head, b"x"),
        Dripping::new("a frame, and nothing more", opened(&server), begun, b""),
        Dripping::new("a frame, byte by byte", opened(&server), begun, b"x"),
        Dripping::new("half a frame header", opened(&server), &begun[..1], b""),
        // A ping between fragments does not extend the time of the message.
        Dripping::new("fragments", opened(&server), first, &[0x89, 0x80, 0, 0, 0, 0]),
    ];
    while !all.is_empty() {
        all.retain_mut(|client| {
            let (is_closed, after) = (client.send_next(), client.begun.elapsed());
            let what = client.what;
            assert!(!is_closed || after > LIMIT / 2, "{model}: {what}: closed after {after:?}");
            assert!(is_closed || after < LIMIT + DEADLINE, "{model}: {what}: open after {after:?}");
            !is_closed
        });
        // The pace of a slow sender.
        thread::sleep(Duration::from_millis(50));
    }
    // This member was silent for longer, but has no unfinished message.
    send(&mut patient, &json!({"type": "echo", "payload": 1}));
    assert_eq!(hear(&mut patient)["payload"], 1, "{model}");
}

on_hub_models!(the_request_timeout_is_measured_for_each_message);

/// A connection stays open if each message is complete in time, although every read ends inside a frame.
fn the_request_timeout_is_measured_for_each_message(model: &str) {
    const PING: [u8; 6] = [0x89, 0x80, 0, 0, 0, 0];
    let server = Server::of("hub", model, &["--request-timeout", "2s"]);
    let mut client = member(&server);
    let begun = Instant::now();
    // Every read ends inside a frame.
    client.get_mut().write_all(&PING[..3]).unwrap();
    while begun.elapsed() < 2 * LIMIT {
        // The parts of a message are this far apart.
        thread::sleep(LIMIT / 10);
        client.get_mut().write_all(&[&PING[3..], &PING[..3]].concat()).unwrap();
    }
    client.get_mut().write_all(&PING[3..]).unwrap();
    send(&mut client, &json!({"type": "echo", "payload": 1}));
    let echoed = loop {
        let heard = client.read().unwrap_or_else(|error| panic!("{model}: {error}"));
        if let tungstenite::Message::Text(text) = heard {
            break text;
        }
    };
    assert!(echoed.contains("echo"), "{model}: {echoed}");
}
