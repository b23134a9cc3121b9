//! A cluster of small Redis servers.

use super::{Fault, Seen};
use crate::driver::Received;
use rand::{Rng, rngs::SmallRng};
use regatta_keyspace::map::{SLOTS, slot};
use regatta_proto::resp::write_bulk;
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

/// The hash tags of all keys. Only their slots move; all others belong to the first node.
pub const TAGS: usize = 6;

/// The slot of a tag.
pub fn slot_of(tag: usize) -> u16 {
    slot(format!("{{t{tag}}}").as_bytes())
}

/// The address of a node.
pub fn address(node: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 7000 + node as u16))
}

/// The node at an address.
pub fn node_at(address: SocketAddr) -> usize {
    usize::from(address.port() - 7000)
}

/// A node, and what it knows.
#[derive(Clone, Default)]
pub struct Node {
    pub keys: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The owner of each slot that moves, and the epoch in which it got it.
    owners: BTreeMap<u16, (usize, u64)>,
    epoch: u64,
    /// Slots that are being moved to another node, and from another one.
    migrating: BTreeMap<u16, usize>,
    importing: BTreeSet<u16>,
    /// It has handed over its slots to another node.
    is_replica: bool,
    pub is_dead: bool,
    /// What it knew first.
    first: BTreeMap<u16, (usize, u64)>,
}

/// A cluster.
pub struct Cluster {
    pub nodes: Vec<Node>,
    epoch: u64,
    pub fault: Option<Fault>,
    /// When the first node carries out FLUSHALL, a slot with keys moves there from a node that has not.
    pub moves_at_flush: bool,
    /// How many questions are answered as if nothing had moved yet.
    pub stale_reports: u32,
    /// The owners that each slot has had.
    before: BTreeMap<u16, Vec<usize>>,
}

/// A connection from the node's side.
#[derive(Default)]
pub struct Session {
    pub received: Received,
    asking: bool,
    multi: Option<Vec<Vec<Vec<u8>>>>,
    is_aborted: bool,
}

impl Cluster {
    pub fn new(count: usize, fault: Option<Fault>, random: &mut SmallRng) -> Self {
        // The last node has no slots.
        let owners: BTreeMap<u16, (usize, u64)> =
            (0..TAGS).map(|tag| (slot_of(tag), (random.random_range(0..count), 1))).collect();
        let before = owners.iter().map(|(slot, (owner, _))| (*slot, vec![*owner])).collect();
        let node = Node { owners: owners.clone(), first: owners, epoch: 1, ..Node::default() };
        Cluster {
            nodes: vec![node; count + 1],
            epoch: 1,
            fault,
            moves_at_flush: false,
            stale_reports: 0,
            before,
        }
    }

    /// The node that has a slot.
    pub fn owner(&self, slot: u16) -> usize {
        let claims = self.nodes.iter().filter_map(|node| node.owners.get(&slot));
        claims.max_by_key(|(_, epoch)| *epoch).map_or(0, |(owner, _)| *owner)
    }

    /// Something happens: a slot moves, or a node learns what another one knows.
    pub fn change(&mut self, random: &mut SmallRng, seen: &mut Seen) {
        let slot = slot_of(random.random_range(0..TAGS));
        let owner = self.owner(slot);
        let other = random.random_range(0..self.nodes.len());
        // A slot returns once at most. If it came again to a node that has refused a request, the order of a client's
        // requests would depend on how long each was under way.
        let before = &self.before[&slot];
        let may_move = other != owner
            && !self.nodes[other].is_dead
            && (!before.contains(&other)
                || before[0] == other && before.iter().filter(|one| **one == other).count() == 1);
        match random.random_range(0..20) {
            0..8 => self.learn(random.random_range(0..self.nodes.len()), other),
            _ if self.importer(slot).is_some() => self.migrate(slot, owner, random, seen),
            8..12 if may_move => {
                self.nodes[owner].migrating.insert(slot, other);
                self.nodes[other].importing.insert(slot);
                self.learn(other, owner);
            }
            12 if may_move => {
                self.take(slot, owner, other);
                self.learn(owner, other);
                seen.atomic += 1;
            }
            13 if self.nodes.len() < 8 => self.hand_over(owner, seen),
            _ => {}
        }
    }

    fn importer(&self, slot: u16) -> Option<usize> {
        self.nodes.iter().position(|node| node.importing.contains(&slot))
    }

    /// Moves some keys of a slot, or ends the migration.
    fn migrate(&mut self, slot: u16, owner: usize, random: &mut SmallRng, seen: &mut Seen) {
        let Some(other) = self.importer(slot) else { return };
        let of_slot = |key: &&Vec<u8>| slot_of_key(key) == slot;
        let keys: Vec<Vec<u8>> = self.nodes[owner].keys.keys().filter(of_slot).cloned().collect();
        for key in &keys {
            if random.random_bool(0.6) {
                let value = self.nodes[owner].keys.remove(key).expect("it is there");
                self.nodes[other].keys.insert(key.clone(), value);
            }
        }
        if keys.is_empty() {
            self.nodes[other].importing.remove(&slot);
            self.take(slot, owner, other);
            self.learn(owner, other);
            self.nodes[owner].migrating.remove(&slot);
            seen.migrations += 1;
        }
    }

    /// Gives a slot to another node, with its keys.
    fn take(&mut self, slot: u16, owner: usize, other: usize) {
        self.epoch += 1;
        self.before.entry(slot).or_default().push(other);
        let keys = std::mem::take(&mut self.nodes[owner].keys);
        for (key, value) in keys {
            let to = if slot_of_key(&key) == slot { other } else { owner };
            self.nodes[to].keys.insert(key, value);
        }
        let node = &mut self.nodes[other];
        node.epoch = self.epoch;
        node.owners.insert(slot, (other, self.epoch));
    }

    /// A slot moves to another node, and all nodes know it.
    pub fn give(&mut self, slot: u16, to: usize) {
        self.take(slot, self.owner(slot), to);
        self.all_learn();
    }

    /// All keys of a slot have moved to another node, which does not own it yet.
    pub fn start_migration(&mut self, slot: u16, to: usize) {
        let owner = self.owner(slot);
        let keys = std::mem::take(&mut self.nodes[owner].keys);
        let (moved, kept) = keys.into_iter().partition(|(key, _)| slot_of_key(key) == slot);
        self.nodes[owner].keys = kept;
        self.nodes[to].keys.extend::<BTreeMap<_, _>>(moved);
        self.nodes[owner].migrating.insert(slot, to);
        self.nodes[to].importing.insert(slot);
    }

    pub fn all_learn(&mut self) {
        for _ in 0..2 {
            for node in 0..self.nodes.len() {
                (0..self.nodes.len()).for_each(|other| self.learn(node, other));
            }
        }
    }

    /// The keys at all nodes.
    pub fn keys(&self) -> usize {
        self.nodes.iter().map(|node| node.keys.len()).sum()
    }

    fn flush(&mut self, node: usize, out: &mut Vec<u8>) {
        if self.nodes[node].is_replica {
            return out
                .extend_from_slice(b"-READONLY You can't write against a read only replica.\r\n");
        }
        self.nodes[node].keys.clear();
        out.extend_from_slice(b"+OK\r\n");
        let moved = (0..TAGS).map(slot_of).find(|slot| {
            let owner = self.owner(*slot);
            owner != node && self.nodes[owner].keys.keys().any(|key| slot_of_key(key) == *slot)
        });
        if let Some(slot) = moved.filter(|_| std::mem::take(&mut self.moves_at_flush)) {
            self.give(slot, node);
        }
    }

    /// SCAN: all keys at once.
    fn scan(&self, node: usize, out: &mut Vec<u8>) {
        let keys = &self.nodes[node].keys;
        out.extend(format!("*2\r\n$1\r\n0\r\n*{}\r\n", keys.len()).into_bytes());
        keys.keys().for_each(|key| write_bulk(key, out));
    }

    /// A node without slots before takes all of those of another one, unless some are being moved.
    pub fn hand_over(&mut self, from: usize, seen: &mut Seen) {
        if let Some(to) = self.successor(from) {
            self.nodes[from].is_replica = true;
            self.learn(from, to);
            seen.handovers += 1;
        }
    }

    /// The master of some slots dies, and a replica takes them over, which may lack some of their keys. Returns all slots that
    /// the master has ever had; `None`: it cannot die now.
    pub fn die(&mut self, from: usize, random: &mut SmallRng, seen: &mut Seen) -> Option<Vec<u16>> {
        let to = self.successor(from)?;
        self.nodes[from].is_dead = true;
        seen.deaths += 1;
        if random.random_bool(0.5) {
            seen.lost_tails += 1;
            self.nodes[to].keys.retain(|_, _| random.random_bool(0.7));
        }
        let had = self.before.iter().filter(|(_, owners)| owners.contains(&from));
        Some(had.map(|(slot, _)| *slot).collect())
    }

    /// A new node that has taken all slots of another one; `None`: some are being moved.
    fn successor(&mut self, from: usize) -> Option<usize> {
        let node = &self.nodes[from];
        let is_busy = !node.migrating.is_empty() || !node.importing.is_empty();
        // The first one has all slots that never move.
        if is_busy || from == 0 {
            return None;
        }
        let to = self.nodes.len();
        self.nodes.push(Node { keys: BTreeMap::new(), ..node.clone() });
        for tag in 0..TAGS {
            if self.owner(slot_of(tag)) == from {
                self.take(slot_of(tag), from, to);
            }
        }
        Some(to)
    }

    /// A node learns what another one knows.
    fn learn(&mut self, node: usize, other: usize) {
        let Ok([node, other]) = self.nodes.get_disjoint_mut([node, other]) else { return };
        if node.is_dead || other.is_dead {
            return;
        }
        node.epoch = node.epoch.max(other.epoch);
        for (slot, claim) in &other.owners {
            let known = node.owners.entry(*slot).or_default();
            if claim.1 > known.1 {
                *known = *claim;
            }
        }
    }

    /// All migrations end, and all nodes learn everything.
    pub fn settle(&mut self, random: &mut SmallRng, seen: &mut Seen) {
        for tag in 0..TAGS {
            while self.importer(slot_of(tag)).is_some() {
                self.migrate(slot_of(tag), self.owner(slot_of(tag)), random, seen);
            }
        }
        self.all_learn();
    }

    /// Carries out the next command of a session if it is complete. Returns whether it was.
    pub fn step(
        &mut self,
        (node, session): (usize, &mut Session),
        out: &mut Vec<u8>,
        seen: &mut Seen,
        random: &mut SmallRng,
    ) -> bool {
        let Some(args) = session.received.next() else { return false };
        if self.fault == Some(Fault::TryAgainOvertaken) && self.is_split(node, &args, session) {
            self.try_again_later((node, session), &args, out, seen);
            return true;
        }
        let fault = self.fault.filter(|_| random.random_bool(0.1));
        if fault == Some(Fault::Overtaken)
            && matches!(&args[0][..], b"set" | b"append")
            && session.multi.is_none()
            && !session.asking
            && let Some(second) = session.received.next()
        {
            let (mut one, mut two) = (Vec::new(), Vec::new());
            self.command((node, session), &second, &mut two, seen);
            self.command((node, session), &args, &mut one, seen);
            out.extend(one);
            out.extend(two);
            return true;
        }
        if fault == Some(Fault::WrongNode)
            && matches!(&args[0][..], b"set" | b"append" | b"get")
            && session.multi.is_none()
            && !session.asking
            && self.nodes[node].owners[&slot_of_key(&args[1])].0 != node
        {
            self.apply(node, &args, out);
            return true;
        }
        let is_twice = match fault {
            Some(Fault::Twice) => args[0] == b"append",
            Some(Fault::WrongSlot) => args[0] == b"eval",
            _ => false,
        };
        let is_twice = is_twice && session.multi.is_none() && !session.asking;
        let start = out.len();
        self.command((node, session), &args, out, seen);
        if is_twice {
            out.truncate(start);
            self.command((node, session), &args, out, seen);
        }
        true
    }

    /// Whether a node answers MSET with TRYAGAIN.
    fn is_split(&self, node: usize, args: &[Vec<u8>], session: &Session) -> bool {
        if args[0] != b"mset" || session.multi.is_some() || session.asking {
            return false;
        }
        let Node { keys: present, migrating, .. } = &self.nodes[node];
        let keys = keys(args);
        let missing = keys.iter().filter(|key| !present.contains_key(**key)).count();
        migrating.contains_key(&slot_of_key(keys[0])) && (1..keys.len()).contains(&missing)
    }

    /// Carries out the next command, and then this MSET, as if it was sent again although a later request was under way: if
    /// both have a key in common.
    fn try_again_later(
        &mut self,
        (node, session): (usize, &mut Session),
        args: &[Vec<u8>],
        out: &mut Vec<u8>,
        seen: &mut Seen,
    ) {
        let second = session.received.next();
        let is_set = |second: &&Vec<Vec<u8>>| matches!(&second[0][..], b"set" | b"append");
        let follows = second.as_ref().filter(is_set).is_some_and(|second| {
            keys(args).contains(&&second[1]) && self.nodes[node].keys.contains_key(&second[1])
        });
        if !follows {
            self.command((node, session), args, out, seen);
        }
        let mut reply = Vec::new();
        if let Some(second) = second {
            self.command((node, session), &second, &mut reply, seen);
        }
        if follows {
            let to = self.nodes[node].migrating[&slot_of_key(&args[1])];
            for pair in args[1..].chunks(2) {
                let is_here = self.nodes[node].keys.contains_key(&pair[0]);
                let at = if is_here { node } else { to };
                self.nodes[at].keys.insert(pair[0].clone(), pair[1].clone());
            }
            out.extend_from_slice(b"+OK\r\n");
        }
        out.extend(reply);
    }

    fn command(
        &mut self,
        (node, session): (usize, &mut Session),
        args: &[Vec<u8>],
        out: &mut Vec<u8>,
        seen: &mut Seen,
    ) {
        let asking = std::mem::take(&mut session.asking);
        let ok = b"+OK\r\n";
        match &args[0].to_ascii_uppercase()[..] {
            b"INFO" => write_bulk(b"redis_version:7.0.15\r\n", out),
            b"PING" => out.extend_from_slice(b"+PONG\r\n"),
            b"CLUSTER" => self.report(node, &args[1], out, seen),
            b"ASKING" => {
                session.asking = self.fault != Some(Fault::NoAsking);
                out.extend_from_slice(ok);
            }
            b"MULTI" => {
                (session.multi, session.is_aborted) = (Some(Vec::new()), false);
                out.extend_from_slice(ok);
            }
            b"DISCARD" => {
                session.multi = None;
                out.extend_from_slice(ok);
            }
            b"DBSIZE" => out.extend(format!(":{}\r\n", self.nodes[node].keys.len()).into_bytes()),
            b"FLUSHALL" => self.flush(node, out),
            b"SCAN" => self.scan(node, out),
            b"EXEC" => self.exec(node, session, out, seen),
            _ => {
                if let Some(error) = self.redirect(node, args, asking, seen) {
                    session.is_aborted |= session.multi.is_some();
                    return out.extend(error);
                }
                match &mut session.multi {
                    Some(queue) => {
                        queue.push(args.to_vec());
                        out.extend_from_slice(b"+QUEUED\r\n");
                    }
                    None => self.apply(node, args, out),
                }
            }
        }
    }

    fn exec(&mut self, node: usize, session: &mut Session, out: &mut Vec<u8>, seen: &mut Seen) {
        let queue = session.multi.take().expect("MULTI");
        if session.is_aborted {
            return out.extend_from_slice(b"-EXECABORT Transaction discarded.\r\n");
        }
        if let Some(error) = queue.iter().find_map(|args| self.redirect(node, args, false, seen)) {
            return out.extend(error);
        }
        out.extend(format!("*{}\r\n", queue.len()).into_bytes());
        queue.iter().for_each(|args| self.apply(node, args, out));
    }

    /// The error with which a node does not carry out a command.
    fn redirect(
        &self,
        node: usize,
        args: &[Vec<u8>],
        asking: bool,
        seen: &mut Seen,
    ) -> Option<Vec<u8>> {
        let keys = keys(args);
        let slot = slot_of_key(keys[0]);
        assert!(keys.iter().all(|key| slot_of_key(key) == slot), "CROSSSLOT");
        let Node { keys: present, owners, migrating, importing, .. } = &self.nodes[node];
        let missing = keys.iter().filter(|key| !present.contains_key(**key)).count();
        let (owner, _) = owners[&slot];
        if owner == node {
            let to = migrating.get(&slot).filter(|_| missing > 0)?;
            if missing < keys.len() {
                seen.try_again += 1;
                return Some(
                    b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n".to_vec(),
                );
            }
            seen.ask += 1;
            return Some(format!("-ASK {slot} {}\r\n", address(*to)).into_bytes());
        }
        if asking && importing.contains(&slot) {
            let is_partial = keys.len() > 1 && missing > 0;
            seen.try_again += u64::from(is_partial);
            return is_partial.then(|| b"-TRYAGAIN Multiple keys\r\n".to_vec());
        }
        seen.moved += 1;
        Some(format!("-MOVED {slot} {}\r\n", address(owner)).into_bytes())
    }

    fn apply(&mut self, node: usize, args: &[Vec<u8>], out: &mut Vec<u8>) {
        let present = &mut self.nodes[node].keys;
        match &args[0][..] {
            b"set" | b"mset" => {
                for pair in args[1..].chunks(2) {
                    present.insert(pair[0].clone(), pair[1].clone());
                }
                out.extend_from_slice(b"+OK\r\n");
            }
            b"append" => {
                let value = present.entry(args[1].clone()).or_default();
                value.extend_from_slice(&args[2]);
                out.extend(format!(":{}\r\n", value.len()).into_bytes());
            }
            // A script that writes, and makes this error.
            b"eval" => {
                present.entry(args[3].clone()).or_default().push(b'x');
                out.push(b'-');
                out.extend_from_slice(
                    &args[1]
                        .iter()
                        .map(|byte| if *byte == b'_' { b' ' } else { *byte })
                        .collect::<Vec<_>>(),
                );
                out.extend_from_slice(b"\r\n");
            }
            b"get" => bulk(present.get(&args[1]), out),
            b"mget" => {
                out.extend(format!("*{}\r\n", args.len() - 1).into_bytes());
                args[1..].iter().for_each(|key| bulk(present.get(key), out));
            }
            b"del" => {
                let count = args[1..].iter().filter(|key| present.remove(*key).is_some()).count();
                out.extend(format!(":{count}\r\n").into_bytes());
            }
            other => panic!("unexpected: {}", other.escape_ascii()),
        }
    }

    /// CLUSTER INFO, SLOTS and NODES.
    fn report(&mut self, number: usize, what: &[u8], out: &mut Vec<u8>, seen: &mut Seen) {
        let is_stale = self.stale_reports > 0;
        self.stale_reports -= u32::from(is_stale && what == b"NODES");
        let node = &self.nodes[number];
        match what {
            b"INFO" => {
                seen.questions += 1;
                let is_liar = self.fault == Some(Fault::OldMap) && number == 0;
                let epoch = if is_liar { self.epoch } else { node.epoch };
                let text = format!("cluster_state:ok\r\ncluster_current_epoch:{epoch}\r\n");
                write_bulk(text.as_bytes(), out);
            }
            b"NODES" => {
                let line = |at: usize| {
                    let fails = if self.nodes[at].is_dead { ",fail" } else { "" };
                    format!("id{at} {}@1 master{fails} - 0 0 0 connected\n", address(at))
                };
                write_bulk((0..self.nodes.len()).map(line).collect::<String>().as_bytes(), out);
            }
            _ => {
                let is_liar = self.fault == Some(Fault::OldMap) && number == 0;
                let owners = if is_liar || is_stale { &node.first } else { &node.owners };
                let (mut ranges, mut next) = (Vec::new(), 0);
                for (slot, (owner, _)) in owners {
                    if next < *slot {
                        ranges.push((next, slot - 1, 0));
                    }
                    ranges.push((*slot, *slot, *owner));
                    next = slot + 1;
                }
                if next < SLOTS {
                    ranges.push((next, SLOTS - 1, 0));
                }
                out.extend(format!("*{}\r\n", ranges.len()).into_bytes());
                for (first, last, owner) in ranges {
                    out.extend(format!("*3\r\n:{first}\r\n:{last}\r\n*3\r\n").into_bytes());
                    write_bulk(address(owner).ip().to_string().as_bytes(), out);
                    out.extend(format!(":{}\r\n", address(owner).port()).into_bytes());
                    write_bulk(format!("id{owner}").as_bytes(), out);
                }
            }
        }
    }
}

/// The keys of a command.
pub fn keys(args: &[Vec<u8>]) -> Vec<&Vec<u8>> {
    match &args[0][..] {
        b"mset" => args[1..].iter().step_by(2).collect(),
        b"eval" => vec![&args[3]],
        b"mget" | b"del" => args[1..].iter().collect(),
        _ => vec![&args[1]],
    }
}

pub fn slot_of_key(key: &[u8]) -> u16 {
    slot(key)
}

fn bulk(value: Option<&Vec<u8>>, out: &mut Vec<u8>) {
    match value {
        Some(value) => write_bulk(value, out),
        None => out.extend_from_slice(b"$-1\r\n"),
    }
}
