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
/// Maximum number of other nodes. Further ones are ignored.
const MOST_PEERS: usize = 256;

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
            self.refreshes_at = now + REFRESH;
            self.beats();
            self.writes_anew(now);
            // What earlier lives have stored is removed.
            self.reads_before(self.ended);
        }
    }

    /// The liveness key is prolonged, or was gone.
    pub fn is_kept(&mut self, life: u64, is_there: bool) {
        if life != self.life {
            return;
        }
        if is_there {
            self.refusals = 0;
        } else {
            self.ends();
            self.begins();
        }
    }

    fn ends(&mut self) {
        self.clock += 1;
        self.ended = self.clock;
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
            self.checks();
            self.looks_again(now);
        }
    }

    /// Asks which nodes live.
    pub(super) fn checks(&mut self) {
        if !self.peers.is_empty() {
            let lives = self.peers.iter().map(|(node, peer)| (*node, peer.life)).collect();
            self.urgent.push_back(Command::Check(lives));
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

    /// It is known which lives last. `lasts`: in the order of the question.
    pub fn has_checked(&mut self, lives: &[(u64, u64)], lasts: &[bool], now: Instant) {
        for ((node, life), lasts) in lives.iter().zip(lasts) {
            #[cfg(test)]
            let lasts = &(*lasts || self.fault == super::machine::Fault::KeepsDead);
            let Some(peer) = self.peers.get(node).filter(|peer| peer.life == *life) else {
                continue;
            };
            if *lasts {
                self.shows(*node, now);
            } else if !(peer.lives && is_fresh(peer, self.up_at, now)) {
                self.dies(*node, *life, now);
            }
        }
    }

    /// A life is heard of. Returns false if it has ended, or if there are too many nodes.
    pub(super) fn meets(&mut self, node: u64, life: u64, now: Instant) -> bool {
        let is_full = self.peers.len() >= MOST_PEERS;
        let Some(peer) = self.peers.get_mut(&node) else {
            if !is_full {
                self.peers.insert(node, Peer { life, number: None, lives: false, since: now });
            }
            return !is_full;
        };
        if life > peer.life {
            (peer.life, peer.since) = (life, now);
            // It sends all rooms anew that it has not left meanwhile.
            let rooms = self.rooms.iter().filter(|(_, room)| room.foreign.contains_key(&node));
            self.suspects.extend(rooms.map(|(name, _)| (name.clone(), node)));
        }
        self.peers.get(&node).is_some_and(|peer| peer.life == life)
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
        self.peers.remove(&node);
        let mut notices = Vec::new();
        for (name, room) in &mut self.rooms {
            if room.foreign.contains_key(&node) {
                notices.push((name.clone(), room.set(node, None, true, self.clock)));
            }
        }
        for (name, notices) in notices {
            self.removes(name.clone(), node, life);
            self.notifies(&name, notices);
            self.settles(&name, now);
        }
    }

    /// Removes what an ended life has stored.
    pub(super) fn removes(&mut self, room: RoomName, node: u64, life: u64) {
        self.removals.push_back(Command::Remove { room, node, life });
    }
}

fn is_fresh(peer: &Peer, up_at: Option<Instant>, now: Instant) -> bool {
    up_at.is_none_or(|at| now < at.max(peer.since) + GRACE)
}
