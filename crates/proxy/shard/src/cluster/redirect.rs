//! Errors with which a node of a cluster does not apply a request.
//!
//! Source: the Redis Cluster specification, "Redirection and resharding".

use std::net::{IpAddr, SocketAddr};

/// An error that says that a request was not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// The slot belongs to the node at this address. `None`: it is not an IP address.
    Moved(u16, Option<SocketAddr>),
    /// The slot is being moved, and this key may be at the node at this address.
    Ask(u16, Option<SocketAddr>),
    /// The slot is being moved, and only some of the keys have been.
    TryAgain,
    /// The node does not serve: CLUSTERDOWN, LOADING, MASTERDOWN or READONLY. Its view may be old, or that of the proxy.
    Down,
}

impl Redirect {
    /// Reads an error reply. `from`: the address of the node that sent it, which is meant if there is no host.
    /// `None`: it is another error.
    pub(crate) fn of(reply: &[u8], from: SocketAddr) -> Option<Redirect> {
        let line = reply.strip_prefix(b"-")?;
        let line = std::str::from_utf8(line.strip_suffix(b"\r\n")?).ok()?;
        let mut words = line.split(' ');
        let code = words.next()?;
        Some(match code {
            "MOVED" | "ASK" => {
                let slot = words.next()?.parse().ok()?;
                let to = address(words.next()?, from);
                if code == "MOVED" { Redirect::Moved(slot, to) } else { Redirect::Ask(slot, to) }
            }
            "TRYAGAIN" => Redirect::TryAgain,
            "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" | "READONLY" => Redirect::Down,
            _ => return None,
        })
    }
}

/// Reads HOST:PORT. The last colon separates them.
fn address(text: &str, from: SocketAddr) -> Option<SocketAddr> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let ip = if host.is_empty() { from.ip() } else { host.parse::<IpAddr>().ok()? };
    Some(SocketAddr::new(ip, port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_cluster_are_read() {
        let at = |text: &str| Some(text.parse::<SocketAddr>().unwrap());
        for (reply, expected) in [
            ("-MOVED 5 10.0.0.1:7000\r\n", Some(Redirect::Moved(5, at("10.0.0.1:7000")))),
            ("-MOVED 5 :7000\r\n", Some(Redirect::Moved(5, at("10.0.0.9:7000")))),
            ("-ASK 16383 ::1:7000\r\n", Some(Redirect::Ask(16383, at("[::1]:7000")))),
            ("-ASK 1 [::1]:7000\r\n", Some(Redirect::Ask(1, at("[::1]:7000")))),
            ("-MOVED 5 redis-1:7000\r\n", Some(Redirect::Moved(5, None))),
            ("-MOVED 5 ?:7000\r\n", Some(Redirect::Moved(5, None))),
            ("-MOVED 5\r\n", None),
            ("-MOVED x 10.0.0.1:7000\r\n", None),
            (
                "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
                Some(Redirect::TryAgain),
            ),
            ("-CLUSTERDOWN The cluster is down\r\n", Some(Redirect::Down)),
            ("-ERR MOVED 5 10.0.0.1:7000\r\n", None),
            ("-WRONGTYPE no\r\n", None),
            ("+MOVED 5 10.0.0.1:7000\r\n", None),
        ] {
            assert_eq!(
                Redirect::of(reply.as_bytes(), "10.0.0.9:1".parse().unwrap()),
                expected,
                "{reply}"
            );
        }
    }
}
