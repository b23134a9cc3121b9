//! From which loopback address a connection comes, so that a load does not run out of ports, and so that
//! a server cannot know ahead who asks.
//!
//! One source address has about 28,000 ports towards one target (`ip_local_port_range`), and a
//! port stays in TIME_WAIT for a minute after the side that closed first, here the load. Towards an
//! IPv4 loopback target other sources are at hand: 126 of 127.0.0.2 to 127.0.0.127, or of another network
//! of 127.0.0.0/8 that the seed draws.
//!
//! Towards any other target the kernel chooses the source: see [`crate::Drive::Churn`].

use crate::Plan;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::net::{IpAddr, Ipv4Addr};

/// Connections from one address, some ports being left for everything else.
const PER_ADDRESS: usize = 25_000;
/// Those that end in 2 to 127.
const ADDRESSES: usize = 126;

/// Chooses sources for one load thread.
#[derive(Debug)]
pub(crate) struct Sources {
    loopback: bool,
    churn: bool,
    /// The network that was drawn.
    drawn: Option<[u8; 2]>,
    turn: usize,
}

impl Sources {
    /// `thread` makes threads begin at different addresses.
    pub fn new(plan: &Plan, churn: bool, thread: usize) -> Self {
        let loopback = matches!(plan.target.ip(), IpAddr::V4(address) if address.is_loopback());
        let mut random = SmallRng::seed_from_u64(plan.seed);
        // Never 127.0.0.0/24.
        let drawn = plan.draws_sources.then(|| random.random_range(1..=u16::MAX).to_be_bytes());
        Sources { loopback, churn, drawn, turn: thread * 17 }
    }

    /// The source of the next connection of slot `slot`, counted over all threads; `None` leaves it
    /// to the kernel. With a connection per request all addresses take turns; else each address
    /// takes 25,000 slots, the first of them as the kernel chooses unless a network was drawn.
    pub fn next(&mut self, slot: usize) -> Option<Ipv4Addr> {
        if !self.loopback {
            return None;
        }
        if self.churn {
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
mod tests {
    use super::*;
    use regatta_script::Workload;
    use std::{collections::BTreeSet, net::SocketAddr};

    fn plan(target: &str) -> Plan {
        let target = SocketAddr::new(target.parse().unwrap(), 4_000);
        Plan::closed(target, Workload::parse("double").unwrap())
    }

    fn drawn(seed: u64) -> Plan {
        Plan { draws_sources: true, seed, ..plan("127.0.0.1") }
    }

    #[test]
    fn kept_connections_take_a_further_address_every_25_000() {
        let mut sources = Sources::new(&plan("127.0.0.1"), false, 0);
        assert_eq!(sources.next(24_999), None);
        assert_eq!(sources.next(25_000), Some(Ipv4Addr::new(127, 0, 0, 2)));
        assert_eq!(sources.next(75_000), Some(Ipv4Addr::new(127, 0, 0, 4)));
        let mut sources = Sources::new(&drawn(1), false, 0);
        let [first, second] = [24_999, 25_000].map(|slot| sources.next(slot).unwrap().octets());
        assert_eq!((first[3], second[3]), (2, 3));
        assert_eq!(first[..3], second[..3]);
    }

    #[test]
    fn churn_takes_all_addresses_in_turn() {
        for (plan, network) in [(plan("127.0.0.1"), Some([127, 0, 0])), (drawn(1), None)] {
            let mut sources = Sources::new(&plan, true, 0);
            let seen: BTreeSet<_> = (0..ADDRESSES).map(|_| sources.next(0).unwrap()).collect();
            assert_eq!(seen.len(), ADDRESSES);
            let (first, last) = (seen.first().unwrap().octets(), seen.last().unwrap().octets());
            assert_eq!((first[3], last[3]), (2, 127));
            assert!(network.is_none_or(|network| first[..3] == network && last[..3] == network));
        }
    }

    #[test]
    fn nobody_knows_the_addresses_of_the_next_seed() {
        let seen = |churn: bool| -> BTreeSet<_> {
            (0..1_000).map(|seed| Sources::new(&drawn(seed), churn, 0).next(0).unwrap()).collect()
        };
        for churn in [false, true] {
            let seen = seen(churn);
            assert!(seen.len() > 980, "{} networks of 65,535 for 1,000 seeds", seen.len());
            assert!(seen.iter().all(|address| address.is_loopback()));
            assert!(seen.iter().all(|address| address.octets()[1..3] != [0, 0]));
        }
    }

    #[test]
    fn other_targets_are_left_to_the_kernel() {
        for target in ["10.0.0.1", "::1"] {
            let plan = Plan { draws_sources: true, ..plan(target) };
            assert_eq!(Sources::new(&plan, true, 0).next(60_000), None);
        }
    }
}
