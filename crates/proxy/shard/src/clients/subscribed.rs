//! A client's subscriptions.

use regatta_engine::Conn;
use std::collections::{BTreeMap, BTreeSet};

/// A client's subscriptions.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// For each node, the connection, if one is open.
    pub(crate) conns: Vec<Option<Conn>>,
    /// The client's only pending reply is the confirmation of an UNSUBSCRIBE, or of one of its
    /// variants.
    pub(crate) is_leaving: bool,
    /// The names that the command in flight adds.
    pub(crate) adding: Vec<(Kind, Vec<u8>)>,
    /// The names that the command in flight removes, if a node confirms them as shard channels.
    pub(crate) leaving: BTreeMap<Vec<u8>, Kind>,
    /// A node may have accepted names of a command that another one has refused: their messages are discarded.
    pub(crate) is_partial: bool,
    channels: BTreeSet<Vec<u8>>,
    patterns: BTreeSet<Vec<u8>>,
    shard_channels: BTreeSet<Vec<u8>>,
    /// A command waits until connections are open. Why one could not be opened.
    pub(crate) is_opening: bool,
    pub(crate) failed: Option<Vec<u8>>,
    /// Bytes of the names in these sets.
    bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Channels,
    Patterns,
    ShardChannels,
}

/// Approximate memory of a name beside its bytes.
const ENTRY: usize = 64;

impl Subscriptions {
    pub(crate) fn of(&mut self, kind: Kind) -> &mut BTreeSet<Vec<u8>> {
        match kind {
            Kind::Channels => &mut self.channels,
            Kind::Patterns => &mut self.patterns,
            Kind::ShardChannels => &mut self.shard_channels,
        }
    }

    /// Adds a name.
    pub(crate) fn add(&mut self, kind: Kind, name: Vec<u8>) {
        let bytes = name.len() + ENTRY;
        self.bytes += if self.of(kind).insert(name) { bytes } else { 0 };
    }

    /// Removes a name.
    pub(crate) fn remove(&mut self, kind: Kind, name: &[u8]) {
        self.bytes -= if self.of(kind).remove(name) { name.len() + ENTRY } else { 0 };
    }

    /// Forgets the names that the command in flight adds, because it has failed.
    pub(crate) fn undo(&mut self) {
        for (kind, name) in std::mem::take(&mut self.adding) {
            self.remove(kind, &name);
            self.is_partial = true;
        }
    }

    /// Whether messages with this name are wanted. `kind`: that of the message.
    pub(crate) fn wants(&self, kind: &[u8], name: &[u8]) -> bool {
        match kind.first() {
            Some(b'p') => self.patterns.contains(name),
            Some(b's') => self.shard_channels.contains(name),
            _ => self.channels.contains(name),
        }
    }

    /// Whether the client is subscribed to this name.
    pub(crate) fn has(&self, kind: Kind, name: &[u8]) -> bool {
        match kind {
            Kind::Channels => self.channels.contains(name),
            Kind::Patterns => self.patterns.contains(name),
            Kind::ShardChannels => self.shard_channels.contains(name),
        }
    }

    /// As which kinds of channels the client gets a message of a shard channel, if SUBSCRIBE subscribes to these, too.
    pub(crate) fn kinds_of(&self, name: &[u8]) -> [Option<Kind>; 2] {
        let [one, other] =
            [Kind::Channels, Kind::ShardChannels].map(|kind| self.has(kind, name).then_some(kind));
        // The node has not confirmed yet that it is left.
        [one, other.or(self.leaving.get(name).copied().filter(|_| one.is_none()))]
    }

    /// The memory of the names, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The names of all kinds.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.channels.iter().chain(&self.patterns).chain(&self.shard_channels)
    }

    /// The count that a single Redis would report.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::Channels | Kind::Patterns => self.channels.len() + self.patterns.len(),
            Kind::ShardChannels => self.shard_channels.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count(Kind::Channels) + self.count(Kind::ShardChannels) == 0
    }

    pub(crate) fn conns(&self) -> impl Iterator<Item = Conn> {
        self.conns.iter().flatten().copied()
    }
}
