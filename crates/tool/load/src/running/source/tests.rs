//! Source addresses for targets on loopback and elsewhere.

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
fn kept_connections_use_another_address_every_25_000() {
    let mut sources = Sources::new(&plan("127.0.0.1"), false, 0);
    assert_eq!(sources.next(24_999, false), None);
    assert_eq!(sources.next(25_000, false), Some(Ipv4Addr::new(127, 0, 0, 2)));
    assert_eq!(sources.next(75_000, false), Some(Ipv4Addr::new(127, 0, 0, 4)));
    let mut sources = Sources::new(&drawn(1), false, 0);
    let [first, second] = [24_999, 25_000].map(|slot| sources.next(slot, false).unwrap().octets());
    assert_eq!((first[3], second[3]), (2, 3));
    assert_eq!(first[..3], second[..3]);
}

#[test]
fn churn_uses_all_addresses_in_turn() {
    for (plan, network) in [(plan("127.0.0.1"), Some([127, 0, 0])), (drawn(1), None)] {
        let mut sources = Sources::new(&plan, true, 0);
        let seen: BTreeSet<_> = (0..ADDRESSES).map(|_| sources.next(0, false).unwrap()).collect();
        assert_eq!(seen.len(), ADDRESSES);
        let (first, last) = (seen.first().unwrap().octets(), seen.last().unwrap().octets());
        assert_eq!((first[3], last[3]), (2, 127));
        assert!(network.is_none_or(|network| first[..3] == network && last[..3] == network));
    }
}

#[test]
fn different_seeds_select_different_networks() {
    let seen = |churn: bool| -> BTreeSet<_> {
        (0..1_000)
            .map(|seed| Sources::new(&drawn(seed), churn, 0).next(0, false).unwrap())
            .collect()
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
        assert_eq!(Sources::new(&plan, true, 0).next(60_000, false), None);
    }
}
