//! Merging of the replies to CONFIG GET. Clients must not see the credentials of the nodes.

use crate::reply::errors;
use regatta_proto::resp::Value;

/// A parameter's name, and its bytes with those of its value.
type Parameter<'a> = (&'a [u8], &'a [u8]);

/// Writes the common configuration of all nodes, or an error if they differ or if it contains a
/// credential. Nodes order the parameters that match a pattern differently. `None`: a reply is not a
/// list of names and values.
pub(crate) fn merge<'a>(
    mut replies: impl Iterator<Item = &'a [u8]>,
    out: &mut Vec<u8>,
) -> Option<()> {
    let first = replies.next()?;
    let parameters = sorted(first)?;
    let mut is_same = true;
    // Those of all nodes are read before anything is written: they may be of different versions.
    let mut is_secret = parameters.iter().any(|(name, _)| is_credential(name));
    for reply in replies {
        let others = sorted(reply)?;
        is_secret |= others.iter().any(|(name, _)| is_credential(name));
        is_same &= others == parameters;
    }
    if is_secret {
        errors::write(out, &[SECRET]);
    } else if is_same {
        out.extend_from_slice(first);
    } else {
        errors::write(out, &[b"ERR the nodes give different answers"]);
    }
    Some(())
}

const SECRET: &[u8] = b"ERR the proxy does not support 'config|get' of user names and passwords: \
    they belong to the nodes";

/// Returns whether a parameter contains a user name or a password, e.g. `requirepass`, `masterauth`,
/// `masteruser`, `tls-key-file-pass`, and `primaryauth` of Valkey. A node repeats the name in the
/// letters of the request.
fn is_credential(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    let has_pass = name.windows(4).any(|four| four == b"pass");
    has_pass || name.ends_with(b"auth") || name.ends_with(b"user")
}

/// Returns the parameters of a reply, sorted.
fn sorted(reply: &[u8]) -> Option<Vec<Parameter<'_>>> {
    let (Value::Elements(b'*' | b'%', count, bytes), _) = Value::read(reply)? else { return None };
    let (mut parameters, mut at) = (Vec::new(), 0);
    for _ in 0..count / 2 {
        let (Value::Bulk(name), length) = Value::read(&bytes[at..])? else { return None };
        let (Value::Bulk(_), more) = Value::read(bytes.get(at + length..)?)? else { return None };
        parameters.push((name, bytes.get(at..at + length + more)?));
        at += length + more;
    }
    parameters.sort_unstable();
    (count.is_multiple_of(2) && at == bytes.len()).then_some(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(kind: char, parameters: &[(&str, &str)]) -> String {
        let count = parameters.len() * if kind == '*' { 2 } else { 1 };
        let words = parameters.iter().flat_map(|(name, value)| [name, value]);
        let bulks = words.map(|word| format!("${}\r\n{word}\r\n", word.len()));
        format!("{kind}{count}\r\n{}", bulks.collect::<String>())
    }

    fn merged(replies: &[String]) -> Option<String> {
        let mut out = Vec::new();
        merge(replies.iter().map(String::as_bytes), &mut out)?;
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn the_order_of_the_parameters_does_not_matter() {
        for kind in ['*', '%'] {
            let one = reply(kind, &[("maxmemory", "0"), ("maxclients", "100")]);
            let other = reply(kind, &[("maxclients", "100"), ("maxmemory", "0")]);
            assert_eq!(merged(&[one.clone(), other]), Some(one));
            let none = reply(kind, &[]);
            assert_eq!(merged(&[none.clone(), none.clone()]), Some(none));
        }
    }

    #[test]
    fn different_values_are_an_error() {
        let one = reply('*', &[("maxmemory", "0"), ("maxclients", "100")]);
        for other in [
            reply('*', &[("maxmemory", "1"), ("maxclients", "100")]),
            reply('*', &[("maxmemory", "0")]),
            reply('*', &[("maxmemory", "100"), ("maxclients", "0")]),
        ] {
            let error = "-ERR the nodes give different answers\r\n";
            assert_eq!(merged(&[one.clone(), other]).as_deref(), Some(error));
        }
    }

    #[test]
    fn credentials_are_never_returned() {
        for name in [
            "requirepass",
            "RequirePass",
            "MASTERAUTH",
            "masteruser",
            "primaryauth",
            "primaryuser",
            "tls-key-file-pass",
            "tls-client-key-file-pass",
        ] {
            let harmless = reply('*', &[("maxmemory", "0")]);
            let secret = reply('*', &[("maxmemory", "0"), (name, "hidden")]);
            for replies in [vec![secret.clone()], vec![harmless, secret]] {
                let error = merged(&replies).unwrap();
                assert!(error.starts_with("-ERR the proxy does not support"), "{name}: {error}");
                assert!(!error.contains("hidden"), "{name}");
            }
        }
    }

    #[test]
    fn other_replies_are_not_merged() {
        for wrong in
            ["+OK\r\n", "*1\r\n$1\r\na\r\n", "*2\r\n$1\r\na\r\n:1\r\n", "*2\r\n$1\r\na\r\n"]
        {
            assert_eq!(merged(&[wrong.to_string()]), None, "{wrong}");
        }
    }
}
