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
        self.shared.change_map(Map::new(self.epoch, mode));
        let owes = |wire: &Wire| matches!(&wire.end, End::Client(client) if client.owes() > 0);
        seen.maps += u64::from(self.wires.values().any(owes));
    }
}
