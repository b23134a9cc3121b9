//! The histories of all rooms: of those with members, and for a while of those without.

use super::{
    position::{Epoch, HistoryLimits},
    room::RoomHistory,
    share::Share,
};
use regatta_engine::{Memory, RoomName};
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

/// Maximum number of rooms without members whose history is kept.
pub(in super::super) const IDLE_ROOMS: usize = 10_000;
/// At least this many milliseconds are between two [looks](Histories::tidy).
const PAUSE_MS: u64 = 10;
/// How many rooms are looked at each time.
const LOOKS: usize = 64;

/// The histories of all rooms.
#[derive(Debug)]
pub(in super::super) struct Histories {
    inside: Mutex<Rooms>,
    share: Arc<Share>,
    /// Random: the first epoch.
    seed: u64,
    /// When the first look was, and how many milliseconds later the next one is.
    begin: OnceLock<Instant>,
    next_look: AtomicU64,
}

/// The rooms that have a history.
#[derive(Debug, Default)]
struct Rooms {
    all: HashMap<RoomName, Entry>,
    /// Those without members, by when their last member left.
    idle: BTreeMap<u64, RoomName>,
    /// All of them, in the order in which they are looked at. One that is gone since has another number.
    round: VecDeque<(RoomName, u64)>,
    /// The last number of a room, or of a leave.
    number: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    history: Arc<RoomHistory>,
    idle: Option<Idle>,
}

/// A room has no members.
#[derive(Debug)]
struct Idle {
    number: u64,
    /// When this was first noticed.
    since: Option<Instant>,
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
            seed: RandomState::new().hash_one(0),
            begin: OnceLock::new(),
            next_look: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Rooms> {
        // Nothing panics while holding the lock.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters.
    pub fn share(&self) -> &Share {
        &self.share
    }

    /// The history of a room that gets its first member.
    pub fn open(&self, room: &RoomName, limits: HistoryLimits) -> Arc<RoomHistory> {
        let mut rooms = self.lock();
        let Rooms { all, idle, .. } = &mut *rooms;
        if let Some(entry) = all.get_mut(room) {
            if let Some(was) = entry.idle.take() {
                idle.remove(&was.number);
            }
            entry.history.limit(limits);
            return Arc::clone(&entry.history);
        }
        rooms.number += 1;
        let number = rooms.number;
        // No two numbers have the same.
        let epoch = Epoch(mixed(self.seed.wrapping_add(number)));
        let history = Arc::new(RoomHistory::new(epoch, limits, &self.share));
        let entry = Entry { number, history: Arc::clone(&history), idle: None };
        rooms.all.insert(room.clone(), entry);
        rooms.round.push_back((room.clone(), number));
        history
    }

    /// The last member of a room has left.
    pub fn close(&self, room: &RoomName) {
        let mut rooms = self.lock();
        rooms.number += 1;
        let number = rooms.number;
        let Some(entry) = rooms.all.get_mut(room) else { return };
        entry.idle = Some(Idle { number, since: None });
        rooms.idle.insert(number, room.clone());
        if rooms.idle.len() > IDLE_ROOMS
            && let Some((_, oldest)) = rooms.idle.pop_first()
        {
            rooms.all.remove(&oldest);
        }
    }

    /// The history of a room, if it has one.
    pub fn find(&self, room: &RoomName) -> Option<Arc<RoomHistory>> {
        self.lock().all.get(room).map(|entry| Arc::clone(&entry.history))
    }

    /// Frees what has become too old in some of the rooms, if that was not done just before. Called often: each room
    /// has its turn.
    pub fn tidy(&self, now: Instant) {
        let begin = *self.begin.get_or_init(|| now);
        let at = now.saturating_duration_since(begin).as_millis() as u64;
        if at >= self.next_look.load(Relaxed) {
            self.next_look.store(at + PAUSE_MS, Relaxed);
            self.look(now);
        }
    }

    #[cold]
    fn look(&self, now: Instant) {
        let mut rooms = self.lock();
        for _ in 0..LOOKS.min(rooms.round.len()) {
            let Some((room, number)) = rooms.round.pop_front() else { return };
            let Some(entry) = rooms.all.get_mut(&room).filter(|entry| entry.number == number)
            else {
                continue;
            };
            let is_empty = entry.history.expire(now);
            let time = entry.history.limits().time;
            let is_over = entry.idle.as_mut().is_some_and(|idle| {
                let since = *idle.since.get_or_insert(now);
                is_empty && now.saturating_duration_since(since) >= time
            });
            if is_over {
                let gone = rooms.all.remove(&room).and_then(|entry| entry.idle);
                gone.and_then(|idle| rooms.idle.remove(&idle.number));
            } else {
                rooms.round.push_back((room, number));
            }
        }
    }
}

/// A number that shows nothing of its neighbours (the output function of SplitMix64, which is a bijection).
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::broadcast::Draft;
    use std::time::Duration;

    const LIMITS: HistoryLimits = HistoryLimits { messages: 10, time: Duration::from_secs(60) };

    fn publish(histories: &Histories, room: &RoomName, now: Instant) -> u64 {
        let history = histories.find(room).unwrap();
        let draft = Draft::new("1", false);
        let memory = Arc::default();
        let push = history.publish(now, |position| draft.at(position, false, &memory));
        push.position().unwrap().offset
    }

    #[test]
    fn a_room_without_members_keeps_its_history_for_its_time() {
        let (histories, room, start) = (Histories::default(), RoomName::of("a"), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let first = histories.open(&room, LIMITS);
        histories.tidy(at(0));
        assert_eq!(publish(&histories, &room, at(1)), 1);
        histories.close(&room);
        histories.tidy(at(10));
        assert_eq!(publish(&histories, &room, at(50)), 2, "a backend publishes");
        assert!(Arc::ptr_eq(&first, &histories.open(&room, LIMITS)));
        histories.close(&room);
        histories.tidy(at(60));
        histories.tidy(at(111));
        assert_eq!(histories.share().messages(), 0, "they are too old");
        assert!(Arc::ptr_eq(&first, &histories.find(&room).unwrap()), "since 60");
        histories.tidy(at(120));
        assert!(histories.find(&room).is_none() && histories.lock().idle.is_empty());
        let again = histories.open(&room, LIMITS);
        assert!(!Arc::ptr_eq(&first, &again));
        assert_eq!(publish(&histories, &room, at(121)), 1);
        let epoch = |history: &RoomHistory| history.join(None, start).1.position.epoch;
        assert_ne!(epoch(&first), epoch(&again));
    }

    #[test]
    fn a_room_with_members_frees_what_is_too_old_although_nobody_speaks() {
        let (histories, start) = (Histories::default(), Instant::now());
        let (loud, silent) = (RoomName::of("loud"), RoomName::of("silent"));
        histories.open(&loud, LIMITS);
        histories.open(&silent, LIMITS);
        publish(&histories, &silent, start);
        histories.tidy(start);
        let later = start + Duration::from_secs(61);
        publish(&histories, &loud, later);
        histories.tidy(later);
        assert_eq!(histories.share().messages(), 1);
        assert!(histories.find(&silent).is_some());
    }

    #[test]
    fn rooms_without_members_are_limited_and_the_first_that_was_left_goes_first() {
        let histories = Histories::default();
        let room = |n: usize| RoomName::of(&n.to_string());
        for n in 0..=IDLE_ROOMS {
            histories.open(&room(n), LIMITS);
            histories.close(&room(n));
            histories.open(&room(0), LIMITS);
            histories.close(&room(0));
        }
        assert!(histories.find(&room(0)).is_some() && histories.find(&room(1)).is_none());
        let rooms = histories.lock();
        assert_eq!((rooms.all.len(), rooms.idle.len()), (IDLE_ROOMS, IDLE_ROOMS));
        drop(rooms);
        // A room with members does not count, and one that is gone is not looked at again.
        histories.open(&room(1), LIMITS);
        for turn in 0..2 * IDLE_ROOMS {
            histories.tidy(Instant::now() + Duration::from_millis(turn as u64 * PAUSE_MS));
        }
        let rooms = histories.lock();
        assert_eq!((rooms.all.len(), rooms.round.len()), (IDLE_ROOMS + 1, IDLE_ROOMS + 1));
    }
}
