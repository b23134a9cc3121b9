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
    /// The node does not serve: CLUSTERDOWN, LOADING or MASTERDOWN. Its view may be old, or that of the proxy.
    Down,
    /// The node is a replica, so the view of the proxy is old.
    ReadOnly,
}

/// Whether a program of a client can make the error reply to this command, after it has written: a script or a function. Its
/// text does not differ from that of the node. Those with `_RO` cannot write. Commands of modules that the proxy forwards
/// run no programs.
#[inline]
pub(crate) fn runs_program(name: &[u8]) -> bool {
    let starts =
        |with: &[u8]| name.len() >= with.len() && name[..with.len()].eq_ignore_ascii_case(with);
    (starts(b"eval") || starts(b"fcall"))
        && !(name.len() > 3 && name[name.len() - 3..].eq_ignore_ascii_case(b"_ro"))
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
            "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" => Redirect::Down,
            "READONLY" => Redirect::ReadOnly,
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
    fn scripts_and_functions_that_may_write_can_make_errors() {
        for name in ["EVAL", "evalsha", "Fcall"] {
            assert!(runs_program(name.as_bytes()), "{name}");
        }
        for name in ["eval_ro", "EVALSHA_RO", "FCALL_RO", "get", "ev", "", "expire", "json.set"] {
            assert!(!runs_program(name.as_bytes()), "{name}");
        }
    }

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
            (
                "-READONLY You can't write against a read only replica.\r\n",
                Some(Redirect::ReadOnly),
            ),
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
