//! What servers report: Sentinels of the address of a master, and a node of its role.
//!
//! Source: the documentation of Redis Sentinel (SENTINEL GET-MASTER-ADDR-BY-NAME, +switch-master) and of ROLE.

use regatta_proto::resp::Value;
use std::net::{IpAddr, SocketAddr};

/// The event that announces that a master has another address.
pub(crate) const SWITCH: &[u8] = b"+switch-master";

/// What a Sentinel reports of a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reported {
    /// Its address.
    At(SocketAddr),
    /// No address that can be used, for this reason.
    Nothing(String),
}

impl Reported {
    /// Reads the reply to SENTINEL GET-MASTER-ADDR-BY-NAME.
    pub fn read(reply: &[u8]) -> Reported {
        if let Some(error) = reply.strip_prefix(b"-") {
            return Reported::Nothing(error.trim_ascii_end().escape_ascii().to_string());
        }
        let nothing = |why: &str| Reported::Nothing(why.to_owned());
        let words = match Value::read(reply) {
            Some((Value::Elements(_, 2, elements), _)) => words(elements, 2),
            Some((Value::Null, _)) => return nothing("it knows no master of this name"),
            _ => None,
        };
        let Some([host, port]) = words.as_deref() else {
            return nothing("its reply is no address");
        };
        let address = || {
            let ip: IpAddr = std::str::from_utf8(host).ok()?.parse().ok()?;
            let port: u16 = std::str::from_utf8(port).ok()?.parse().ok()?;
            (port > 0 && !ip.is_unspecified()).then(|| SocketAddr::new(ip, port))
        };
        address().map_or_else(
            || {
                let host = host.escape_ascii();
                Reported::Nothing(format!(
                    "it gives {host}, which is no IP address that can be used"
                ))
            },
            Reported::At,
        )
    }
}

/// The name of the master in the announcement that it has another address. `None`: the message is another one.
pub(crate) fn switched(message: &[u8]) -> Option<&[u8]> {
    let (Value::Elements(_, 3, elements), _) = Value::read(message)? else { return None };
    let words = words(elements, 3)?;
    let [kind, channel, text] = words[..] else { return None };
    if kind != b"message" || channel != SWITCH {
        return None;
    }
    text.split(|byte| *byte == b' ').next()
}

/// Whether a reply of a connection with subscriptions is a message, and not the reply to a command.
pub(crate) fn is_message(reply: &[u8]) -> bool {
    let Some((Value::Elements(_, _, elements), _)) = Value::read(reply) else { return false };
    matches!(Value::read(elements), Some((Value::Bulk(b"message"), _)))
}

/// Reads the reply to ROLE. `Err`: the server is no master, for this reason.
pub(crate) fn is_master(reply: &[u8]) -> Result<(), String> {
    if let Some(error) = reply.strip_prefix(b"-") {
        return Err(format!("it refuses ROLE: {}", error.trim_ascii_end().escape_ascii()));
    }
    let role = match Value::read(reply) {
        Some((Value::Elements(_, _, elements), _)) => match Value::read(elements) {
            Some((Value::Bulk(role), _)) => Some(role),
            _ => None,
        },
        _ => None,
    };
    match role {
        Some(b"master") => Ok(()),
        Some(role) => Err(format!("it is no master: its role is {}", role.escape_ascii())),
        None => Err("it is no master: its reply to ROLE has no role".into()),
    }
}

/// The elements of a reply, if these are `count` bulk strings.
fn words(mut elements: &[u8], count: usize) -> Option<Vec<&[u8]>> {
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let (Value::Bulk(word), end) = Value::read(elements)? else { return None };
        words.push(word);
        elements = &elements[end..];
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_master_is_read() {
        let nothing = |why: &str| Reported::Nothing(why.to_owned());
        let no_ip =
            |host| nothing(&format!("it gives {host}, which is no IP address that can be used"));
        for (reply, expected) in [
            ("*2\r\n$8\r\n10.0.0.1\r\n$4\r\n6379\r\n", Reported::At(([10, 0, 0, 1], 6379).into())),
            ("*2\r\n$3\r\n::1\r\n$4\r\n6379\r\n", Reported::At("[::1]:6379".parse().unwrap())),
            ("*-1\r\n", nothing("it knows no master of this name")),
            ("_\r\n", nothing("it knows no master of this name")),
            ("-NOAUTH Authentication required.\r\n", nothing("NOAUTH Authentication required.")),
            ("*2\r\n$5\r\nredis\r\n$4\r\n6379\r\n", no_ip("redis")),
            ("*2\r\n$7\r\n0.0.0.0\r\n$4\r\n6379\r\n", no_ip("0.0.0.0")),
            ("*2\r\n$8\r\n10.0.0.1\r\n$1\r\n0\r\n", no_ip("10.0.0.1")),
            ("*1\r\n$8\r\n10.0.0.1\r\n", nothing("its reply is no address")),
            ("+OK\r\n", nothing("its reply is no address")),
        ] {
            assert_eq!(Reported::read(reply.as_bytes()), expected, "{reply}");
        }
    }

    #[test]
    fn an_announcement_names_its_master() {
        let message = |channel: &str, text: &str| {
            format!(
                "*3\r\n$7\r\nmessage\r\n${}\r\n{channel}\r\n${}\r\n{text}\r\n",
                channel.len(),
                text.len()
            )
        };
        let text = "shard-1 10.0.0.1 6379 10.0.0.2 6379";
        let switch = message("+switch-master", text);
        assert_eq!(switched(switch.as_bytes()), Some(&b"shard-1"[..]));
        assert!(is_message(switch.as_bytes()));
        assert_eq!(switched(message("+sdown", text).as_bytes()), None);
        let confirmation = b"*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n";
        assert_eq!(switched(confirmation), None);
        assert!(!is_message(confirmation) && !is_message(b"*2\r\n$4\r\npong\r\n$0\r\n\r\n"));
    }

    #[test]
    fn only_a_master_is_one() {
        let refused = |reply: &str| is_master(reply.as_bytes()).unwrap_err();
        assert_eq!(is_master(b"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"), Ok(()));
        let replica = "*5\r\n$5\r\nslave\r\n$8\r\n10.0.0.1\r\n:6379\r\n$9\r\nconnected\r\n:7\r\n";
        assert_eq!(refused(replica), "it is no master: its role is slave");
        let sentinel = "*2\r\n$8\r\nsentinel\r\n*1\r\n$7\r\nshard-1\r\n";
        assert_eq!(refused(sentinel), "it is no master: its role is sentinel");
        assert_eq!(refused("-NOPERM no\r\n"), "it refuses ROLE: NOPERM no");
        assert!(refused("+OK\r\n").starts_with("it is no master"));
    }
}
