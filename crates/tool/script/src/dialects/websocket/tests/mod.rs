//! The dialect without sockets: the bytes of a single member ([`Member`]), and what all members of a hub get
//! ([`room::Room`]).

mod conversation;
mod counts;
mod framing;
mod listeners;
mod one_order;
mod oracle;
mod orders;
mod room;

use super::{
    Adapter, Hub, WebSocketAsks,
    talk::{ConnectionState, Stage},
};
use crate::{
    cursor::Cursor,
    dialect::{At, Dialect, Heard},
    protocol::{Asks, CompileOptions, Destination, Pushes, Speech},
    time::Nanos,
};
use regatta_proto::websocket::{Decoder, Event, Frame, Role};
use regatta_record::Exchange;

const ALL: [WebSocketAsks; 5] = [
    WebSocketAsks::Broadcast,
    WebSocketAsks::Through(Adapter::Phoenix),
    WebSocketAsks::Through(Adapter::ActionCable),
    WebSocketAsks::Through(Adapter::Centrifuge),
    WebSocketAsks::Through(Adapter::Nats),
];

fn options(pushes: Pushes<'_>) -> CompileOptions<'_> {
    let place = Destination { host: "h", path: None, closes: false, timeout: None };
    CompileOptions { seed: 1, pipeline: 1, place, pushes, ..CompileOptions::default() }
}

fn compile(asks: WebSocketAsks, order: &CompileOptions<'_>) -> Hub {
    match asks.compile(order) {
        Ok(Speech::Own(hub)) => hub,
        _ => panic!("a hub is a dialect"),
    }
}

/// A hub with the usual options, and its adapter.
fn hub(asks: WebSocketAsks) -> (Hub, Option<Adapter>) {
    let adapter = match asks {
        WebSocketAsks::Through(adapter) => Some(adapter),
        _ => None,
    };
    (compile(asks, &options(Pushes::default())), adapter)
}

/// A member of a hub, without sockets.
struct Member<'h> {
    hub: &'h Hub,
    talk: ConnectionState,
    cursor: Cursor,
    is_open: bool,
    counts: Counts,
}

/// Number of reported operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    deliveries: u32,
    last: u32,
}

impl Heard for Counts {
    fn heard(&mut self, kind: usize, _: Nanos) {
        match kind {
            Hub::DELIVERIES => self.deliveries += 1,
            Hub::LAST_DELIVERIES => self.last += 1,
            other => panic!("an operation of the kind {other}"),
        }
    }
}

/// Splits `bytes` at these places, modulo their length.
fn pieces<'b>(bytes: &'b [u8], cuts: &[usize]) -> Vec<&'b [u8]> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let mut begin = 0;
    let each = ends.into_iter().map(|end| {
        let piece = &bytes[begin..end];
        begin = end;
        piece
    });
    each.filter(|piece| !piece.is_empty()).collect()
}

impl<'h> Member<'h> {
    fn new(hub: &'h Hub) -> Member<'h> {
        let cursor = Cursor::new(hub.script(), 0);
        Member { hub, talk: hub.talk(0), cursor, is_open: false, counts: Counts::default() }
    }

    /// One whose connection is open.
    fn opened(hub: &'h Hub) -> Member<'h> {
        let mut member = Member::new(hub);
        (member.talk.stage, member.is_open) = (Stage::Plain, true);
        member
    }

    fn receive(&mut self, data: &[u8], now: Nanos) -> Result<u32, Box<Exchange>> {
        let at = At { cursor: &mut self.cursor, talk: &mut self.talk, desk: &mut () };
        self.hub.receive(at, data, now, &mut self.counts)
    }

    /// Takes one piece. Returns the number of replies in it, and appends what the member sends besides
    /// requests.
    fn take(&mut self, mut data: &[u8], out: &mut Vec<u8>) -> u32 {
        if !self.is_open {
            self.is_open = self.hub.open(&mut self.talk, &mut data, out).unwrap();
            if !self.is_open || data.is_empty() {
                return 0;
            }
        }
        let replies = self.receive(data, 0).unwrap();
        self.hub.asides(&mut self.talk, out);
        replies
    }

    /// Takes all pieces. Returns the number of replies, and what the member sends besides requests.
    fn take_all(&mut self, bytes: &[u8], cuts: &[usize]) -> (u32, Vec<u8>) {
        let mut said = Vec::new();
        let replies = pieces(bytes, cuts).iter().map(|piece| self.take(piece, &mut said)).sum();
        (replies, said)
    }

    /// Issues one more request and returns its frame.
    fn ask(&mut self, at: u64) -> Vec<u8> {
        self.cursor.ask(1);
        self.hub.asked(&mut self.talk, 1, at);
        let unsent = self.hub.unsent(&self.cursor, &mut self.talk, at).to_vec();
        self.cursor.wrote(unsent.len());
        unsent
    }
}

/// Returns the payloads of a client's frames.
fn payloads(mut bytes: Vec<u8>) -> Vec<String> {
    let (mut server, mut at, mut all) = (Decoder::new(Role::Server, 1 << 20), 0, Vec::new());
    while at < bytes.len() {
        let (taken, event) = server.next(&mut bytes[at..]).unwrap();
        assert!(taken > 0, "a frame is whole");
        at += taken;
        match event.unwrap() {
            Event::Text(text) => all.push(text.into()),
            Event::Binary(bytes) => all.push(str::from_utf8(bytes).unwrap().into()),
            other => panic!("{other:?}"),
        }
    }
    all
}

/// Returns the frames of a server; a stream is split at these places.
fn frames_of(adapter: Option<Adapter>, said: &[String], cuts: &[usize]) -> Vec<u8> {
    let mut out = Vec::new();
    if adapter.is_some_and(Adapter::is_stream) {
        for piece in pieces(said.concat().as_bytes(), cuts) {
            Frame::binary(piece).write(&mut out);
        }
    } else {
        said.iter().for_each(|text| Frame::text(text.as_bytes()).write(&mut out));
    }
    out
}

/// Returns the messages of a server with this adapter: after opening, when the member joins, and for the
/// member's first broadcast.
fn said(adapter: Option<Adapter>, own: &str, joins: &str) -> [Vec<String>; 3] {
    let all = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect();
    let cable = r#"{"identifier":"{\"channel\":\"HubChannel\"}","#;
    match adapter {
        None => [
            vec![],
            all(&[joins]),
            vec![
                format!(r#"{{"type":"broadcast","payload":{own}}}"#),
                format!(r#"{{"type":"broadcastResult","payload":{own},"listenerCount":1}}"#),
            ],
        ],
        Some(Adapter::Phoenix) => [
            vec![],
            all(&[r#"["1","1","room:lobby","phx_reply",{"response":{},"status":"ok"}]"#]),
            vec![
                format!(r#"[null,null,"room:lobby","broadcast",{{"body":{own}}}]"#),
                r#"["1","2","room:lobby","phx_reply",{"response":{},"status":"ok"}]"#.into(),
            ],
        ],
        Some(Adapter::ActionCable) => [
            all(&[r#"{"type":"welcome"}"#]),
            vec![format!(r#"{cable}"type":"confirm_subscription"}}"#)],
            vec![
                r#"{"type":"ping","message":1}"#.into(),
                format!(r#"{cable}"message":{{"payload":{own}}}}}"#),
            ],
        ],
        Some(Adapter::Centrifuge) => [
            vec![],
            all(&[concat!(r#"{"id":1,"connect":{}}"#, "\n", r#"{"id":2,"subscribe":{}}"#)]),
            vec![
                "{}".into(),
                format!(
                    "{{\"push\":{{\"channel\":\"hub\",\"pub\":{{\"data\":{own}}}}}}}\n\
                     {{\"id\":3,\"publish\":{{}}}}"
                ),
            ],
        ],
        Some(Adapter::Nats) => [
            all(&["INFO {\"server_id\":\"x\"}\r\n"]),
            all(&["PONG\r\n"]),
            vec![format!("PING\r\nMSG hub 1 42\r\n{own}\r\nPONG\r\n")],
        ],
    }
}
