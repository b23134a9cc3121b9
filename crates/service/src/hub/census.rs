//! Who is where on all cores, and what has happened so far: for limits and for metrics. Nothing here is
//! touched for a delivery.

use super::message::Came;
use regatta_engine::{Counter, PolicyCounts, RoomName};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
    rooms: Mutex<HashMap<RoomName, Room>>,
    /// Other processes have members too. What is known of their rooms is what they have posted.
    apart: bool,
    members: Counter,
    entered: Counter,
    refused: Counter,
    pub echoes: Counter,
    pub broadcasts: Counter,
    pub malformed: Counter,
    pub deliveries: Counter,
}

#[derive(Debug, Default)]
struct Room {
    members: usize,
    /// Of those who have one, in the order in which they came.
    names: BTreeMap<usize, Arc<str>>,
}

/// Somebody has come into a room, or gone, as other processes hear of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub came: Came,
    /// No two members have the same, in whatever process.
    pub number: usize,
    pub name: Option<Arc<str>>,
}

/// Somebody is in a room for as long as this lives.
#[derive(Debug)]
pub(super) struct Presence {
    census: Arc<Census>,
    room: RoomName,
    name: Option<Arc<str>>,
    number: usize,
}

impl Presence {
    /// That it has come, or goes.
    pub fn note(&self, came: Came) -> Note {
        Note { came, number: self.number, name: self.name.clone() }
    }

    /// How many are in its room, and the first of their names, this one's included.
    pub fn here(&self, most: usize) -> (usize, Vec<Arc<str>>) {
        let rooms = self.census.rooms();
        let room = rooms.get(&self.room);
        let names = room.into_iter().flat_map(|room| room.names.values()).take(most);
        (room.map_or(0, |room| room.members), names.cloned().collect())
    }
}

impl Census {
    /// With counters that several processes share, each of which has rooms of its own. Fails where `counter`
    /// does.
    pub fn shared<E>(mut counter: impl FnMut() -> Result<Counter, E>) -> Result<Census, E> {
        Ok(Census {
            rooms: Mutex::default(),
            apart: true,
            members: counter()?,
            entered: counter()?,
            refused: counter()?,
            echoes: counter()?,
            broadcasts: counter()?,
            malformed: counter()?,
            deliveries: counter()?,
        })
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<RoomName, Room>> {
        // Nothing panics under the lock.
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody enters, unless it would be one too many.
    pub fn enter(
        self: &Arc<Self>,
        room: &RoomName,
        name: Option<&str>,
        limits: &Limits,
    ) -> Result<Presence, Full> {
        let mut rooms = self.rooms();
        let here = rooms.get(room).map(|room| room.members);
        let full = match here {
            _ if self.members.get() >= limits.members => Some(Full::Hub),
            Some(here) if here >= limits.members_of_room => Some(Full::Room),
            None if rooms.len() >= limits.rooms => Some(Full::Rooms),
            // Another process may have taken the last place meanwhile.
            _ => (!self.members.add_below(limits.members)).then_some(Full::Hub),
        };
        if let Some(full) = full {
            self.refused.add(1);
            return Err(full);
        }
        let number = self.entered.add(1);
        let name = name.map(Arc::from);
        rooms.entry(room.clone()).or_default().add(number, name.clone());
        Ok(Presence { census: Arc::clone(self), room: room.clone(), name, number })
    }

    /// Somebody has come or gone in another process. Returns how many are in the room then; `None` where
    /// all processes, or threads, share this census.
    pub fn arrived(&self, room: &RoomName, note: &Note) -> Option<usize> {
        if !self.apart {
            return None;
        }
        let mut rooms = self.rooms();
        match note.came {
            Came::In => rooms.entry(room.clone()).or_default().add(note.number, note.name.clone()),
            Came::Out => remove(&mut rooms, room, note.number),
        }
        Some(rooms.get(room).map_or(0, |room| room.members))
    }

    /// All figures in the text format of Prometheus, version 0.0.4.
    pub fn metrics(&self, slow: &PolicyCounts) -> String {
        let read = |counter: &Counter| counter.get() as u64;
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, samples: &[(&str, u64)]| {
            text +=
                &format!("# HELP regatta_hub_{name} {help}\n# TYPE regatta_hub_{name} {kind}\n");
            for (labels, value) in samples {
                text += &format!("regatta_hub_{name}{labels} {value}\n");
            }
        };
        family("members", "gauge", "Members that are connected.", &[("", read(&self.members))]);
        if !self.apart {
            let rooms = self.rooms().len() as u64;
            family("rooms", "gauge", "Rooms in which somebody is.", &[("", rooms)]);
        }
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
        let mut rooms = self.census.rooms();
        self.census.members.take_back();
        remove(&mut rooms, &self.room, self.number);
    }
}

impl Room {
    fn add(&mut self, number: usize, name: Option<Arc<str>>) {
        self.members += 1;
        self.names.extend(name.map(|name| (number, name)));
    }
}

fn remove(rooms: &mut HashMap<RoomName, Room>, room: &RoomName, number: usize) {
    let Some(here) = rooms.get_mut(room) else { return };
    here.members -= 1;
    here.names.remove(&number);
    if here.members == 0 {
        rooms.remove(room);
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
        assert_eq!(census.rooms().len(), 2);
        drop((a, b, blue));
        assert!(census.members.get() == 0 && census.rooms().is_empty());
        assert_eq!((census.entered.get(), census.refused.get()), (5, 3));
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
            (names(&other, 9), &other.note(Came::In).name, &silent.note(Came::Out).name),
            ((1, "c".into()), &Some("c".into()), &None)
        );
    }

    #[test]
    fn metrics_are_families_with_help_and_type() {
        let census = Arc::new(Census::default());
        let _in = census.enter(&RoomName::LOBBY, None, &Limits::default()).unwrap();
        census.deliveries.add(7);
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

    #[test]
    fn processes_share_what_is_counted_and_not_their_rooms() {
        let all: Vec<Counter> = (0..7).map(|_| Counter::default()).collect();
        let process = || {
            let mut all = all.iter().cloned();
            Arc::new(Census::shared(|| all.next().ok_or("too many are made")).unwrap())
        };
        let (one, other) = (process(), process());
        let limits = Limits { members: 2, ..Limits::default() };
        let _lobby = one.enter(&RoomName::LOBBY, None, &limits).unwrap();
        let red = other.enter(&RoomName::of("red"), None, &limits).unwrap();
        assert_eq!(one.enter(&RoomName::LOBBY, None, &limits).unwrap_err(), Full::Hub);
        drop(red);
        let _lobby = one.enter(&RoomName::LOBBY, None, &limits).unwrap();
        other.deliveries.add(7);
        let text = one.metrics(&PolicyCounts::default());
        for line in [
            "regatta_hub_members 2",
            "regatta_hub_members_total 3",
            "regatta_hub_refused_total 1",
            "regatta_hub_deliveries_total 7",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} in\n{text}");
        }
        assert!(!text.contains("regatta_hub_rooms"), "{text}");
    }

    #[test]
    fn a_process_knows_the_members_of_others_from_what_they_post() {
        let entered = Counter::default();
        let process = || {
            // All are the same counter: none of the others matters here.
            Arc::new(Census::shared(|| Ok::<_, ()>(entered.clone())).unwrap())
        };
        let (one, other) = (process(), process());
        let (red, limits) = (RoomName::of("red"), Limits::default());
        let a = one.enter(&red, Some("a"), &limits).unwrap();
        assert_eq!(other.arrived(&red, &a.note(Came::In)), Some(1));
        let b = other.enter(&red, Some("b"), &limits).unwrap();
        assert_eq!(b.here(9), (2, vec!["a".into(), "b".into()]), "in the order in which they came");
        assert_eq!(one.arrived(&red, &b.note(Came::In)), Some(2));
        let gone = a.note(Came::Out);
        drop(a);
        assert_eq!(other.arrived(&red, &gone), Some(1));
        assert_eq!(b.here(9), (1, vec!["b".into()]));
        let gone = b.note(Came::Out);
        drop(b);
        assert_eq!(one.arrived(&red, &gone), Some(0));
        assert!(one.rooms().is_empty() && other.rooms().is_empty());
        let shared = Arc::new(Census::default());
        assert_eq!(shared.arrived(&red, &gone), None, "its threads know all of them");
    }
}
