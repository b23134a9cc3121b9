//! Which nodes live. Each has a liveness key, which expires unless it is prolonged. Once a key has expired, that *life* of
//! its node has ended, and never begins again: a node that finds that its own is gone begins another one, and sends all its
//! rooms anew. So what an ended life has stored may be removed at any time. Each connection begins a new life, too: its server
//! may lack what was stored or removed before, after a failover or a restart.

use super::{
    machine::{Command, Machine, Own, Peer, pause},
    note::Note,
};
use regatta_engine::RoomName;
use std::time::{Duration, Instant};

/// How long a liveness key lasts.
pub const LIVES: Duration = Duration::from_secs(10);
/// How often it is prolonged.
pub const REFRESH: Duration = Duration::from_secs(3);
/// How often the keys of the other nodes are looked for.
const CHECK: Duration = Duration::from_secs(2);
/// How long after a connection, or a new life of another node, members are kept that are not found: all nodes may be about
/// to send them anew.
const GRACE: Duration = Duration::from_secs(5);
/// If two lives in turn are shorter, the third one begins later.
const SHORT: Duration = Duration::from_secs(30);
/// After how long without a note the members of another node are not shown, whatever its key says: the clock of the broker
/// may have been set back. It beats as often as it prolongs its key, so that should be gone.
const UNHEARD: Duration = Duration::from_secs(12);
/// How long ended lives are remembered, at least if there are not too many nodes.
const ENDED: Duration = Duration::from_secs(900);
/// Maximum number of other nodes. Further ones are ignored.
const MOST_PEERS: usize = 256;
/// Maximum number of stored members of ended lives that wait to be removed. Others are found when their rooms are read.
const MOST_REMOVALS: usize = 10_000;

impl Machine {
    /// A new life begins.
    pub(super) fn begins(&mut self) {
        self.life += 1;
        self.own = Own::Asked;
        self.urgent.push_back(Command::Begin { life: self.life });
    }

    /// The liveness key is made.
    pub fn has_begun(&mut self, life: u64, now: Instant) {
        if life == self.life {
            self.own = Own::Lives;
            (self.begun_at, self.refreshes_at) = (now, now + REFRESH);
            self.beats();
            self.writes_anew(now);
            // What earlier lives have stored is removed.
            self.reads_before(self.ended);
        }
    }

    /// The liveness key is prolonged, or was gone. Returns whether it was gone too often: then another life begins later.
    pub fn is_kept(&mut self, life: u64, is_there: bool, now: Instant) -> bool {
        if life != self.life || self.own != Own::Lives {
            return false;
        }
        if is_there {
            self.refusals = 0;
            return false;
        }
        if now < self.begun_at + SHORT {
            if self.refusals > 0 {
                self.life_is_refused(life, now);
                return true;
            }
            self.refusals = 1;
        }
        self.ends();
        self.begins();
        false
    }

    /// This life has ended: what it has stored counts no longer.
    fn ends(&mut self) {
        self.clock += 1;
        self.ended = self.clock;
        self.rooms.values_mut().for_each(|room| room.is_stored = false);
        self.rooms.retain(|_, room| !room.is_idle() || room.is_queued);
    }

    /// The broker has refused to make the liveness key, or to prolong it. Then this life ends, and another one begins later.
    pub fn life_is_refused(&mut self, life: u64, now: Instant) {
        if life != self.life || self.own == Own::Refused {
            return;
        }
        if self.own == Own::Lives {
            self.ends();
        }
        self.own = Own::Refused;
        self.begins_at = now + pause(&mut self.refusals);
        self.reads_before(self.ended);
    }

    /// Publishes that this node lives.
    fn beats(&mut self) {
        let Machine { node, life, notes: number, .. } = *self;
        let beat = Note { node, life, number, change: None };
        self.urgent.push_back(Command::Publish(beat.to_json()));
    }

    /// Prolongs the own liveness key, and looks for those of others, if it is time.
    pub(super) fn looks_who_lives(&mut self, now: Instant) {
        if self.up_at.is_none() {
            return;
        }
        if self.own == Own::Refused && self.begins_at <= now {
            self.begins();
        }
        if self.own == Own::Lives && self.refreshes_at <= now {
            self.refreshes_at = now + REFRESH;
            self.urgent.push_back(Command::Keep { life: self.life });
            self.beats();
        }
        if self.checks_at <= now {
            self.checks_at = now + CHECK;
            self.peers.retain(|_, peer| peer.ended_at.is_none_or(|at| now < at + ENDED));
            self.checks(now);
            self.looks_again(now);
        }
    }

    /// Asks which nodes live.
    pub(super) fn checks(&mut self, now: Instant) {
        let lives = self.peers.iter().filter(|(_, peer)| peer.ended_at.is_none());
        let lives: Vec<_> = lives.map(|(node, peer)| (*node, peer.life)).collect();
        if !lives.is_empty() {
            self.urgent.push_back(Command::Check(lives, now));
        }
    }

    /// Members that were not found are looked for again.
    fn looks_again(&mut self, now: Instant) {
        let (peers, up_at) = (&self.peers, self.up_at);
        let is_fresh = |node: u64| peers.get(&node).is_some_and(|peer| is_fresh(peer, up_at, now));
        let due: Vec<_> =
            self.suspects.iter().filter(|(_, node)| !is_fresh(*node)).cloned().collect();
        for one in due {
            self.suspects.remove(&one);
            self.reads.insert((one.0, Some(one.1)));
        }
    }

    /// Whether what is not found of a node may follow soon.
    pub(super) fn is_fresh(&self, node: u64, now: Instant) -> bool {
        self.peers.get(&node).is_some_and(|peer| is_fresh(peer, self.up_at, now))
    }

    /// It is known which lives last. `lasts`: in the order of the question, which was asked at this time.
    pub fn has_checked(
        &mut self,
        (lives, asked): (&[(u64, u64)], Instant),
        lasts: &[bool],
        now: Instant,
    ) {
        for ((node, life), lasts) in lives.iter().zip(lasts) {
            let Some(peer) = self.peers.get(node).filter(|peer| peer.may_last(*life)) else {
                continue;
            };
            let is_unheard = self.is_unheard(peer, asked);
            #[cfg(test)]
            let (lasts, is_unheard) = match self.fault {
                super::machine::Fault::KeepsDead => (&true, false),
                _ => (lasts, is_unheard),
            };
            if *lasts && is_unheard {
                self.hides(*node, now);
            } else if *lasts {
                self.shows(*node, now);
            } else if !(peer.lives && is_fresh(peer, self.up_at, now)) {
                self.dies(*node, *life, now);
            }
        }
    }

    /// The broker does not say which lives last.
    pub fn check_is_refused(&mut self, (lives, asked): (&[(u64, u64)], Instant), now: Instant) {
        for (node, life) in lives {
            let peer = self.peers.get(node).filter(|peer| peer.may_last(*life));
            if peer.is_some_and(|peer| self.is_unheard(peer, asked)) {
                self.hides(*node, now);
            }
        }
    }

    /// Whether nothing was heard of a node for too long, when it was asked whether it lives.
    fn is_unheard(&self, peer: &Peer, asked: Instant) -> bool {
        // Up to the answer it has heard all that was published before it: also if this node was stopped for a while.
        let heard = self.up_at.map_or(peer.heard, |at| at.max(peer.heard));
        heard + UNHEARD < asked
    }

    /// A life is heard of. Returns false if it has ended, or if there are too many nodes.
    pub(super) fn meets(&mut self, node: u64, life: u64, now: Instant) -> bool {
        // Since the connection is up, it would have been heard.
        let heard = self.up_at.unwrap_or(now);
        let Some(peer) = self.peers.get_mut(&node) else {
            self.forgets_ended();
            let is_full = self.peers.len() >= MOST_PEERS;
            if !is_full {
                let (number, lives, since, ended_at) = (None, false, now, None);
                self.peers.insert(node, Peer { life, number, lives, since, heard, ended_at });
            }
            return !is_full;
        };
        if life > peer.life {
            (peer.life, peer.since, peer.heard, peer.ended_at) = (life, now, heard, None);
            // It sends all rooms anew that it has not left meanwhile.
            let rooms = self.rooms.iter().filter(|(_, room)| room.foreign.contains_key(&node));
            self.suspects.extend(rooms.map(|(name, _)| (name.clone(), node)));
        }
        self.peers.get(&node).is_some_and(|peer| peer.may_last(life))
    }

    /// If there are too many nodes, the life that has ended first is forgotten.
    fn forgets_ended(&mut self) {
        let ended = self.peers.iter().filter_map(|(node, peer)| Some((peer.ended_at?, *node)));
        if self.peers.len() >= MOST_PEERS
            && let Some((_, node)) = ended.min()
        {
            self.peers.remove(&node);
        }
    }

    /// Whether a life is known to have ended.
    pub(super) fn has_ended(&self, node: u64, life: u64) -> bool {
        if node == self.node {
            return life < self.life;
        }
        let peer = self.peers.get(&node);
        peer.is_some_and(|peer| life < peer.life || life == peer.life && peer.ended_at.is_some())
    }

    /// A node lives: members are notified of its members.
    pub(super) fn shows(&mut self, node: u64, now: Instant) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        if std::mem::replace(&mut peer.lives, true) {
            return;
        }
        let mut notices = Vec::new();
        for (name, room) in &mut self.rooms {
            if let Some(foreign) = room.foreign.get(&node) {
                let (state, stamp) = (foreign.state.clone(), foreign.stamp);
                notices.push((name.clone(), room.set(node, Some(state), true, stamp)));
            }
        }
        for (name, notices) in notices {
            self.notifies(&name, notices);
            self.settles(&name, now);
        }
    }

    /// A life has ended: its members have left.
    fn dies(&mut self, node: u64, life: u64, now: Instant) {
        for room in self.hides(node, now) {
            self.removes(room, node, life);
        }
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.ended_at = Some(now);
        }
    }

    /// The members of a node have left, until it is heard again. Returns their rooms.
    fn hides(&mut self, node: u64, now: Instant) -> Vec<RoomName> {
        if let Some(peer) = self.peers.get_mut(&node) {
            // Then all is read again.
            (peer.lives, peer.number) = (false, None);
        }
        let mut notices = Vec::new();
        for (name, room) in &mut self.rooms {
            if room.foreign.contains_key(&node) {
                notices.push((name.clone(), room.set(node, None, true, self.clock)));
            }
        }
        let mut rooms = Vec::new();
        for (name, notices) in notices {
            self.notifies(&name, notices);
            self.settles(&name, now);
            rooms.push(name);
        }
        rooms
    }

    /// Removes what an ended life has stored.
    pub(super) fn removes(&mut self, room: RoomName, node: u64, life: u64) {
        if self.removals.len() < MOST_REMOVALS {
            self.removals.push_back(Command::Remove { room, node, life });
        }
    }
}

fn is_fresh(peer: &Peer, up_at: Option<Instant>, now: Instant) -> bool {
    up_at.is_none_or(|at| now < at.max(peer.since) + GRACE)
}
