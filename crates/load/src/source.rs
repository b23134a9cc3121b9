//! From which loopback address a connection comes, so that a load does not run out of ports.
//!
//! One source address has about 28,000 ports towards one target (`ip_local_port_range`), and a
//! port stays in TIME_WAIT for a minute after the side that closed first, here the load. Towards an
//! IPv4 loopback target other sources are at hand: 127.0.0.2 to 127.0.0.127.
//!
//! Towards any other target the kernel chooses the source: see [`crate::Drive::Churn`].

use std::net::{IpAddr, Ipv4Addr};

/// Connections from one address, some ports being left for everything else.
const PER_ADDRESS: usize = 25_000;
/// 127.0.0.2 to 127.0.0.127.
const ADDRESSES: usize = 126;

/// Chooses sources for one load thread.
#[derive(Debug)]
pub(crate) struct Sources {
    loopback: bool,
    churn: bool,
    turn: usize,
}

impl Sources {
    /// `thread` makes threads begin at different addresses.
    pub fn new(target: IpAddr, churn: bool, thread: usize) -> Self {
        let loopback = matches!(target, IpAddr::V4(address) if address.is_loopback());
        Sources { loopback, churn, turn: thread * 17 }
    }

    /// The source of the next connection of slot `slot`, counted over all threads; `None` leaves it
    /// to the kernel. With a connection per request all addresses take turns; else each address
    /// takes 25,000 slots, the first of them as the kernel chooses.
    pub fn next(&mut self, slot: usize) -> Option<Ipv4Addr> {
        if !self.loopback {
            return None;
        }
        if self.churn {
            self.turn += 1;
            return Some(address(self.turn % ADDRESSES));
        }
        let block = slot / PER_ADDRESS;
        (block > 0).then(|| address((block - 1) % ADDRESSES))
    }
}

fn address(i: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, 2 + i as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn kept_connections_take_a_further_address_every_25_000() {
        let mut sources = Sources::new(LOOPBACK, false, 0);
        assert_eq!(sources.next(24_999), None);
        assert_eq!(sources.next(25_000), Some(Ipv4Addr::new(127, 0, 0, 2)));
        assert_eq!(sources.next(75_000), Some(Ipv4Addr::new(127, 0, 0, 4)));
    }

    #[test]
    fn churn_takes_all_addresses_in_turn() {
        let mut sources = Sources::new(LOOPBACK, true, 0);
        let seen: std::collections::BTreeSet<_> =
            (0..ADDRESSES).map(|_| sources.next(0).unwrap()).collect();
        assert_eq!(seen.first(), Some(&Ipv4Addr::new(127, 0, 0, 2)));
        assert_eq!(seen.last(), Some(&Ipv4Addr::new(127, 0, 0, 127)));
        assert_eq!(seen.len(), ADDRESSES);
    }

    #[test]
    fn other_targets_are_left_to_the_kernel() {
        for target in ["10.0.0.1", "::1"] {
            assert_eq!(Sources::new(target.parse().unwrap(), true, 0).next(60_000), None);
        }
    }
}
