//! Members of a hub who are checked without bytes of a connection, and what they report.

use super::{Counts, compile, options};
use crate::{
    cursor::Cursor,
    dialect::{At, Dialect, Heard},
    dialects::websocket::{
        Hub, WebSocketAsks,
        message::{Message, Payload, Request},
        talk::{ConnectionState, Stage},
    },
    protocol::{CompileOptions, Pushes},
    time::Nanos,
};
use regatta_record::Exchange;
use std::{iter, ops::Range, sync::atomic::AtomicU64};

/// Members of a hub that may announce losses, and the broadcasts that they send.
pub struct Room {
    pub hub: Hub,
    pub talks: Vec<ConnectionState>,
}

impl Room {
    pub fn new(members: u32) -> Room {
        Room::with(members, Pushes { in_one_order: true, may_be_lost: true, ..Pushes::default() })
    }

    pub fn with(members: u32, pushes: Pushes<'_>) -> Room {
        Room::of(0..members, pushes, None)
    }

    /// The members with these numbers, in one of several processes that share a roster.
    pub fn of(
        numbers: Range<u32>,
        pushes: Pushes<'_>,
        shared: Option<&'static [AtomicU64]>,
    ) -> Room {
        Room::compiled(numbers, &CompileOptions { shared, ..options(pushes) })
    }

    pub fn compiled(numbers: Range<u32>, order: &CompileOptions<'_>) -> Room {
        let hub = compile(WebSocketAsks::Broadcast, order);
        let talk = |number| {
            let mut talk = hub.talk(number);
            talk.stage = Stage::Plain;
            talk.note_reply(&hub.roster);
            talk
        };
        let talks = numbers.map(talk).collect();
        Room { hub, talks }
    }

    /// A member sends a broadcast, and its result is still to come.
    pub fn begin(&self, sender: u32) -> Payload {
        Payload { sender, id: self.hub.roster.send(sender, 5).unwrap(), at: 5 }
    }

    /// A member sends a broadcast at this time as the load does, and waits for its result. `None`: it sends an echo, as
    /// too many broadcasts cannot be followed.
    pub fn ask(&mut self, member: usize, at: Nanos) -> Option<Payload> {
        let talk = &mut self.talks[member];
        talk.echoes = 1;
        self.hub.asked(talk, 1, at);
        match talk.asked.back() {
            Some(Request::Broadcast(payload)) => Some(*payload),
            _ => None,
        }
    }

    /// A member gets these bytes.
    pub fn receive(
        &mut self,
        member: usize,
        bytes: &[u8],
        now: Nanos,
        heard: &mut impl Heard,
    ) -> Result<u32, Box<Exchange>> {
        let (mut cursor, talk) = (Cursor::new(self.hub.script(), 0), &mut self.talks[member]);
        self.hub.receive(At { cursor: &mut cursor, talk, desk: &mut () }, bytes, now, heard)
    }

    /// A member sends a broadcast, and its result says that it is published.
    pub fn send(&self, sender: u32) -> Payload {
        let payload = self.begin(sender);
        assert_eq!(self.hub.roster.publish(payload.id), None);
        payload
    }

    /// A result says that it is not known whether a broadcast is published.
    pub fn is_unknown(&mut self, payload: Payload) {
        let sender = payload.sender as usize;
        self.fails(sender, payload, "unknown whether published: not confirmed", &mut ());
    }

    /// The next result of a member is an error for this broadcast.
    pub fn fails(&mut self, member: usize, payload: Payload, why: &str, heard: &mut impl Heard) {
        let text = Message::Broadcast(payload).text().replace("broadcast\"", "error\"");
        let text = text.replace('}', &format!(r#","error":"{why}"}}"#));
        let talk = &mut self.talks[member];
        talk.asked.push_front(Request::Broadcast(payload));
        self.hub.take_loss(talk, text.as_bytes(), heard, &mut 0).unwrap();
    }

    /// A member gets a gap.
    pub fn gap(&mut self, member: usize) {
        let text = br#"{"type":"gap","recovered":false}"#;
        self.hub.take_loss(&mut self.talks[member], text, &mut (), &mut 0).unwrap();
    }

    /// A member gets these broadcasts, of which some may be wrong.
    pub fn hears(&mut self, member: usize, all: &[Payload], heard: &mut Tolerant) {
        for payload in all {
            self.hub.take_copy(&mut self.talks[member], *payload, b"", heard).unwrap();
        }
    }

    /// A member gets these broadcasts. Returns whether each was the last copy, or what was expected instead.
    pub fn get(&mut self, member: usize, all: &[Payload]) -> Result<Vec<bool>, String> {
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

/// Tolerates wrong deliveries, and counts the others.
#[derive(Default)]
pub struct Tolerant {
    pub deliveries: u64,
    pub last: u64,
    /// Missing deliveries, and broadcasts that lack some.
    pub missing: [u64; 2],
    pub wrong: Vec<String>,
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
