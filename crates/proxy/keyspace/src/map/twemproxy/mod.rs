//! The assignment of twemproxy (nutcracker) 0.5, including its peculiarities, so that users can
//! migrate without moving data.
//!
//! - A pool with one server does not hash.
//! - The hash of an empty key is 0 for every hash function.
//! - Servers are first sorted by the length of their names, then by name. Their order in the
//!   configuration does not matter.
//!
//! Servers are never ejected: with `auto_eject_hosts`, twemproxy moves keys while a server is down,
//! so a written key would not be found again.
//!
//! Source: `src/hashkit`, `src/nc_conf.c` and `src/nc_server.c` of twemproxy. `tests/it/twemproxy`
//! compares with a real nutcracker.

mod hash;
mod ketama;
mod modula;
mod server;

pub use hash::Hash;
pub use server::Server;

use super::error::{MapError, check};
use ketama::Ketama;
use modula::Modula;
use std::str::FromStr;

/// How a pool maps a hash to a server. The `random` of twemproxy is not supported: it sends each
/// request to any server, so a written key would not be found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Consistent hashing with about 160 points per server of mean weight.
    Ketama,
    /// The hash modulo the sum of the weights.
    Modula,
}

impl FromStr for Distribution {
    type Err = MapError;

    fn from_str(name: &str) -> Result<Self, MapError> {
        match name {
            "ketama" => Ok(Distribution::Ketama),
            "modula" => Ok(Distribution::Modula),
            "random" => Err(MapError::Random),
            _ => Err(MapError::Distribution(name.to_owned())),
        }
    }
}

/// A twemproxy pool. Its nodes are numbered in the given order of the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Twemproxy {
    hash: Hash,
    tag: Option<[u8; 2]>,
    /// For each server in twemproxy's order, its number in the given order.
    given: Box<[u16]>,
    spread: Spread,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Spread {
    Ketama(Ketama),
    Modula(Modula),
}

impl Twemproxy {
    /// Creates a pool. `tag`: the two characters of twemproxy's setting `hash_tag`, if set.
    pub fn new(
        distribution: Distribution,
        hash: Hash,
        tag: Option<[u8; 2]>,
        servers: &[Server],
    ) -> Result<Self, MapError> {
        check(servers.len())?;
        let mut sorted: Vec<(u16, &Server)> = (0..).zip(servers).collect();
        sorted.sort_by_key(|(_, server)| (server.name().len(), server.name()));
        if let Some(same) = sorted.windows(2).find(|two| two[0].1.name() == two[1].1.name()) {
            return Err(MapError::SameName(same[0].1.name().to_owned()));
        }
        servers
            .iter()
            .try_fold(0_u32, |sum, server| sum.checked_add(server.weight()))
            .ok_or(MapError::TooMuchWeight)?;
        let in_order: Vec<&Server> = sorted.iter().map(|(_, server)| *server).collect();
        let spread = match distribution {
            Distribution::Ketama => Spread::Ketama(Ketama::new(&in_order)),
            Distribution::Modula => Spread::Modula(Modula::new(&in_order)),
        };
        let given = sorted.iter().map(|(number, _)| *number).collect();
        Ok(Twemproxy { hash, tag, given, spread })
    }

    pub(super) fn hash_tag(&self) -> Option<[u8; 2]> {
        self.tag
    }

    pub(super) fn nodes(&self) -> usize {
        self.given.len()
    }

    pub(super) fn node(&self, key: &[u8]) -> usize {
        if self.given.len() == 1 {
            return 0;
        }
        let part = self.tag.map_or(key, |tag| tagged(key, tag));
        let hash = if part.is_empty() { 0 } else { self.hash.of(part) };
        let server = match &self.spread {
            Spread::Ketama(ketama) => ketama.server(hash),
            Spread::Modula(modula) => modula.server(hash),
        };
        usize::from(self.given[server])
    }
}

/// Returns the part of a key that is hashed: the text between the first `open` and the first
/// `close` after it, if it is not empty. Otherwise the whole key.
fn tagged(key: &[u8], [open, close]: [u8; 2]) -> &[u8] {
    let Some(start) = key.iter().position(|byte| *byte == open) else { return key };
    let rest = &key[start + 1..];
    match rest.iter().position(|byte| *byte == close) {
        None | Some(0) => key,
        Some(length) => &rest[..length],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(lines: &[&str]) -> Vec<Server> {
        lines.iter().map(|line| line.parse().unwrap()).collect()
    }

    fn modula(lines: &[&str]) -> Result<Twemproxy, MapError> {
        Twemproxy::new(Distribution::Modula, Hash::Crc32a, None, &servers(lines))
    }

    #[test]
    fn tags_can_have_any_two_characters() {
        for (key, tag, expected) in [
            ("a{b}c", b"{}", "b"),
            ("a{}b{c}", b"{}", "a{}b{c}"),
            ("a$b$c", b"$$", "b"),
            ("a$$c", b"$$", "a$$c"),
            ("a{b", b"{}", "a{b"),
            ("}a{b}", b"{}", "b"),
        ] {
            assert_eq!(tagged(key.as_bytes(), *tag), expected.as_bytes(), "{key}");
        }
    }

    #[test]
    fn the_order_of_servers_only_changes_their_numbers() {
        // By length, then by name: a:2, b:1, a:10.
        let (one, other) =
            (modula(&["a:10:1", "b:1:1", "a:2:1"]), modula(&["a:2:1", "b:1:1", "a:10:1"]));
        let (one, other) = (one.unwrap(), other.unwrap());
        assert_eq!(*one.given, [2, 1, 0]);
        assert_eq!(*other.given, [0, 1, 2]);
        for i in 0..100 {
            let key = format!("key:{i}");
            assert_eq!(2 - one.node(key.as_bytes()), other.node(key.as_bytes()), "{key}");
        }
    }

    #[test]
    fn names_must_differ() {
        let same = modula(&["a:1:1", "b:1:1", "a:1:2"]);
        assert_eq!(same.unwrap_err(), MapError::SameName("a:1".to_owned()));
        assert!(modula(&["a:1:1 x", "a:1:1 y"]).is_ok());
    }

    #[test]
    fn the_sum_of_weights_must_fit_32_bits() {
        let heavy = format!("a:1:{}", u32::MAX);
        assert!(modula(&[&heavy]).is_ok());
        assert_eq!(modula(&[&heavy, "b:1:1"]).unwrap_err(), MapError::TooMuchWeight);
    }

    #[test]
    fn a_pool_with_one_server_owns_every_key() {
        assert_eq!(modula(&["a:1:7"]).unwrap().node(b"x"), 0);
        assert_eq!(modula(&[]).unwrap_err(), MapError::NoNodes);
    }

    #[test]
    fn random_is_refused_with_a_reason() {
        let error = "random".parse::<Distribution>().unwrap_err();
        assert!(error.to_string().contains("would not be found again"), "{error}");
        assert_eq!("modula".parse(), Ok(Distribution::Modula));
        assert_eq!("ketama".parse(), Ok(Distribution::Ketama));
        assert!(matches!("rendezvous".parse::<Distribution>(), Err(MapError::Distribution(_))));
    }
}
