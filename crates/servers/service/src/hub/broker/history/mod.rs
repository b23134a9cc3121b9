//! Histories at the broker: it gives each message of a room its place, and keeps the newest ones. The hub has copies of those
//! of its members' rooms ([`mirror`](crate::hub::history)), which follow the subscription.
//!
//! `scripts` are what the broker runs, `header` is what it puts before a message, and `fetches` says what is fetched, and
//! which members and backends wait for it. `round` spreads what is done for all rooms.
//!
//! A place is an offset and an epoch. All epochs end when a *reign* ends: a time in which no message is lost that hubs have
//! heard. It ends when the server is another process or was a replica, because it may then lack the end of what was
//! published, and give an offset again. It also ends when a hub comes from another server at which it has heard messages
//! since the reign began: the hubs here have not got them.
//!
//! With each heartbeat the hub learns which reign it is, and tries whether it may keep histories. Only this concerns its
//! health; what the broker refuses for one room concerns that room.

mod fetches;
mod header;
mod round;
mod scripts;

pub(super) use header::Placed;

use super::{envelope::Envelope, greeting::shown, presence, settings::Broker};
use crate::hub::{
    broadcast::Broadcast,
    census::Census,
    history::{Asker, Heard, HistoryLimits, Learned, Position, RoomHistory, Seen},
    live::Live,
};
use fetches::{Cause, Due, Fetches, Question};
use regatta_engine::{RemoteOutcome, RoomName, Ticket, UplinkAct, UplinkTurn};
use regatta_proto::resp::Value;
use round::Round;
use scripts::{Beat, Beaten, Found, Scripts, is_passing, read_beaten, read_seen, refusal};
use std::{
    collections::{BTreeSet, VecDeque},
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

/// Bytes of output from which on no further fetch is asked for.
const MOST_OUT: usize = 48 << 10;
/// With how many heartbeats, at least and at most, the broker is asked for all histories with members, so that it does not
/// drop what is known of them. It keeps that for two hours more than the messages.
const BEATS: (usize, usize) = (10, 3_600);
/// The same for rooms in which nothing was published. What is known of these it keeps for five minutes.
const UNUSED_BEATS: (usize, usize) = (1, 60);
/// In so many rooms without members a message without a place is handled for each one.
const MOST_HOLES: usize = 4_096;
/// Minimum time between two lines about what it refuses for rooms.
const APART: Duration = Duration::from_secs(60);

type Turn<'a> = UplinkTurn<'a, Broadcast>;

/// A command that the broker has not answered.
#[derive(Debug)]
pub(super) enum Asked {
    /// Which role it has.
    Role,
    /// To know a script.
    Script,
    /// Which reign it is, and whether this hub may keep histories. This was the number of holes.
    Beat(u64),
    /// Whether another hub keeps some. This hub had published so many messages without a place.
    OthersKeep(u64),
    /// To publish a heartbeat or a message; or a message of this room by a script.
    Publish(Option<RoomName>),
    /// For the history of a room.
    Look(Due),
    /// Something for presence.
    Presence(presence::Question),
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
    /// The newest reign that this hub knows.
    reign: String,
    /// The run of the connected server, once that has ended the reign if it must end.
    here: Option<String>,
    /// The run of the server at which the hub has heard its last message, and when; empty: it is not known.
    last: Option<(String, Instant)>,
    /// Messages are missing in more rooms than it knows: the reign ends with the next heartbeat.
    must_end: bool,
    /// How often messages were missing in histories of the connected server.
    holes: u64,
    /// Messages that it has published without a place; and those of them that are certainly in no room with a history.
    unplaced: u64,
    harmless: u64,
    /// The broker knows the scripts.
    are_loaded: bool,
    /// Why it does not take them.
    not_loaded: Option<String>,
    /// Another hub keeps histories, so messages are published by a script; `None`: the broker does not permit this hub to ask
    /// that, or to run scripts.
    others_keep: Option<bool>,
    /// The broker may be asked that on this connection.
    may_ask: bool,
    /// The connection is up.
    is_up: bool,
    /// Fetches wait for room in the output.
    is_held: bool,
    /// Rooms in which nothing was published.
    unused: BTreeSet<RoomName>,
    /// The looks at all rooms, and at these.
    rounds: [Round; 2],
    has_noted_limits: bool,
    has_noted_hole: bool,
    /// When it has noted that a room is refused.
    noted_at: Option<Instant>,
}

impl Keeper {
    pub fn new(broker: Arc<Broker>, live: Arc<Live>, census: Arc<Census>) -> Keeper {
        Keeper {
            scripts: Scripts::new(broker.start(), broker.is_in_cluster),
            broker,
            live,
            census,
            fetches: Fetches::default(),
            asked: VecDeque::new(),
            link: 1,
            reign: String::new(),
            here: None,
            last: None,
            must_end: false,
            holes: 0,
            unplaced: 0,
            harmless: 0,
            are_loaded: false,
            not_loaded: None,
            others_keep: Some(false),
            may_ask: true,
            is_up: false,
            is_held: false,
            unused: BTreeSet::new(),
            rounds: Default::default(),
            has_noted_limits: false,
            has_noted_hole: false,
            noted_at: None,
        }
    }

    fn log(&self, line: &str) {
        (self.live.current().log)(&format!("regatta: broker {}: {line}", self.broker.name));
    }

    /// Whether this hub keeps histories.
    fn keeps(&self) -> bool {
        self.live.current().keeps_histories() || self.census.is_following()
    }

    /// Whether it has a copy of the history of this room.
    pub fn has_copy(&self, room: &RoomName) -> bool {
        !self.census.histories.are_unused() && self.census.history(room).is_some()
    }

    /// A command was sent.
    pub fn asks(&mut self, what: Asked) {
        self.asked.push_back(what);
    }

    /// What the broker answers next.
    pub fn next_answered(&mut self) -> Option<Asked> {
        self.asked.pop_front()
    }

    /// Asks what this hub must know, and tries what it must be able to do. Before each heartbeat.
    pub fn beats(&mut self, turn: &mut Turn<'_>) {
        let keeps = self.keeps();
        if !keeps {
            // It may have kept some before.
            self.broker.health.keeps();
        }
        let is_sure = keeps && self.harmless == self.unplaced;
        if !is_sure && self.may_ask {
            // The answer is followed by the heartbeat.
            self.scripts.others_keep(turn.out);
            self.asks(Asked::OthersKeep(self.unplaced));
        } else if keeps {
            self.tries(turn);
        }
        if self.is_up {
            // The results of their messages do not wait any longer for the history.
            give_up(self.fetches.take_members(), turn);
            self.looks_at_some();
            self.flush(turn);
        }
    }

    /// Asks which reign it is, and tries what the other scripts do.
    fn tries(&mut self, turn: &mut Turn<'_>) {
        self.loads(turn);
        let (next, now) = (self.census.histories.new_epoch(), turn.now.instant);
        if mem::take(&mut self.must_end) {
            self.ends_reign(now);
        }
        let last = self.last.as_ref();
        let last = last.map(|(run, at)| (&**run, now.saturating_duration_since(*at)));
        let beat = Beat { next, last, keeps: self.keeps() };
        self.scripts.beat(&beat, turn.out);
        self.asks(Asked::Beat(self.holes));
    }

    fn loads(&mut self, turn: &mut Turn<'_>) {
        if !self.are_loaded {
            self.scripts.load(turn.out);
            (0..Scripts::COUNT).for_each(|_| self.asks(Asked::Script));
            self.are_loaded = true;
        }
    }

    /// The connection is up: the copies catch up.
    pub fn is_up(&mut self, turn: &mut Turn<'_>) {
        self.is_up = true;
        self.looks_at_all();
        self.flush(turn);
    }

    fn looks_at_all(&mut self) {
        for (room, history) in self.census.followed() {
            self.fetches.add(&room, history, Cause::Turn);
        }
    }

    /// Looks at some rooms with members. After a while it has looked at all.
    fn looks_at_some(&mut self) {
        let Keeper { census, unused, rounds: [all, of_unused], .. } = self;
        let followed = || census.followed().into_iter().map(|(room, _)| room).collect();
        let mut rooms = all.next(BEATS, followed);
        rooms.extend(of_unused.next(UNUSED_BEATS, || mem::take(unused).into_iter().collect()));
        for room in rooms {
            if self.census.has_members(&room)
                && let Some(history) = self.census.history(&room)
            {
                self.fetches.add(&room, history, Cause::Turn);
            }
        }
    }

    /// This hub has heard a message, or that one of its own is published.
    pub fn hears(&mut self, now: Instant) {
        match (&mut self.last, &self.here) {
            (Some((run, at)), Some(here)) if run == here => *at = now,
            (last, here) => *last = Some((here.clone().unwrap_or_default(), now)),
        }
    }

    /// The connection is lost. No copy is current from now on.
    pub fn lose(&mut self, turn: &mut Turn<'_>) {
        self.link += 1;
        self.asked.clear();
        (self.are_loaded, self.is_up, self.is_held) = (false, false, false);
        // What it may not do is not tried with messages.
        (self.others_keep, self.may_ask) = (self.others_keep.and(Some(false)), true);
        self.unused.clear();
        (self.rounds, self.here) = Default::default();
        let Keeper { fetches, census, .. } = self;
        give_up(fetches.lose(|room| census.has_members(room)), turn);
    }

    /// Publishes to a room and its channel by a script, if some hub keeps histories. Returns false if none does.
    pub fn publishes(
        &mut self,
        (room, channel): (&RoomName, &str),
        message: &Envelope<'_>,
        turn: &mut Turn<'_>,
    ) -> bool {
        if self.others_keep != Some(true) && !self.keeps() {
            self.unplaced += 1;
            return false;
        }
        self.loads(turn);
        let limits = self.limits(room);
        let epoch = self.census.histories.new_epoch();
        let place = (room.as_str(), channel);
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

    /// The broker has refused to publish a message; by a script, if it is of this room. `None`: it refuses all.
    pub fn refused(
        &mut self,
        room: Option<&RoomName>,
        text: &[u8],
        now: Instant,
    ) -> Option<RemoteOutcome> {
        let room = room?;
        if text.starts_with(b"UNKNOWN") {
            return Some(RemoteOutcome::Unknown);
        }
        Some(RemoteOutcome::Refused(self.is_refused(room, text, now)))
    }

    /// The broker refuses to run a script for a room. Returns why.
    fn is_refused(&mut self, room: &RoomName, text: &[u8], now: Instant) -> &'static str {
        let why = refusal(text);
        self.are_loaded &= !text.starts_with(b"NOSCRIPT");
        let is_due = self.noted_at.is_none_or(|at| now.saturating_duration_since(at) >= APART);
        if is_due && !self.broker.health.is_refusing_to_keep() {
            self.noted_at = Some(now);
            self.log(&format!("it refuses what concerns the room {:?}: {why}", room.as_str()));
        }
        why
    }

    /// The broker has answered whether this hub may keep histories.
    fn tried(&mut self, refusal: &[u8], now: Instant) {
        if refusal.is_empty() {
            if self.broker.health.keeps() {
                self.log("it keeps messages again");
            }
            return;
        }
        self.are_loaded &= !refusal.starts_with(b"NOSCRIPT");
        if self.broker.health.refuses_to_keep(now) {
            let why = self.not_loaded.take().unwrap_or_else(|| shown(refusal));
            self.log(&format!(
                "it does not keep messages: {why}; they are not published, members stay"
            ));
        }
    }

    /// The broker has answered something that is neither a role nor a message.
    pub fn answered(&mut self, asked: Asked, reply: Value<'_>, turn: &mut Turn<'_>) {
        let now = turn.now.instant;
        match (asked, reply) {
            (Asked::Look(due), reply) => {
                match read_seen(reply) {
                    Some(answer) => self.looked(due, answer, turn),
                    None => self.may_not_look(&due.room, reply, turn),
                }
                self.flush(turn);
            }
            (Asked::OthersKeep(unplaced), reply) => {
                let others_keep = matches!(reply, Value::Integer(1..));
                match reply {
                    Value::Integer(_) => self.others_do(others_keep, unplaced, now),
                    // Hubs that keep histories hear what this one publishes.
                    Value::Error(text) if text.starts_with(b"NOPERM") => {
                        (self.others_keep, self.may_ask) = (None, false);
                    }
                    // What concerns keys concerns scripts, too.
                    Value::Error(text) if !self.keeps() && !is_passing(text) => {
                        self.others_keep = None;
                    }
                    // It is asked again with the next heartbeat.
                    _ => {}
                }
                if others_keep || self.keeps() {
                    self.tries(turn);
                }
            }
            (Asked::Script, Value::Error(text)) => self.not_loaded = Some(shown(text)),
            (Asked::Script, _) => self.not_loaded = None,
            (Asked::Beat(holes), reply) => {
                let refused = match reply {
                    Value::Error(text) => text,
                    _ => b"it answers in another form",
                };
                let refusal = Beaten { reign: "", run: "", refusal: refused };
                self.has_beaten(holes, read_beaten(reply).unwrap_or(refusal), turn);
            }
            _ => {}
        }
    }

    /// The broker has answered a heartbeat, before which there were so many holes.
    fn has_beaten(&mut self, holes: u64, beaten: Beaten<'_>, turn: &mut Turn<'_>) {
        let Beaten { reign, run, refusal } = beaten;
        if self.keeps() {
            self.tried(refusal, turn.now.instant);
        } else {
            self.tried_for_others(refusal);
        }
        if refusal.is_empty() {
            // What was refused is tried again, but not as long as the broker refuses everything.
            self.fetches.beats();
        }
        if !reign.is_empty() && holes == self.holes {
            self.here = Some(run.to_owned());
            if let Some((last, _)) = &mut self.last {
                run.clone_into(last);
            }
            self.reigns(reign, turn);
        }
        if !refusal.is_empty() {
            let is_blocked = self.is_blocked();
            give_up(self.fetches.take_backends(is_blocked), turn);
        }
    }

    /// The broker has answered whether this hub may publish in the histories of other hubs. It has none itself, so it is
    /// ready also if not.
    fn tried_for_others(&mut self, refusal: &[u8]) {
        if refusal.is_empty() {
            self.others_keep.get_or_insert(true);
            return;
        }
        let is_unknown = refusal.starts_with(b"NOSCRIPT");
        self.are_loaded &= !is_unknown;
        let not_loaded = self.not_loaded.take();
        let may_not = !is_passing(refusal) || is_unknown && not_loaded.is_some();
        if may_not && self.others_keep.take().is_some() {
            let why = not_loaded.unwrap_or_else(|| shown(refusal));
            self.log(&format!(
                "other hubs keep histories, in which this hub may not publish: {why}; what it publishes is a gap for \
                 their members"
            ));
        }
    }

    /// Whether other hubs keep histories. `unplaced`: the messages without a place before this was asked.
    fn others_do(&mut self, keep: bool, unplaced: u64, now: Instant) {
        if !keep {
            self.harmless = unplaced;
        } else if self.harmless < self.unplaced {
            // They may be missing in a history.
            self.harmless = self.unplaced;
            self.ends_reign(now);
        }
        // What it may not do is not tried with messages.
        if !keep || self.others_keep.is_some() {
            self.others_keep = Some(keep);
        }
    }

    /// Messages may be missing in any history: as if they were published at another server, so the reign ends.
    fn ends_reign(&mut self, now: Instant) {
        (self.last, self.here) = (Some((String::new(), now)), None);
        self.holes += 1;
    }

    /// The broker has named the reign. All messages before its answer have been received.
    fn reigns(&mut self, reign: &str, turn: &mut Turn<'_>) {
        let has_ended = reign != self.reign;
        reign.clone_into(&mut self.reign);
        if !self.is_up {
            return;
        }
        if has_ended {
            // No copy is current from now on.
            self.link += 1;
            self.looks_at_all();
        }
        self.flush(turn);
    }

    fn may_not_look(&mut self, room: &RoomName, reply: Value<'_>, turn: &mut Turn<'_>) {
        let text = if let Value::Error(text) = reply { text } else { b"another form" };
        let why = self.is_refused(room, text, turn.now.instant);
        let waits = self.broker.health.is_refusing_to_keep();
        let stays = self.census.has_members(room);
        match self.fetches.refused(room, waits, stays) {
            (gone, false) => give_up(gone, turn),
            (gone, true) => turn.acts.extend(
                gone.into_iter()
                    .map(|question| UplinkAct::Done(question.ticket, RemoteOutcome::Refused(why))),
            ),
        }
    }

    fn looked(&mut self, due: Due, (mut seen, found): (Seen, Vec<Found<'_>>), turn: &mut Turn<'_>) {
        let Due { room, history, span, breaks } = due;
        let has_some = !found.is_empty();
        let settings = self.live.current();
        let messages = found.into_iter().filter_map(|(offset, bytes)| {
            let message = Envelope::read(bytes).filter(|one| one.room == room.as_str())?;
            let position = Position { epoch: seen.epoch, offset };
            let memory = &settings.backlog.memory;
            Some(Broadcast::kept(message.payload, position, true, settings.deflate, memory))
        });
        let (now, messages) = (turn.now.instant, messages.collect::<Vec<_>>());
        // What is no message of a hub is a gap.
        seen.is_all |= has_some && messages.is_empty();
        match history.learns(self.link, span, (&seen, messages), now) {
            Learned::Nothing => {}
            Learned::News => turn.acts.push(UplinkAct::Push(room.clone(), Broadcast::gap())),
            Learned::Loss => {
                self.log(&format!(
                    "it has lost messages of the room {:?}; members get a gap",
                    room.as_str()
                ));
                self.fetches.add(&room, Arc::clone(&history), Cause::Hole);
            }
        }
        if seen.top == 0 {
            self.unused.insert(room.clone());
        }
        for ticket in self.fetches.answered(&room, breaks, self.link, now) {
            turn.acts.push(UplinkAct::Done(ticket, begins(&history)));
        }
    }

    /// Whether the server does not know yet that the hub has heard messages elsewhere, so that its epochs may end.
    fn is_blocked(&self) -> bool {
        self.last.is_some() && self.here.is_none()
    }

    /// Whether fetches wait for room in the output.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Asks for histories that are due, unless the epochs may end. The connection must be up.
    pub fn flush(&mut self, turn: &mut Turn<'_>) {
        self.is_held = false;
        while !self.is_blocked() {
            if turn.pending.max(turn.out.len()) >= MOST_OUT {
                self.is_held = self.fetches.are_queued();
                return;
            }
            let Some(due) = self.fetches.next(self.link, turn.now.instant) else { return };
            self.loads(turn);
            let epoch = self.census.histories.new_epoch();
            let (room, what) = (due.room.as_str(), (due.span, due.breaks));
            self.scripts.look(room, (due.history.limits(), epoch), what, turn.out);
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
        let Some((wanted, asker)) = push.asked() else { return };
        let (is_up, now) = (self.is_up, turn.now.instant);
        let outcome = match self.census.history(room) {
            None => RemoteOutcome::NotSent,
            Some(_) if !is_up && asker == Asker::Backend => RemoteOutcome::NotSent,
            Some(history) if is_up && history.missing(self.link, Some(wanted), now).is_none() => {
                begins(&history)
            }
            Some(history) => {
                let question = Question::new(ticket, wanted, asker);
                let Keeper { fetches, census, .. } = self;
                give_up(fetches.make_room(now, |room| census.has_members(room)), turn);
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
        let next_place = self.census.next_place(room);
        let has_members = next_place.is_some();
        let position = placed.and_then(|placed| placed.position);
        self.hears(turn.now.instant);
        let are_unused = self.census.histories.are_unused();
        let history = if are_unused { None } else { self.census.history(room) };
        let Some(history) = history else {
            if placed.is_none()
                && settings.keeps_histories()
                && settings.terms(room.as_str()).history.are_kept()
            {
                self.hears_hole(room);
            }
            if let Some(below) = next_place {
                // Another core may have a member that comes now and hear of this later. Messages behind this one were not
                // pushed if the room had no members meanwhile, so that member gets only what comes once it is counted.
                let push = Broadcast::of_broker(payload, below, deflate, memory);
                turn.acts.push(UplinkAct::Push(room.clone(), push));
            }
            return position;
        };
        let (Some(at), Some(placed)) = (position, placed) else {
            history.doubts();
            if placed.is_none() {
                // Without members it may be of before the histories were taken back.
                if has_members || self.keeps() {
                    self.hears_hole(room);
                }
            } else if has_members {
                self.fetches.add(room, history, Cause::Heard);
                self.flush(turn);
            }
            return None;
        };
        self.compares(room, &history, placed);
        let push = Broadcast::kept(payload, at, true, deflate, memory);
        match history.hears(self.link, push.clone(), turn.now.instant) {
            Heard::Next if has_members => turn.acts.push(UplinkAct::Push(room.clone(), push)),
            Heard::Next => {}
            Heard::Later | Heard::Hole if has_members => {
                self.fetches.add(room, history, Cause::Heard);
                self.flush(turn);
            }
            Heard::Later | Heard::Hole => {}
        }
        Some(at)
    }

    /// A message was published without a place in the history of its room, by a hub that keeps none: those who come back
    /// would miss it, so that history does not continue.
    fn hears_hole(&mut self, room: &RoomName) {
        if !self.census.has_members(room) && self.fetches.breaks() >= MOST_HOLES {
            // There may be any number of such rooms: all epochs end with the next heartbeat.
            self.must_end = true;
            return;
        }
        // Its members may be of before it had one.
        let history = self.census.history(room);
        let history = history.unwrap_or_else(|| self.census.histories.apart(self.limits(room)));
        self.fetches.add(room, history, Cause::Hole);
        if !mem::replace(&mut self.has_noted_hole, true) {
            self.log(&format!(
                "another hub has published in the room {:?} without a history; its members get a gap; give all hubs the \
                 same histories",
                room.as_str()
            ));
        }
    }

    fn compares(&mut self, room: &RoomName, history: &RoomHistory, placed: &Placed<'_>) {
        let (own, other) = (history.limits(), placed.limits);
        let are_same = own.messages == other.messages && own.time.as_secs() == other.time.as_secs();
        if !are_same && !mem::replace(&mut self.has_noted_limits, true) {
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

/// The history is here. Who joins without a position begins at its newest message now: others may come before it hears of
/// this.
fn begins(history: &RoomHistory) -> RemoteOutcome {
    let Position { epoch, offset } = history.newest();
    RemoteOutcome::Kept { epoch: epoch.0, offset }
}

/// These do not get their answer now: members learn that it takes longer, backends that there is none.
fn give_up(gone: Vec<Question>, turn: &mut Turn<'_>) {
    turn.acts.extend(gone.into_iter().map(|Question { ticket, asker, .. }| {
        let is_over = asker == Asker::Backend;
        let outcome = if is_over { RemoteOutcome::NotSent } else { RemoteOutcome::Unknown };
        UplinkAct::Done(ticket, outcome)
    }));
}
