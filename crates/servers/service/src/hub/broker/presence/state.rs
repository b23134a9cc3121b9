//! The members of one node in one room, and what the members of the room learn of a change.

use crate::hub::{census::Person, message::Change};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

/// Maximum number of members of a node that are listed in a room. All are counted.
pub const MOST_LISTED: usize = 1_000;
/// Bytes of names, users and claims from which on no more members are listed.
const LISTED_BYTES: usize = 48 << 10;
/// The same, for each member.
const EACH: usize = 40;
/// Maximum length of a stored state, in bytes: what JSON may make of [`LISTED_BYTES`].
const LONGEST: usize = 512 << 10;
/// Maximum number of changes that members learn one by one. With more at once, they get a new list.
pub const MOST_EVENTS: usize = 100;

/// The members of one node in one room.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// A higher one is newer. 0: none was announced.
    pub version: u64,
    pub count: usize,
    /// Members that come later have this place or a higher one.
    pub next: usize,
    /// The first ones, by their places.
    pub listed: Arc<BTreeMap<usize, Arc<Person>>>,
}

/// That somebody has joined or left, with the place and who it is, if that is known.
#[derive(Clone, Debug)]
pub struct Event {
    pub change: Change,
    pub member: Option<(usize, Arc<Person>)>,
}

impl Event {
    /// Its name, if it has one that is known.
    pub fn name(&self) -> Option<&Arc<str>> {
        self.member.as_ref()?.1.name.as_ref()
    }
}

/// A member, in JSON: its place, its name, its user, what its token says about it, and the number of its connection, if that may
/// be in several rooms.
#[derive(Debug, Serialize, Deserialize)]
pub struct Listed<'a>(
    pub usize,
    Option<Cow<'a, str>>,
    Option<Cow<'a, str>>,
    #[serde(borrow)] Option<&'a RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")] Option<usize>,
);

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    version: u64,
    count: usize,
    next: usize,
    #[serde(borrow)]
    members: Vec<Listed<'a>>,
}

impl<'a> Listed<'a> {
    pub fn of(place: usize, person: &'a Person) -> Listed<'a> {
        let name = person.name.as_deref().map(Cow::Borrowed);
        let user = person.user.as_deref().map(Cow::Borrowed);
        Listed(place, name, user, person.info.as_deref(), person.connection)
    }

    pub fn person(&self) -> Arc<Person> {
        let Listed(_, name, user, info, connection) = self;
        Arc::new(Person {
            user: user.as_deref().map(Into::into),
            info: info.map(ToOwned::to_owned),
            name: name.as_deref().map(Into::into),
            connection: *connection,
        })
    }
}

/// About the length of a member, in bytes.
pub fn length(person: &Person) -> usize {
    let info = person.info.as_ref().map_or(0, |info| info.get().len());
    EACH + person.name.as_ref().map_or(0, |name| name.len()) + person.user().len() + info
}

impl State {
    /// So many members, of which these are the first ones. All places so far are below `next`.
    pub fn of(count: usize, next: usize, people: Vec<(usize, Arc<Person>)>) -> State {
        let mut bytes = 0;
        let fits = |(_, person): &(usize, Arc<Person>)| {
            bytes += length(person);
            bytes <= LISTED_BYTES
        };
        let listed = people.into_iter().take(MOST_LISTED).take_while(fits).collect();
        State { version: 0, count, next, listed: Arc::new(listed) }
    }

    /// Whether it may be of a hub.
    pub fn is_sound(&self) -> bool {
        let are_below = self.listed.last_key_value().is_none_or(|(place, _)| *place < self.next);
        let are_few = self.listed.len() <= self.count.min(MOST_LISTED);
        are_below && are_few && u32::try_from(self.count).is_ok()
    }

    /// Its form at the broker.
    pub fn to_json(&self) -> String {
        let members = self.listed.iter().map(|(place, person)| Listed::of(*place, person));
        let State { version, count, next, .. } = *self;
        let stored = Stored { version, count, next, members: members.collect() };
        serde_json::to_string(&stored).expect("it has a form in JSON")
    }

    /// Reads it. `None`: no hub of this version has written it.
    pub fn read(bytes: &[u8]) -> Option<State> {
        if bytes.len() > LONGEST {
            return None;
        }
        let Stored { version, count, next, members } = serde_json::from_slice(bytes).ok()?;
        let listed = members.iter().map(|one| (one.0, one.person())).collect();
        let state = State { version, count, next, listed: Arc::new(listed) };
        (version > 0 && state.is_sound()).then_some(state)
    }

    /// What has happened since `before`. The count changes by one with each event.
    ///
    /// # Errors
    /// More than [`MOST_EVENTS`] have happened. Returns only those of members that are known.
    pub fn events_since(&self, before: &State) -> Result<Vec<Event>, Vec<Event>> {
        let event = |change, (place, person): (&usize, &Arc<Person>)| Event {
            change,
            member: Some((*place, Arc::clone(person))),
        };
        // The same client may come back in this moment.
        let left = before.listed.iter().filter(|(place, _)| !self.listed.contains_key(place));
        // A lower place was given before: it was not listed until there was room for it.
        let joined = self.listed.range(before.next..);
        let left = left.map(|one| event(Change::Left, one));
        let joined = joined.map(|one| event(Change::Joined, one));
        let mut events: Vec<Event> = left.chain(joined).take(2 * MOST_LISTED).collect();
        let listed: i64 = events.iter().map(|event| event.change.step()).sum();
        let other = self.count as i64 - before.count as i64 - listed;
        if events.len() as u64 + other.unsigned_abs() > MOST_EVENTS as u64 {
            return Err(events);
        }
        let change = if other > 0 { Change::Joined } else { Change::Left };
        events.extend((0..other.abs()).map(|_| Event { change, member: None }));
        Ok(events)
    }
}

impl Change {
    /// By how much it changes a count.
    pub fn step(self) -> i64 {
        match self {
            Change::Joined => 1,
            Change::Left => -1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn state(count: usize, next: usize, numbers: &[usize]) -> State {
        let person = |number: &usize| {
            let name = Some(format!("n{number}").into());
            (*number, Arc::new(Person { name, ..Person::default() }))
        };
        State { version: 1, ..State::of(count, next, numbers.iter().map(person).collect()) }
    }

    fn shown(before: &State, after: &State) -> Vec<String> {
        let events = after.events_since(before).unwrap();
        let text = |event: Event| format!("{:?} {:?}", event.change, event.name());
        events.into_iter().map(text).collect()
    }

    #[test]
    fn members_learn_who_has_joined_and_left() {
        let (none, two) = (State::default(), state(2, 8, &[3, 7]));
        assert_eq!(shown(&none, &two), ["Joined Some(\"n3\")", "Joined Some(\"n7\")"]);
        assert_eq!(
            shown(&two, &state(2, 9, &[7, 8])),
            ["Left Some(\"n3\")", "Joined Some(\"n8\")"]
        );
        assert_eq!(shown(&two, &none), ["Left Some(\"n3\")", "Left Some(\"n7\")"]);
        assert!(shown(&two, &two).is_empty());
    }

    #[test]
    fn a_member_that_was_not_listed_before_has_not_joined() {
        let (before, after) = (state(3, 9, &[1, 2]), state(2, 9, &[2, 3]));
        assert_eq!(shown(&before, &after), ["Left Some(\"n1\")"]);
        assert_eq!(shown(&after, &state(4, 9, &[2, 3])), ["Joined None", "Joined None"]);
        assert_eq!(shown(&state(4, 9, &[2]), &state(3, 9, &[2])), ["Left None"]);
    }

    #[test]
    fn too_many_changes_at_once_are_no_events() {
        let none = State::default();
        assert_eq!(state(100, 9, &[1]).events_since(&none).unwrap().len(), 100);
        let known = state(101, 9, &[1]).events_since(&none).unwrap_err();
        assert_eq!(known.len(), 1);
    }

    #[test]
    fn lists_are_bounded() {
        let person = |number: usize, length: usize| {
            let name = Some("x".repeat(length).into());
            (number, Arc::new(Person { name, ..Person::default() }))
        };
        let of = |length: usize| {
            State::of(2_000, 2_000, (0..2_000).map(|n| person(n, length)).collect())
        };
        assert_eq!(of(1).listed.len(), MOST_LISTED);
        assert_eq!(of(128).listed.len(), LISTED_BYTES / (EACH + 128));
        assert!(of(128).to_json().len() < LONGEST && of(128).is_sound());
    }

    #[test]
    fn a_state_comes_back_as_it_was_stored() {
        let info = RawValue::from_string(r#"{"a":[1]}"#.to_owned()).ok();
        let person = Person {
            user: Some("u\"".into()),
            info,
            name: Some("\u{fc}".into()),
            connection: Some(3),
        };
        let stored = State { version: 4, ..State::of(9, 70, vec![(1, Arc::new(person))]) };
        let json = stored.to_json();
        let expected = r#"{"version":4,"count":9,"next":70,"members":[[1,"ü","u\"",{"a":[1]},3]]}"#;
        assert_eq!(json, expected);
        let read = State::read(json.as_bytes()).unwrap();
        assert_eq!((read.to_json(), read.listed[&1].number(1)), (json, 3));
        assert_eq!(state(1, 3, &[2]).to_json().matches(",null]").count(), 1, "no connection");
    }

    #[test]
    fn a_client_that_comes_back_leaves_before_it_joins() {
        let client = |place| {
            let person = Person { connection: Some(1 << 48), ..Person::default() };
            State::of(1, place + 1, vec![(place, Arc::new(person))])
        };
        let events = client(7).events_since(&client(3)).unwrap();
        let all: Vec<_> =
            events.iter().map(|one| (one.change, one.member.as_ref().unwrap().0)).collect();
        assert_eq!(all, [(Change::Left, 3), (Change::Joined, 7)]);
        assert!(client(3).events_since(&client(3)).unwrap().is_empty(), "it stays");
    }

    #[test]
    fn what_no_hub_has_stored_is_refused() {
        for text in [
            "",
            "1",
            r#"{"version":0,"count":0,"next":0,"members":[]}"#,
            r#"{"version":1,"count":0,"next":0,"members":[[1,null,null,null]]}"#,
            r#"{"version":1,"count":-1,"next":0,"members":[]}"#,
            r#"{"version":1,"count":4294967296,"next":0,"members":[]}"#,
            r#"{"version":1,"count":1,"next":0,"members":[[1,2,null,null]]}"#,
            r#"{"version":1,"count":1,"next":1,"members":[[1,null,null,null]]}"#,
        ] {
            assert!(State::read(text.as_bytes()).is_none(), "{text}");
        }
        let long =
            format!(r#"{{"version":1,"count":0,"next":0,"members":[]{}}}"#, " ".repeat(LONGEST));
        assert!(State::read(long.as_bytes()).is_none());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            State::read(&bytes);
        }

        #[test]
        fn the_events_lead_from_one_count_to_the_other(
            before in prop::collection::btree_set(0_usize..40, 0..9), more in 0_usize..5,
            after in prop::collection::btree_set(0_usize..40, 0..9), others in 0_usize..5,
        ) {
            let list = |set: std::collections::BTreeSet<usize>| set.into_iter().collect::<Vec<_>>();
            let (one, other) = (list(before), list(after));
            let one = state(one.len() + more, 20, &one);
            let other = state(other.len() + others, 40, &other);
            let events = other.events_since(&one).unwrap();
            let sum: i64 = events.iter().map(|event| event.change.step()).sum();
            prop_assert_eq!(one.count as i64 + sum, other.count as i64);
        }
    }
}
