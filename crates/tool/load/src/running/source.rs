//! Chooses the loopback address that a connection comes from, so that a load does not run out of ports,
//! and so that a server cannot know the clients' addresses in advance.
//!
//! One source address has about 28,000 ports for one target (`ip_local_port_range`), and a port stays in
//! TIME_WAIT for a minute on the side that closed first, here the load. For an IPv4 loopback target, 126
//! other sources are available: 127.0.0.2 to 127.0.0.127, or the same in another network of 127.0.0.0/8
//! that the seed selects.
//!
//! For any other target the kernel chooses the source: see [`crate::Drive::Churn`].

use crate::Plan;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Number of connections per address. It leaves some ports for other uses.
const PER_ADDRESS: usize = 25_000;
/// Number of addresses: those that end in 2 to 127.
const ADDRESSES: usize = 126;

/// Chooses sources for one load thread.
#[derive(Debug)]
pub(crate) struct Sources {
    loopback: bool,
    churn: bool,
    /// The middle bytes of the network that the seed selected.
    drawn: Option<[u8; 2]>,
    turn: usize,
}

impl Sources {
    /// `thread` makes threads start at different addresses.
    pub fn new(plan: &Plan, churn: bool, thread: usize) -> Self {
        let tcp = plan.unix.is_none();
        let is_loopback = |target: SocketAddr| matches!(target.ip(), IpAddr::V4(address) if address.is_loopback());
        let loopback = tcp && (0..=plan.nodes.len()).all(|node| is_loopback(plan.target_of(node)));
        let mut random = SmallRng::seed_from_u64(plan.seed);
        // Never 127.0.0.0/24.
        let drawn = plan.draws_sources.then(|| random.random_range(1..=u16::MAX).to_be_bytes());
        Sources { loopback, churn, drawn, turn: thread * 17 }
    }

    /// Returns the source of the next connection of slot `slot`, counted over all threads; `None` leaves
    /// the choice to the kernel. With a connection per request, and for members that join and leave
    /// (`passes`), all addresses are used in turn. Otherwise each address serves 25,000 slots. Without a
    /// network selected by the seed, the kernel chooses for the first 25,000.
    pub fn next(&mut self, slot: usize, passes: bool) -> Option<Ipv4Addr> {
        if !self.loopback {
            return None;
        }
        if self.churn || passes {
            self.turn += 1;
            return Some(self.address(self.turn));
        }
        let block = slot / PER_ADDRESS;
        match self.drawn {
            Some(_) => Some(self.address(block)),
            None => (block > 0).then(|| self.address(block - 1)),
        }
    }

    fn address(&self, i: usize) -> Ipv4Addr {
        let [a, b] = self.drawn.unwrap_or_default();
        Ipv4Addr::new(127, a, b, 2 + (i % ADDRESSES) as u8)
    }
}

#[cfg(test)]
mod tests;
