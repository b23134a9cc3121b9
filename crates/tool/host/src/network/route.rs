//! The interface that reaches an address, by the main routing table of IPv4.

use super::address::interface_with;
use std::net::{IpAddr, Ipv4Addr};

/// The route is there and can be used (RTF_UP, linux/route.h).
const UP: u32 = 1;

/// Returns the name of the interface by which packets to `address` leave; of an address of this machine, the interface
/// that has it. `None` for loopback, an address on it, and IPv6, without a route, and if the kernel does not list its
/// routes.
pub fn interface_to(address: IpAddr) -> Option<String> {
    let IpAddr::V4(address) = address else { return None };
    if let Some(own) = interface_with(address) {
        return Some(own).filter(|name| name != "lo");
    }
    let table = std::fs::read_to_string("/proc/net/route").ok()?;
    interface_in(&table, address).map(str::to_owned)
}

/// The most specific route of a table counts, and of several the one with the smallest metric.
fn interface_in(table: &str, address: Ipv4Addr) -> Option<&str> {
    if address.is_loopback() {
        return None;
    }
    let route = |line: &'_ str| -> Option<(u32, u64)> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        // Addresses are numbers of this machine's byte order.
        let number = |nth: usize| u32::from_str_radix(fields.get(nth)?, 16).ok();
        let (network, mask) = (number(1)?, number(7)?);
        let metric: u64 = fields.get(6)?.parse().ok()?;
        let is_meant = u32::from_ne_bytes(address.octets()) & mask == network;
        (number(3)? & UP != 0 && is_meant).then_some((mask.count_ones(), metric))
    };
    let routes = table.lines().skip(1).filter_map(|line| Some((route(line)?, line)));
    let ((..), line) = routes.max_by_key(|((bits, metric), _)| (*bits, u64::MAX - metric))?;
    line.split_ascii_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(interface: &str, network: [u8; 4], bits: u32, flags: u32, metric: u32) -> String {
        let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0).to_be_bytes();
        let word = |bytes: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(bytes));
        let (network, mask) = (word(network), word(mask));
        format!("{interface}\t{network}\t00000000\t{flags:04X}\t0\t0\t{metric}\t{mask}\t0\t0\t0\n")
    }

    #[test]
    fn the_most_specific_route_that_is_up_counts() {
        let table = [
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n",
            &line("wan", [0, 0, 0, 0], 0, 3, 100),
            &line("slow", [10, 0, 0, 0], 8, 1, 600),
            &line("fast", [10, 0, 0, 0], 8, 1, 100),
            &line("near", [10, 1, 2, 0], 24, 1, 100),
            &line("down", [10, 1, 2, 5], 32, 0, 0),
        ]
        .concat();
        let to = |address: [u8; 4]| interface_in(&table, address.into());
        assert_eq!(to([10, 1, 2, 5]), Some("near"));
        assert_eq!(to([10, 9, 9, 9]), Some("fast"));
        assert_eq!(to([192, 0, 2, 1]), Some("wan"));
        assert_eq!(to([127, 0, 0, 1]), None, "loopback has no line there");
        assert_eq!(interface_in("Iface\n", [10, 0, 0, 1].into()), None);
    }
}
