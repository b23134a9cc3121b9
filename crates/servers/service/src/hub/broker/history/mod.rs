//! Histories at the broker: it gives each message of a room its place, and keeps the newest ones. The hub has copies of those
//! of its members' rooms ([`mirror`](crate::hub::history)), which follow the subscription.
//!
//! `scripts` are what the broker runs, `header` is what it puts before a message, and `fetches` says what is fetched, and
//! who waits for it.
//!
//! A place is an offset and an epoch. All epochs end when a *reign* ends: the time in which the server has lost nothing that
//! hubs have heard. A server that was a replica begins another one, because it may lack the end of what the server before
//! it has published, and give an offset again. So does a restart, unless a hub that lives proves that nothing is lost:
//! messages of all histories have numbers (the *clock*), and it has heard exactly as many as are there. A hub that
//! comes later and has heard more ends the reign then.

mod fetches;
mod header;
mod scripts;

pub(super) use header::Placed;

use super::{envelope::Envelope, greeting::shown, settings::Broker};
use crate::hub::{
    broadcast::Broadcast,
    census::Census,
    history::{Heard, HistoryLimits, Position, RoomHistory},
    live::Live,
};
use fetches::{Due, Fetches, Question};
use regatta_engine::{RemoteOutcome, RoomName, Ticket, UplinkAct, UplinkTurn};
use regatta_proto::resp::{Value, write_command};
use scripts::{Claim, Scripts, key, read_claim, read_seen, refusal};
use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

/// Bytes of output from which on no further fetch is asked for.
const MOST_OUT: usize = 48 << 10;
/// How often the broker is asked for each history with members, so that it does not drop what is known of it. It keeps
/// that for two hours more than the messages.
const EVERY: Duration = Duration::from_secs(3_600);

type Turn<'a> = UplinkTurn<'a, Broadcast>;

/// A command that the broker has not answered.
#[derive(Debug)]
pub(super) enum Asked {
    /// Which role it has.
    Role,
    /// To know a script.
    Script,
    /// To note that this hub keeps histories, and what it has heard.
    Beat,
    /// Whether another hub does.
    OthersKeep,
    /// To publish a message, or a heartbeat.
    Publish { by_script: bool },
    /// For the history of a room.
    Look(Due),
}

/// What became of a message that the broker has refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It has refused to publish: the connection is of no use.
    All,
    /// It has refused this message.
    One(RemoteOutcome),
}

/// The histories of a hub's rooms at its broker.
#[derive(Debug)]
pub(super) struct Keeper {
    broker: Arc<Broker>,
    live: Arc<Live>,
    census: Arc<Census>,
    scripts: Scripts,
    fetches: Fetches,
    /// In the order of the commands.
    asked: VecDeque<Asked>,
    /// The number of the connection.
    link: u64,
    /// What this hub has heard.
    claim: Claim,
    /// The broker knows the scripts.
    are_loaded: bool,
    /// Another hub keeps histories; `None`: the broker does not say.
    others_keep: Option<bool>,
    /// What it refuses may pass by itself.
    may_pass: bool,
    /// When the histories are looked at next.
    looks_at: Option<Instant>,
    has_noted_limits: bool,
    has_noted_hole: bool,
}

impl Keeper {
    pub fn new(broker: Arc<Broker>, live: Arc<Live>, census: Arc<Census>) -> Keeper {
        Keeper {
            broker,
            live,
            census,
            scripts: Scripts::default(),
            fetches: Fetches::default(),
            asked: VecDeque::new(),
            link: 1,
            claim: Claim::default(),
            are_loaded: false,
            others_keep: Some(false),
            may_pass: false,
            looks_at: None,
            has_noted_limits: false,
            has_noted_hole: false,
        }
    }

    fn log(&self, line: &str) {
        (self.live.current().log)(&format!("regatta: broker {}: {line}", self.broker.name));
    }

    /// Whether this hub keeps histories.
    fn keeps(&self) -> bool {
        self.live.current().keeps_histories() || !self.census.histories.are_unused()
    }

    /// A command was sent.
    pub fn asks(&mut self, what: Asked) {
        self.asked.push_back(what);
    }

    /// What the broker answers next.
    pub fn next_answered(&mut self) -> Option<Asked> {
        self.asked.pop_front()
    }

    /// Makes the broker know what it must, and asks it what this hub must know. Before each heartbeat.
    pub fn beats(&mut self, turn: &mut Turn<'_>) {
        if self.keeps() {
            self.loads(turn);
            let next = self.census.histories.new_epoch();
            self.scripts.beat(&self.broker.prefix, next, &self.claim, turn.out);
            self.asks(Asked::Beat);
        } else if self.others_keep.is_some() {
            write_command([&b"EXISTS"[..], key(&self.broker.prefix).as_bytes()], turn.out);
            self.asks(Asked::OthersKeep);
        }
        if self.looks_at.is_some_and(|at| at <= turn.now.instant) {
            self.looks_at_all(turn);
        }
        self.fetches.retry();
        if self.looks_at.is_some() {
            self.flush(turn);
        }
    }

    fn loads(&mut self, turn: &mut Turn<'_>) {
        if !self.are_loaded {
            Scripts::load(turn.out);
            (0..Scripts::COUNT).for_each(|_| self.asks(Asked::Script));
            self.are_loaded = true;
        }
    }

    /// The connection is up: the copies catch up.
    pub fn is_up(&mut self, turn: &mut Turn<'_>) {
        self.looks_at_all(turn);
        self.flush(turn);
    }

    fn looks_at_all(&mut self, turn: &mut Turn<'_>) {
        self.looks_at = Some(turn.now.instant + EVERY);
        for (room, history) in self.census.followed() {
            self.fetches.add(&room, history, false);
        }
    }

    /// The connection is lost. No copy is current from now on.
    pub fn lose(&mut self, turn: &mut Turn<'_>) {
        self.link += 1;
        self.asked.clear();
        (self.are_loaded, self.others_keep, self.looks_at) = (false, Some(false), None);
        for ticket in self.fetches.lose() {
            turn.acts.push(UplinkAct::Done(ticket, RemoteOutcome::NotSent));
        }
    }

    /// Publishes by a script, if some hub keeps histories. Returns false if none does.
    pub fn publishes(
        &mut self,
        channel: &str,
        message: &Envelope<'_>,
        turn: &mut Turn<'_>,
    ) -> bool {
        if self.others_keep != Some(true) && !self.keeps() {
            return false;
        }
        self.loads(turn);
        let room = RoomName::of(message.room);
        let limits = self.limits(&room);
        let epoch = self.census.histories.new_epoch();
        let place = (&*self.broker.prefix, message.room, channel);
        let write = |out: &mut Vec<u8>| message.write(out);
        self.scripts.publish(place, (limits, epoch), (message.len(), write), turn.out);
        true
    }

    /// How much is kept of a room.
    fn limits(&self, room: &RoomName) -> HistoryLimits {
        let history = self.census.history(room);
        history.map_or_else(
            || self.live.current().terms(room.as_str()).history,
            |history| history.limits(),
        )
    }

    /// The broker has refused to publish a message.
    pub fn refused(&mut self, by_script: bool, text: &[u8], turn: &mut Turn<'_>) -> Refusal {
        if !by_script {
            return Refusal::All;
        }
        if text.starts_with(b"UNKNOWN") {
            return Refusal::One(RemoteOutcome::Unknown);
        }
        Refusal::One(RemoteOutcome::Refused(self.is_refused(text, turn)))
    }

    /// The broker refuses to run a script. Returns why.
    fn is_refused(&mut self, text: &[u8], turn: &mut Turn<'_>) -> &'static str {
        let (why, may_pass) = refusal(text);
        self.may_pass = may_pass;
        self.are_loaded &= !text.starts_with(b"NOSCRIPT");
        if self.broker.health.refuses_to_keep(turn.now.instant) {
            let text = shown(text);
            self.log(&format!(
                "it does not keep messages: {text}; they are not published, members stay"
            ));
        }
        why
    }

    fn is_kept(&self) {
        if self.broker.health.keeps() {
            self.log("it keeps messages again");
        }
    }

    /// The broker has published a message by a script.
    pub fn published(&mut self) {
        self.is_kept();
    }

    /// A sender learns that its message is published, although this hub has not heard it.
    pub fn knows_of_one(&mut self) {
        self.claim.clock += 1;
    }

    /// The broker has answered something that is neither a role nor a message.
    ///
    /// # Errors
    /// Says why the connection is of no use.
    pub fn answered(
        &mut self,
        asked: Asked,
        reply: Value<'_>,
        turn: &mut Turn<'_>,
    ) -> Result<(), String> {
        match (asked, reply) {
            (Asked::Look(due), Value::Error(text)) => {
                let why = self.is_refused(text, turn);
                for ticket in self.fetches.refused(&due.room) {
                    turn.acts.push(UplinkAct::Done(ticket, RemoteOutcome::Refused(why)));
                }
                self.flush(turn);
            }
            (Asked::Look(due), reply) => return self.looked(due, reply, turn),
            (Asked::OthersKeep, Value::Integer(number)) => self.others_keep = Some(number > 0),
            // It may not ask. Hubs that keep histories hear what this one publishes.
            (Asked::OthersKeep, _) => self.others_keep = None,
            (Asked::Script | Asked::Beat, Value::Error(text)) => {
                self.is_refused(text, turn);
            }
            (Asked::Beat, reply) => {
                let claim = read_claim(reply).ok_or("it answers a script in an unknown form")?;
                if self.may_pass {
                    self.is_kept();
                }
                self.reigns(claim, turn);
            }
            _ => {}
        }
        Ok(())
    }

    /// The broker has said which reign it is. All messages before its answer have come.
    fn reigns(&mut self, claim: Claim, turn: &mut Turn<'_>) {
        let has_ended = claim.reign != self.claim.reign;
        self.claim = claim;
        if has_ended && self.looks_at.is_some() {
            // No copy is current from now on.
            self.link += 1;
            self.looks_at_all(turn);
            self.flush(turn);
        }
    }

    fn looked(&mut self, due: Due, reply: Value<'_>, turn: &mut Turn<'_>) -> Result<(), String> {
        let Due { room, history, span, breaks } = due;
        let (seen, found) = read_seen(reply).ok_or("it answers a script in an unknown form")?;
        let settings = self.live.current();
        let messages = found.into_iter().filter_map(|(offset, bytes)| {
            let message = Envelope::read(bytes).filter(|one| one.room == room.as_str())?;
            let position = Position { epoch: seen.epoch, offset };
            let memory = &settings.backlog.memory;
            Some(Broadcast::kept(message.payload, position, true, settings.deflate, memory))
        });
        let now = turn.now.instant;
        if history.learns(self.link, span, (&seen, messages.collect()), now) {
            turn.acts.push(UplinkAct::Push(room.clone(), Broadcast::gap()));
        }
        for ticket in self.fetches.answered(&room, breaks, self.link, now) {
            turn.acts.push(UplinkAct::Done(ticket, RemoteOutcome::Sent));
        }
        self.flush(turn);
        Ok(())
    }

    /// Asks for histories that are due.
    fn flush(&mut self, turn: &mut Turn<'_>) {
        while turn.pending.max(turn.out.len()) < MOST_OUT
            && let Some(due) = self.fetches.next(self.link, turn.now.instant)
        {
            self.loads(turn);
            let epoch = self.census.histories.new_epoch();
            let place = (&*self.broker.prefix, due.room.as_str());
            let what = (due.span, due.breaks);
            self.scripts.look(place, (due.history.limits(), epoch), what, turn.out);
            self.asks(Asked::Look(due));
        }
    }

    /// A member or a backend asks for the history of a room. `push`: a question.
    pub fn asked_for(
        &mut self,
        room: &RoomName,
        push: &Broadcast,
        ticket: Ticket,
        turn: &mut Turn<'_>,
    ) {
        let Some((wanted, is_of_backend)) = push.asked() else { return };
        let (is_up, now) = (self.looks_at.is_some(), turn.now.instant);
        let outcome = match self.census.history(room) {
            None => RemoteOutcome::NotSent,
            Some(_) if !is_up && is_of_backend => RemoteOutcome::NotSent,
            Some(history) if is_up && history.missing(self.link, Some(wanted), now).is_none() => {
                RemoteOutcome::Sent
            }
            Some(history) => {
                let question = Question { ticket, wanted, is_patient: !is_of_backend };
                if self.fetches.ask(room, history, question) {
                    if is_up {
                        self.flush(turn);
                    }
                    return;
                }
                RemoteOutcome::NotSent
            }
        };
        turn.acts.push(UplinkAct::Done(ticket, outcome));
    }

    /// Delivers a message to the members of this hub. `placed`: its place, if the script that publishes has looked for one.
    /// Returns the position, if it is in the history here.
    pub fn delivers(
        &mut self,
        room: &RoomName,
        payload: &str,
        placed: Option<&Placed<'_>>,
        turn: &mut Turn<'_>,
    ) -> Option<Position> {
        let settings = self.live.current();
        let (deflate, memory) = (settings.deflate, &settings.backlog.memory);
        let has_members = self.census.has_members(room);
        let position = placed.and_then(|placed| placed.position);
        self.claim.clock = self.claim.clock.max(placed.map_or(0, |placed| placed.clock));
        let are_unused = self.census.histories.are_unused();
        let history = if are_unused { None } else { self.census.history(room) };
        let Some(history) = history else {
            if placed.is_none() && settings.terms(room.as_str()).history.are_kept() {
                self.hears_hole(room, turn);
            }
            if has_members {
                let push = Broadcast::of_backend(payload, deflate, memory);
                turn.acts.push(UplinkAct::Push(room.clone(), push));
            }
            return position;
        };
        let (Some(at), Some(placed)) = (position, placed) else {
            history.doubts();
            if placed.is_none() {
                self.hears_hole(room, turn);
            } else if has_members {
                self.fetches.add(room, history, false);
            }
            self.flush(turn);
            return None;
        };
        self.compares(room, &history, placed);
        let push = Broadcast::kept(payload, at, true, deflate, memory);
        match history.hears(self.link, push.clone(), turn.now.instant) {
            Heard::Next if has_members => turn.acts.push(UplinkAct::Push(room.clone(), push)),
            Heard::Next => {}
            Heard::Later | Heard::Hole if has_members => {
                self.fetches.add(room, history, false);
                self.flush(turn);
            }
            Heard::Later | Heard::Hole => {}
        }
        Some(at)
    }

    /// A message was published without a place in the history of its room, by a hub that keeps none: those who come back
    /// would miss it, so that history does not continue.
    fn hears_hole(&mut self, room: &RoomName, turn: &mut Turn<'_>) {
        let (limits, now) = (self.limits(room), turn.now.instant);
        self.census.with_history(room, limits, now, |_| ());
        let Some(history) = self.census.history(room) else { return };
        self.fetches.add(room, history, true);
        if !std::mem::replace(&mut self.has_noted_hole, true) {
            self.log(&format!(
                "another hub has published in the room {:?} without a history; its members get a gap; give all hubs the \
                 same histories",
                room.as_str()
            ));
        }
        self.flush(turn);
    }

    fn compares(&mut self, room: &RoomName, history: &RoomHistory, placed: &Placed<'_>) {
        let (own, other) = (history.limits(), placed.limits);
        let are_same = own.messages == other.messages && own.time.as_secs() == other.time.as_secs();
        if !are_same && !std::mem::replace(&mut self.has_noted_limits, true) {
            self.log(&format!(
                "another hub keeps {} messages of the room {:?} for {} s, and this one {} for {} s: what can be recovered \
                 depends on who publishes",
                other.messages,
                room.as_str(),
                other.time.as_secs(),
                own.messages,
                own.time.as_secs()
            ));
        }
    }
}
