//! The whole conversation of a member, however its bytes are split.

mod one_order;
mod oracle;

use super::{
    Adapter, Hub, WebSocketAsks, frames,
    message::{Message, Payload, Request},
    roster::Fate,
    talk::ConnectionState,
};
use crate::{
    cursor::Cursor,
    dialect::{At, Dialect, Heard},
    protocol::{Asks, CompileOptions, Destination, Pushes, Speech},
    time::Nanos,
};
use proptest::prelude::*;
use regatta_proto::{
    http1::{Date, server},
    websocket::{Decoder, Event, Frame, Role, handshake::Opening},
};
use regatta_record::{Exchange, Machines, WrongDeliveries};
use std::{iter, ops::Range, sync::atomic::AtomicU64};

const ALL: [WebSocketAsks; 5] = [
    WebSocketAsks::Broadcast,
    WebSocketAsks::Through(Adapter::Phoenix),
    WebSocketAsks::Through(Adapter::ActionCable),
    WebSocketAsks::Through(Adapter::Centrifuge),
    WebSocketAsks::Through(Adapter::Nats),
];

/// Where the bytes of one step are split.
#[derive(Clone, Debug, Default)]
struct Cuts {
    /// Places at which the bytes are split into reads.
    reads: Vec<usize>,
    /// Places at which a stream is split into frames.
    frames: Vec<usize>,
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
    fn heard(&mut self, kind: usize, _: u64) {
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

    /// Takes one piece. Returns the number of replies in it, and appends what the member sends besides
    /// requests.
    fn take(&mut self, mut data: &[u8], out: &mut Vec<u8>) -> u32 {
        if !self.is_open {
            self.is_open = self.hub.open(&mut self.talk, &mut data, out).unwrap();
            if !self.is_open || data.is_empty() {
                return 0;
            }
        }
        let at = At { cursor: &mut self.cursor, talk: &mut self.talk, desk: &mut () };
        let replies = self.hub.receive(at, data, 0, &mut self.counts).unwrap();
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
fn frames(adapter: Option<Adapter>, said: &[String], cuts: &[usize]) -> Vec<u8> {
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

/// Runs the whole conversation of a single member; `cuts` has an entry for each of its three steps. Returns the lengths
/// of what the server says in them, in bytes.
fn converse(asks: WebSocketAsks, cuts: &[Cuts; 3]) -> [usize; 3] {
    let order = options(Pushes::default());
    let Ok(Speech::Own(hub)) = asks.compile(&order) else { panic!("a hub is a dialect") };
    let adapter = match asks {
        WebSocketAsks::Through(adapter) => Some(adapter),
        _ => None,
    };
    let mut member = Member::new(&hub);
    let mut upgrade = Vec::new();
    assert!(!hub.open(&mut member.talk, &mut &[][..], &mut upgrade).unwrap());
    let mut decoder = server::Decoder::default();
    let Some((server::Event::Request(request), _)) = decoder.decode(&upgrade) else {
        panic!("an upgrade is asked for")
    };
    let mut reply = Vec::new();
    Opening::read(&request, None).unwrap().write(request.terms, &Date::at(0), &mut reply);
    let mut reply = String::from_utf8(reply).unwrap();
    if let Some(name) = adapter.and_then(Adapter::subprotocol) {
        let offered = format!("\r\nSec-WebSocket-Protocol: {name}\r\n");
        assert!(str::from_utf8(&upgrade).unwrap().contains(&offered));
        reply = reply.replacen("\r\n", &offered, 1);
    }
    let [greeting, ..] = said(adapter, "", "");
    let opens = [reply.as_bytes(), &frames(adapter, &greeting, &cuts[0].frames)].concat();
    let (replies, _) = member.take_all(&opens, &cuts[0].reads);
    assert!(member.is_open && replies == 0);

    let joins = payloads(member.ask(7)).concat();
    let [_, joined, _] = said(adapter, "", &joins);
    let joined = frames(adapter, &joined, &cuts[1].frames);
    assert_eq!(member.take_all(&joined, &cuts[1].reads).0, 1, "{asks:?}: the member has joined");
    assert_eq!(member.counts, Counts::default());
    let all_joins = || hub.broadcasts().unwrap().joins;
    assert_eq!(all_joins(), 1, "{asks:?}: it is a reply to no broadcast");

    let asked = payloads(member.ask(9)).concat();
    let own = Payload { sender: 0, id: 0, at: 9 }.digits();
    let own = str::from_utf8(&own).unwrap();
    assert!(asked.contains(own), "{asked}");
    let [_, _, done] = said(adapter, &format!("\"{own}\""), &joins);
    let done = frames(adapter, &done, &cuts[2].frames);
    let (replies, answered) = member.take_all(&done, &cuts[2].reads);
    assert_eq!((replies, all_joins()), (1, 1), "{asks:?}: the broadcast is done");
    assert_eq!(member.counts, Counts { deliveries: 1, last: 1 }, "{asks:?}");
    assert!(!hub.owes() && member.cursor.owed() == 0);
    let answer = match adapter {
        Some(Adapter::Centrifuge) => vec!["{}"],
        Some(Adapter::Nats) => vec!["PONG\r\n"],
        _ => vec![],
    };
    assert_eq!(payloads(answered), answer, "{asks:?}");
    [opens.len(), joined.len(), done.len()]
}

#[test]
fn one_split_anywhere_changes_nothing() {
    for asks in ALL {
        let lengths = converse(asks, &Default::default());
        for (step, length) in lengths.into_iter().enumerate() {
            for cut in 0..=length {
                let mut cuts: [Cuts; 3] = Default::default();
                cuts[step].reads = vec![cut];
                converse(asks, &cuts);
                if asks == WebSocketAsks::Through(Adapter::Nats) {
                    cuts[step] = Cuts { reads: vec![], frames: vec![cut] };
                    converse(asks, &cuts);
                }
            }
        }
    }
}

#[test]
fn one_byte_at_a_time_changes_nothing() {
    let each = Cuts { reads: (0..300).collect(), frames: (0..300).collect() };
    for asks in ALL {
        converse(asks, &[each.clone(), each.clone(), each.clone()]);
    }
}

proptest! {
    #[test]
    fn any_splits_change_nothing(
        reads in prop::collection::vec(prop::collection::vec(0..300_usize, 0..9), 3),
        framed in prop::collection::vec(prop::collection::vec(0..300_usize, 0..5), 3),
    ) {
        let cuts = |i: usize| Cuts { reads: reads[i].clone(), frames: framed[i].clone() };
        for asks in ALL {
            converse(asks, &[cuts(0), cuts(1), cuts(2)]);
        }
    }

    /// The fast path takes the frames that the codec writes, and never an incomplete one.
    #[test]
    fn the_fast_path_finds_complete_frames_only(payload: Vec<u8>, cut: usize) {
        let mut frame = Vec::new();
        Frame::binary(&payload).write(&mut frame);
        let whole = Some((&payload[..], frame.len()));
        prop_assert_eq!(frames::whole(frames::BINARY, &frame), whole);
        prop_assert_eq!(frames::whole(frames::TEXT, &frame), None);
        let cut = cut % frame.len();
        prop_assert_eq!(frames::whole(frames::BINARY, &frame[..cut]), None);
        prop_assert!(frames::may_become_whole(frames::BINARY, &frame[..cut]));
        prop_assert_eq!(frames::may_become_whole(frames::TEXT, &frame[..cut]), cut == 0);
    }
}

#[test]
fn a_silent_phoenix_member_sends_heartbeats_although_nothing_arrives() {
    const SECOND: u64 = 1_000_000_000;
    let order = options(Pushes::default());
    let asks = WebSocketAsks::Through(Adapter::Phoenix);
    let Ok(Speech::Own(hub)) = asks.compile(&order) else { panic!("a hub is a dialect") };
    assert!(hub.keeps_alive());
    let mut member = Member::new(&hub);
    member.talk.stage = super::talk::Stage::Plain;
    member.ask(0);
    let joined = frames(Some(Adapter::Phoenix), &said(Some(Adapter::Phoenix), "", "")[1], &[]);
    let at = At { cursor: &mut member.cursor, talk: &mut member.talk, desk: &mut () };
    hub.receive(at, &joined, SECOND, &mut ()).unwrap();
    let mut sent_at = Vec::new();
    for now in (0..100).step_by(2) {
        let mut out = Vec::new();
        hub.keep_alive(&mut member.talk, now * SECOND);
        hub.asides(&mut member.talk, &mut out);
        let sent = payloads(out);
        assert!(sent.iter().all(|text| text == Adapter::Phoenix.heartbeat().unwrap()), "{sent:?}");
        sent_at.extend(sent.iter().map(|_| now));
    }
    assert_eq!(sent_at, [26, 52, 78], "at least every half minute");
    hub.say_goodbye(&mut member.talk, &mut Vec::new());
    hub.keep_alive(&mut member.talk, 200 * SECOND);
    let mut out = Vec::new();
    hub.asides(&mut member.talk, &mut out);
    assert!(out.is_empty(), "nothing follows a Close frame");
}

#[test]
fn a_part_of_a_frame_is_unfinished() {
    // Returns the length of a reply, and whether so many bytes of it are unfinished.
    let after = |asks: WebSocketAsks, cut: usize| {
        let Ok(Speech::Own(hub)) = asks.compile(&options(Pushes::default())) else {
            panic!("a hub is a dialect")
        };
        let adapter = match asks {
            WebSocketAsks::Through(adapter) => Some(adapter),
            _ => None,
        };
        let mut member = Member::new(&hub);
        member.talk.stage = super::talk::Stage::Plain;
        let joins = payloads(member.ask(0)).concat();
        let joined = frames(adapter, &said(adapter, "", &joins)[1], &[]);
        let at = At { cursor: &mut member.cursor, talk: &mut member.talk, desk: &mut () };
        hub.receive(at, &joined[..cut.min(joined.len())], 0, &mut ()).unwrap();
        (joined.len(), hub.unfinished(&member.cursor, &member.talk).is_some())
    };
    for asks in ALL {
        let (length, is_unfinished) = after(asks, usize::MAX);
        assert!(!is_unfinished, "{asks:?}: it is whole");
        for cut in 0..length {
            assert_eq!(after(asks, cut).1, cut > 0, "{asks:?}: {cut} of {length} bytes");
        }
    }
    let Ok(Speech::Own(hub)) = WebSocketAsks::Broadcast.compile(&options(Pushes::default())) else {
        panic!("a hub is a dialect")
    };
    let mut member = Member::new(&hub);
    member.talk.stage = super::talk::Stage::Plain;
    // A text message in several frames: FIN is not set.
    let at = At { cursor: &mut member.cursor, talk: &mut member.talk, desk: &mut () };
    hub.receive(at, b"\x01\x02ab", 0, &mut ()).unwrap();
    let part = hub.unfinished(&member.cursor, &member.talk).expect("the last frame is missing");
    assert_eq!(part.received, "part of a frame");
}

/// With a connection for each request, the requests are those with which members join.
#[test]
fn a_connection_for_each_request_has_no_broadcasts() {
    let place = Destination { host: "h", path: None, closes: true, timeout: None };
    let order = CompileOptions { place, ..options(Pushes::default()) };
    let Ok(Speech::Own(hub)) = WebSocketAsks::Broadcast.compile(&order) else {
        panic!("a hub is a dialect")
    };
    assert_eq!((hub.broadcasts(), hub.wrong_deliveries()), (None, None));
}

#[test]
fn a_message_in_a_frame_of_the_other_type_is_wrong() {
    let order = options(Pushes::default());
    let expected_instead_of = |frame: Frame<'_>, asks: WebSocketAsks| {
        let Ok(Speech::Own(hub)) = asks.compile(&order) else { panic!("a hub is a dialect") };
        let mut member = Member::new(&hub);
        member.talk.stage = super::talk::Stage::Plain;
        member.ask(0);
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        let at = At { cursor: &mut member.cursor, talk: &mut member.talk, desk: &mut () };
        hub.receive(at, &bytes, 0, &mut ()).unwrap_err().expected
    };
    let expected = expected_instead_of(Frame::binary(b"{}"), WebSocketAsks::Broadcast);
    assert_eq!(expected, "a text message, not a binary one");
    let nats = WebSocketAsks::Through(Adapter::Nats);
    let expected = expected_instead_of(Frame::text(b"PONG\r\n"), nats);
    assert_eq!(expected, "a binary message, not a text one");
}

fn options(pushes: Pushes<'_>) -> CompileOptions<'_> {
    let place = Destination { host: "h", path: None, closes: false, timeout: None };
    CompileOptions { seed: 1, pipeline: 1, place, pushes, ..CompileOptions::default() }
}

/// Members of a hub that may announce losses, and the broadcasts that they send.
struct Room {
    hub: Hub,
    talks: Vec<ConnectionState>,
}

impl Room {
    fn new(members: u32) -> Room {
        Room::with(members, Pushes { in_one_order: true, may_be_lost: true, ..Pushes::default() })
    }

    fn with(members: u32, pushes: Pushes<'_>) -> Room {
        Room::of(0..members, pushes, None)
    }

    /// The members with these numbers, in one of several processes that share a roster.
    fn of(numbers: Range<u32>, pushes: Pushes<'_>, shared: Option<&'static [AtomicU64]>) -> Room {
        Room::compiled(numbers, &CompileOptions { shared, ..options(pushes) })
    }

    fn compiled(numbers: Range<u32>, order: &CompileOptions<'_>) -> Room {
        let Ok(Speech::Own(hub)) = WebSocketAsks::Broadcast.compile(order) else {
            panic!("a hub is a dialect")
        };
        let talk = |number| {
            let mut talk = hub.talk(number);
            talk.stage = super::talk::Stage::Plain;
            talk.note_reply(&hub.roster);
            talk
        };
        let talks = numbers.map(talk).collect();
        Room { hub, talks }
    }

    /// A member sends a broadcast, and its result is still to come.
    fn begin(&self, sender: u32) -> Payload {
        Payload { sender, id: self.hub.roster.send(sender, 5).unwrap(), at: 5 }
    }

    /// A member sends a broadcast, and its result says that it is published.
    fn send(&self, sender: u32) -> Payload {
        let payload = self.begin(sender);
        assert_eq!(self.hub.roster.publish(payload.id), None);
        payload
    }

    /// A result says that it is not known whether a broadcast is published.
    fn is_unknown(&mut self, payload: Payload) {
        let text = Message::Broadcast(payload).text().replace("broadcast\"", "error\"");
        let text = text.replace('}', r#","error":"unknown whether published: not confirmed"}"#);
        let talk = &mut self.talks[payload.sender as usize];
        talk.asked.push_back(Request::Broadcast(payload));
        self.hub.take_loss(talk, text.as_bytes(), &mut (), &mut 0).unwrap();
    }

    /// A member gets a gap.
    fn gap(&mut self, member: usize) {
        let text = br#"{"type":"gap","recovered":false}"#;
        self.hub.take_loss(&mut self.talks[member], text, &mut (), &mut 0).unwrap();
    }

    /// A member gets these broadcasts. Returns whether each was the last copy, or what was expected instead.
    fn get(&mut self, member: usize, all: &[Payload]) -> Result<Vec<bool>, String> {
        let talk = &mut self.talks[member];
        let each = all.iter().map(|payload| {
            let mut counts = Counts::default();
            self.hub.take_copy(talk, *payload, b"", &mut counts).map_err(|wrong| wrong.expected)?;
            assert_eq!(counts.deliveries, 1);
            Ok(counts.last == 1)
        });
        each.collect()
    }
}

#[test]
fn copies_after_a_gap_keep_the_order_of_all_and_of_their_sender() {
    let mut room = Room::new(2);
    let [a, b, c] = [0, 1, 0].map(|sender| room.send(sender));
    room.gap(0);
    room.gap(1);
    room.get(0, &[a, b, c]).unwrap();
    let wrong = room.get(1, &[b, a]).unwrap_err();
    assert!(
        wrong.contains("one order for all members; other members got this one before"),
        "{wrong}"
    );
    let mut room = Room::new(2);
    let [a, b, c] = [0, 1, 0].map(|sender| room.send(sender));
    room.get(0, &[a, b, c]).unwrap();
    room.gap(1);
    let wrong = room.get(1, &[a, c]).unwrap_err();
    assert!(wrong.contains("one order for all members; another member"), "{wrong}");
    let mut room = Room::new(1);
    let [a, _, c] = [0, 1, 0].map(|sender| room.send(sender));
    room.gap(0);
    let wrong = room.get(0, &[c, a]).unwrap_err();
    assert!(wrong.contains("the broadcasts of one sender in order"), "{wrong}");
}

#[test]
fn a_gap_that_loses_nothing_hides_no_other_order() {
    let mut room = Room::new(2);
    let [a, b, c] = [0, 1, 2].map(|sender| room.send(sender));
    room.get(0, &[a, b, c]).unwrap();
    room.get(1, &[a]).unwrap();
    room.get(1, &[b, c]).unwrap();
    (0..2).for_each(|member| room.gap(member));
    let [d, e] = [0, 1].map(|sender| room.send(sender));
    room.get(0, &[d, e]).unwrap();
    let wrong = room.get(1, &[e]).unwrap_err();
    assert!(wrong.contains("one order for all members; another member"), "{wrong}");
}

#[test]
fn a_gap_that_loses_something_hides_no_reversed_order_after_it() {
    for reversed in [[1, 0], [2, 0], [2, 1]] {
        let mut room = Room::new(2);
        room.send(0);
        (0..2).for_each(|member| room.gap(member));
        let all = [0, 1, 2].map(|sender| room.send(sender));
        room.get(0, &all).unwrap();
        let reversed = reversed.map(|at: usize| all[at]);
        let wrong = room.get(1, &reversed).unwrap_err();
        assert!(wrong.contains("one order for all members"), "{wrong}");
    }
}

/// One member gets A and B, another one B, a gap, and A. Neither has anything directly before A or B to compare.
#[test]
fn a_gap_between_hides_no_reversed_order() {
    for gap_first in [false, true] {
        let mut room = Room::new(3);
        room.send(0);
        room.gap(1);
        let [a, b] = [0, 1].map(|sender| room.send(sender));
        let in_order = |room: &mut Room| {
            room.gap(0);
            room.get(0, &[a, b])
        };
        let reversed = |room: &mut Room| {
            room.get(1, &[b]).unwrap();
            room.gap(1);
            room.get(1, &[a])
        };
        let wrong = match gap_first {
            false => {
                in_order(&mut room).unwrap();
                reversed(&mut room).unwrap_err()
            }
            true => {
                reversed(&mut room).unwrap();
                in_order(&mut room).unwrap_err()
            }
        };
        let named = if gap_first { "this one, a gap, and then" } else { "got this one before" };
        assert!(wrong.contains("one order for all members") && wrong.contains(named), "{wrong}");
        assert_eq!(room.hub.wrong.counted().out_of_order, 1);
    }
}

/// Tolerates wrong deliveries, and counts the others.
#[derive(Default)]
struct Tolerant {
    deliveries: u64,
    last: u64,
    /// Missing deliveries, and broadcasts that lack some.
    missing: [u64; 2],
    wrong: Vec<String>,
}

impl Heard for Tolerant {
    fn heard(&mut self, kind: usize, _: Nanos) {
        self.deliveries += u64::from(kind == Hub::DELIVERIES);
        self.last += u64::from(kind == Hub::LAST_DELIVERIES);
    }

    fn missing(&mut self, kind: usize, _: Nanos, count: u64) {
        self.missing[kind - Hub::DELIVERIES] += count;
    }

    fn wrong(&mut self, exchange: Box<Exchange>, count: u64) -> Result<(), Box<Exchange>> {
        self.wrong.extend(iter::repeat_n(exchange.expected, count as usize));
        Ok(())
    }
}

#[test]
fn a_tolerated_wrong_delivery_is_counted_once_and_hides_nothing_else() {
    let mut room = Room::new(2);
    let [a, b, c, d] = [0, 1, 2, 0].map(|sender| room.send(sender));
    room.get(0, &[a, b, c, d]).unwrap();
    let unsent = Payload { id: 99, ..a };
    let mut heard = Tolerant::default();
    // B is missing, A comes twice.
    for payload in [a, unsent, a, c, d] {
        room.hub.take_copy(&mut room.talks[1], payload, b"", &mut heard).unwrap();
    }
    assert_eq!((heard.deliveries, heard.wrong.len()), (3, 3), "{:?}", heard.wrong);
    let mut missing = Vec::new();
    room.hub.missing(&mut heard, &mut |deliveries, _| missing.push(deliveries));
    assert_eq!(missing, [1]);
    let counted = WrongDeliveries { missing: 1, twice: 1, out_of_order: 1, unsent: 1 };
    assert_eq!(room.hub.wrong_deliveries(), Some(counted));
}

#[test]
fn copies_of_a_broadcast_of_which_nothing_is_known_are_counted_apart() {
    let mut room = Room::new(3);
    let a = room.begin(0);
    room.get(0, &[a]).unwrap();
    room.gap(2);
    room.is_unknown(a);
    let (hub, talk) = (&room.hub, &mut room.talks[0]);
    assert_eq!((hub.next_refused(talk), hub.next_refused(talk)), (Some(0), None));
    assert_eq!(hub.losses.counted().unknown_deliveries, 1);
    room.get(1, &[a]).unwrap();
    let counted = room.hub.losses.counted();
    assert_eq!((counted.unknown, counted.unknown_deliveries, counted.missed), (1, 2, 0));
}

#[test]
fn a_broadcast_that_a_gap_took_from_a_member_has_no_last_delivery_without_its_copy() {
    let mut room = Room::new(3);
    let a = room.send(0);
    assert_eq!(room.get(0, &[a]), Ok(vec![false]));
    room.gap(1);
    assert_eq!(room.get(2, &[a]), Ok(vec![false]), "a member has not got it");
    assert_eq!(room.hub.losses.counted().missed, 1);
    assert_eq!(room.get(1, &[a]), Ok(vec![true]), "its copy came after the gap");
    assert_eq!(room.hub.losses.counted().missed, 0);
}

/// A member may get a broadcast whose result says that it is unknown, or not, and at any time.
#[test]
fn what_may_not_be_published_is_in_no_order() {
    // The result comes after the copies, or before some of them.
    for known_first in [false, true] {
        let mut room = Room::new(3);
        let a = room.send(0);
        let x = room.begin(1);
        let b = room.send(0);
        room.get(0, &[a, x, b]).unwrap();
        if known_first {
            room.is_unknown(x);
        }
        room.get(1, &[a, b]).unwrap();
        if !known_first {
            room.is_unknown(x);
        }
        room.get(2, &[a, b, x]).unwrap();
        let [c, d] = [0, 1].map(|sender| room.send(sender));
        (0..3).for_each(|member| assert!(room.get(member, &[c, d]).is_ok()));
        assert_eq!(room.hub.wrong.counted(), WrongDeliveries::default());
    }
}

#[test]
fn what_may_not_be_published_hides_no_other_order_of_the_rest() {
    // The order of the others, with what is unknown between any two of them, or will be.
    for reversed in [[1, 0, 2], [0, 2, 1], [2, 1, 0]] {
        for results in ["have come", "have come, except those of the unknown ones", "will come"] {
            let mut room = Room::new(4);
            // Of several senders, so that only the order of all is wrong.
            let sent = [0, 1, 2].map(|sender| match results {
                "will come" => [room.begin(sender), room.begin(3)],
                _ => [room.send(sender), room.begin(3)],
            });
            room.get(0, &sent.concat()).unwrap();
            if results == "have come" {
                sent.iter().for_each(|[_, unknown]| room.is_unknown(*unknown));
            }
            let reversed = reversed.map(|at: usize| sent[at][0]);
            let wrong = room.get(1, &reversed).unwrap_err();
            assert!(wrong.contains("one order for all members"), "{wrong}");
        }
    }
}

/// One member gets nothing. More are sent than can be followed at a time.
#[test]
fn what_is_given_up_is_missing_and_counted_once() {
    const MORE: u64 = 100;
    for tolerates in [false, true] {
        let mut room = Room::with(2, Pushes { tolerates, ..Pushes::default() });
        room.talks[0].echoes = 1;
        let mut all = Vec::new();
        for at in 0..super::roster::MAX_IN_FLIGHT as u64 + MORE {
            room.hub.asked(&mut room.talks[0], 1, at);
            let Some(Request::Broadcast(payload)) = room.talks[0].asked.pop_front() else {
                break;
            };
            room.get(0, &[payload]).unwrap();
            all.push(payload);
        }
        let mut heard = Tolerant::default();
        let hub = &room.hub;
        let copy = frames(None, &[Message::Broadcast(all[all.len() - 1]).text()], &[]);
        let (mut cursor, talk) = (Cursor::new(hub.script(), 0), &mut room.talks[0]);
        let at = At { cursor: &mut cursor, talk, desk: &mut () };
        if !tolerates {
            let wrong = hub.receive(at, &copy, 0, &mut ()).unwrap_err();
            assert!(wrong.expected.contains("too many of which are missing"), "{wrong:?}");
            assert_eq!(hub.wrong.counted().missing, 1);
            continue;
        }
        // The copy itself comes for the second time.
        hub.receive(at, &copy, 0, &mut heard).unwrap();
        assert_eq!((heard.wrong.len() as u64, heard.missing), (MORE + 1, [MORE; 2]));
        // What comes after it was given up is late, and the rest is still owed.
        let talk = &mut room.talks[1];
        for payload in [all[0], all[all.len() - 1]] {
            hub.take_copy(talk, payload, b"", &mut heard).unwrap();
        }
        let counted = WrongDeliveries {
            missing: MORE,
            twice: 1,
            out_of_order: 1,
            ..WrongDeliveries::default()
        };
        assert_eq!((hub.wrong.counted(), heard.deliveries), (counted, 1));
        let rest = super::roster::MAX_IN_FLIGHT as u64 - 1;
        assert_eq!(hub.undelivered(talk, &mut heard), rest);
        assert_eq!((hub.owes(), heard.missing), (false, [MORE + rest; 2]));
    }
}

#[test]
fn a_broadcast_lacks_one_last_delivery_however_many_members_lack_it() {
    for tolerates in [false, true] {
        let mut room = Room::with(10, Pushes { tolerates, ..Pushes::default() });
        // Nobody gets the first one, and all but two members get the second one.
        let [_, b, c] = [0, 1, 2].map(|sender| room.begin(sender));
        (0..10).for_each(|member| assert!(room.get(member, &[c]).is_ok()));
        (0..8).for_each(|member| assert!(room.get(member, &[b]).is_ok()));
        let (hub, mut heard) = (&room.hub, Tolerant::default());
        // Both are lost, and the others lack theirs at the end.
        let lost = [8, 9].map(|member| hub.undelivered(&mut room.talks[member], &mut heard));
        assert_eq!((lost, heard.missing), ([2, 2], [4, 2]));
        let mut missing = Vec::new();
        hub.missing(&mut heard, &mut |deliveries, _| missing.push(deliveries));
        assert_eq!((&missing[..], heard.missing), (&[8][..], [12, 2]));
        assert_eq!(hub.wrong.counted().missing, 12);
    }
}

/// While a broker is down, broadcasts have no result, and a hub may close connections for another reason.
#[test]
fn what_a_lost_connection_lacks_is_missing_only_if_it_is_published() {
    for fate in [Fate::Owed, Fate::Unknown] {
        let mut room = Room::new(2);
        let a = room.begin(0);
        room.get(0, &[a]).unwrap();
        let mut heard = Tolerant::default();
        assert_eq!(room.hub.undelivered(&mut room.talks[1], &mut heard), 0);
        assert!(!room.hub.owes(), "nobody else lacks it");
        match fate {
            Fate::Owed => room.hub.is_published(&room.talks[0], a.id, &mut heard).unwrap(),
            _ => room.is_unknown(a),
        }
        let missing = u64::from(fate == Fate::Owed);
        let counted = room.hub.wrong.counted();
        assert_eq!((heard.missing, heard.wrong.len() as u64), ([missing; 2], missing));
        assert_eq!((counted.missing, counted.total()), (missing, missing));
        room.hub.missing(&mut heard, &mut |_, exchange| panic!("{exchange:?}"));
    }
    // The result does not come.
    let mut room = Room::new(2);
    let a = room.begin(0);
    room.get(0, &[a]).unwrap();
    let (mut heard, mut all) = (Tolerant::default(), Vec::new());
    assert_eq!(room.hub.undelivered(&mut room.talks[1], &mut heard), 0);
    room.hub.missing(&mut heard, &mut |deliveries, _| all.push(deliveries));
    assert_eq!((&all[..], heard.missing), (&[1][..], [1, 1]));
}

#[test]
fn a_delivery_in_two_wrong_orders_is_counted_once() {
    let mut room = Room::new(2);
    let [a, b] = [0, 0].map(|sender| room.send(sender));
    room.get(0, &[a, b]).unwrap();
    let mut heard = Tolerant::default();
    // B comes too early in the order of all, and A too late in that of all and of its sender.
    for payload in [b, a] {
        room.hub.take_copy(&mut room.talks[1], payload, b"", &mut heard).unwrap();
    }
    let counted = WrongDeliveries { out_of_order: 2, ..WrongDeliveries::default() };
    assert_eq!((room.hub.wrong.counted(), heard.wrong.len(), heard.deliveries), (counted, 2, 2));
    // The same after a gap.
    let mut room = Room::new(2);
    let [a, b] = [0, 0].map(|sender| room.send(sender));
    room.get(0, &[a, b]).unwrap();
    room.gap(1);
    for payload in [b, a] {
        room.hub.take_copy(&mut room.talks[1], payload, b"", &mut heard).unwrap();
    }
    let counted = WrongDeliveries { out_of_order: 1, ..WrongDeliveries::default() };
    assert_eq!((room.hub.wrong.counted(), heard.wrong.len(), heard.deliveries), (counted, 3, 4));
}

/// A hub may close the connection of a member that is owed nothing, and delay its first reply afterwards.
#[test]
fn what_a_member_is_not_owed_while_it_is_away_is_counted() {
    let mut room = Room::with(3, Pushes::default());
    let absent = |room: &Room| room.hub.broadcasts().unwrap().absent;
    let send = |room: &mut Room| {
        room.talks[0].echoes = 1;
        room.hub.asked(&mut room.talks[0], 1, 7);
        let Some(Request::Broadcast(payload)) = room.talks[0].asked.pop_front() else {
            panic!("it is a member");
        };
        payload
    };
    let all = send(&mut room);
    (0..3).for_each(|member| assert!(room.get(member, &[all]).is_ok()));
    assert_eq!((room.hub.undelivered(&mut room.talks[2], &mut ()), absent(&room)), (0, 0));
    room.hub.renew(&mut room.talks[2], 2);
    for nth in 1..=4 {
        send(&mut room);
        assert_eq!(absent(&room), nth);
    }
    // A connection that fails before it joins is away no more than before.
    assert_eq!(room.hub.undelivered(&mut room.talks[2], &mut ()), 0);
    assert_eq!(room.hub.broadcasts().unwrap().failed_joins, 1);
    room.hub.renew(&mut room.talks[2], 2);
    send(&mut room);
    assert_eq!(absent(&room), 5);
    room.talks[2].note_reply(&room.hub.roster);
    send(&mut room);
    // Nor does a member that leaves by itself.
    room.hub.leave(&mut room.talks[1]);
    room.hub.renew(&mut room.talks[1], 1);
    send(&mut room);
    assert_eq!((absent(&room), room.hub.wrong.counted().total()), (5, 0));
}

/// A member sends a broadcast, all get it, and its result has so many listeners.
fn result(
    Room { hub, talks }: &mut Room,
    [sent_at, now]: [Nanos; 2],
    listeners: u64,
    heard: &mut Tolerant,
) {
    let talk = &mut talks[0];
    talk.echoes = 1;
    hub.asked(talk, 1, sent_at);
    let Some(Request::Broadcast(payload)) = talk.asked.back().copied() else {
        panic!("it is a member");
    };
    for talk in talks.iter_mut() {
        hub.take_copy(talk, payload, b"", heard).unwrap();
    }
    let talk = &mut talks[0];
    let result = frames(None, &[Message::Result(payload, Some(listeners)).text()], &[]);
    let mut cursor = Cursor::new(hub.script(), 0);
    hub.receive(At { cursor: &mut cursor, talk, desk: &mut () }, &result, now, heard).unwrap();
}

/// Longer than the load may take to see the close of a connection.
const LATER: Nanos = 1_500_000_000;

/// A hub no longer counts a connection that it has closed, and the load may get the result before it sees the close.
#[test]
fn a_result_may_count_one_listener_fewer_for_each_connection_that_the_server_has_closed() {
    for closes in [true, false] {
        let mut room = Room::with(3, Pushes { tolerates: true, ..Pushes::default() });
        let mut heard = Tolerant::default();
        // They come together, after a pause of the load.
        result(&mut room, [0, LATER], 2, &mut heard);
        result(&mut room, [LATER, LATER], 2, &mut heard);
        assert_eq!((heard.wrong.len(), room.hub.owes()), (0, true), "one may be closed");
        if closes {
            room.hub.undelivered(&mut room.talks[2], &mut ());
        }
        assert_eq!(room.hub.owes(), !closes, "the load waits for it before it ends");
        result(&mut room, [LATER, 2 * LATER], 2, &mut heard);
        assert_eq!(heard.wrong.len(), if closes { 0 } else { 2 }, "the first ones");
        let mut missing = Vec::new();
        room.hub.missing(&mut (), &mut |_, exchange| missing.push(exchange.expected));
        let few = missing.iter().filter(|one| one.starts_with("a listenerCount from 3")).count();
        assert_eq!(few, usize::from(!closes), "the last one: {missing:?}");
        let wrong_results = room.hub.broadcasts().unwrap().wrong_results;
        assert_eq!(wrong_results, if closes { 0 } else { 3 }, "they were taken for right ones");
    }
}

#[test]
fn a_close_that_the_load_sees_later_is_no_lack_of_members_on_other_machines() {
    let machines = Machines {
        own: 0,
        of_thread: vec![0, 0, 1],
        members: vec![2, 3],
        ahead_ns: vec![0, 0],
        shift_ns: 0,
        key: 7,
    };
    for closes in [true, false] {
        let order = CompileOptions { machines: Some(&machines), ..options(Pushes::default()) };
        let mut room = Room::compiled(0..2, &order);
        let short_by = |room: &Room| room.hub.across().unwrap().short_by;
        let mut heard = Tolerant::default();
        result(&mut room, [0, 0], 4, &mut heard);
        assert_eq!(short_by(&room), 0);
        if closes {
            room.hub.undelivered(&mut room.talks[1], &mut ());
        }
        result(&mut room, [LATER, LATER], if closes { 4 } else { 5 }, &mut heard);
        assert_eq!((short_by(&room), heard.wrong.len()), (u64::from(!closes), 0));
    }
}
