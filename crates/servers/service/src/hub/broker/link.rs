//! The connection of a hub to its broker, as a state machine: `Down → Connecting → Greeting → Subscribing → Up`.
//!
//! One connection speaks RESP3, subscribes and publishes. It counts as lost if anything is not as expected: an own
//! message or heartbeat that does not come back, a reply to nothing, the end of a subscription. Then it is dropped and
//! dialled again. When it is up again, all members get a gap, and what came before that is discarded: so no member
//! gets a message behind a missing one without a gap between them.

use super::{
    envelope::Envelope,
    input::{Heard, Input, field},
    partition::Channels,
    sent::{Inconsistent, SILENCE, Sent},
    settings::Broker,
};
use crate::hub::{broadcast::Broadcast, census::Census, live::Live};
use regatta_engine::{RemoteOutcome, RoomName, Ticket, Uplink, UplinkAct, UplinkTurn};
use regatta_proto::resp::{Value, write_bulk, write_command};
use std::{
    fmt::Write as _,
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

/// How often the hub sends itself a heartbeat.
const BEAT: Duration = Duration::from_secs(1);
/// How long an attempt to connect may take.
const OPENING: Duration = Duration::from_secs(3);
/// The pause after the first failed attempt, and the longest one. Each is changed by up to 20%.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// Maximum number of messages that were sent and are not confirmed, and bytes of unwritten output. Beyond either, more
/// are not published.
const MOST_SENT: usize = 1 << 16;
const MOST_PENDING: usize = 16 << 20;
/// Maximum length of a text of the broker that is shown to people, in bytes.
const LONGEST_TEXT: usize = 200;

type Turn<'a> = UplinkTurn<'a, Broadcast>;

/// The connection of a hub to its broker.
#[derive(Debug)]
pub struct BrokerLink {
    broker: Arc<Broker>,
    live: Arc<Live>,
    census: Arc<Census>,
    channels: Channels,
    state: State,
    input: Input,
    sent: Sent,
    /// Attempts since it was up, for the pause before the next one.
    attempts: u32,
    /// Random numbers for the pauses.
    random: u64,
    /// The reason of the last failure that people were shown.
    shown: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// The next attempt is at this time.
    Down(Instant),
    /// Must be up by then.
    Connecting(Instant),
    /// `HELLO` was sent.
    Greeting(Instant),
    /// So many channels are subscribed to.
    Subscribing(Instant, usize),
    /// The next heartbeat is due at this time.
    Up(Instant),
}

/// Why a connection is dropped.
type Why = String;

impl BrokerLink {
    /// Creates one that connects at its first [tick](Uplink::tick).
    pub(in super::super) fn new(
        broker: Arc<Broker>,
        live: Arc<Live>,
        census: Arc<Census>,
    ) -> BrokerLink {
        BrokerLink {
            channels: Channels::new(&broker.prefix, broker.node),
            random: broker.node | 1,
            broker,
            live,
            census,
            state: State::Down(Instant::now()),
            input: Input::default(),
            sent: Sent::default(),
            attempts: 0,
            shown: String::new(),
        }
    }

    fn log(&self, line: &str) {
        (self.live.current().log)(&format!("regatta: broker {}: {line}", self.broker.name));
    }

    /// Drops the connection, if there is one, and answers all who wait.
    fn lose(&mut self, why: &str, turn: &mut Turn<'_>) {
        let (now, health) = (turn.now.instant, &self.broker.health);
        let was_up = matches!(self.state, State::Up(_));
        if was_up { &health.lost } else { &health.failed }.add(1);
        health.down(now);
        turn.acts.push(UplinkAct::Disconnect);
        for (ticket, is_confirmed) in self.sent.lose() {
            self.done(ticket, outcome(is_confirmed), turn);
        }
        self.input = Input::default();
        // Not each attempt is worth a line.
        if was_up || self.shown != why {
            let what = if was_up { "the connection is lost" } else { "no connection" };
            self.log(&format!("{what}: {why}; the hub tries again"));
            self.shown = why.to_owned();
        }
        self.state = State::Down(now + self.pause());
    }

    /// The pause before the next attempt.
    fn pause(&mut self) -> Duration {
        let (first, longest) = PAUSES;
        let pause = longest.min(first * (1 << self.attempts.min(10)));
        self.attempts += 1;
        // Xorshift (Marsaglia 2003): hubs that lost the same broker do not come back at the same moment.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        pause * (80 + (self.random % 41) as u32) / 100
    }

    fn done(&self, ticket: Ticket, outcome: RemoteOutcome, turn: &mut Turn<'_>) {
        self.broker.health.count(outcome);
        turn.acts.push(UplinkAct::Done(ticket, outcome));
    }

    fn connect(&mut self, turn: &mut Turn<'_>) {
        match (self.broker.address)() {
            None => self.lose("its name cannot be resolved", turn),
            Some(address) => {
                self.state = State::Connecting(turn.now.instant + OPENING);
                turn.acts.push(UplinkAct::Connect(address));
            }
        }
    }

    fn subscribe(&mut self, until: Instant, turn: &mut Turn<'_>) {
        self.state = State::Subscribing(until, 0);
        let args: Vec<&[u8]> =
            [&b"SUBSCRIBE"[..]].into_iter().chain(self.channels.all().map(str::as_bytes)).collect();
        write_command(args, turn.out);
    }

    fn is_up(&mut self, turn: &mut Turn<'_>) {
        self.state = State::Up(turn.now.instant);
        self.broker.health.up();
        self.shown.clear();
        self.log("connected");
        // Members that are there have missed what was published meanwhile.
        turn.acts.push(UplinkAct::PushAll(Broadcast::gap()));
        self.beat(turn);
    }

    fn beat(&mut self, turn: &mut Turn<'_>) {
        self.state = State::Up(turn.now.instant + BEAT);
        let mut digits = itoa::Buffer::new();
        let number = digits.format(self.sent.next()).as_bytes();
        write_command([b"PUBLISH", self.channels.beat.as_bytes(), number], turn.out);
        self.sent.add(None, turn.now.instant);
    }

    fn heard(&mut self, heard: Heard<'_>, turn: &mut Turn<'_>) -> Result<(), Why> {
        match (self.state, heard) {
            (_, Heard::Unsubscribed) => Err("it has ended a subscription".to_owned()),
            (_, Heard::Other) => Ok(()),
            (State::Up(_), Heard::Message { channel, payload }) => {
                self.message(channel, payload, turn)
            }
            // Nothing that comes before the gap is delivered.
            (_, Heard::Message { .. }) => Ok(()),
            (State::Subscribing(until, before), Heard::Subscribed) => {
                self.state = State::Subscribing(until, before + 1);
                if before + 1 == Channels::COUNT {
                    self.is_up(turn);
                }
                Ok(())
            }
            (State::Greeting(until), Heard::Reply(reply)) => {
                greeted(reply)?;
                self.subscribe(until, turn);
                Ok(())
            }
            (State::Up(_), Heard::Reply(reply)) => self.answered(reply, turn),
            (_, Heard::Reply(Value::Error(text))) => Err(shown(text)),
            (_, Heard::Reply(_) | Heard::Subscribed) => {
                Err("it answers what was not asked".to_owned())
            }
        }
    }

    /// The broker has answered a `PUBLISH`.
    fn answered(&mut self, reply: Value<'_>, turn: &mut Turn<'_>) -> Result<(), Why> {
        let is_refused = match reply {
            Value::Integer(1..) => false,
            // This hub is a receiver itself.
            Value::Integer(_) => return Err("it has lost a subscription".to_owned()),
            Value::Error(text) => {
                let text = shown(text);
                if self.shown != text {
                    self.log(&format!("a message is not published: {text}"));
                    self.shown = text;
                }
                true
            }
            _ => return Err("it answers what was not asked".to_owned()),
        };
        if let Some(ticket) = self.sent.answered(is_refused).map_err(inconsistent)? {
            self.done(ticket, RemoteOutcome::NotSent, turn);
        }
        Ok(())
    }

    /// A message has come.
    fn message(&mut self, channel: &[u8], payload: &[u8], turn: &mut Turn<'_>) -> Result<(), Why> {
        if channel == self.channels.beat.as_bytes() {
            let number = str::from_utf8(payload).ok().and_then(|number| number.parse().ok());
            let number = number.ok_or("a heartbeat is not a number")?;
            self.sent.came_back(number).map_err(inconsistent)?;
            self.attempts = 0;
            return Ok(());
        }
        let health = &self.broker.health;
        health.received.add(1);
        let message = Envelope::read(payload)
            .filter(|message| self.channels.of(message.room).as_bytes() == channel);
        let Some(Envelope { node, number, room, payload, .. }) = message else {
            if health.ignored.add(1) == 0 {
                self.log("ignores messages that no hub of this version has published");
            }
            return Ok(());
        };
        let sender = if node == self.broker.node {
            self.sent.came_back(number).map_err(inconsistent)?
        } else {
            None
        };
        let room = RoomName::of(room);
        // A member is counted before it joins its room, so one that is not counted gets what follows.
        if self.census.has_members(&room) {
            let settings = self.live.current();
            let push = Broadcast::of_backend(payload, settings.deflate, &settings.backlog.memory);
            turn.acts.push(UplinkAct::Push(room, push));
        }
        if let Some(ticket) = sender {
            self.done(ticket, RemoteOutcome::Sent, turn);
        }
        Ok(())
    }
}

impl Uplink<Broadcast> for BrokerLink {
    fn opened(&mut self, turn: &mut Turn<'_>) {
        let State::Connecting(until) = self.state else { return };
        self.state = State::Greeting(until);
        let mut args: Vec<&[u8]> = vec![b"HELLO", b"3"];
        if let Some(password) = &self.broker.password {
            let user = self.broker.user.as_deref().unwrap_or("default");
            args.extend([b"AUTH", user.as_bytes(), password.as_bytes()]);
        }
        args.extend([&b"SETNAME"[..], b"regatta-hub"]);
        write_command(args, turn.out);
    }

    fn received(&mut self, bytes: &[u8], turn: &mut Turn<'_>) {
        let mut input = mem::take(&mut self.input);
        let mut lost = None;
        let taken = input.take(bytes, |heard| {
            lost = self.heard(heard, turn).err();
            lost.is_none()
        });
        match lost.or(taken.err().map(|why| format!("not RESP: {why}"))) {
            Some(why) => self.lose(&why, turn),
            None => self.input = input,
        }
    }

    fn closed(&mut self, turn: &mut Turn<'_>) {
        let why = match self.state {
            State::Connecting(_) => "it does not accept connections",
            _ => "it has closed the connection",
        };
        self.lose(why, turn);
    }

    fn send(&mut self, room: &RoomName, push: &Broadcast, ticket: Ticket, turn: &mut Turn<'_>) {
        let is_full = self.sent.len() >= MOST_SENT || turn.pending >= MOST_PENDING;
        let payload = str::from_utf8(push.frame(false));
        let (State::Up(_), false, Ok(payload)) = (self.state, is_full, payload) else {
            return self.done(ticket, RemoteOutcome::NotSent, turn);
        };
        let message = Envelope {
            node: self.broker.node,
            number: self.sent.next(),
            is_of_backend: push.is_of_backend(),
            room: room.as_str(),
            payload,
        };
        let channel = self.channels.of(room.as_str());
        turn.out.extend_from_slice(b"*3\r\n$7\r\nPUBLISH\r\n");
        write_bulk(channel.as_bytes(), turn.out);
        turn.out.push(b'$');
        turn.out.extend_from_slice(itoa::Buffer::new().format(message.len()).as_bytes());
        turn.out.extend_from_slice(b"\r\n");
        message.write(turn.out);
        turn.out.extend_from_slice(b"\r\n");
        self.sent.add(Some(ticket), turn.now.instant);
    }

    fn due(&self) -> Option<Instant> {
        match self.state {
            State::Down(at)
            | State::Connecting(at)
            | State::Greeting(at)
            | State::Subscribing(at, _) => Some(at),
            State::Up(beats_at) => self.sent.due().into_iter().chain([beats_at]).min(),
        }
    }

    fn tick(&mut self, turn: &mut Turn<'_>) {
        let now = turn.now.instant;
        match self.state {
            State::Down(at) if at <= now => self.connect(turn),
            State::Connecting(until) if until <= now => {
                self.lose("it does not accept connections", turn);
            }
            State::Greeting(until) | State::Subscribing(until, _) if until <= now => {
                self.lose("it does not answer", turn);
            }
            State::Up(_) if self.sent.is_silent(now) => {
                let seconds = SILENCE.as_secs();
                self.lose(&format!("a message did not come back within {seconds} s"), turn);
            }
            State::Up(beats_at) => {
                while let Some((ticket, is_confirmed)) = self.sent.take_late(now) {
                    self.done(ticket, outcome(is_confirmed), turn);
                }
                if beats_at <= now {
                    self.beat(turn);
                }
            }
            _ => {}
        }
    }
}

/// What a sender learns of a message that did not come back.
fn outcome(is_confirmed: bool) -> RemoteOutcome {
    if is_confirmed { RemoteOutcome::Sent } else { RemoteOutcome::Unknown }
}

fn inconsistent(Inconsistent: Inconsistent) -> Why {
    "messages of this hub came back in another order, twice, or not at all".to_owned()
}

/// Checks the reply to `HELLO`.
fn greeted(reply: Value<'_>) -> Result<(), Why> {
    if let Value::Error(text) = reply {
        return Err(shown(text));
    }
    match (field(reply, b"role"), field(reply, b"mode")) {
        (Some(b"master"), Some(b"standalone")) => Ok(()),
        (Some(_), Some(b"cluster" | b"sentinel")) => {
            Err("expected a single server, not a cluster or a Sentinel".to_owned())
        }
        (Some(_), Some(_)) => {
            Err("expected a master: a replica does not pass messages on".to_owned())
        }
        _ => Err("expected Redis from 6.0 on, or Valkey, which speak RESP3".to_owned()),
    }
}

/// A text of the broker, for people: on one line, and not too long.
fn shown(text: &[u8]) -> String {
    let text = &text[..text.len().min(LONGEST_TEXT)];
    let mut shown = String::from("it says: ");
    for part in String::from_utf8_lossy(text).chars() {
        if part.is_control() {
            let _ = write!(shown, "{}", part.escape_default());
        } else {
            shown.push(part);
        }
    }
    shown
}
