//! The addresses that an agent may load.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    ops::RangeInclusive,
    str::FromStr,
};

/// How targets are written.
const FORM: &str =
    "expected NETWORK:PORTS, e.g. 10.0.0.0/24:8000-8999, 10.0.0.5:8080 or [fd00::/64]:80";

/// A network, or a single address, with a range of ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets {
    address: IpAddr,
    /// Number of leading bits that all addresses share.
    bits: u32,
    ports: RangeInclusive<u16>,
}

impl Targets {
    /// Whether this address is one of them.
    pub fn contain(&self, target: SocketAddr) -> bool {
        // An IPv4 address may be written as an IPv6 one (RFC 4291, section 2.5.5.2).
        let address = target.ip().to_canonical();
        address.is_ipv4() == self.address.is_ipv4()
            && network(address, self.bits) == network(self.address, self.bits)
            && self.ports.contains(&target.port())
    }
}

impl FromStr for Targets {
    type Err = String;

    /// Reads `NETWORK:PORTS`. A network with public addresses is refused: each must be listed.
    fn from_str(text: &str) -> Result<Targets, String> {
        let wrong = || format!("{FORM}; got {text:?}");
        let (network, ports) = text.rsplit_once(':').ok_or_else(wrong)?;
        let bracketed = network.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let (address, bits) = match bracketed.unwrap_or(network).split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().map_err(|_| wrong())?)),
            None => (bracketed.unwrap_or(network), None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        if address.is_ipv6() != bracketed.is_some() {
            return Err(wrong());
        }
        let most = width(address);
        let bits = bits.unwrap_or(most);
        let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
        let [first, last] = [first, last].map(|port| port.parse::<u16>().map_err(|_| wrong()));
        let (first, last) = (first?, last?);
        if bits > most || first > last || first == 0 {
            return Err(wrong());
        }
        let targets = Targets { address: address.to_canonical(), bits, ports: first..=last };
        if width(targets.address) != most {
            return Err(format!("write {address} as the IPv4 address that it stands for"));
        }
        if bits < most && !targets.are_private() {
            return Err(format!("{text} has public addresses: list each that may be loaded"));
        }
        Ok(targets)
    }
}

impl Targets {
    /// Whether all addresses are in a network that does not reach the Internet (RFC 6890).
    fn are_private(&self) -> bool {
        const PRIVATE: [(&str, u32); 9] = [
            ("10.0.0.0", 8),
            ("172.16.0.0", 12),
            ("192.168.0.0", 16),
            ("127.0.0.0", 8),
            ("169.254.0.0", 16),
            ("100.64.0.0", 10),
            ("198.18.0.0", 15),
            ("fc00::", 7),
            ("fe80::", 10),
        ];
        PRIVATE.iter().any(|(address, bits)| {
            let private: IpAddr = address.parse().unwrap_or(Ipv6Addr::UNSPECIFIED.into());
            private.is_ipv4() == self.address.is_ipv4()
                && self.bits >= *bits
                && network(self.address, *bits) == network(private, *bits)
        })
    }
}

impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = match self.bits == width(self.address) {
            true => String::new(),
            false => format!("/{}", self.bits),
        };
        match self.address {
            IpAddr::V4(address) => write!(f, "{address}{bits}:")?,
            IpAddr::V6(address) => write!(f, "[{address}{bits}]:")?,
        }
        let (first, last) = (self.ports.start(), self.ports.end());
        if first == last { write!(f, "{first}") } else { write!(f, "{first}-{last}") }
    }
}

/// Number of bits of an address.
fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The leading bits of an address.
fn network(address: IpAddr, bits: u32) -> u128 {
    let (value, width) = match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    value.checked_shr(width - bits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contain(targets: &str, address: &str) -> bool {
        targets.parse::<Targets>().unwrap().contain(address.parse().unwrap())
    }

    #[test]
    fn a_network_has_its_addresses_and_ports_and_no_others() {
        let targets = "10.0.1.0/24:8000-8999";
        for address in ["10.0.1.0:8000", "10.0.1.255:8999", "[::ffff:10.0.1.7]:8080"] {
            assert!(contain(targets, address), "{address}");
        }
        for address in ["10.0.2.0:8000", "10.0.0.255:8000", "10.0.1.7:7999", "10.0.1.7:9000"] {
            assert!(!contain(targets, address), "{address}");
        }
        assert!(!contain(targets, "[::a00:107]:8080"), "an IPv6 address with the same bits");
        assert!(!contain(targets, "[::ffff:8.8.8.8]:8080"));
        assert!(contain("8.8.8.8:53", "8.8.8.8:53") && !contain("8.8.8.8:53", "8.8.8.9:53"));
        assert!(contain("[fd00::/8]:1-65535", "[fdff::1]:80"));
        assert!(!contain("[fd00::/16]:1-65535", "[fd01::1]:80"));
    }

    #[test]
    fn public_addresses_are_listed_singly() {
        for text in [
            "0.0.0.0/0:80",
            "10.0.0.0/7:80",
            "172.16.0.0/11:80",
            "8.8.8.0/24:53",
            "8.8.8.8/31:53",
            "[::/0]:80",
            "[2001:db8::/32]:80",
        ] {
            let error = text.parse::<Targets>().unwrap_err();
            assert_eq!(error, format!("{text} has public addresses: list each that may be loaded"));
        }
        for text in ["8.8.8.8:53", "8.8.8.8/32:53", "[2001:db8::1]:80", "172.31.0.0/16:80"] {
            assert!(text.parse::<Targets>().is_ok(), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_form() {
        for text in [
            "",
            "10.0.0.1",
            "10.0.0.1:",
            "10.0.0.1:0",
            "10.0.0.1:9-8",
            "10.0.0.1:1-70000",
            "10.0.0.1/33:80",
            "10.0.0.1/x:80",
            "host:80",
            "fd00::1:80",
            "[10.0.0.1]:80",
            "[fd00::/129]:1",
        ] {
            let error = text.parse::<Targets>().unwrap_err();
            assert_eq!(error, format!("{FORM}; got {text:?}"));
        }
        let mapped = "[::ffff:10.0.0.0/104]:80".parse::<Targets>().unwrap_err();
        assert!(mapped.ends_with("as the IPv4 address that it stands for"), "{mapped}");
    }

    #[test]
    fn targets_are_shown_as_they_are_written() {
        for text in ["10.0.0.0/24:8000-8999", "8.8.8.8:53", "[fd00::/64]:80", "[fd00::1]:80-81"] {
            assert_eq!(text.parse::<Targets>().unwrap().to_string(), text);
        }
    }
}
