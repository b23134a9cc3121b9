//! Changes of the shard map in a history.

use super::{Tested, World};
use crate::{
    seen::Seen,
    wire::{End, Wire},
};
use rand::Rng;
use regatta_keyspace::map::{
    Map, Mode, RedisSharding, Slots, Twemproxy,
    twemproxy::{Distribution, Hash, Server},
};
use regatta_shard::{Nodes, Settings};
use std::sync::Arc;

/// How much the port of a node changes when it moves.
pub(super) const MOVED: u16 = 1000;

impl<E: Tested> World<E> {
    pub(super) fn change_map(&mut self, seen: &mut Seen) {
        self.epoch += 1;
        let count = self.nodes.len();
        let mode: Mode = match self.random.random_range(0..3) {
            0 => Slots::even(count).expect("few nodes").into(),
            1 => RedisSharding::new(count).expect("few nodes").into(),
            _ => {
                let servers: Vec<Server> = (0..count)
                    .map(|node| format!("n{node}:1:1").parse().expect("a server"))
                    .collect();
                let tag = Some(*b"{}");
                let map = Twemproxy::new(Distribution::Modula, Hash::Murmur, tag, &servers);
                map.expect("few nodes").into()
            }
        };
        self.note(|| format!("map {}: {mode:?}", self.epoch));
        let map = Arc::new(Map::new(self.epoch, mode));
        self.shared.reload(Settings { map, ..Settings::clone(&self.shared.current()) });
        seen.maps += u64::from(self.owes());
    }

    /// Changes the configuration: some nodes are at other addresses, with other names.
    pub(super) fn change_nodes(&mut self, seen: &mut Seen) {
        let before = self.shared.current();
        let nodes: Vec<_> = (0..self.nodes.len())
            .map(|node| {
                let (name, mut address) = (before.nodes.name(node), before.nodes.address(node));
                if self.random.random_bool(0.5) {
                    return (name.to_owned(), address);
                }
                address.set_port((address.port() + MOVED) % (60 * MOVED));
                (format!("{name}'"), address)
            })
            .collect();
        self.note(|| format!("nodes: {nodes:?}"));
        let settings = Settings { nodes: Arc::new(Nodes::new(nodes)), ..Settings::clone(&before) };
        self.shared.reload(settings);
        self.epoch = self.shared.current().map.epoch();
        seen.moves += u64::from(self.owes());
    }

    /// Whether a client has pending replies.
    fn owes(&self) -> bool {
        let owes = |wire: &Wire| matches!(&wire.end, End::Client(client) if client.owes() > 0);
        self.wires.values().any(owes)
    }
}
