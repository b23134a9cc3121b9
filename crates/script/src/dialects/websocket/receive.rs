//! How a member of a hub is spoken to, and how what comes is checked.

use super::{
    member::Got,
    message::{Message, Payload, Request},
    roster::{Roster, TooMany},
};
use crate::{
    cursor::Cursor,
    dialect::{At, Dialect, Heard},
    protocol::Order,
    script::Script,
    text::printable,
    time::Nanos,
};
use rand::{RngCore, SeedableRng, rngs::SmallRng};
use regatta_proto::{
    http1::{Method, client},
    websocket::{Decoder, Event, Frame, Role, handshake::Key},
};
use regatta_record::{Exchange, Operation};
use std::{collections::VecDeque, mem};

/// Most bytes of a message that a member takes.
const LONGEST: usize = 1 << 20;
/// Written bytes of requests that are kept before they are dropped.
const WRITTEN: usize = 4096;
/// Broadcasts that lack copies in the end, and are told.
const TOLD: usize = 1;

/// A hub that is asked.
#[derive(Debug)]
pub struct Hub {
    /// Messages go to every member, not only back to their sender.
    broadcasts: bool,
    script: Script,
    seed: u64,
    host: String,
    path: String,
    roster: Roster,
}

/// What is kept of a member.
pub struct Talk {
    number: u32,
    random: SmallRng,
    stage: Stage,
    /// Requests that were asked: their frames, of which the last bytes are unsent.
    out: Vec<u8>,
    /// Those without a reply.
    asked: VecDeque<Request>,
    /// Echoes so far.
    echoes: u64,
    /// Bytes that came of something that is not whole.
    part: Vec<u8>,
    /// It asked for its upgrade.
    has_begun: bool,
    /// It was answered, and is owed all that is sent from then on.
    is_member: bool,
    got: Got,
    /// Answers to pings, to be sent.
    pongs: Vec<u8>,
    /// A request could not be followed.
    too_many: bool,
}

/// How far a connection is.
enum Stage {
    /// HTTP, until the upgrade.
    Opening { key: Key, decoder: client::Decoder },
    /// Whole texts in one frame each, as all servers write them that need no more.
    Plain,
    /// Something else came, and is read by the codec from then on.
    Coded(Box<Decoder>),
}

impl Hub {
    /// The place of deliveries among the operations.
    pub(super) const DELIVERIES: usize = 1;
    /// The place of deliveries to the last member.
    pub(super) const LAST_DELIVERIES: usize = 2;

    pub(super) fn new(broadcasts: bool, script: Script, order: &Order<'_>, path: &str) -> Hub {
        let (host, path) = (order.place.host.to_owned(), path.to_owned());
        let roster = Roster::new(order.shared);
        Hub { broadcasts, script, seed: order.seed, host, path, roster }
    }

    /// What is asked next. The first request of a connection is an echo whatever is asked: it shows that
    /// the member is there, also of one that will be idle.
    fn next_request(&self, talk: &mut Talk, at: Nanos) -> Request {
        let sender = talk.number;
        if self.broadcasts && talk.echoes > 0 {
            match self.roster.send(sender, at) {
                Ok(id) => return Request::Broadcast(Payload { sender, id, at }),
                Err(TooMany) => talk.too_many = true,
            }
        }
        let id = talk.echoes;
        talk.echoes += 1;
        Request::Echo(Payload { sender, id, at })
    }

    /// A message came: whether it is the reply to the oldest request.
    fn take(
        &self,
        talk: &mut Talk,
        text: &[u8],
        heard: &mut impl Heard,
    ) -> Result<bool, Box<Exchange>> {
        if talk.too_many {
            let expected = "the copies of the broadcasts before it, of which too many are missing";
            return Err(wrong(talk, expected, text));
        }
        match Message::read(text) {
            Some(Message::Broadcast(payload)) => {
                self.take_copy(talk, payload, text, heard)?;
                Ok(false)
            }
            Some(reply @ (Message::Echo(_) | Message::Result(..))) => {
                self.take_reply(talk, reply, text)?;
                Ok(true)
            }
            None => Err(wrong(talk, &due(talk), text)),
        }
    }

    fn take_copy(
        &self,
        talk: &mut Talk,
        payload: Payload,
        text: &[u8],
        heard: &mut impl Heard,
    ) -> Result<(), Box<Exchange>> {
        let Payload { sender, id, at } = payload;
        let sent = self.roster.sent(id).filter(|sent| sent.sender == sender && sent.at == at);
        if sent.is_none() {
            let expected = match id < talk.got_all_before() {
                true => "each broadcast once; this one came before",
                false => "nothing that no member has sent",
            };
            return Err(wrong(talk, expected, text));
        }
        match talk.got.take(id, &self.roster) {
            Ok(false) => {}
            Ok(true) => {
                heard.heard(Hub::DELIVERIES, at);
                if self.roster.delivered(id) {
                    heard.heard(Hub::LAST_DELIVERIES, at);
                }
            }
            Err(unowed) => return Err(wrong(talk, unowed.in_words(), text)),
        }
        Ok(())
    }

    fn take_reply(
        &self,
        talk: &mut Talk,
        reply: Message,
        text: &[u8],
    ) -> Result<(), Box<Exchange>> {
        let is_right = match (talk.asked.front(), reply) {
            (Some(Request::Echo(asked)), Message::Echo(came)) => *asked == came,
            (Some(Request::Broadcast(asked)), Message::Result(came, listeners)) => {
                if *asked == came && !talk.got.has(came.id) {
                    let expected = "its own copy of the broadcast before the result";
                    return Err(wrong(talk, expected, text));
                }
                // Members that were opening meanwhile may have been counted, too.
                let members = self.roster.sent(came.id).map_or(0, |sent| u64::from(sent.members));
                let all = self.roster.most();
                let counts = listeners.is_none_or(|n| (members..=all.max(members)).contains(&n));
                if *asked == came && !counts {
                    let expected = format!("a listenerCount of {members}, or up to {all}");
                    return Err(wrong(talk, &expected, text));
                }
                *asked == came
            }
            _ => false,
        };
        if !is_right {
            return Err(wrong(talk, &due(talk), text));
        }
        talk.asked.pop_front();
        if !talk.is_member {
            talk.is_member = true;
            talk.got = Got::from(self.roster.join());
        }
        Ok(())
    }
}

impl Talk {
    fn got_all_before(&self) -> u64 {
        self.got.first()
    }
}

/// What had to come next, in words.
fn due(talk: &Talk) -> String {
    match talk.asked.front() {
        None => "copies of broadcasts alone: every request on this connection has its reply".into(),
        Some(Request::Echo(payload)) => Message::Echo(*payload).text(),
        Some(Request::Broadcast(payload)) => Message::Result(*payload, None).text(),
    }
}

#[cold]
fn wrong(talk: &Talk, expected: &str, text: &[u8]) -> Box<Exchange> {
    let sent = match talk.asked.front() {
        None => String::new(),
        Some(Request::Echo(payload)) => Message::Echo(*payload).text(),
        Some(Request::Broadcast(payload)) => Message::Broadcast(*payload).text(),
    };
    Box::new(Exchange {
        sent,
        expected: expected.into(),
        received: printable(text),
        reply_index: 0,
    })
}

/// A whole text in one frame at the front of `bytes`, as a server sends it: its payload and the bytes that
/// it takes. `None`: it is something else, or not whole.
#[inline]
fn whole_text(bytes: &[u8]) -> Option<(&[u8], usize)> {
    const WHOLE_TEXT: u8 = 0x81;
    let [WHOLE_TEXT, length, ..] = *bytes else { return None };
    let (begin, length) = match length {
        0..126 => (2, usize::from(length)),
        126 => (4, usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]))),
        _ => return None,
    };
    Some((bytes.get(begin..begin + length)?, begin + length))
}

/// Whether more bytes may make a whole text of this, of less than 64 KiB.
fn may_become_text(bytes: &[u8]) -> bool {
    match *bytes {
        [0x81] => true,
        [0x81, length, ..] => length <= 126,
        _ => bytes.is_empty(),
    }
}

impl Dialect for Hub {
    type Desk = ();
    type Talk = Talk;

    const OPENS: bool = true;

    const OPERATIONS: &'static [Operation] = &[
        Operation::REQUESTS,
        Operation::new("deliveries", "delivery", "deliveries"),
        Operation::new(
            "last_deliveries",
            "delivery to the last member",
            "deliveries to the last member",
        ),
    ];

    fn script(&self) -> &Script {
        &self.script
    }

    fn desk(&self, _: fn() -> Nanos) {}

    fn talk(&self, number: u32) -> Talk {
        let mut random = SmallRng::seed_from_u64(self.seed ^ u64::from(number).rotate_left(32));
        let mut nonce = [0; 16];
        random.fill_bytes(&mut nonce);
        Talk {
            number,
            random,
            stage: Stage::Opening { key: Key::new(nonce), decoder: client::Decoder::default() },
            out: Vec::new(),
            asked: VecDeque::new(),
            echoes: 0,
            part: Vec::new(),
            has_begun: false,
            is_member: false,
            got: Got::from(u64::MAX),
            pongs: Vec::new(),
            too_many: false,
        }
    }

    fn renew(&self, talk: &mut Talk, number: u32) {
        let left = mem::replace(talk, self.talk(number));
        if left.is_member {
            self.roster.leave(left.got.missing(self.roster.next()));
        }
        if left.has_begun {
            self.roster.end();
        }
    }

    /// It stays among those that a server may count.
    fn stall(&self, talk: &mut Talk) {
        if mem::take(&mut talk.is_member) {
            let got = mem::replace(&mut talk.got, Got::from(u64::MAX));
            self.roster.leave(got.missing(self.roster.next()));
        }
    }

    fn open(
        &self,
        talk: &mut Talk,
        came: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Box<Exchange>> {
        let Stage::Opening { key, decoder } = &mut talk.stage else { return Ok(true) };
        let fields = key.fields();
        let ask = client::Ask {
            method: Method::Get,
            target: &self.path,
            host: &self.host,
            fields: &fields,
            content: None,
        };
        if came.is_empty() {
            ask.write(out);
            talk.has_begun = true;
            self.roster.begin();
            return Ok(false);
        }
        let wrong = |why: &str, received: &[u8]| {
            let mut sent = Vec::new();
            ask.write(&mut sent);
            let expected = format!("101 Switching Protocols, to WebSocket: {why}");
            let (sent, received) = (printable(&sent), printable(received));
            Err(Box::new(Exchange { sent, expected, received, reply_index: 0 }))
        };
        talk.part.extend_from_slice(came);
        let mut rest = &talk.part[..];
        match decoder.next(&mut rest, Method::Get) {
            Ok(None) => {
                // Without the interim replies that were skipped.
                let from = talk.part.len() - rest.len();
                talk.part.drain(..from);
                *came = &[];
                return Ok(false);
            }
            Ok(Some(client::Event::Switched(response))) => {
                if let Err(why) = key.check(response.fields, false) {
                    return wrong(why, &talk.part);
                }
            }
            Ok(Some(_)) => return wrong("it refuses", &talk.part),
            Err(malformed) => return wrong(malformed.0, &talk.part),
        }
        *came = &came[came.len() - rest.len()..];
        talk.part = Vec::new();
        talk.stage = Stage::Plain;
        Ok(true)
    }

    fn asked(&self, talk: &mut Talk, k: u32, from: Nanos) {
        for _ in 0..k {
            let request = self.next_request(talk, from);
            let mask = talk.random.next_u32().to_ne_bytes();
            request.write(mask, &mut talk.out);
            talk.asked.push_back(request);
        }
    }

    #[inline]
    fn unsent<'b>(&'b self, cursor: &Cursor, talk: &'b mut Talk, _: Nanos) -> &'b [u8] {
        let unsent = cursor.unsent(&self.script).len();
        let written = talk.out.len() - unsent;
        if written >= WRITTEN || unsent == 0 {
            talk.out.drain(..written);
        }
        &talk.out[talk.out.len() - unsent..]
    }

    fn receive(
        &self,
        At { cursor, talk, .. }: At<'_, Self>,
        came: &[u8],
        _: Nanos,
        heard: &mut impl Heard,
    ) -> Result<u32, Box<Exchange>> {
        let held = mem::take(&mut talk.part);
        let bytes = if held.is_empty() { came } else { &[&held, came].concat() };
        let (mut rest, mut replies) = (bytes, 0);
        let taken = loop {
            let text = match &mut talk.stage {
                Stage::Plain => whole_text(rest),
                _ => None,
            };
            match text {
                Some((text, taken)) => {
                    rest = &rest[taken..];
                    match self.take(talk, text, heard) {
                        Ok(is_reply) => replies += u32::from(is_reply),
                        Err(exchange) => break Err(exchange),
                    }
                }
                None => break Ok(()),
            }
        };
        let taken = taken.and_then(|()| {
            if matches!(talk.stage, Stage::Plain) {
                if may_become_text(rest) {
                    talk.part.extend_from_slice(rest);
                    return Ok(());
                }
                talk.stage = Stage::Coded(Box::new(Decoder::new(Role::Client, LONGEST)));
            }
            self.receive_coded(talk, rest, heard, &mut replies)
        });
        match taken {
            Ok(()) => {
                if replies > 0 {
                    cursor.answer(replies, &self.script);
                }
                Ok(replies)
            }
            Err(exchange) => Err(Box::new(Exchange { reply_index: replies.into(), ..*exchange })),
        }
    }

    fn verify(&self, _: &mut (), _: &dyn Fn() -> bool, wrong: &mut dyn FnMut(Exchange)) {
        for (id, sent, left) in self.roster.missing().into_iter().take(TOLD) {
            let payload = Payload { sender: sent.sender, id, at: sent.at };
            wrong(Exchange {
                sent: Message::Broadcast(payload).text(),
                expected: format!("a copy for each of {} members", sent.members),
                received: format!("none for {left} of them, though the load has waited"),
                reply_index: 0,
            });
        }
    }

    fn owes(&self) -> bool {
        self.roster.owes()
    }

    #[inline]
    fn asides(&self, talk: &mut Talk, out: &mut Vec<u8>) {
        out.append(&mut talk.pongs);
    }
}

impl Hub {
    /// What is no whole text in one frame.
    #[cold]
    fn receive_coded(
        &self,
        talk: &mut Talk,
        came: &[u8],
        heard: &mut impl Heard,
        replies: &mut u32,
    ) -> Result<(), Box<Exchange>> {
        let Stage::Coded(decoder) = &mut talk.stage else { return Ok(()) };
        // It is put back below, unless the run ends here.
        let mut decoder = mem::replace(decoder, Box::new(Decoder::new(Role::Client, 0)));
        let mut bytes = came.to_vec();
        let mut at = 0;
        let result = loop {
            let (taken, event) = match decoder.next(&mut bytes[at..]) {
                Ok(next) => next,
                Err(violation) => break Err(wrong(talk, violation.why, came)),
            };
            at += taken;
            match event {
                Some(Event::Text(text)) => match self.take(talk, text.as_bytes(), heard) {
                    Ok(is_reply) => *replies += u32::from(is_reply),
                    Err(exchange) => break Err(exchange),
                },
                Some(Event::Pong(_)) => {
                    break Err(wrong(talk, "no pong that nobody asked for", came));
                }
                Some(Event::Ping(payload)) => {
                    let mask = talk.random.next_u32().to_ne_bytes();
                    Frame::pong(payload).write_masked(mask, &mut talk.pongs);
                }
                Some(Event::Binary(_)) => break Err(wrong(talk, "text, not bytes", came)),
                Some(Event::Close(_)) => {
                    break Err(wrong(talk, "that the server does not close", came));
                }
                None if taken == 0 => break Ok(()),
                None => {}
            }
        };
        talk.part.extend_from_slice(&bytes[at.min(bytes.len())..]);
        talk.stage = Stage::Coded(decoder);
        result
    }
}
