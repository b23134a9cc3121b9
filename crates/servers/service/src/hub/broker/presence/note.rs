//! What nodes publish for one another about their members.

use super::state::{Listed, MOST_EVENTS, State, length};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};

/// Maximum length of a note that is read, in bytes.
const LONGEST: usize = 256 << 10;
/// Bytes of members in a note from which on it has none: others read the state.
const MEMBER_BYTES: usize = 16 << 10;

/// What a node publishes: with a change of a room, or only that it is there.
#[derive(Debug, Serialize, Deserialize)]
pub struct Note<'a> {
    pub node: u64,
    /// How often the node has begun anew, because its liveness key was gone.
    pub life: u64,
    /// The number of its last note, this one included. The first one has 1.
    pub number: u64,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub change: Option<Changed<'a>>,
}

/// A change of a room.
#[derive(Debug, Serialize, Deserialize)]
pub struct Changed<'a> {
    pub room: String,
    /// The version of the state that it follows, 0 for an empty one; `None`: it has to be read.
    pub from: Option<u64>,
    /// The version of the new state.
    pub to: u64,
    pub count: usize,
    pub next: usize,
    #[serde(borrow)]
    pub came: Vec<Listed<'a>>,
    pub went: Vec<usize>,
}

impl<'a> Changed<'a> {
    /// The change from one state to another. `to` has the newer version.
    pub fn new(room: &str, from: &State, to: &'a State) -> Changed<'a> {
        let came = to.listed.iter().filter(|(place, _)| !from.listed.contains_key(place));
        let went = from.listed.keys().filter(|place| !to.listed.contains_key(place)).copied();
        let (came, went): (BTreeMap<_, _>, Vec<_>) = (came.collect(), went.collect());
        let bytes: usize = came.values().map(|person| length(person)).sum();
        let is_short = came.len() <= MOST_EVENTS && bytes <= MEMBER_BYTES;
        if !is_short {
            return Changed::unread(room, to);
        }
        let came = came.into_iter().map(|(place, person)| Listed::of(*place, person)).collect();
        Changed { from: Some(from.version), came, went, ..Changed::unread(room, to) }
    }

    /// Says that the state has to be read, unless its version is known.
    pub fn unread(room: &str, to: &State) -> Changed<'a> {
        let (room, came, went) = (room.to_owned(), Vec::new(), Vec::new());
        let State { version, count, next, .. } = *to;
        Changed { room, from: None, to: version, count, next, came, went }
    }

    /// The state that follows. `None`: no hub has written this.
    pub fn applied_to(&self, before: &State) -> Option<State> {
        let Changed { to: version, count, next, .. } = *self;
        let mut listed = before.listed.clone();
        if !(self.went.is_empty() && self.came.is_empty()) {
            let listed = Arc::make_mut(&mut listed);
            self.went.iter().for_each(|place| drop(listed.remove(place)));
            listed.extend(self.came.iter().map(|one| (one.0, one.person())));
        }
        let state = State { version, count, next, listed };
        state.is_sound().then_some(state)
    }
}

impl<'a> Note<'a> {
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("it has a form in JSON")
    }

    /// Reads it. `None`: no hub of this version has published it.
    pub fn read(bytes: &'a [u8]) -> Option<Note<'a>> {
        let bytes = Some(bytes).filter(|bytes| bytes.len() <= LONGEST)?;
        let note: Note<'a> = serde_json::from_slice(bytes).ok()?;
        let is_sound = |change: &Changed<'_>| change.to > 0 && change.room.len() <= 255;
        let is_known = note.life > 0 && note.change.as_ref().is_none_or(is_sound);
        is_known.then_some(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::census::Person;
    use proptest::prelude::*;

    fn state(version: u64, numbers: std::ops::Range<usize>) -> State {
        let person = |number| (number, Arc::new(Person::default()));
        let count = numbers.len();
        State { version, ..State::of(count, 500, numbers.map(person).collect()) }
    }

    #[test]
    fn a_note_leads_from_one_state_to_the_next() {
        let (before, after) = (state(3, 0..5), state(7, 2..9));
        let change = Some(Changed::new("a", &before, &after));
        let json = Note { node: 1, life: 2, number: 7, change }.to_json();
        assert_eq!(
            json,
            "{\"node\":1,\"life\":2,\"number\":7,\"change\":{\"room\":\"a\",\"from\":3,\"to\":7,\"count\":7,\
             \"next\":500,\"came\":[[5,null,null,null],[6,null,null,null],[7,null,null,null],\
             [8,null,null,null]],\"went\":[0,1]}}"
        );
        let note = Note::read(json.as_bytes()).unwrap();
        let applied = note.change.unwrap().applied_to(&before).unwrap();
        assert_eq!(applied.to_json(), after.to_json());
        let beat = Note { node: 1, life: 2, number: 7, change: None }.to_json();
        assert_eq!(beat, r#"{"node":1,"life":2,"number":7}"#);
        assert!(Note::read(beat.as_bytes()).unwrap().change.is_none());
    }

    #[test]
    fn a_long_change_has_to_be_read() {
        let none = State::default();
        assert_eq!(Changed::new("a", &none, &state(1, 0..100)).from, Some(0));
        let long = state(1, 0..101);
        let change = Changed::new("a", &none, &long);
        assert_eq!((change.from, change.came.len(), change.count), (None, 0, 101));
    }

    #[test]
    fn what_no_hub_has_published_is_refused() {
        for text in [
            "",
            "1",
            r#"{"node":1,"life":0,"number":7}"#,
            r#"{"node":1,"life":1}"#,
            r#"{"node":1,"life":1,"number":7,"change":{"room":"a","from":0,"to":0,"count":0,"next":0,"came":[],"went":[]}}"#,
        ] {
            assert!(Note::read(text.as_bytes()).is_none(), "{text}");
        }
        let text = r#"{"room":"a","from":0,"to":1,"count":0,"next":0,"came":[[1,null,null,null]],"went":[]}"#;
        let wrong: Changed<'_> = serde_json::from_str(text).unwrap();
        assert!(wrong.applied_to(&State::default()).is_none(), "more are listed than counted");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            Note::read(&bytes);
        }
    }
}
