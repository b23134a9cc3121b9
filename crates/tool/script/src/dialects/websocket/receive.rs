//! The dialect of a hub: writes a member's requests and checks what it receives.

use super::{
    adapters::Adapter,
    afar::{Afar, FarInbox},
    announced::{Losses, OtherCounts, Wrong, WrongCounts},
    frames,
    message::{self, Message, Payload, Request},
    opening::Asked,
    roster::{Missing, Roster, TooMany, few_listeners::FewListeners},
    talk::{ConnectionState, Stage, Standing},
    terms::Terms,
};
use crate::{
    cursor::Cursor,
    dialect::{At, Dialect, Heard},
    protocol::CompileOptions,
    script::Script,
    time::Nanos,
};
use regatta_proto::websocket::{CloseCode, Decoder, Event, Frame, Role};
use regatta_record::{
    AcrossSeen, AnnouncedLosses, BroadcastCounts, Exchange, Operation, WrongDeliveries,
};
use std::{mem, sync::atomic::Ordering::Relaxed};

/// Maximum number of bytes of a message that a member accepts.
const LONGEST: usize = 1 << 20;
/// Number of written request bytes that are kept before they are dropped.
const WRITTEN: usize = 4096;
/// Time without a request after which a member sends a heartbeat, if the server expects heartbeats.
const SILENCE: Nanos = 25_000_000_000;

/// The dialect of a hub.
#[derive(Debug)]
pub struct Hub {
    pub(super) terms: Terms,
    /// First byte of the server's messages in a single frame.
    first: u8,
    script: Script,
    seed: u64,
    /// The host of each node, by its number.
    hosts: Box<[String]>,
    path: String,
    pub(super) roster: Roster,
    /// What the hub announced as lost.
    pub(super) losses: Losses,
    /// Deliveries that were wrong.
    pub(super) wrong: WrongCounts,
    pub(super) others: OtherCounts,
    /// Results that count too few listeners, unless the server has closed connections.
    pub(super) few: FewListeners,
    /// Members on other machines, if there are some.
    pub(super) afar: Option<Afar>,
}

impl Hub {
    /// Index of deliveries among the operations.
    pub(super) const DELIVERIES: usize = 1;
    /// Index of deliveries to the last member.
    pub(super) const LAST_DELIVERIES: usize = 2;

    pub(super) fn new(terms: Terms, script: Script, order: &CompileOptions<'_>, path: &str) -> Hub {
        let hosts: &[&str] = match order.pushes.hosts {
            [] => &[order.place.host],
            hosts => hosts,
        };
        let (hosts, path) =
            (hosts.iter().map(|host| (*host).to_owned()).collect(), path.to_owned());
        let is_stream = terms.adapter.is_some_and(Adapter::is_stream);
        let first = if is_stream { frames::BINARY } else { frames::TEXT };
        let mut roster = Roster::new(order.shared);
        roster.may_be_lost = terms.may_be_lost;
        let afar = order.machines.map(Afar::new);
        let (losses, wrong, others, few) = Default::default();
        Hub {
            terms,
            first,
            script,
            seed: order.seed,
            hosts,
            path,
            roster,
            losses,
            wrong,
            others,
            few,
            afar,
        }
    }

    /// Returns the number of bytes in the frame of a request.
    pub(super) fn frame_bytes(adapter: Option<Adapter>) -> usize {
        let Some(adapter) = adapter else { return message::FRAME };
        let mut frame = Vec::new();
        adapter.write(Request::Echo(Payload { sender: 0, id: 0, at: 0 }), 1, [0; 4], &mut frame);
        frame.len()
    }

    /// Returns the next request. The first request of a connection is always an echo, or through an
    /// adapter the subscription. Its reply shows that the member has joined, even if the member stays
    /// idle.
    fn next_request(&self, talk: &mut ConnectionState, at: Nanos) -> Request {
        let sender = talk.number;
        if self.terms.broadcasts && talk.echoes > 0 {
            let mut sent = self.roster.send(sender, at);
            while sent == Err(TooMany) && self.has_given_up(talk) {
                sent = self.roster.send(sender, at);
            }
            if let Ok(id) = sent {
                self.count_absent();
                let payload = Payload { sender, id, at };
                self.afar.iter().for_each(|afar| afar.sends(payload));
                return Request::Broadcast(payload);
            }
        }
        let id = talk.echoes;
        talk.echoes += 1;
        Request::Echo(Payload { sender, id, at })
    }

    /// Counts the members that are not owed a broadcast, because the server has closed their connections.
    #[inline]
    fn count_absent(&self) {
        let away = self.roster.away();
        if away > 0 {
            self.others.absent.fetch_add(away, Relaxed);
        }
    }

    /// So many broadcasts were sent that another one cannot be tracked: the oldest has not reached all members. What it
    /// lacks is missing. Returns whether the load continues without it; otherwise the next message of this member ends
    /// the load.
    #[cold]
    fn has_given_up(&self, talk: &mut ConnectionState) -> bool {
        let tolerates = self.terms.tolerates;
        if tolerates || talk.given_up.is_empty() {
            talk.given_up.extend(self.roster.overdue(tolerates));
        }
        tolerates
    }

    /// Reports what was given up when this member sent a broadcast.
    #[cold]
    fn report_given_up(
        &self,
        talk: &mut ConnectionState,
        message: &[u8],
        heard: &mut impl Heard,
    ) -> Result<(), Box<Exchange>> {
        let missing = self.are_missing(mem::take(&mut talk.given_up), heard);
        let expected = "the copies of earlier broadcasts, too many of which are missing";
        heard.wrong(self.terms.wrong(talk, expected, message), missing)
    }

    /// Counts deliveries that are missing. Returns their number.
    #[cold]
    pub(super) fn are_missing(
        &self,
        all: impl IntoIterator<Item = Missing>,
        heard: &mut impl Heard,
    ) -> u64 {
        let mut sum = 0;
        for Missing { sent, deliveries, is_first, .. } in all {
            heard.missing(Hub::DELIVERIES, sent.at, deliveries);
            heard.missing(Hub::LAST_DELIVERIES, sent.at, is_first.into());
            sum += deliveries;
        }
        self.wrong.add(Wrong::Missing, sum);
        sum
    }

    /// Handles a received message.
    #[inline]
    fn take(
        &self,
        talk: &mut ConnectionState,
        message: &[u8],
        heard: &mut impl Heard,
        replies: &mut u32,
    ) -> Result<(), Box<Exchange>> {
        if !talk.given_up.is_empty() {
            self.report_given_up(talk, message, heard)?;
        }
        if let Some(adapter) = self.terms.adapter {
            return self.take_adapted(adapter, talk, message, heard, replies);
        }
        match Message::read(message) {
            Some(Message::Broadcast(payload)) => self.take_copy(talk, payload, message, heard),
            Some(reply @ (Message::Echo(_) | Message::Result(..))) => {
                self.take_reply(talk, reply, message, heard)?;
                *replies += 1;
                Ok(())
            }
            None => self.take_loss(talk, message, heard, replies),
        }
    }

    /// The parameters of the upgrade of a connection.
    fn upgrade_of(&self, number: u32) -> Asked<'_> {
        let subprotocol = self.terms.adapter.and_then(Adapter::subprotocol);
        let host = &self.hosts[number as usize % self.hosts.len()];
        Asked { host, path: &self.path, subprotocol }
    }

    /// Handles received bytes of frames.
    #[inline]
    fn take_bytes(
        &self,
        talk: &mut ConnectionState,
        data: &[u8],
        heard: &mut impl Heard,
        replies: &mut u32,
    ) -> Result<(), Box<Exchange>> {
        let held = mem::take(&mut talk.part);
        let mut rest = if held.is_empty() { data } else { &[&held, data].concat() };
        while matches!(talk.stage, Stage::Plain)
            && let Some((message, taken)) = frames::whole(self.first, rest)
        {
            rest = &rest[taken..];
            self.take(talk, message, heard, replies)?;
        }
        if matches!(talk.stage, Stage::Plain) {
            if frames::may_become_whole(self.first, rest) {
                talk.part.extend_from_slice(rest);
                return Ok(());
            }
            talk.stage = Stage::Coded(Box::new(Decoder::new(Role::Client, LONGEST)));
        }
        self.take_coded(talk, rest, heard, replies)
    }

    /// Handles bytes with the codec: the first ones that are not a complete message in a single frame,
    /// and all after them.
    #[cold]
    fn take_coded(
        &self,
        talk: &mut ConnectionState,
        data: &[u8],
        heard: &mut impl Heard,
        replies: &mut u32,
    ) -> Result<(), Box<Exchange>> {
        let Stage::Coded(decoder) = &mut talk.stage else { return Ok(()) };
        // The decoder is put back below.
        let mut decoder = mem::replace(decoder, Box::new(Decoder::new(Role::Client, 0)));
        let mut bytes = data.to_vec();
        let mut at = 0;
        let result = loop {
            let (taken, event) = match decoder.next(&mut bytes[at..]) {
                Ok(next) => next,
                Err(violation) => {
                    let expected = format!("valid frames ({})", violation.why);
                    break Err(self.terms.wrong(talk, &expected, data));
                }
            };
            at += taken;
            let message = match event {
                Some(Event::Text(text)) if self.first == frames::TEXT => text.as_bytes(),
                Some(Event::Binary(bytes)) if self.first == frames::BINARY => bytes,
                Some(Event::Pong(_)) => {
                    break Err(self.terms.wrong(talk, "no unsolicited pong", data));
                }
                // After its Close frame, a member sends no more frames.
                Some(Event::Ping(_)) if talk.standing == Standing::Closing => continue,
                Some(Event::Ping(payload)) => {
                    let mask = talk.mask();
                    Frame::pong(payload).write_masked(mask, &mut talk.asides);
                    continue;
                }
                Some(Event::Binary(_)) => {
                    break Err(self.terms.wrong(talk, "a text message, not a binary one", data));
                }
                Some(Event::Text(_)) => {
                    break Err(self.terms.wrong(talk, "a binary message, not a text one", data));
                }
                Some(Event::Close(_)) if talk.standing == Standing::Closing => {
                    talk.standing = Standing::Closed;
                    break Ok(());
                }
                Some(Event::Close(why)) => {
                    let wrong = self.terms.wrong(talk, "no Close frame from the server", data);
                    let received = match why {
                        None => "a Close frame without a code".to_owned(),
                        Some((code, "")) => format!("a Close frame with code {}", code.0),
                        Some((code, why)) => format!("a Close frame with code {}: {why}", code.0),
                    };
                    break Err(Box::new(Exchange { received, ..*wrong }));
                }
                None if taken == 0 => break Ok(()),
                None => continue,
            };
            if let Err(exchange) = self.take(talk, message, heard, replies) {
                break Err(exchange);
            }
        };
        talk.part.extend_from_slice(&bytes[at.min(bytes.len())..]);
        talk.stage = Stage::Coded(decoder);
        result
    }
}

impl Dialect for Hub {
    type ThreadState = ();
    type ConnectionState = ConnectionState;

    const OPENS: bool = true;
    const REFUSES: bool = true;

    const OPERATIONS: &'static [Operation] =
        &[Operation::REQUESTS, Operation::DELIVERIES, Operation::LAST_DELIVERIES];

    fn script(&self) -> &Script {
        &self.script
    }

    /// The roster belongs to the members of one run.
    fn serves_one_run(&self) -> bool {
        true
    }

    fn desk(&self, _: fn() -> Nanos) {}

    fn talk(&self, number: u32) -> ConnectionState {
        let far = self.afar.as_ref().map(Afar::inboxes).unwrap_or_default();
        ConnectionState { far, ..ConnectionState::new(number, self.seed) }
    }

    fn renew(&self, talk: &mut ConnectionState, number: u32) {
        let mut left = mem::replace(talk, self.talk(number));
        let was_member = left.standing != Standing::New;
        if was_member {
            self.afar.iter().for_each(|afar| afar.leaves(&left.far));
        }
        if was_member || left.far.iter().any(FarInbox::is_late) {
            talk.far.iter_mut().for_each(|inbox| *inbox = FarInbox::late());
        }
        left.forgives(&self.roster);
        talk.is_away = left.is_away;
        if left.upgrade_sent {
            self.roster.connection_closed();
        }
    }

    /// The member stays among the connections that a server may count.
    fn stall(&self, talk: &mut ConnectionState) {
        talk.forgives(&self.roster);
    }

    fn undelivered(&self, talk: &mut ConnectionState, heard: &mut impl Heard) -> u64 {
        if talk.goes_away(&self.roster) {
            self.afar.iter().for_each(Afar::goes_away);
        }
        if talk.standing == Standing::New && self.terms.broadcasts {
            self.others.failed_joins.fetch_add(1, Relaxed);
        }
        let given_up = mem::take(&mut talk.given_up);
        let missing = talk.stops_reading(&self.roster).into_iter();
        self.are_missing(
            missing.filter_map(|number| self.roster.miss(number)).chain(given_up),
            heard,
        )
    }

    fn leave(&self, talk: &mut ConnectionState) {
        talk.leaves(&self.roster);
    }

    fn may_go(&self, talk: &ConnectionState) -> bool {
        talk.inbox.has_all()
    }

    /// Sends a Close frame (RFC 6455, section 5.5.1).
    fn say_goodbye(&self, talk: &mut ConnectionState, out: &mut Vec<u8>) {
        talk.standing = Standing::Closing;
        CloseCode::NORMAL.write_masked("", talk.mask(), out);
    }

    #[inline]
    fn ends(&self, talk: &ConnectionState) -> bool {
        talk.standing == Standing::Closed
    }

    fn open(
        &self,
        talk: &mut ConnectionState,
        data: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, Box<Exchange>> {
        if let Stage::Opening(upgrade) = &mut talk.stage {
            let asked = self.upgrade_of(talk.number);
            if data.is_empty() {
                upgrade.ask(asked, out);
                talk.upgrade_sent = true;
                self.roster.connection_opened();
                self.afar.iter().for_each(Afar::opens);
                return Ok(false);
            }
            talk.part.extend_from_slice(data);
            let left = upgrade.take(asked, &mut talk.part)?;
            *data = &data[data.len() - left.unwrap_or(0)..];
            if left.is_none() {
                return Ok(false);
            }
            talk.part = Vec::new();
            talk.stage = Stage::Plain;
        }
        if !self.terms.adapter.is_some_and(Adapter::greets) {
            return Ok(true);
        }
        let taken = self.take_bytes(talk, mem::take(data), &mut (), &mut 0);
        out.append(&mut talk.asides);
        taken.map(|()| talk.is_greeted)
    }

    fn asked(&self, talk: &mut ConnectionState, k: u32, from: Nanos) {
        for _ in 0..k {
            let request = self.next_request(talk, from);
            let mask = talk.mask();
            match self.terms.adapter {
                None => request.write(mask, &mut talk.out),
                Some(adapter) => {
                    talk.last_sent_at = from;
                    let number = talk.answered + talk.asked.len() as u64 + 1;
                    adapter.write(request, number, mask, &mut talk.out);
                }
            }
            talk.asked.push_back(request);
        }
    }

    #[inline]
    fn unsent<'b>(&'b self, cursor: &Cursor, talk: &'b mut ConnectionState, _: Nanos) -> &'b [u8] {
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
        data: &[u8],
        now: Nanos,
        heard: &mut impl Heard,
    ) -> Result<u32, Box<Exchange>> {
        let mut replies = 0;
        talk.now = now;
        talk.refused.clear();
        if let Err(exchange) = self.take_bytes(talk, data, heard, &mut replies) {
            return Err(Box::new(Exchange { reply_index: replies.into(), ..*exchange }));
        }
        if replies > 0 {
            cursor.answer(replies, &self.script);
        }
        Ok(replies)
    }

    fn unfinished(&self, _: &Cursor, talk: &ConnectionState) -> Option<Exchange> {
        let is_inside = matches!(&talk.stage, Stage::Coded(decoder) if decoder.is_inside());
        let part = if talk.held.is_empty() { &talk.part } else { &talk.held };
        (is_inside || !part.is_empty()).then(|| {
            let exchange = *self.terms.wrong(talk, "whole frames and messages", part);
            // The codec has taken it.
            let received =
                if part.is_empty() { "part of a frame".into() } else { exchange.received };
            Exchange { received, ..exchange }
        })
    }

    #[inline]
    fn next_refused(&self, talk: &mut ConnectionState) -> Option<u32> {
        talk.refused.pop_front()
    }

    fn keeps_alive(&self) -> bool {
        self.terms.adapter.and_then(Adapter::heartbeat).is_some()
    }

    fn keep_alive(&self, talk: &mut ConnectionState, now: Nanos) {
        if let Some(adapter) = self.terms.adapter
            && let Some(heartbeat) = adapter.heartbeat()
            && now.saturating_sub(talk.last_sent_at) > SILENCE
            // After its Close frame, a member sends no more frames.
            && talk.standing != Standing::Closing
        {
            talk.last_sent_at = now;
            let mask = talk.mask();
            adapter.frame(heartbeat.as_bytes(), mask, &mut talk.asides);
        }
    }

    fn missing(&self, heard: &mut impl Heard, wrong: &mut dyn FnMut(u64, Exchange)) {
        let _ = self.wrong_few(Nanos::MAX, |results, exchange| {
            self.others.wrong_results.fetch_add(results, Relaxed);
            wrong(results, *exchange);
            Ok(())
        });
        let all = self.roster.missing();
        let Some(Missing { number: id, sent, deliveries: left, .. }) = all.first().copied() else {
            return;
        };
        let payload = Payload { sender: sent.sender, id, at: sent.at };
        let exchange = Exchange {
            // The number of the request on its connection is no longer known.
            sent: self.terms.sent(Request::Broadcast(payload), 0),
            expected: format!("a copy for each of {} members", sent.members),
            received: format!("no copy for {left} of them, although the load has waited"),
            reply_index: 0,
        };
        wrong(self.are_missing(all, heard), exchange);
    }

    /// Also waits for closes of connections that results no longer count. Of members on other machines it does not know
    /// whether there are some.
    fn owes(&self) -> bool {
        let lacks_closes = || self.afar.is_none() && self.few.lack(self.roster.closed());
        self.roster.owes() || lacks_closes()
    }

    fn announced(&self) -> Option<AnnouncedLosses> {
        self.terms.may_be_lost.then(|| self.losses.counted())
    }

    /// Without what members on other machines sent: the leader compares their counts.
    fn wrong_deliveries(&self) -> Option<WrongDeliveries> {
        self.terms.broadcasts.then(|| self.wrong.counted())
    }

    fn broadcasts(&self) -> Option<BroadcastCounts> {
        let afar = self.afar.as_ref().map_or(0, Afar::absent);
        let counted = self.terms.broadcasts.then(|| self.others.counted());
        counted
            .map(|counts| BroadcastCounts { absent: counts.absent.saturating_add(afar), ..counts })
    }

    fn across(&self) -> Option<AcrossSeen> {
        self.afar.as_ref().map(Afar::seen)
    }

    #[inline]
    fn asides(&self, talk: &mut ConnectionState, out: &mut Vec<u8>) {
        out.append(&mut talk.asides);
    }
}
