//! A room with members of this node: its members on all nodes, as members were last notified of them.

use super::state::{Event, State};
use regatta_engine::Ticket;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Instant,
};

/// Maximum number of names in a list of members.
const NAMES: usize = 100;

/// What all members of a room get.
#[derive(Clone, Debug)]
pub enum Notice {
    /// Somebody has joined or left at this node, and then there are so many members.
    Event { node: u64, event: Event, count: usize },
    /// So much has happened at this node that members get a list instead: this is for clients that get no lists.
    Events { node: u64, events: Vec<Event> },
    /// Some names, and how many members there are: for those members that have no list yet and whose places are below
    /// this one; or for all that have one.
    List { below: Option<usize>, names: Vec<Arc<str>>, count: usize },
}

/// The members of another node.
#[derive(Debug)]
pub(super) struct Foreign {
    pub state: State,
    /// The node lives, so members are notified of these.
    pub is_shown: bool,
    /// When it was last confirmed, in the order of what was sent and heard.
    pub stamp: u64,
}

#[derive(Debug, Default)]
pub(super) struct Room {
    pub local: State,
    /// What other nodes were sent of it.
    pub announced: State,
    /// It is not the same.
    pub is_changed: bool,
    /// It is sent again although it is the same.
    pub is_anew: bool,
    /// It waits to be sent.
    pub is_queued: bool,
    /// Something of this node may be at the broker.
    pub is_stored: bool,
    /// The number of the newest write.
    pub wrote: u64,
    pub written_at: Option<Instant>,
    pub foreign: BTreeMap<u64, Foreign>,
    /// When the members of the other nodes were last read on this connection, in the order of what was sent and heard.
    pub read: Option<u64>,
    /// The stamp of the newest read of them, if that is not answered; otherwise 0.
    pub awaits: u64,
    /// New members wait for their list, until then at most.
    pub list_until: Option<Instant>,
    /// Backends that wait until the members of all nodes are known, and until when at most.
    pub askers: VecDeque<(Ticket, Instant)>,
    /// How often the broker has refused something on this connection, and when that is tried again.
    pub refusals: u32,
    pub retries_at: Option<Instant>,
    /// When it was last tried again, or will be.
    pub tried_at: Option<Instant>,
}

impl Room {
    /// Whether the members of other nodes matter here.
    pub fn has_interest(&self) -> bool {
        self.local.count > 0 || !self.askers.is_empty()
    }

    /// Whether somebody waits, or something is tried again.
    pub fn has_deadline(&self) -> bool {
        self.list_until.is_some() || self.retries_at.is_some() || !self.askers.is_empty()
    }

    /// Whether nothing is left to do.
    pub fn is_idle(&self) -> bool {
        !self.has_interest() && !self.is_stored
    }

    /// The members of the other nodes that live.
    pub fn shown(&self) -> impl Iterator<Item = (u64, &State)> {
        let shown = self.foreign.iter().filter(|(_, one)| one.is_shown);
        shown.map(|(node, one)| (*node, &one.state))
    }

    /// The members of all nodes that live.
    pub fn count(&self) -> usize {
        self.local.count + self.shown().map(|(_, state)| state.count).sum::<usize>()
    }

    /// Nothing is known of the other nodes.
    pub fn forgets_others(&mut self) {
        self.foreign.clear();
        (self.read, self.awaits) = (None, 0);
    }

    /// Whether its members were not read since so much was sent and heard, and are not about to be.
    pub fn is_older_than(&self, stamp: u64) -> bool {
        // What is not answered yet was carried out after all that was heard before the answer.
        self.awaits == 0 && self.read.is_none_or(|read| read < stamp)
    }

    /// Whether the members of all nodes are known.
    pub fn is_settled(&self) -> bool {
        self.read.is_some() && self.foreign.values().all(|one| one.is_shown)
    }

    /// The list for new members, or for all others.
    pub fn list(&self, is_for_new: bool) -> Notice {
        let all =
            self.local.listed.values().chain(self.shown().flat_map(|(_, one)| one.listed.values()));
        let names = all.filter_map(|person| person.name.clone()).take(NAMES).collect();
        let below = is_for_new.then_some(self.local.next);
        Notice::List { below, names, count: self.count() }
    }

    /// What members get when the members of a node have changed from one state to the other, and the room has this one
    /// already.
    pub fn notices(&self, node: u64, before: &State, after: &State) -> Vec<Notice> {
        let events = match after.events_since(before) {
            Ok(events) => events,
            Err(events) => return vec![Notice::Events { node, events }, self.list(false)],
        };
        let mut count = (self.count() + before.count - after.count) as i64;
        let notice = |event: Event| {
            count += event.change.step();
            Notice::Event { node, event, count: count.max(0) as usize }
        };
        events.into_iter().map(notice).collect()
    }

    /// Replaces the members of a node; `None`: it has none. Returns what members get.
    pub fn set(
        &mut self,
        node: u64,
        state: Option<State>,
        is_shown: bool,
        stamp: u64,
    ) -> Vec<Notice> {
        let none = State::default();
        let after = state.filter(|state| state.count > 0);
        let new = after.clone().map(|state| Foreign { state, is_shown, stamp });
        let before = match new {
            Some(new) => self.foreign.insert(node, new),
            None => self.foreign.remove(&node),
        };
        let before = before.filter(|one| one.is_shown).map(|one| one.state);
        let after = after.filter(|_| is_shown);
        self.notices(node, before.as_ref().unwrap_or(&none), after.as_ref().unwrap_or(&none))
    }
}
