//! The histories of all rooms: of those with members, and for a while of those without.

use super::{
    position::{Epoch, HistoryLimits},
    room::RoomHistory,
    share::Share,
};
use regatta_engine::{Memory, RoomName};
use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Instant,
};

/// Maximum number of rooms without members whose history is kept.
pub(in super::super) const IDLE_ROOMS: usize = 10_000;
/// Maximum number of rooms that were only asked about. Their names may be made up, so they take no places of others.
const ASKED_ROOMS: usize = 1_024;
/// How many rooms are looked at each time.
const LOOKS: usize = 64;

/// The histories of all rooms.
#[derive(Debug)]
pub(in super::super) struct Histories {
    inside: Mutex<Rooms>,
    share: Arc<Share>,
    /// They are copies of histories at a broker.
    are_mirrors: bool,
    /// Random: the hash of a number is an epoch.
    epochs: RandomState,
    /// There was a room with a history.
    is_used: AtomicBool,
}

/// The rooms that have a history.
#[derive(Debug, Default)]
struct Rooms {
    all: HashMap<RoomName, Entry>,
    /// When each of them is looked at, with its number.
    looks: BTreeMap<(Instant, u64), RoomName>,
    /// Those without members: those without messages, too, first, and then by when their last member left.
    idle: BTreeMap<(bool, u64), RoomName>,
    /// Those without members that were only asked about, in order.
    asked: BTreeMap<u64, RoomName>,
    /// The last number of a room, or of a leave.
    number: u64,
}

#[derive(Debug)]
struct Entry {
    history: Arc<RoomHistory>,
    /// The next look.
    look: (Instant, u64),
    /// Its place among those without members, if it has none.
    idle: Option<Place>,
    /// It had no members at the last look, and has had none since.
    was_idle: bool,
}

/// The place of a room without members.
#[derive(Clone, Copy, Debug)]
enum Place {
    Idle((bool, u64)),
    Asked(u64),
}

impl Default for Histories {
    fn default() -> Self {
        Histories::new(Arc::default())
    }
}

impl Histories {
    /// No room has a history yet. `memory`: where messages are charged.
    pub fn new(memory: Arc<Memory>) -> Histories {
        Histories {
            inside: Mutex::default(),
            share: Arc::new(Share::new(memory)),
            are_mirrors: false,
            epochs: RandomState::new(),
            is_used: AtomicBool::new(false),
        }
    }

    /// Those of a hub with a broker, which has the histories.
    pub fn mirroring(memory: Arc<Memory>) -> Histories {
        Histories { are_mirrors: true, ..Histories::new(memory) }
    }

    /// An epoch that no history has had.
    pub fn new_epoch(&self) -> Epoch {
        let mut rooms = self.lock();
        rooms.number += 1;
        self.epoch(&rooms)
    }

    fn epoch(&self, rooms: &Rooms) -> Epoch {
        // A keyed hash (SipHash), so one epoch shows nothing of another.
        Epoch(self.epochs.hash_one(rooms.number))
    }

    fn lock(&self) -> MutexGuard<'_, Rooms> {
        // Nothing panics while holding the lock.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no room has had a history.
    pub fn are_unused(&self) -> bool {
        !self.is_used.load(Relaxed)
    }

    /// The history of a room that gets its first member; `None` if it should have none.
    pub fn open(
        &self,
        room: &RoomName,
        limits: HistoryLimits,
        now: Instant,
    ) -> Option<Arc<RoomHistory>> {
        if !limits.are_kept() {
            self.drop_idle(room);
            return None;
        }
        let mut rooms = self.lock();
        if let Some(entry) = rooms.all.get_mut(room) {
            entry.was_idle = false;
            entry.history.limit(limits);
            let (place, history) = (entry.idle.take(), Arc::clone(&entry.history));
            rooms.free(place);
            return Some(history);
        }
        Some(self.add(&mut rooms, room, limits, now))
    }

    /// The history of a room without members, to which a backend publishes; `None` if it should have none.
    pub fn open_idle(
        &self,
        room: &RoomName,
        limits: HistoryLimits,
        now: Instant,
    ) -> Option<Arc<RoomHistory>> {
        self.open_without(room, limits, now, |rooms| rooms.leave(room, true))
    }

    /// That of a room without members about which somebody asks.
    pub fn open_asked(
        &self,
        room: &RoomName,
        limits: HistoryLimits,
        now: Instant,
    ) -> Option<Arc<RoomHistory>> {
        self.open_without(room, limits, now, |rooms| rooms.is_asked(room))
    }

    /// `takes`: a new room takes its place.
    fn open_without(
        &self,
        room: &RoomName,
        limits: HistoryLimits,
        now: Instant,
        takes: impl FnOnce(&mut Rooms),
    ) -> Option<Arc<RoomHistory>> {
        if !limits.are_kept() {
            self.drop_idle(room);
            return None;
        }
        let mut rooms = self.lock();
        if let Some(entry) = rooms.all.get(room) {
            entry.history.limit(limits);
            return Some(Arc::clone(&entry.history));
        }
        let history = self.add(&mut rooms, room, limits, now);
        takes(&mut rooms);
        Some(history)
    }

    /// A copy of the history of a room that has none here.
    pub fn apart(&self, limits: HistoryLimits) -> Arc<RoomHistory> {
        Arc::new(RoomHistory::mirroring(limits, &self.share))
    }

    /// The history of a room, if it has one now.
    pub fn kept(&self, room: &RoomName) -> Option<Arc<RoomHistory>> {
        self.lock().all.get(room).map(|entry| Arc::clone(&entry.history))
    }

    /// A room without members, which may have had a history, has none from now on: what is sent there would be missing in
    /// it without a gap.
    fn drop_idle(&self, room: &RoomName) {
        if !self.are_unused() {
            self.lock().remove(room);
        }
    }

    fn add(
        &self,
        rooms: &mut Rooms,
        room: &RoomName,
        limits: HistoryLimits,
        now: Instant,
    ) -> Arc<RoomHistory> {
        self.is_used.store(true, Relaxed);
        rooms.number += 1;
        let history = if self.are_mirrors {
            self.apart(limits)
        } else {
            Arc::new(RoomHistory::new(self.epoch(rooms), limits, &self.share))
        };
        let look = (now + limits.time, rooms.number);
        let entry = Entry { history: Arc::clone(&history), look, idle: None, was_idle: false };
        rooms.all.insert(room.clone(), entry);
        rooms.looks.insert(look, room.clone());
        history
    }

    /// The last member of a room has left. Nobody looks after a copy from now on, so the broker may forget what is known of it.
    pub fn close(&self, room: &RoomName) {
        let mut rooms = self.lock();
        if let Some(entry) = rooms.all.get(room) {
            entry.history.doubts();
        }
        rooms.leave(room, false);
    }

    /// Frees what has become too old in at most [`LOOKS`] rooms: in each once in the time for which it keeps messages. A room
    /// that had no members all that time, and has no messages, loses its history. Returns whether there may be more.
    pub fn tidy(&self, now: Instant) -> bool {
        let mut rooms = self.lock();
        for _ in 0..LOOKS {
            let first = rooms.looks.first_entry().filter(|first| first.key().0 <= now);
            let Some(((_, number), room)) = first.map(|first| first.remove_entry()) else {
                return false;
            };
            let Some(entry) = rooms.all.get_mut(&room) else { continue };
            let (is_empty, limits) = entry.history.expire(now);
            let is_over = is_empty && entry.was_idle;
            entry.was_idle = entry.idle.is_some();
            entry.look = (now + limits.time, number);
            let look = entry.look;
            if is_over {
                rooms.remove(&room);
            } else {
                rooms.looks.insert(look, room);
            }
        }
        true
    }

    /// Calls `family` with each family of metrics.
    pub fn metrics(&self, family: &mut impl FnMut(&str, &str, &str, &[(&str, u64)])) {
        let share = &self.share;
        let rooms = self.lock().all.len() as u64;
        let help = "Rooms whose messages are kept, with or without members.";
        family("history_rooms", "gauge", help, &[("", rooms)]);
        let messages = [("", share.messages() as u64)];
        family("history_messages", "gauge", "Messages that are kept.", &messages);
        let bytes = [("", share.bytes() as u64)];
        family("history_bytes", "gauge", "Memory of kept messages.", &bytes);
        let joins = [
            ("{recovered=\"false\"}", share.failed_recoveries.get() as u64),
            ("{recovered=\"true\"}", share.recoveries.get() as u64),
        ];
        let help = "Members that named a position when they joined, and got all behind it or not.";
        family("recoveries_total", "counter", help, &joins);
        let recovered = [("", share.recovered.get() as u64)];
        let help = "Messages that members got although these were sent before they joined.";
        family("recovered_messages_total", "counter", help, &recovered);
        let gaps = [("", share.gaps.get() as u64)];
        let help = "Gaps of members that were too slow for the history of their room.";
        family("gaps_total", "counter", help, &gaps);
    }
}

impl Rooms {
    /// A room has no members. If there are too many such rooms, one loses its history: first those in which nothing was
    /// ever sent, unless something `follows`, so that nobody drops the others' by joining rooms with made-up names.
    fn leave(&mut self, room: &RoomName, follows: bool) {
        self.number += 1;
        let number = self.number;
        let Some(entry) = self.all.get_mut(room) else { return };
        let place = (follows || entry.history.turn_and_top().1 > 0, number);
        entry.idle = Some(Place::Idle(place));
        self.idle.insert(place, room.clone());
        if self.idle.len() > IDLE_ROOMS
            && let Some((_, oldest)) = self.idle.pop_first()
        {
            self.remove(&oldest);
        }
    }

    /// A new room is only asked about. If there are too many of these, the first one loses its history.
    fn is_asked(&mut self, room: &RoomName) {
        self.number += 1;
        let Some(entry) = self.all.get_mut(room) else { return };
        entry.idle = Some(Place::Asked(self.number));
        self.asked.insert(self.number, room.clone());
        if self.asked.len() > ASKED_ROOMS
            && let Some((_, oldest)) = self.asked.pop_first()
        {
            self.remove(&oldest);
        }
    }

    fn free(&mut self, place: Option<Place>) {
        match place {
            Some(Place::Idle(place)) => drop(self.idle.remove(&place)),
            Some(Place::Asked(number)) => drop(self.asked.remove(&number)),
            None => {}
        }
    }

    fn remove(&mut self, room: &RoomName) {
        let Some(entry) = self.all.remove(room) else { return };
        self.free(entry.idle);
        self.looks.remove(&entry.look);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::broadcast::Broadcast;
    use std::time::Duration;

    const LIMITS: HistoryLimits = HistoryLimits { messages: 10, time: Duration::from_secs(60) };

    fn publish(history: &RoomHistory, now: Instant) -> u64 {
        let memory = Arc::default();
        let push = history.publish(now, |at| Broadcast::kept("1", at, false, false, &memory));
        push.position().unwrap().offset
    }

    fn find(histories: &Histories, room: &RoomName) -> Option<Arc<RoomHistory>> {
        histories.lock().all.get(room).map(|entry| Arc::clone(&entry.history))
    }

    #[test]
    fn a_room_without_members_keeps_its_history_for_its_time() {
        let (histories, room, start) = (Histories::default(), RoomName::of("a"), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(histories.open(&room, HistoryLimits::NONE, start).is_none());
        assert!(histories.are_unused());
        let first = histories.open(&room, LIMITS, start).unwrap();
        assert_eq!(publish(&first, start), 1);
        histories.close(&room);
        let again = histories.open_idle(&room, LIMITS, at(50)).unwrap();
        assert_eq!(publish(&again, at(50)), 2, "a backend publishes");
        assert!(Arc::ptr_eq(&first, &histories.open(&room, LIMITS, at(59)).unwrap()));
        histories.close(&room);
        // Each look is 60 s after the one before.
        histories.tidy(at(60));
        assert_eq!(histories.share.messages(), 1, "the second is not too old");
        histories.tidy(at(119));
        assert_eq!(histories.share.messages(), 1, "it is not looked at");
        assert!(Arc::ptr_eq(&first, &find(&histories, &room).unwrap()));
        histories.tidy(at(120));
        assert_eq!(histories.share.messages(), 0);
        assert!(find(&histories, &room).is_none() && histories.lock().idle.is_empty());
        let again = histories.open(&room, LIMITS, at(121)).unwrap();
        assert_eq!(publish(&again, at(121)), 1);
        assert_ne!(first.epoch(), again.epoch());
    }

    #[test]
    fn a_room_without_members_loses_its_history_when_it_should_have_none() {
        type Open = fn(&Histories, &RoomName, HistoryLimits, Instant) -> Option<Arc<RoomHistory>>;
        for open in [Histories::open as Open, Histories::open_idle] {
            let (histories, room, now) = (Histories::default(), RoomName::of("a"), Instant::now());
            let first = histories.open(&room, LIMITS, now).unwrap();
            publish(&first, now);
            histories.close(&room);
            // A message that is sent now has no offset.
            assert!(open(&histories, &room, HistoryLimits::NONE, now).is_none());
            let again = histories.open(&room, LIMITS, now).unwrap();
            assert_ne!(first.epoch(), again.epoch());
        }
    }

    #[test]
    fn a_room_with_members_frees_what_is_too_old_although_nobody_speaks() {
        let (histories, start) = (Histories::default(), Instant::now());
        let (loud, silent) = (RoomName::of("loud"), RoomName::of("silent"));
        let loud = histories.open(&loud, LIMITS, start).unwrap();
        publish(&histories.open(&silent, LIMITS, start).unwrap(), start);
        let later = start + Duration::from_secs(61);
        publish(&loud, later);
        histories.tidy(later);
        histories.tidy(later + LIMITS.time);
        assert!(find(&histories, &silent).is_some(), "it has members");
        assert_eq!(histories.share.messages(), 0);
    }

    #[test]
    fn rooms_without_members_are_limited_and_the_first_that_was_left_goes_first() {
        let (histories, now) = (Histories::default(), Instant::now());
        let room = |n: usize| RoomName::of(&n.to_string());
        for n in 0..=IDLE_ROOMS {
            let history = histories.open_idle(&room(n), LIMITS, now).unwrap();
            if n == 0 {
                publish(&history, now);
            }
            histories.open(&room(0), LIMITS, now);
            histories.close(&room(0));
        }
        assert!(find(&histories, &room(0)).is_some() && find(&histories, &room(1)).is_none());
        let count = |rooms: &Rooms| (rooms.all.len(), rooms.idle.len(), rooms.looks.len());
        assert_eq!(count(&histories.lock()), (IDLE_ROOMS, IDLE_ROOMS, IDLE_ROOMS));
        // Rooms in which nothing was ever sent.
        for name in ["made up", "also"] {
            histories.open(&RoomName::of(name), LIMITS, now);
            histories.close(&RoomName::of(name));
        }
        assert!(find(&histories, &room(2)).is_some(), "it does not lose its own for these");
        assert_eq!(count(&histories.lock()), (IDLE_ROOMS, IDLE_ROOMS, IDLE_ROOMS));
        // A room with members does not count.
        histories.open(&room(1), LIMITS, now);
        assert_eq!(count(&histories.lock()), (IDLE_ROOMS + 1, IDLE_ROOMS, IDLE_ROOMS + 1));
        for look in 1..=2 {
            let later = now + LIMITS.time * look;
            while histories.tidy(later) {}
        }
        assert_eq!(count(&histories.lock()), (1, 0, 1));
    }

    #[test]
    fn rooms_that_are_only_asked_about_take_no_places_of_others() {
        let (histories, now) = (Histories::default(), Instant::now());
        let room = |n: usize| RoomName::of(&n.to_string());
        for n in 0..IDLE_ROOMS {
            publish(&histories.open_idle(&room(n), LIMITS, now).unwrap(), now);
        }
        let asked = |n: usize| RoomName::of(&format!("asked{n}"));
        for n in 0..=ASKED_ROOMS {
            histories.open_asked(&asked(n), LIMITS, now);
            assert!(find(&histories, &asked(n)).is_some(), "it waits for the answer");
        }
        assert!(find(&histories, &room(0)).is_some() && find(&histories, &asked(0)).is_none());
        assert!(find(&histories, &asked(1)).is_some());
        histories.open(&asked(1), LIMITS, now);
        assert_eq!(histories.lock().asked.len(), ASKED_ROOMS - 1);
    }
}
