//! What is between the machine and the connection: commands and answers of the broker, the members of this hub, and what
//! all members get.

use super::{
    living::LIVES,
    machine::{Command, Machine, Write},
    room::Notice,
    state::{Event, MOST_EVENTS, MOST_LISTED, State},
};
use crate::hub::{
    broadcast::Broadcast,
    broker::{
        greeting::shown,
        settings::{Broker, key},
    },
    census::{Census, Elsewhere, client_info, client_of},
    live::Live,
    message::Note,
    rooms::Plan,
};
use regatta_engine::{RemoteOutcome, RoomName, Ticket, UplinkAct, UplinkTurn};
use regatta_proto::resp::{Value, write_command};
use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long what is stored of a room lasts without being written again.
const EXPIRY: Duration = Duration::from_secs(900);
/// Maximum number of questions that wait until changes are looked at.
const MOST_EARLY: usize = 10_000;
/// How soon commands are tried again for which there was no room in the output.
const SOON: Duration = Duration::from_millis(5);

type Turn<'a> = UplinkTurn<'a, Broadcast>;

/// A command that the broker has not answered.
#[derive(Debug)]
pub enum Question {
    Begin(u64),
    Keep(u64),
    Check(Vec<(u64, u64)>, Instant),
    Read(RoomName, u64),
    ReadOf(RoomName, u64, (u64, u64)),
    /// Stores the members of this hub in a room, or removes them. The number is that of the write.
    Store(RoomName, u64),
    /// Follows that: prolongs the hash of the room, or publishes the change.
    AfterStore(RoomName),
    Other,
}

/// The presence of a hub at its broker.
#[derive(Debug)]
pub struct Desk {
    broker: Arc<Broker>,
    live: Arc<Live>,
    census: Arc<Census>,
    machine: Machine,
    publish: &'static [u8],
    channel: Box<str>,
    /// Questions about rooms whose members have just changed, and are looked at soon.
    early: Vec<(RoomName, Ticket)>,
    /// There are commands for which there was no room.
    flushes_at: Option<Instant>,
    /// It has noted that the broker refuses something on this connection.
    has_noted: bool,
}

impl Desk {
    /// That of a hub without members. `publish`: the command.
    pub fn new(
        broker: &Arc<Broker>,
        live: &Arc<Live>,
        census: &Arc<Census>,
        (publish, channel): (&'static [u8], &str),
    ) -> Desk {
        broker.health.has_presence();
        Desk {
            machine: Machine::new(broker.node, Instant::now()),
            broker: Arc::clone(broker),
            live: Arc::clone(live),
            census: Arc::clone(census),
            publish,
            channel: channel.into(),
            early: Vec::new(),
            flushes_at: None,
            has_noted: false,
        }
    }

    fn log(&self, line: &str) {
        (self.live.current().log)(&format!("regatta: broker {}: {line}", self.broker.name));
    }

    /// Whether this is the channel in which hubs publish for it.
    pub fn is_channel(&self, channel: &[u8]) -> bool {
        channel == self.channel.as_bytes()
    }

    /// When [`Desk::tick`] must be called.
    pub fn due(&self) -> Instant {
        self.flushes_at.map_or(self.machine.due(), |at| at.min(self.machine.due()))
    }

    /// The connection is up.
    pub fn is_up(&mut self, now: Instant) {
        self.has_noted = false;
        self.machine.is_up(now);
    }

    /// The connection is lost.
    pub fn lose(&mut self, turn: &mut Turn<'_>) {
        self.machine.lose();
        for (room, ticket) in mem::take(&mut self.early) {
            self.machine.ask(&room, ticket, turn.now.instant);
        }
        self.flushes_at = None;
        self.acts(turn);
    }

    /// Looks which members have come and gone. [`Desk::flush`] must follow.
    pub fn tick(&mut self, turn: &mut Turn<'_>) {
        let now = turn.now.instant;
        if self.machine.due() <= now {
            let plan = self.live.current();
            for room in self.census.take_changed() {
                self.looks_at(&room, &plan, now);
            }
            for (room, ticket) in mem::take(&mut self.early) {
                if self.is_unknown(&room) {
                    self.looks_at(&room, &plan, now);
                }
                self.machine.ask(&room, ticket, now);
            }
            self.machine.tick(now);
            self.census.forget_elsewhere(now);
        }
        self.acts(turn);
    }

    /// Looks which members of this hub are in a room.
    fn looks_at(&mut self, room: &RoomName, plan: &Plan, now: Instant) {
        if self.machine.knows(room) || plan.terms(room.as_str()).presence {
            let (count, next, people) = self.census.attendance(room, MOST_LISTED);
            self.machine.changes(room, State::of(count, next, people), now);
        }
    }

    /// A hub has published something for the others.
    pub fn hears(&mut self, payload: &[u8], turn: &mut Turn<'_>) {
        self.machine.hears(payload, turn.now.instant);
        self.acts(turn);
    }

    /// Somebody asks for the members of a room on all hubs.
    pub fn ask(&mut self, room: &RoomName, ticket: Ticket, turn: &mut Turn<'_>) {
        // It may have entered right before. Then it is notified of all that the answer does not have.
        if self.early.len() < MOST_EARLY && (self.census.has_change(room) || self.is_unknown(room))
        {
            return self.early.push((room.clone(), ticket));
        }
        self.machine.ask(room, ticket, turn.now.instant);
        self.acts(turn);
    }

    /// Whether members of this hub are in a room of which the machine does not know it.
    fn is_unknown(&self, room: &RoomName) -> bool {
        !self.machine.knows(room) && self.census.has_members(room)
    }

    /// Members get what they must get, and backends their answers.
    fn acts(&mut self, turn: &mut Turn<'_>) {
        let plan = self.live.current();
        let memory = &plan.backlog.memory;
        for (room, notice) in self.machine.take_notices() {
            let push = match notice {
                Notice::Event { node, event, count } => {
                    Broadcast::presence(self.note_of(node, &event), count, memory)
                }
                Notice::Events { node, events } => {
                    let has_clients = self.census.describes;
                    for some in events.chunks(MOST_EVENTS).filter(|_| has_clients) {
                        let notes = some.iter().map(|event| self.note_of(node, event)).collect();
                        let push = Broadcast::notes(notes, memory);
                        turn.acts.push(UplinkAct::Push(room.clone(), push));
                    }
                    continue;
                }
                Notice::List { below, names, count } => {
                    Broadcast::list(&names, count, below, memory)
                }
            };
            turn.acts.push(UplinkAct::Push(room, push));
        }
        let answered = self.machine.take_answered();
        for (ticket, room) in &answered {
            let outcome = if room.is_some() { RemoteOutcome::Sent } else { RemoteOutcome::NotSent };
            if let Some(room) = room {
                let others = self.machine.others(room).map(|(node, state)| elsewhere(node, state));
                let (below, others) = (self.machine.known(room), others.collect());
                self.census.set_elsewhere(room, below, others, turn.now.instant);
            }
            turn.acts.push(UplinkAct::Done(*ticket, outcome));
        }
        // Not before: several may have asked for the same room.
        answered
            .iter()
            .filter_map(|(_, room)| room.as_ref())
            .for_each(|room| self.machine.tidy(room));
        let [ignored, repeated] = self.machine.take_counts();
        self.broker.health.repeated.add(repeated);
        if ignored > 0 && self.broker.health.ignored.add(ignored) == 0 {
            self.log("ignores messages that no hub of this version has published");
        }
    }

    /// What members get of an event at a node.
    fn note_of(&self, node: u64, event: &Event) -> Note {
        let member = event.member.as_ref().filter(|_| self.census.describes);
        let info = member.map(|(place, person)| {
            client_info(&client_of(Some(node), person.number(*place)), person).into()
        });
        let of_own = event.member.as_ref().filter(|_| node == self.broker.node);
        let number = of_own.map_or(usize::MAX, |(place, _)| *place);
        Note { change: event.change, number, name: event.name().cloned(), info }
    }

    /// Whether there is something to send.
    pub fn has_commands(&self) -> bool {
        self.machine.has_commands()
    }

    /// Sends commands, as long as there is room in the output: at most so many bytes. The connection must be up.
    pub fn flush(&mut self, most: usize, turn: &mut Turn<'_>, mut asks: impl FnMut(Question)) {
        let now = turn.now.instant;
        while turn.pending.max(turn.out.len()) < most
            && let Some(command) = self.machine.next_command(now)
        {
            self.send(command, turn, &mut asks);
        }
        self.flushes_at = self.machine.has_commands().then(|| now + SOON);
    }

    fn send(&self, command: Command, turn: &mut Turn<'_>, asks: &mut impl FnMut(Question)) {
        let out = &mut *turn.out;
        let (own, lives) = (self.broker.node, LIVES.as_millis().to_string());
        match command {
            Command::Begin { life } => {
                let key = self.life_key(own, life);
                write_command([&b"SET"[..], key.as_bytes(), b"1", b"PX", lives.as_bytes()], out);
                asks(Question::Begin(life));
            }
            Command::Keep { life } => {
                let key = self.life_key(own, life);
                write_command([&b"PEXPIRE"[..], key.as_bytes(), lives.as_bytes()], out);
                asks(Question::Keep(life));
            }
            Command::Check(of, at) => {
                let keys: Vec<String> =
                    of.iter().map(|(node, life)| self.life_key(*node, *life)).collect();
                let args: Vec<&[u8]> =
                    [&b"MGET"[..]].into_iter().chain(keys.iter().map(String::as_bytes)).collect();
                write_command(args, out);
                asks(Question::Check(of, at));
            }
            Command::Write(write) => self.write(&write, out, asks),
            Command::Publish(note) => {
                self.publish(&note, out);
                asks(Question::Other);
            }
            Command::Read { room, stamp } => {
                write_command([&b"HGETALL"[..], self.room_key(&room).as_bytes()], out);
                asks(Question::Read(room, stamp));
            }
            Command::ReadOf { room, node, life, stamp } => {
                let (key, field) = (self.room_key(&room), field(node, life));
                write_command([&b"HGET"[..], key.as_bytes(), field.as_bytes()], out);
                asks(Question::ReadOf(room, stamp, (node, life)));
            }
            Command::Remove { room, node, life } => {
                let (key, field) = (self.room_key(&room), field(node, life));
                write_command([&b"HDEL"[..], key.as_bytes(), field.as_bytes()], out);
                asks(Question::Other);
            }
        }
    }

    fn write(&self, write: &Write, out: &mut Vec<u8>, asks: &mut impl FnMut(Question)) {
        let (key, field) = (self.room_key(&write.room), field(self.broker.node, write.life));
        let store = Question::Store(write.room.clone(), write.number);
        if let Some(value) = &write.value {
            write_command([b"HSET", key.as_bytes(), field.as_bytes(), value.as_bytes()], out);
            asks(store);
            // Each time: the hash may have been removed meanwhile, and would stay for ever.
            let expiry = EXPIRY.as_millis().to_string();
            write_command([b"PEXPIRE", key.as_bytes(), expiry.as_bytes()], out);
            asks(Question::AfterStore(write.room.clone()));
        } else {
            write_command([b"HDEL", key.as_bytes(), field.as_bytes()], out);
            asks(store);
        }
        self.publish(&write.note, out);
        asks(Question::AfterStore(write.room.clone()));
    }

    fn publish(&self, note: &str, out: &mut Vec<u8>) {
        write_command([self.publish, self.channel.as_bytes(), note.as_bytes()], out);
    }

    /// The broker has answered.
    pub fn answered(&mut self, question: Question, reply: Value<'_>, turn: &mut Turn<'_>) {
        let now = turn.now.instant;
        if matches!(question, Question::Read(..) | Question::ReadOf(..)) {
            let bytes = match reply {
                Value::Elements(_, _, all) | Value::Bulk(all) => all.len(),
                _ => 0,
            };
            self.machine.has_read(bytes);
        }
        match (question, reply) {
            (question, Value::Error(text)) => self.refused(&question, text, now),
            (Question::Begin(life), _) => self.machine.has_begun(life, now),
            (Question::Keep(life), Value::Integer(is_there)) => {
                if self.machine.is_kept(life, is_there == 1, now) {
                    self.notes(b"its key was gone soon; does the broker evict keys?");
                }
            }
            (Question::Check(of, at), Value::Elements(_, count, rest)) if count == of.len() => {
                let all = elements(count, rest);
                let lasts: Vec<bool> = all.iter().map(|value| *value != Value::Null).collect();
                self.machine.has_checked((&of, at), &lasts, now);
            }
            (Question::Read(room, stamp), Value::Elements(_, count, rest)) => {
                let all = elements(count, rest);
                let stored = all.chunks_exact(2).filter_map(|pair| match pair {
                    [Value::Bulk(field), Value::Bulk(value)] => {
                        read_field(field).map(|(node, life)| (node, life, *value))
                    }
                    _ => None,
                });
                let stored: Vec<(u64, u64, &[u8])> = stored.collect();
                self.machine.has_read_all(&room, stamp, &stored, now);
            }
            (Question::ReadOf(room, stamp, of), Value::Bulk(value)) => {
                self.machine.has_read_of((&room, stamp), of, Some(value), now);
            }
            (Question::ReadOf(room, stamp, of), Value::Null) => {
                self.machine.has_read_of((&room, stamp), of, None, now);
            }
            (Question::Store(room, number), _) => self.machine.has_written(&room, number),
            (Question::AfterStore(_) | Question::Other, _) => {}
            (question, _) => self.refused(&question, b"an answer of another kind", now),
        }
        self.acts(turn);
    }

    /// The broker has refused a command.
    fn refused(&mut self, question: &Question, text: &[u8], now: Instant) {
        match question {
            Question::Begin(life) | Question::Keep(life) => {
                self.machine.life_is_refused(*life, now);
            }
            Question::Read(room, stamp) | Question::ReadOf(room, stamp, _) => {
                self.machine.read_is_refused(room, *stamp, now);
            }
            Question::Store(room, _) | Question::AfterStore(room) => {
                self.machine.is_refused(room, now);
            }
            // It is asked again soon.
            Question::Check(of, at) => self.machine.check_is_refused((of, *at), now),
            // What an ended life has stored counts no longer, also if it stays.
            Question::Other => {}
        }
        self.notes(text);
    }

    /// Counts a refusal, and writes why if it is the first one on this connection.
    fn notes(&mut self, text: &[u8]) {
        self.broker.health.presence_refused.add(1);
        if !mem::replace(&mut self.has_noted, true) {
            let why = shown(text);
            self.log(&format!(
                "other hubs may not know the members of this one, nor this one theirs: {why}"
            ));
        }
    }

    fn room_key(&self, room: &RoomName) -> String {
        key(&self.broker.start(), room.as_str(), "members")
    }

    fn life_key(&self, node: u64, life: u64) -> String {
        format!("{}:alive:{}", self.broker.start(), field(node, life))
    }
}

/// The members of another hub, for those who ask.
fn elsewhere(node: u64, state: &State) -> Elsewhere {
    Elsewhere { node, count: state.count, listed: Arc::clone(&state.listed) }
}

/// A life of a node, in names of fields and keys.
fn field(node: u64, life: u64) -> String {
    format!("{node:016x}.{life}")
}

fn read_field(field: &[u8]) -> Option<(u64, u64)> {
    let (node, life) = str::from_utf8(field).ok()?.split_once('.')?;
    Some((u64::from_str_radix(node, 16).ok()?, life.parse().ok()?))
}

/// The elements of a list, none of which is a list.
fn elements(count: usize, mut rest: &[u8]) -> Vec<Value<'_>> {
    let mut all = Vec::new();
    for _ in 0..count {
        let Some((value, taken)) = Value::read(rest) else { break };
        rest = &rest[taken..];
        all.push(value);
    }
    all
}
