//! What a node hears of the members of others: notes, and answers of the broker. A state is replaced only by one of a newer
//! version, so it does not matter in which order these come.

use super::{
    living::REFRESH,
    machine::Machine,
    note::{Changed, Note},
    state::State,
};
use regatta_engine::RoomName;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

impl Machine {
    /// Another node, or this one, has published something.
    pub fn hears(&mut self, payload: &[u8], now: Instant) {
        let Some(note) = Note::read(payload) else {
            self.ignored += 1;
            return;
        };
        if note.node == self.node || self.up_at.is_none() {
            return;
        }
        let known = self.peers.get(&note.node).map(|peer| peer.number);
        let comes_again = |last: u64| {
            #[cfg(test)]
            if self.fault == super::machine::Fault::AppliesTwice {
                return false;
            }
            // A beat has the number of the note before it.
            note.number < last || note.number == last && note.change.is_some()
        };
        if known.flatten().is_some_and(comes_again) || self.has_ended(note.node, note.life) {
            self.repeated += 1;
            return;
        }
        if !self.meets(note.node, note.life, now) {
            self.ignored += 1;
            return;
        }
        self.clock += 1;
        let own = u64::from(note.change.is_some());
        // Of a node whose notes were not heard before, some may be lost, too.
        let has_hole = known.flatten().unwrap_or(0) + own < note.number;
        if let Some(peer) = self.peers.get_mut(&note.node) {
            (peer.number, peer.heard) = (Some(note.number), now);
        }
        self.shows(note.node, now);
        if has_hole {
            // Once for all nodes: after a connection, notes of each are missing. By then all have beaten.
            self.missed = self.clock;
            self.rereads_at.get_or_insert(now + REFRESH);
        }
        if let Some(change) = &note.change {
            let name = RoomName::of(&change.room);
            self.follows(note.node, &name, change);
            self.settles(&name, now);
        }
    }

    /// The members of another node in a room have changed.
    fn follows(&mut self, node: u64, name: &RoomName, change: &Changed<'_>) {
        let stamp = self.clock;
        let Some(room) = self.rooms.get_mut(name).filter(|room| room.has_interest()) else {
            return;
        };
        let known = room.foreign.get(&node).map_or(0, |before| before.state.version);
        let is_next = change.from == Some(known);
        #[cfg(test)]
        let is_next = is_next || self.fault == super::machine::Fault::AppliesTwice;
        self.suspects.remove(&(name.clone(), node));
        if change.to <= known && !is_next {
            if let Some(before) = room.foreign.get_mut(&node) {
                before.stamp = stamp;
            }
            return;
        }
        let none = State::default();
        let before = room.foreign.get(&node).map_or(&none, |before| &before.state);
        match change.applied_to(before).filter(|_| is_next) {
            Some(after) => {
                let notices = room.set(node, Some(after), true, stamp);
                self.notifies(name, notices);
            }
            None => {
                self.reads.insert((name.clone(), Some(node)));
            }
        }
    }

    /// The answer to a read: what nodes have stored in a room, with their lives.
    pub fn has_read_all(
        &mut self,
        name: &RoomName,
        stamp: u64,
        stored: &[(u64, u64, &[u8])],
        now: Instant,
    ) {
        // It is of no use if another one follows, or if the room was left meanwhile.
        if self.rooms.get(name).is_none_or(|room| room.awaits != stamp) {
            return;
        }
        let mut newest: BTreeMap<u64, (u64, &[u8])> = BTreeMap::new();
        for (node, life, value) in stored {
            if self.has_ended(*node, *life) {
                self.removes(name.clone(), *node, *life);
            } else if *node != self.node && self.meets(*node, *life, now) {
                let before = newest.insert(*node, (*life, *value));
                if let Some((before, _)) = before {
                    self.removes(name.clone(), *node, before);
                }
            }
        }
        for (node, (_, value)) in &newest {
            self.stored(name, *node, value, stamp);
        }
        let Some(room) = self.rooms.get_mut(name) else { return };
        (room.read, room.awaits) = (Some(self.clock), 0);
        let found: BTreeSet<u64> = newest.keys().copied().collect();
        let missing: Vec<u64> =
            room.foreign.keys().filter(|node| !found.contains(node)).copied().collect();
        missing.into_iter().for_each(|node| self.misses(name, node, stamp, now));
        if newest.keys().any(|node| self.peers.get(node).is_some_and(|peer| !peer.lives)) {
            self.checks(now);
        }
        self.settles(name, now);
    }

    /// The answer to a read: what a life of a node has stored in a room; `None`: nothing.
    pub fn has_read_of(
        &mut self,
        (name, stamp): (&RoomName, u64),
        (node, life): (u64, u64),
        stored: Option<&[u8]>,
        now: Instant,
    ) {
        if !self.rooms.get(name).is_some_and(|room| room.has_interest()) {
            return;
        }
        match self.peers.get(&node) {
            Some(peer) if peer.may_last(life) => {}
            Some(peer) if peer.life > life => {
                self.reads.insert((name.clone(), Some(node)));
                return;
            }
            _ => return,
        }
        match stored {
            Some(value) => self.stored(name, node, value, stamp),
            None => self.misses(name, node, stamp, now),
        }
        self.settles(name, now);
    }

    /// A node has stored this.
    fn stored(&mut self, name: &RoomName, node: u64, value: &[u8], stamp: u64) {
        let Some(state) = State::read(value) else {
            self.ignored += 1;
            return;
        };
        self.suspects.remove(&(name.clone(), node));
        let is_shown = self.peers.get(&node).is_some_and(|peer| peer.lives);
        let Some(room) = self.rooms.get_mut(name) else { return };
        let before = room.foreign.get(&node);
        let is_newer = before.is_none_or(|before| before.state.version < state.version);
        #[cfg(test)]
        let is_newer = is_newer || self.fault == super::machine::Fault::StaleRead;
        if is_newer {
            let notices = room.set(node, Some(state), is_shown, stamp);
            self.notifies(name, notices);
        }
    }

    /// A node has stored nothing, when a read with this stamp was answered.
    fn misses(&mut self, name: &RoomName, node: u64, stamp: u64, now: Instant) {
        let is_fresh = self.is_fresh(node, now);
        let Some(room) = self.rooms.get_mut(name) else { return };
        // What came after the question is newer than the answer.
        let Some(before) = room.foreign.get(&node).filter(|one| one.stamp <= stamp) else { return };
        if is_fresh && before.is_shown {
            self.suspects.insert((name.clone(), node));
            return;
        }
        let notices = room.set(node, None, true, stamp);
        self.notifies(name, notices);
    }
}
