//! Which node of a cluster is asked for its slots, when, and whose view counts. Without sockets and clocks.
//!
//! A view is adopted if it is of the same cluster as the last one that was adopted, it assigns slots, its node finds that
//! the cluster works, and its epoch is not lower than that of the last one: a node that is cut off reports what it last knew
//! (redis#3138). Otherwise the next node is asked. If no node finds that the cluster works, the view with the highest epoch
//! counts.
//!
//! One question is in flight at a time for the whole process. While nothing changes, the pauses between them double: the
//! questions of many clients have brought clusters down (valkey-go#140). A command for all nodes needs a view that was
//! asked for after it arrived ([`Topology::want_fresh`]): then the pauses are short.

use super::{
    view::View,
    watch::{News, Watch},
};
use regatta_keyspace::map::{Cluster, MAX_MASTERS, PLACES};
use std::{
    collections::{BTreeSet, VecDeque},
    net::SocketAddr,
    time::{Duration, Instant},
};

/// The shortest pause between two questions, and the longest while there is a reason to ask.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The pause between two questions for commands that need a view of now.
const FRESH_PAUSE: Duration = Duration::from_millis(20);

/// Interval between questions without a reason, which is changed by up to a fifth at random.
const INTERVAL: Duration = Duration::from_secs(30);

/// Maximum number of nodes without slots that have a place.
const MAX_GUESTS: usize = 16;

/// The present slots, and when to ask for newer ones.
#[derive(Debug)]
pub(crate) struct Topology {
    /// The nodes that were configured.
    seeds: Vec<SocketAddr>,
    /// The nodes of the last view, also those without slots.
    known: BTreeSet<SocketAddr>,
    /// The numbers of the last question, of the last one whose view was adopted, and of the first one that a command needs.
    asked: u64,
    confirmed: u64,
    needed: u64,
    /// The node that was asked last.
    asked_node: Option<SocketAddr>,
    /// What people learn of it.
    watch: Watch,
    /// All candidates have failed since this was looked at.
    have_all_failed: bool,
    /// What is at each place for a master: its name in the cluster, and its address. A guest has no name.
    places: Vec<Option<(Vec<u8>, SocketAddr)>>,
    /// Nodes that have a place although they own no slots, because slots are being moved to them. The oldest is first.
    guests: VecDeque<SocketAddr>,
    /// The last view that was adopted.
    adopted: Option<View>,
    is_asking: bool,
    /// There is a reason to ask, and which node to ask first.
    is_wanted: bool,
    first: Option<SocketAddr>,
    /// The number of the next candidate, and how many have not given a view that was adopted.
    next: usize,
    failed: usize,
    /// The best view of a node that finds that the cluster does not work.
    fallback: Option<View>,
    not_before: Option<Instant>,
    /// The same for a question that a command needs.
    fresh_not_before: Option<Instant>,
    pause: Duration,
    again_at: Option<Instant>,
    /// Why there is no view.
    why: String,
}

/// Slots and nodes that replace those before.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) cluster: Cluster,
    /// The name for messages and the address of the node at each place. A free place has an empty name.
    pub(crate) nodes: Vec<(String, SocketAddr)>,
}

impl Topology {
    pub(crate) fn new(seeds: Vec<SocketAddr>) -> Self {
        Topology {
            known: seeds.iter().copied().collect(),
            asked: 0,
            confirmed: 0,
            needed: 0,
            asked_node: None,
            watch: Watch::default(),
            have_all_failed: false,
            seeds,
            places: vec![None; MAX_MASTERS],
            guests: VecDeque::new(),
            adopted: None,
            is_asking: false,
            is_wanted: true,
            first: None,
            next: 0,
            failed: 0,
            fallback: None,
            not_before: None,
            fresh_not_before: None,
            pause: PAUSE,
            again_at: None,
            why: "no node was asked yet".into(),
        }
    }

    /// Other nodes are configured.
    pub(crate) fn set_seeds(&mut self, seeds: Vec<SocketAddr>) {
        if !seeds.is_empty() {
            self.seeds = seeds;
        }
    }

    /// There is a reason to ask. `first`: the node that knows best.
    pub(crate) fn want(&mut self, first: Option<SocketAddr>) {
        self.is_wanted = true;
        self.first = first.filter(|first| self.known.contains(first)).or(self.first);
    }

    /// A command needs a view that is asked for from now on. Returns the number that [`Topology::confirmed`] must reach.
    pub(crate) fn want_fresh(&mut self) -> u64 {
        // A question that is in flight was asked before.
        self.needed = self.asked + 1;
        self.needed
    }

    /// The number of the last question whose view was adopted.
    pub(crate) fn confirmed(&self) -> u64 {
        self.confirmed
    }

    fn needs_fresh(&self) -> bool {
        self.confirmed < self.needed
    }

    /// When [`Topology::ask`] returns a node. `None`: now, or once the question in flight is over.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.is_wanted {
            _ if self.is_asking => None,
            _ if self.needs_fresh() => self.fresh_not_before,
            true => self.not_before,
            false => self.again_at,
        }
    }

    /// Returns the node to ask, if it is time to. The caller must report the outcome.
    pub(crate) fn ask(&mut self, now: Instant) -> Option<SocketAddr> {
        if self.is_asking || self.due().is_some_and(|due| now < due) {
            return None;
        }
        let mut candidates = self.candidates();
        if self.needs_fresh() && self.failed == 0 {
            // A replica may learn late that slots have moved.
            let owners: BTreeSet<_> = self.ranges().iter().map(|range| range.address).collect();
            if !owners.is_empty() {
                candidates = owners.into_iter().collect();
            }
        }
        let next = candidates[self.next % candidates.len()];
        self.next += usize::from(self.first.is_none());
        (self.is_asking, self.is_wanted) = (true, false);
        self.asked += 1;
        self.asked_node = Some(self.first.take().unwrap_or(next));
        self.asked_node
    }

    /// All nodes that can be asked.
    fn candidates(&self) -> Vec<SocketAddr> {
        let more = self.seeds.iter().filter(|seed| !self.known.contains(seed));
        self.known.iter().chain(more).copied().collect()
    }

    /// A node was asked, and this is its view, or why there is none. Returns what changes. `jitter`: a random number from
    /// 0 to 1.
    pub(crate) fn answered(
        &mut self,
        answer: Result<View, String>,
        now: Instant,
        jitter: f64,
    ) -> Option<Change> {
        self.is_asking = false;
        self.again_at = Some(now + INTERVAL.mul_f64(0.8 + 0.4 * jitter));
        let is_last = self.failed + 1 >= self.candidates().len();
        let adopted = self.chosen(answer, is_last);
        let Some(view) = adopted else {
            self.failed = if is_last { 0 } else { self.failed + 1 };
            self.have_all_failed |= is_last;
            self.watch.failed(now, is_last, &self.why);
            // The next node is asked soon; all of them again after a while.
            self.is_wanted = true;
            if is_last {
                self.wait(now, true);
                self.fresh_not_before = self.not_before;
            } else {
                self.not_before = Some(now + PAUSE);
                self.fresh_not_before = Some(now + FRESH_PAUSE);
            }
            return None;
        };
        self.failed = 0;
        self.fallback = None;
        self.confirmed = self.asked;
        self.watch.adopted(now, self.asked_node, &view);
        self.known.clone_from(&view.addresses);
        self.known.extend(view.ranges.iter().map(|range| range.address));
        // A node that the cluster has forgotten, or that is down, gets no requests and no password any longer.
        let guests = self.guests.len();
        self.guests.retain(|guest| view.masters.contains(guest));
        let before = self.adopted.replace(view);
        let has_changed = guests != self.guests.len()
            || before.is_none_or(|before| before.ranges != self.ranges());
        self.wait(now, !has_changed);
        has_changed.then(|| self.change())
    }

    fn ranges(&self) -> &[super::view::Range] {
        self.adopted.as_ref().map_or(&[], |view| &view.ranges)
    }

    /// Returns the view to adopt. `is_last`: all other nodes were asked.
    fn chosen(&mut self, answer: Result<View, String>, is_last: bool) -> Option<View> {
        let epoch = self.adopted.as_ref().map_or(0, |view| view.epoch);
        let node = self.asked_node.map_or_else(String::new, |node| format!("node {node}: "));
        let is_other = |view: &View| {
            self.adopted.as_ref().is_some_and(|adopted| !view.is_of_cluster_of(adopted))
        };
        match answer {
            Err(why) => self.why = why,
            Ok(view) if is_other(&view) => {
                self.why = format!("{node}it is of another cluster");
                self.watch.is_foreign(self.asked_node);
            }
            Ok(view) if view.epoch < epoch => {
                self.why =
                    format!("{node}the epoch of its view is {}, less than {epoch}", view.epoch);
            }
            Ok(view) if view.is_ok => return Some(view),
            Ok(view) => {
                self.why = format!("{node}it finds that the cluster does not work");
                let is_better = |other: &View| view.epoch >= other.epoch;
                if self.fallback.as_ref().is_none_or(is_better) {
                    self.fallback = Some(view);
                }
            }
        }
        if is_last { self.fallback.take() } else { None }
    }

    fn wait(&mut self, now: Instant, longer: bool) {
        self.not_before = Some(now + self.pause);
        self.fresh_not_before = Some(now + FRESH_PAUSE);
        self.pause = if longer { (2 * self.pause).min(LONGEST_PAUSE) } else { PAUSE };
    }

    /// Whether any node is known that can be asked.
    pub(crate) fn has_candidates(&self) -> bool {
        !(self.seeds.is_empty() && self.known.is_empty())
    }

    /// The last view that was adopted.
    pub(crate) fn adopted(&self) -> Option<&View> {
        self.adopted.as_ref()
    }

    /// Why there is no view.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }

    /// Returns what people should learn since the last call.
    pub(crate) fn take_news(&mut self) -> Vec<News> {
        self.watch.take_news()
    }

    /// Returns whether all candidates have failed since the last call: their names may have other addresses now.
    pub(crate) fn have_all_failed(&mut self) -> bool {
        std::mem::take(&mut self.have_all_failed)
    }

    /// The epoch of the last view, and when it was asked for the last time that one was adopted. `None`: there is none.
    pub(crate) fn last_view(&self) -> Option<(u64, Instant)> {
        Some((self.adopted.as_ref()?.epoch, self.watch.adopted_at()?))
    }

    /// Gives places to all masters without slots, to which slots may be being moved. Returns what changes, and whether all
    /// have a place.
    pub(crate) fn admit_all(&mut self) -> (Option<Change>, bool) {
        let owners: BTreeSet<_> = self.ranges().iter().map(|range| range.address).collect();
        let masters = self.adopted.as_ref().map_or_else(BTreeSet::new, |view| view.masters.clone());
        let all: Vec<SocketAddr> = masters.difference(&owners).copied().collect();
        let change = all.iter().take(MAX_GUESTS).filter_map(|guest| self.admit(*guest)).last();
        (change, all.len() <= MAX_GUESTS)
    }

    /// Gives a place to a master without slots, to which some are being moved. `None`: it has one, or the last view did not
    /// contain it as a master that works.
    pub(crate) fn admit(&mut self, guest: SocketAddr) -> Option<Change> {
        let is_known = self.adopted.as_ref().is_some_and(|view| view.masters.contains(&guest));
        if !is_known || self.guests.contains(&guest) {
            return None;
        }
        if self.guests.len() >= MAX_GUESTS {
            self.guests.pop_front();
        }
        self.guests.push_back(guest);
        Some(self.change())
    }

    /// Assigns places. A master keeps its place, and so does one that was a guest.
    fn change(&mut self) -> Change {
        let ranges = self.adopted.as_ref().map_or(&[][..], |view| &view.ranges);
        let masters: BTreeSet<(&[u8], SocketAddr)> =
            ranges.iter().map(|range| (&range.id[..], range.address)).collect();
        let is_master = |at: &SocketAddr| masters.iter().any(|(_, address)| address == at);
        self.guests.retain(|guest| !is_master(guest));
        for (id, address) in &masters {
            let is_it = |place: &Option<(Vec<u8>, SocketAddr)>| {
                place
                    .as_ref()
                    .is_some_and(|(known, at)| known == id || known.is_empty() && at == address)
            };
            if let Some(place) = self.places.iter().position(is_it) {
                self.places[place] = Some((id.to_vec(), *address));
            }
        }
        let guests = &self.guests;
        for place in &mut self.places {
            place.take_if(|(id, at)| match id.is_empty() {
                true => !guests.contains(at),
                false => masters.iter().all(|(master, _)| master != id),
            });
        }
        let no_id: &[u8] = b"";
        let all = masters.iter().copied().chain(guests.iter().map(|guest| (no_id, *guest)));
        for (id, address) in all {
            let is_it = |(known, at): &(Vec<u8>, SocketAddr)| known == id && *at == address;
            if !self.places.iter().flatten().any(is_it)
                && let Some(free) = self.places.iter_mut().find(|place| place.is_none())
            {
                *free = Some((id.to_vec(), address));
            }
        }
        let place_of = |id: &[u8]| {
            let is_it =
                |place: &Option<(Vec<u8>, _)>| place.as_ref().is_some_and(|(of, _)| of == id);
            self.places.iter().position(is_it)
        };
        let owned = ranges.iter().filter_map(|range| {
            Some((range.first, range.last, place_of(&range.id)?, &range.id[..]))
        });
        Change { cluster: Cluster::new(owned), nodes: named(&self.places) }
    }
}

/// The names and addresses of places, and of the last one, which is never used.
fn named(places: &[Option<(Vec<u8>, SocketAddr)>]) -> Vec<(String, SocketAddr)> {
    let name = |place: &Option<(Vec<u8>, SocketAddr)>| match place {
        Some((_, address)) => (address.to_string(), *address),
        None => nobody(),
    };
    places.iter().map(name).chain(std::iter::once(nobody())).collect()
}

/// The nodes of a cluster of which nothing is known.
pub(crate) fn no_nodes() -> Vec<(String, SocketAddr)> {
    vec![nobody(); PLACES]
}

/// A free place.
fn nobody() -> (String, SocketAddr) {
    (String::new(), SocketAddr::from(([0, 0, 0, 0], 0)))
}

#[cfg(test)]
mod tests;
