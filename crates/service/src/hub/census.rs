//! Who is where on all cores, and what has happened so far: for limits and for metrics. Nothing here is
//! touched for a delivery.

use regatta_engine::{PolicyCounts, RoomName};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// Maximum numbers of members and rooms.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Members of all rooms.
    pub members: usize,
    /// Members of one room.
    pub members_of_room: usize,
    /// Rooms in which somebody is.
    pub rooms: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { members: usize::MAX, members_of_room: usize::MAX, rooms: usize::MAX }
    }
}

/// Why somebody may not enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    Hub,
    Room,
    Rooms,
}

impl Full {
    /// A sentence for whoever is kept out.
    pub fn why(self) -> &'static str {
        match self {
            Full::Hub => "The hub is full. Try again later.",
            Full::Room => "This room is full. Try again later.",
            Full::Rooms => "There are too many rooms. Try again later, or enter one of them.",
        }
    }
}

/// The members of a hub, and its counters.
#[derive(Debug, Default)]
pub(super) struct Census {
    inside: Mutex<Inside>,
    pub entered: AtomicU64,
    pub refused: AtomicU64,
    pub echoes: AtomicU64,
    pub broadcasts: AtomicU64,
    pub malformed: AtomicU64,
    pub deliveries: AtomicU64,
}

#[derive(Debug, Default)]
struct Inside {
    members: usize,
    rooms: HashMap<RoomName, Room>,
}

#[derive(Debug, Default)]
struct Room {
    members: usize,
    /// Of those who have one, in the order in which they came.
    names: BTreeMap<u64, Arc<str>>,
}

/// Somebody is in a room for as long as this lives.
#[derive(Debug)]
pub(super) struct Presence {
    census: Arc<Census>,
    room: RoomName,
    name: Option<Arc<str>>,
    number: u64,
}

impl Presence {
    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// How many are in its room, and the first of their names, this one's included.
    pub fn here(&self, most: usize) -> (usize, Vec<Arc<str>>) {
        let inside = self.census.inside();
        let room = inside.rooms.get(&self.room);
        let names = room.into_iter().flat_map(|room| room.names.values()).take(most);
        (room.map_or(0, |room| room.members), names.cloned().collect())
    }
}

impl Census {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        // Nothing panics under the lock.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody enters, unless it would be one too many.
    pub fn enter(
        self: &Arc<Self>,
        room: &RoomName,
        name: Option<&str>,
        limits: &Limits,
    ) -> Result<Presence, Full> {
        let mut inside = self.inside();
        let here = inside.rooms.get(room).map(|room| room.members);
        let full = match here {
            _ if inside.members >= limits.members => Some(Full::Hub),
            Some(here) if here >= limits.members_of_room => Some(Full::Room),
            None if inside.rooms.len() >= limits.rooms => Some(Full::Rooms),
            _ => None,
        };
        if let Some(full) = full {
            self.refused.fetch_add(1, Relaxed);
            return Err(full);
        }
        inside.members += 1;
        let number = self.entered.fetch_add(1, Relaxed);
        let name = name.map(Arc::from);
        let here = inside.rooms.entry(room.clone()).or_default();
        here.members += 1;
        here.names.extend(name.clone().map(|name| (number, name)));
        Ok(Presence { census: Arc::clone(self), room: room.clone(), name, number })
    }

    /// All figures in the text format of Prometheus, version 0.0.4.
    pub fn metrics(&self, slow: &PolicyCounts) -> String {
        let (members, rooms) = {
            let inside = self.inside();
            (inside.members, inside.rooms.len())
        };
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, samples: &[(&str, u64)]| {
            text +=
                &format!("# HELP regatta_hub_{name} {help}\n# TYPE regatta_hub_{name} {kind}\n");
            for (labels, value) in samples {
                text += &format!("regatta_hub_{name}{labels} {value}\n");
            }
        };
        family("members", "gauge", "Members that are connected.", &[("", members as u64)]);
        family("rooms", "gauge", "Rooms in which somebody is.", &[("", rooms as u64)]);
        let entered = [("", read(&self.entered))];
        family("members_total", "counter", "Members that have entered.", &entered);
        let refused = [("", read(&self.refused))];
        family("refused_total", "counter", "Members that a limit has kept out.", &refused);
        let messages = [
            ("{type=\"broadcast\"}", read(&self.broadcasts)),
            ("{type=\"echo\"}", read(&self.echoes)),
            ("{type=\"malformed\"}", read(&self.malformed)),
        ];
        family("messages_total", "counter", "Messages of members.", &messages);
        let deliveries = [("", read(&self.deliveries))];
        let help = "Copies of broadcasts that were queued, the senders' own included.";
        family("deliveries_total", "counter", help, &deliveries);
        let acted = [
            ("{policy=\"close\"}", slow.closed()),
            ("{policy=\"conflate\"}", slow.conflated()),
            ("{policy=\"skip\"}", slow.skipped()),
        ];
        let help = "Slow members that were closed, and copies that slow members have missed.";
        family("slow_total", "counter", help, &acted);
        text
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut inside = self.census.inside();
        inside.members -= 1;
        let Some(here) = inside.rooms.get_mut(&self.room) else { return };
        here.members -= 1;
        here.names.remove(&self.number);
        if here.members == 0 {
            inside.rooms.remove(&self.room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_keeps_out_who_is_too_many_until_somebody_leaves() {
        let census = Arc::new(Census::default());
        let limits = Limits { members: 4, members_of_room: 2, rooms: 2 };
        let enter = |room: &str| census.enter(&RoomName::of(room), None, &limits);
        let (a, b) = (enter("").unwrap(), enter("").unwrap());
        assert_eq!(enter("").unwrap_err(), Full::Room);
        let red = enter("red").unwrap();
        assert_eq!(enter("blue").unwrap_err(), Full::Rooms);
        let more = enter("red").unwrap();
        assert_eq!(enter("red").unwrap_err(), Full::Hub);
        drop((red, more));
        let blue = enter("blue").expect("nobody is in red any more");
        assert_eq!(census.inside().rooms.len(), 2);
        drop((a, b, blue));
        assert!(census.inside().members == 0 && census.inside().rooms.is_empty());
        assert_eq!((census.entered.load(Relaxed), census.refused.load(Relaxed)), (5, 3));
    }

    #[test]
    fn names_are_those_of_who_is_in_the_room() {
        let census = Arc::new(Census::default());
        let limits = Limits::default();
        let enter = |room: &str, name| census.enter(&RoomName::of(room), name, &limits).unwrap();
        let (b, silent, a) = (enter("", Some("b")), enter("", None), enter("", Some("a")));
        let other = enter("red", Some("c"));
        let names = |one: &Presence, most| {
            let (members, names) = one.here(most);
            (members, names.join(" "))
        };
        assert_eq!(names(&a, 9), (3, "b a".into()));
        assert_eq!(names(&silent, 1), (3, "b".into()));
        drop(b);
        assert_eq!(names(&a, 9), (2, "a".into()));
        assert_eq!(
            (names(&other, 9), other.name(), silent.name()),
            ((1, "c".into()), Some("c"), None)
        );
    }

    #[test]
    fn metrics_are_families_with_help_and_type() {
        let census = Arc::new(Census::default());
        let _in = census.enter(&RoomName::LOBBY, None, &Limits::default()).unwrap();
        census.deliveries.store(7, Relaxed);
        let text = census.metrics(&PolicyCounts::default());
        for line in [
            "# TYPE regatta_hub_members gauge",
            "regatta_hub_members 1",
            "regatta_hub_rooms 1",
            "regatta_hub_members_total 1",
            "# TYPE regatta_hub_deliveries_total counter",
            "regatta_hub_deliveries_total 7",
            "regatta_hub_slow_total{policy=\"skip\"} 0",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} in\n{text}");
        }
    }
}
