//! A server, parsed from a line of twemproxy's configuration.

use crate::map::error::MapError;
use std::str::FromStr;

/// twemproxy omits this port from a server's name, like libmemcached.
const MEMCACHED: u16 = 11211;

/// Maximum length of a name that fits twemproxy's buffer together with the number of a digest: a
/// host of 255 bytes, a colon, a port. For a longer one, twemproxy hashes memory beyond its buffer.
const LONGEST: usize = 261;

/// A server of a twemproxy pool, with the properties that determine its share of the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    address: String,
    name: String,
    weight: u32,
}

impl Server {
    /// Its address: `host:port`, or the path of a socket.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The name from which ketama computes the server's points.
    ///
    /// The name in the configuration, if it has one. Otherwise `host:port`, or only `host` if the
    /// port is 11211, or the path of a socket followed by a colon.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its weight, at least 1.
    pub fn weight(&self) -> u32 {
        self.weight
    }
}

/// Parses `host:port:weight name` or `/path/of/socket:weight name`; the name is optional.
impl FromStr for Server {
    type Err = MapError;

    fn from_str(line: &str) -> Result<Self, MapError> {
        parse(line).map_err(|why| MapError::Server { line: line.to_owned(), why })
    }
}

fn parse(line: &str) -> Result<Server, &'static str> {
    // Parsed from the end, like in twemproxy: a host may contain colons.
    let (rest, name) = match line.rsplit_once(' ') {
        Some((rest, name)) => (rest, Some(name)),
        None => (line, None),
    };
    let (address, weight) = rest.rsplit_once(':').ok_or("the weight is missing")?;
    let weight: u32 = number(weight).ok_or("the weight is not a number")?;
    if weight == 0 {
        return Err("the weight is zero");
    }
    let derived = if address.starts_with('/') {
        if address.contains(':') {
            return Err("the path of the socket has a colon");
        }
        format!("{address}:")
    } else {
        let (host, port) = address.rsplit_once(':').ok_or("the port or the weight is missing")?;
        let port: u16 = number(port)
            .and_then(|port| u16::try_from(port).ok())
            .filter(|port| *port > 0)
            .ok_or("the port is not a number from 1 to 65535")?;
        if host.is_empty() {
            return Err("the host is missing");
        }
        (if port == MEMCACHED { host } else { address }).to_owned()
    };
    let name = match name {
        Some("") => return Err("the name is empty"),
        Some(name) => name.to_owned(),
        None => derived,
    };
    if name.len() > LONGEST {
        return Err("the name is longer than 261 bytes");
    }
    Ok(Server { address: address.to_owned(), name, weight })
}

fn number(digits: &str) -> Option<u32> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_those_of_twemproxy() {
        for (line, address, name, weight) in [
            ("127.0.0.1:6379:1", "127.0.0.1:6379", "127.0.0.1:6379", 1),
            ("127.0.0.1:6379:2 server1", "127.0.0.1:6379", "server1", 2),
            ("cache:11211:1", "cache:11211", "cache", 1),
            ("cache:11211:1 c", "cache:11211", "c", 1),
            ("::1:6379:3", "::1:6379", "::1:6379", 3),
            ("/run/redis.sock:1", "/run/redis.sock", "/run/redis.sock:", 1),
            ("/run/redis.sock:4 s", "/run/redis.sock", "s", 4),
        ] {
            let server: Server = line.parse().unwrap();
            assert_eq!((server.address(), server.name(), server.weight()), (address, name, weight));
        }
    }

    #[test]
    fn an_invalid_line_is_refused_with_a_reason() {
        for (line, reason) in [
            ("", "the weight is missing"),
            ("a", "the weight is missing"),
            ("a:1", "the port or the weight is missing"),
            ("a:1:", "the weight is not a number"),
            ("a:1:0", "the weight is zero"),
            ("a:1:+1", "the weight is not a number"),
            ("a:1:4294967296", "the weight is not a number"),
            ("a:0:1", "the port is not a number from 1 to 65535"),
            ("a:65536:1", "the port is not a number from 1 to 65535"),
            (":1:1", "the host is missing"),
            ("a:1:1 ", "the name is empty"),
            ("/a:b:1", "the path of the socket has a colon"),
        ] {
            let error = line.parse::<Server>().unwrap_err();
            assert!(error.to_string().ends_with(reason), "{error}");
        }
        let long = "n".repeat(LONGEST);
        assert!(format!("a:1:1 {long}").parse::<Server>().is_ok());
        assert!(format!("a:1:1 {long}n").parse::<Server>().is_err());
    }
}
