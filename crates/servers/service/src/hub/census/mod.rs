//! The members and rooms on all cores, and the counters: for limits, metrics and backends. Deliveries of members'
//! messages do not use any of this; those of backends are counted here.

mod limits;
mod person;

pub(super) use limits::Full;
pub use limits::Limits;
pub(super) use person::{Person, client_info, client_of};

use super::{
    access::Denied,
    broadcast::Broadcast,
    bucket::Bucket,
    dismissal::Dismissal,
    history::{Histories, HistoryLimits, RoomHistory},
    last_delivery::{BOUNDS_US, LastDeliveries},
    message::{Change, Note},
};
use crate::{
    limited_log::LimitedLog,
    prometheus::{Exposition, label},
};
use regatta_engine::{Counter, Memory, PolicyCounts, PushOutcome, RoomName};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    mem,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Maximum length of a room's or member's name, in bytes.
pub(super) const LONGEST_NAME: usize = 128;

/// How long the members of a room at other hubs are kept for a backend that has asked for them.
const LOOKS_WITHIN: Duration = Duration::from_secs(10);

/// The lowest number of a connection that may be in several rooms.
const CONNECTIONS: usize = 1 << 48;

/// The members of a hub, and its counters.
#[derive(Debug, Default)]
pub(super) struct Census {
    rooms: Mutex<HashMap<RoomName, Room>>,
    joins: Mutex<Bucket>,
    /// Orders of backends for members whose connections are still open. These are no longer in `rooms`. Only locked
    /// while `rooms` is.
    dismissed: Mutex<HashMap<(usize, RoomName), Arc<Dismissal>>>,
    /// Of rooms whose messages are kept. They are opened, closed and freed only while `rooms` is locked.
    pub histories: Histories,
    /// Rooms whose members have changed, for presence at a broker; `None`: nobody wants to know. Only locked while `rooms`
    /// is.
    changed: Option<Mutex<HashSet<RoomName>>>,
    /// The members of some rooms at other hubs, for those who have asked for them.
    elsewhere: Mutex<HashMap<RoomName, (Instant, Known)>>,
    /// Rooms with members whose messages are kept. Only changed while `rooms` is locked.
    following: AtomicUsize,
    /// Several processes have members. Those of others are known only from the notes they post.
    apart: bool,
    /// Whether all members are listed, not only those with a name.
    lists_all: bool,
    /// Whether notes say who a member is, in JSON.
    pub describes: bool,
    /// The number of this hub, if it has a broker.
    pub node: Option<u64>,
    /// Connections that may be in several rooms.
    connections: Counter,
    members: Counter,
    entered: Counter,
    refused: Counter,
    pub echoes: Counter,
    pub broadcasts: Counter,
    /// Messages of backends.
    pub published: Counter,
    pub malformed: Counter,
    pub deliveries: Counter,
    /// How long deliveries take; `None` if several processes have members, because none sees the last one.
    pub last: Option<Arc<LastDeliveries>>,
    /// Clients that may not open a WebSocket, by the reason.
    denied: [Counter; Denied::NAMES.len()],
    /// When lines about refused clients were written.
    pub refusals: LimitedLog<&'static str>,
}

#[derive(Debug, Default)]
struct Room {
    members: usize,
    /// The members that are listed, in the order of their arrival.
    people: BTreeMap<usize, Arc<Person>>,
    /// For its members' broadcasts.
    broadcasts: Bucket,
    /// Their rate per second, as of the newest join; 0: any.
    rate: Arc<AtomicU32>,
    /// Its messages, if they are kept. That is decided for the first member, and holds for all who come while there are
    /// members: each message must be for all of them.
    history: Option<Arc<RoomHistory>>,
}

/// How many members a room has, a number that is higher than those of all, and some of them.
pub(super) type Attendance = (usize, usize, People);

/// Members with their places or their numbers.
type People = Vec<(usize, Arc<Person>)>;

/// The members of a room at all hubs: of this one, those whose places are below a number, and whether others are notified of each
/// of them by name.
type Known = ((usize, bool), Arc<[Elsewhere]>);

/// The members of a room at another hub.
#[derive(Debug)]
pub(super) struct Elsewhere {
    /// The number of the hub at the broker.
    pub node: u64,
    pub count: usize,
    /// Some of them, by their places there.
    pub listed: Arc<BTreeMap<usize, Arc<Person>>>,
}

/// A member's entry in a room. Dropping it removes the member.
#[derive(Debug)]
pub(super) struct Presence {
    census: Arc<Census>,
    room: RoomName,
    /// `None` if nothing is known of it.
    person: Option<Arc<Person>>,
    number: usize,
    /// Its place among all who have entered. Those who come later have higher ones.
    place: usize,
    /// The rate of its room.
    rate: Arc<AtomicU32>,
    /// The messages of its room, if they are kept.
    history: Option<Arc<RoomHistory>>,
    /// It was removed before it is dropped.
    has_left: bool,
}

impl Presence {
    /// Creates the note that this member joined or left.
    pub fn note(&self, change: Change) -> Note {
        let name = self.person.as_ref().and_then(|person| person.name.clone());
        let info = self.census.describes.then(|| self.info().into());
        Note { change, number: self.number, name, info }
    }

    /// What the others in its room receive when it leaves.
    pub fn left(&self, memory: &Arc<Memory>) -> Broadcast {
        Broadcast::presence(self.note(Change::Left), self.others(), memory)
    }

    /// Whether its room may receive one more broadcast now. The rate is that of the newest join, for all of its members:
    /// with two rates, those with the lower one would wait for those with the higher one without end.
    pub fn may_broadcast(&self, now: Instant) -> bool {
        let Some(rate) = NonZeroU32::new(self.rate.load(Relaxed)) else { return true };
        let mut rooms = self.census.rooms();
        rooms.get_mut(&self.room).is_none_or(|room| room.broadcasts.take(rate, now))
    }

    /// Who it is, in JSON.
    pub fn info(&self) -> String {
        let nobody = Person::default();
        let client = client_of(self.census.node, self.number);
        client_info(&client, self.person.as_deref().unwrap_or(&nobody))
    }

    /// The messages of its room, if they are kept.
    pub fn history(&self) -> Option<&Arc<RoomHistory>> {
        self.history.as_ref()
    }

    /// Its room.
    pub fn room(&self) -> &RoomName {
        &self.room
    }

    /// Its number, unique among the members of all processes.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Its place among all who have entered this hub.
    pub fn place(&self) -> usize {
        self.place
    }

    /// The user of its token; empty without one.
    pub fn user(&self) -> &str {
        self.person.as_ref().map_or("", |person| person.user())
    }

    /// The order of a backend to disconnect this member, if one was given.
    pub fn dismissal(&self) -> Option<Arc<Dismissal>> {
        let _rooms = self.census.rooms();
        self.census.dismissed().get(&(self.number, self.room.clone())).cloned()
    }

    /// Removes the member from its room, before it is dropped.
    pub fn leave(&mut self) {
        if !mem::replace(&mut self.has_left, true) {
            let mut rooms = self.census.rooms();
            if self.census.dismissed().remove(&(self.number, self.room.clone())).is_none() {
                self.census.members.take_back();
                self.census.remove(&mut rooms, &self.room, self.place);
            }
        }
    }

    /// Returns the number of the other members in the room.
    pub fn others(&self) -> usize {
        let rooms = self.census.rooms();
        let is_counted = !self.has_left
            && !self.census.dismissed().contains_key(&(self.number, self.room.clone()));
        let members = rooms.get(&self.room).map_or(0, |room| room.members);
        members.saturating_sub(usize::from(is_counted))
    }

    /// Returns the number of members in the room, and the first `most` names, including this one's.
    pub fn here(&self, most: usize) -> (usize, Vec<Arc<str>>) {
        let rooms = self.census.rooms();
        let room = rooms.get(&self.room);
        let people = room.into_iter().flat_map(|room| room.people.values());
        let names = people.filter_map(|person| person.name.clone()).take(most);
        (room.map_or(0, |room| room.members), names.collect())
    }
}

impl Census {
    /// Creates a census. `lists_all`: for [`Census::people`].
    pub fn new(lists_all: bool) -> Census {
        Census { lists_all, last: Some(Arc::default()), ..Census::default() }
    }

    /// Creates a census of one of several hubs at a broker. None of them knows all members, nor sees the last delivery
    /// of a message. `has_presence`: the others are notified of its members.
    pub fn joined(has_presence: bool) -> Census {
        let changed = has_presence.then(Mutex::default);
        Census { lists_all: has_presence, changed, ..Census::default() }
    }

    /// Creates a census with shared counters for several processes, each with its own rooms.
    /// Returns the error of `counter`.
    pub fn shared<E>(mut counter: impl FnMut() -> Result<Counter, E>) -> Result<Census, E> {
        Ok(Census {
            rooms: Mutex::default(),
            joins: Mutex::default(),
            dismissed: Mutex::default(),
            changed: None,
            elsewhere: Mutex::default(),
            histories: Histories::default(),
            following: AtomicUsize::new(0),
            apart: true,
            lists_all: false,
            describes: false,
            node: None,
            connections: Counter::default(),
            members: counter()?,
            entered: counter()?,
            refused: counter()?,
            echoes: counter()?,
            broadcasts: counter()?,
            published: counter()?,
            malformed: counter()?,
            deliveries: counter()?,
            last: None,
            denied: [counter()?, counter()?, counter()?, counter()?, counter()?],
            refusals: LimitedLog::default(),
        })
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<RoomName, Room>> {
        // Nothing panics while holding the lock.
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dismissed(&self) -> MutexGuard<'_, HashMap<(usize, RoomName), Arc<Dismissal>>> {
        lock(&self.dismissed)
    }

    /// Counts a client that may not open a WebSocket.
    pub fn denies(&self, why: Denied) {
        self.denied[why.kind()].add(1);
    }

    /// Counts a request to the API without the right key.
    pub fn denies_key(&self) {
        self.denied[Denied::NAMES.len() - 1].add(1);
    }

    /// After how many seconds a client that was refused may try again: after one to ten, so that those
    /// refused together do not return together.
    pub fn retry_after_s(&self) -> usize {
        self.refused.get() % 10 + 1
    }

    /// Adds a member, unless a limit is reached.
    pub fn enter(
        self: &Arc<Self>,
        room: &RoomName,
        person: Option<Person>,
        limits: &Limits,
        now: Instant,
    ) -> Result<Presence, Full> {
        let mut rooms = self.rooms();
        let here = rooms.get(room).map(|room| room.members);
        let full = match here {
            _ if self.members.get() >= limits.members => Some(Full::Hub),
            Some(here) if here >= limits.members_of_room => Some(Full::Room),
            None if rooms.len() >= limits.rooms => Some(Full::Rooms),
            // Last, so that a full room does not use up the rate of others.
            _ if !self.may_join(limits, now) => Some(Full::Joins),
            // Another process may have taken the last place meanwhile.
            _ => (!self.members.add_below(limits.members)).then_some(Full::Hub),
        };
        if let Some(full) = full {
            self.refused.add(1);
            return Err(full);
        }
        let place = self.entered.add(1);
        let number = person.as_ref().map_or(place, |person| person.number(place));
        let person = person.map(Arc::new);
        let lists = self.lists_all || person.as_ref().is_some_and(|person| person.name.is_some());
        let listed = lists.then(|| person.clone().unwrap_or_default());
        let history = limits.history;
        if history.are_kept() {
            self.histories.tidy(now);
        }
        let new = || Room { history: self.histories.open(room, history, now), ..Room::default() };
        let here = rooms.entry(room.clone()).or_insert_with(new);
        if here.members == 0 && here.history.is_some() {
            self.following.fetch_add(1, Relaxed);
        }
        here.add(place, listed);
        self.has_changed(room);
        if let Some(kept) = here.history.as_ref().filter(|_| history.are_kept()) {
            kept.limit(history);
        }
        here.rate.store(limits.broadcasts_of_room.map_or(0, NonZeroU32::get), Relaxed);
        let (census, rate) = (Arc::clone(self), Arc::clone(&here.rate));
        let (room, history) = (room.clone(), here.history.clone());
        Ok(Presence { census, room, person, number, place, rate, history, has_left: false })
    }

    /// The number of a new connection that may be in several rooms. No member has it.
    pub fn connect(&self) -> usize {
        CONNECTIONS + self.connections.add(1)
    }

    /// Whether a room may receive one more broadcast now of one who is not in it. `rate`: that of the room.
    pub fn may_broadcast(&self, room: &RoomName, rate: Option<NonZeroU32>, now: Instant) -> bool {
        let Some(rate) = rate else { return true };
        self.rooms().get_mut(room).is_none_or(|room| room.broadcasts.take(rate, now))
    }

    /// Calls `what` with the messages of a room for a backend, if they are kept, also without members. `limits`: those
    /// of a room that has no members.
    pub fn with_history<R>(
        &self,
        room: &RoomName,
        limits: HistoryLimits,
        now: Instant,
        what: impl FnOnce(&RoomHistory) -> R,
    ) -> Option<R> {
        if !limits.are_kept() && self.histories.are_unused() {
            return None;
        }
        // Locked until the end, so that the room does not lose its history meanwhile.
        let rooms = self.rooms();
        self.histories.tidy(now);
        let history = match rooms.get(room) {
            Some(here) => here.history.clone(),
            None => self.histories.open_idle(room, limits, now),
        };
        history.map(|history| what(&history))
    }

    /// Opens the history of a room at the broker, about which somebody asks: it must be there when its messages come. Returns
    /// whether the room has one. `limits`: those of a room that has no members.
    pub fn asks_history(&self, room: &RoomName, limits: HistoryLimits, now: Instant) -> bool {
        let rooms = self.rooms();
        self.histories.tidy(now);
        let has_one = rooms.get(room).map(|here| here.history.is_some());
        has_one.unwrap_or_else(|| self.histories.open_asked(room, limits, now).is_some())
    }

    /// The messages of a room that are kept now, also without members.
    pub fn history(&self, room: &RoomName) -> Option<Arc<RoomHistory>> {
        let rooms = self.rooms();
        match rooms.get(room) {
            Some(here) => here.history.clone(),
            None => self.histories.kept(room),
        }
    }

    /// Whether some room has members here and a history.
    pub fn is_following(&self) -> bool {
        self.following.load(Relaxed) > 0
    }

    /// The rooms that have members here and a history, by their names.
    pub fn followed(&self) -> Vec<(RoomName, Arc<RoomHistory>)> {
        if !self.is_following() {
            return Vec::new();
        }
        let kept = |(room, here): (&RoomName, &Room)| Some((room.clone(), here.history.clone()?));
        // They are sorted without the lock, for which members that join wait.
        let mut all: Vec<_> = self.rooms().iter().filter_map(kept).collect();
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    /// Whether a room has members here.
    pub fn has_members(&self, room: &RoomName) -> bool {
        self.rooms().contains_key(room)
    }

    /// If a room has members here, a number that is higher than the places of all of them, and not higher than those of members
    /// that come later.
    pub fn next_place(&self, room: &RoomName) -> Option<usize> {
        let rooms = self.rooms();
        rooms.contains_key(room).then(|| self.entered.get())
    }

    /// Whether a room has members, and its messages are kept.
    pub fn keeps(&self, room: &RoomName) -> bool {
        let is_kept = |here: &Room| here.history.is_some();
        !self.histories.are_unused() && self.rooms().get(room).is_some_and(is_kept)
    }

    /// Frees messages that have become too old.
    pub fn tidy(&self, now: Instant) {
        let some = || {
            // A room must not lose its history while something is sent to it.
            let _rooms = self.rooms();
            self.histories.tidy(now)
        };
        while some() {}
    }

    fn remove(&self, rooms: &mut HashMap<RoomName, Room>, room: &RoomName, place: usize) {
        let Some(here) = rooms.get_mut(room) else { return };
        here.members -= 1;
        here.people.remove(&place);
        self.has_changed(room);
        if here.members == 0 {
            if here.history.is_some() {
                self.following.fetch_sub(1, Relaxed);
                self.histories.close(room);
            }
            rooms.remove(room);
        }
    }

    /// Whether one more member may join now.
    fn may_join(&self, limits: &Limits, now: Instant) -> bool {
        let mut joins = self.joins.lock().unwrap_or_else(PoisonError::into_inner);
        limits.joins.is_none_or(|rate| joins.take(rate, now))
    }

    /// Records that a member of another process joined or left. Returns the new number of members
    /// in the room; `None` if all processes or threads share this census.
    pub fn record_remote(&self, room: &RoomName, note: &Note) -> Option<usize> {
        if !self.apart {
            return None;
        }
        let mut rooms = self.rooms();
        match note.change {
            Change::Joined => {
                let named = |name| Arc::new(Person { name: Some(name), ..Person::default() });
                let listed = note.name.clone().map(named);
                rooms.entry(room.clone()).or_default().add(note.number, listed);
            }
            Change::Left => self.remove(&mut rooms, room, note.number),
        }
        Some(rooms.get(room).map_or(0, |room| room.members))
    }

    /// Whether all members and rooms are known here, for the functions that follow.
    pub fn knows_all(&self) -> bool {
        self.lists_all && !self.notifies()
    }

    /// Counts a push that was queued for a member.
    pub fn queued(&self, push: &Broadcast) -> PushOutcome {
        if push.is_of_backend() {
            self.deliveries.add(1);
        }
        if let Some(sample) = push.sample() {
            sample.is_received();
        }
        PushOutcome::Queued
    }

    /// Whether other hubs at its broker are notified of its members.
    pub fn notifies(&self) -> bool {
        self.changed.is_some()
    }

    fn has_changed(&self, room: &RoomName) {
        if let Some(changed) = &self.changed {
            lock(changed).insert(room.clone());
        }
    }

    /// Whether the members of this room have changed since the last call for all rooms.
    pub fn has_change(&self, room: &RoomName) -> bool {
        let _rooms = self.rooms();
        self.changed.as_ref().is_some_and(|changed| lock(changed).contains(room))
    }

    /// The rooms whose members have changed since the last call.
    pub fn take_changed(&self) -> HashSet<RoomName> {
        let _rooms = self.rooms();
        self.changed.as_ref().map(|changed| mem::take(&mut *lock(changed))).unwrap_or_default()
    }

    /// The members of a room for other hubs: how many there are, a number that is higher than the places of all, and the first
    /// of those that are listed, with their places.
    pub fn attendance(&self, room: &RoomName, most: usize) -> Attendance {
        let rooms = self.rooms();
        let next = self.entered.get();
        let Some(here) = rooms.get(room) else { return (0, next, Vec::new()) };
        let people = here.people.iter().take(most);
        (here.members, next, people.map(|(place, person)| (*place, Arc::clone(person))).collect())
    }

    /// The members of a room at other hubs are known, for somebody who has asked for them and looks soon. `below`: the places of
    /// those here of whom others were notified, and whether by name.
    pub fn set_elsewhere(
        &self,
        room: &RoomName,
        below: (usize, bool),
        all: Vec<Elsewhere>,
        now: Instant,
    ) {
        lock(&self.elsewhere).insert(room.clone(), (now, (below, all.into())));
    }

    /// Those that somebody has asked for, and at most so many members here of whom others were notified. The others of this hub
    /// may be gone before anybody is.
    pub fn everywhere(
        &self,
        room: &RoomName,
        most: usize,
    ) -> Option<(People, bool, Arc<[Elsewhere]>)> {
        let ((below, are_named), all) =
            lock(&self.elsewhere).get(room).map(|(_, known)| known.clone())?;
        Some((self.people_below(room, below, most), are_named, all))
    }

    /// Forgets those that were asked for long ago.
    pub fn forget_elsewhere(&self, now: Instant) {
        lock(&self.elsewhere).retain(|_, (at, _)| now < *at + LOOKS_WITHIN);
    }

    /// The members of a room, with their numbers: at most so many.
    pub fn people(&self, room: &RoomName, most: usize) -> People {
        self.people_below(room, usize::MAX, most)
    }

    /// Those whose places are below this one.
    fn people_below(&self, room: &RoomName, below: usize, most: usize) -> People {
        let rooms = self.rooms();
        let people = rooms.get(room).into_iter().flat_map(|room| room.people.range(..below));
        people
            .take(most)
            .map(|(place, person)| (person.number(*place), Arc::clone(person)))
            .collect()
    }

    /// The rooms that have members, and how many.
    pub fn occupied(&self) -> Vec<(RoomName, usize)> {
        self.rooms().iter().map(|(name, room)| (name.clone(), room.members)).collect()
    }

    /// Removes members from one room or from all, by an order to disconnect them: from now on they are neither listed nor
    /// counted, and their places are free. Returns the rooms of these members.
    /// The order must then be passed to their members. One that is joining at this moment does not get it there, and
    /// looks [here](Presence::dismissal) once it has joined.
    pub fn dismiss(&self, order: &Arc<Dismissal>, only: Option<&RoomName>) -> Vec<RoomName> {
        let mut found = Vec::new();
        let mut rooms = self.rooms();
        for (name, room) in rooms.iter_mut() {
            if only.is_some_and(|only| only != name) {
                continue;
            }
            let is_one = |(place, one): &(&usize, &Arc<Person>)| {
                order.is_for(one.number(**place), one.user())
            };
            let places: Vec<(usize, usize)> = room
                .people
                .iter()
                .filter(is_one)
                .map(|(place, one)| (*place, one.number(*place)))
                .collect();
            if !places.is_empty() {
                found.push(name.clone());
                self.has_changed(name);
            }
            for (place, number) in places {
                room.people.remove(&place);
                room.members -= 1;
                self.members.take_back();
                self.dismissed().insert((number, name.clone()), Arc::clone(order));
            }
        }
        rooms.retain(|name, room| {
            let is_empty = room.members == 0;
            if is_empty && room.history.is_some() {
                self.following.fetch_sub(1, Relaxed);
                self.histories.close(name);
            }
            !is_empty
        });
        found
    }

    /// The number of users, in all rooms together. Members without one count as one.
    pub fn users(&self) -> usize {
        let people: Vec<_> =
            self.rooms().values().flat_map(|room| room.people.values()).cloned().collect();
        people.iter().map(|person| person.user()).collect::<HashSet<_>>().len()
    }

    /// The number of members in all rooms.
    pub fn members(&self) -> usize {
        self.members.get()
    }

    /// Returns all metrics in the Prometheus text format, version 0.0.4.
    pub fn metrics(&self, slow: &PolicyCounts, memory: &Memory) -> String {
        let read = |counter: &Counter| counter.get() as u64;
        let mut all = Exposition::new("regatta_hub");
        let mut family = |name: &str, kind: &str, help: &str, samples: &[(&str, u64)]| {
            all.family(name, kind, help, samples);
        };
        family("members", "gauge", "Members currently connected.", &[("", read(&self.members))]);
        if !self.apart {
            let rooms = self.rooms().len() as u64;
            family("rooms", "gauge", "Rooms with at least one member.", &[("", rooms)]);
            let held = [("", memory.held() as u64)];
            let help = "Memory held for members: broadcasts, and what each holds from 16 KiB on.";
            family("memory_bytes", "gauge", help, &held);
            self.histories.metrics(&mut family);
        }
        let entered = [("", read(&self.entered))];
        family("members_total", "counter", "Members that have joined.", &entered);
        let refused = [("", read(&self.refused))];
        family("refused_total", "counter", "Members refused because of a limit.", &refused);
        let denied: Vec<_> = Denied::NAMES
            .iter()
            .zip(&self.denied)
            .map(|(name, count)| (label("because", name), read(count)))
            .collect();
        let denied: Vec<_> = denied.iter().map(|(labels, count)| (&**labels, *count)).collect();
        let help = "Clients refused because of their origin, token or API key.";
        family("denied_total", "counter", help, &denied);
        let messages = [
            ("{type=\"broadcast\"}", read(&self.broadcasts)),
            ("{type=\"echo\"}", read(&self.echoes)),
            ("{type=\"malformed\"}", read(&self.malformed)),
            ("{type=\"publication\"}", read(&self.published)),
        ];
        let help = "Messages received: of members, and publications of backends.";
        family("messages_total", "counter", help, &messages);
        let deliveries = [("", read(&self.deliveries))];
        let help = "Copies of broadcasts queued for members, including the sender's own.";
        family("deliveries_total", "counter", help, &deliveries);
        let acted = [
            ("{policy=\"close\"}", slow.closed()),
            ("{policy=\"conflate\"}", slow.conflated()),
            ("{policy=\"skip\"}", slow.skipped()),
        ];
        let help = "Slow members disconnected, and broadcasts that slow members missed.";
        family("slow_total", "counter", help, &acted);
        let limit = [("", memory.limit() as u64)];
        family(
            "memory_limit_bytes",
            "gauge",
            "Maximum memory held for members, in each process.",
            &limit,
        );
        let help = "Members disconnected because the memory was used up.";
        family("memory_closed_total", "counter", help, &[("", slow.starved.get() as u64)]);
        if let Some(last) = &self.last {
            let help = "Sampled messages that some member has not received yet.";
            all.family("last_delivery_pending", "gauge", help, &[("", last.pending())]);
            let help =
                "Time from a message to its delivery to the last member: of one message in 64.";
            all.histograms("last_delivery_seconds", help, &BOUNDS_US, &[last.histogram()]);
        }
        all.into_text()
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.leave();
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while holding a lock.
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Room {
    fn add(&mut self, place: usize, listed: Option<Arc<Person>>) {
        self.members += 1;
        self.people.extend(listed.map(|person| (place, person)));
    }
}

#[cfg(test)]
mod tests;
