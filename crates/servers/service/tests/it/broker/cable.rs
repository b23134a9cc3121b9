//! A connection between a hub and the broker.

use super::redis::Redis;
use regatta_engine::{Conn, simulator::Random};

/// What has happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Works,
    /// Nothing passes for now.
    Stalled,
    /// What the broker sends disappears, and nobody learns of it.
    HalfOpen,
}

/// A connection between a hub and the broker, as both of its ends see it.
pub struct Cable {
    /// The server, and its number there.
    pub server: usize,
    pub number: usize,
    /// Its number at the hub.
    pub conn: Conn,
    pub fate: Fate,
    pub is_open: bool,
    pub to_broker: Vec<u8>,
}

impl Cable {
    /// Some bytes pass. Returns those that reach the hub.
    pub fn passes(&mut self, redis: &mut Redis, random: &mut Random, all: bool) -> Vec<u8> {
        if self.fate == Fate::Stalled {
            return Vec::new();
        }
        let mut most = || if all { usize::MAX } else { random.magnitude(1, 20_000) as usize };
        let sent = most().min(self.to_broker.len());
        redis.receives(self.number, &self.to_broker[..sent]);
        self.to_broker.drain(..sent);
        let bytes = redis.output(self.number, most());
        if self.fate == Fate::HalfOpen { Vec::new() } else { bytes }
    }
}
