//! What the broker says of itself, and why it refuses something, for people. What the hub has sent is never shown: servers
//! that do not know a command repeat its arguments, e.g. the password, or a message.

use super::input::field;
use regatta_proto::resp::Value;
use std::fmt::Write as _;

/// Maximum length of a text of the broker that is shown to people, in bytes.
const LONGEST_TEXT: usize = 200;
/// The first words of errors of Redis and Valkey that do not repeat arguments.
const HARMLESS: [&str; 13] = [
    "WRONGPASS",
    "NOAUTH",
    "NOPERM",
    "NOPROTO",
    "DENIED",
    "LOADING",
    "MASTERDOWN",
    "READONLY",
    "BUSY",
    "MOVED",
    "ASK",
    "TRYAGAIN",
    "CLUSTERDOWN",
];
const TOO_OLD: &str =
    "expected Redis from 6.0 on (in a cluster from 7.0 on), or Valkey, which speak RESP3";

/// Checks a reply to `HELLO`. `is_in_cluster`: the broker is a node of a cluster.
///
/// # Errors
/// Says why this server cannot be the broker.
pub(super) fn greeted(reply: Value<'_>, is_in_cluster: bool) -> Result<(), String> {
    if let Value::Error(text) = reply {
        return Err(shown(text));
    }
    match (field(reply, b"role"), field(reply, b"mode")) {
        (Some(b"master"), Some(b"standalone")) if !is_in_cluster => Ok(()),
        (Some(b"master"), Some(b"cluster")) if is_in_cluster => Ok(()),
        (Some(_), Some(b"cluster")) if !is_in_cluster => Err(
            "expected a single server, not a node of a cluster; for that, write --broker redis+cluster://"
                .to_owned(),
        ),
        (Some(_), Some(b"standalone")) if is_in_cluster => Err(
            "expected a node of a cluster; for a single server, write --broker redis://".to_owned(),
        ),
        (Some(_), Some(b"sentinel")) => {
            Err("expected a server, not a Sentinel; write --broker redis+sentinel://".to_owned())
        }
        (Some(_), Some(_)) => {
            Err("expected a master: a replica does not pass messages on".to_owned())
        }
        _ => Err(TOO_OLD.to_owned()),
    }
}

/// Codes of errors whose texts may repeat what was sent. Redis 6 writes those of a script as `ERR Error running script (…):
/// …: -CODE …`.
const CODES: [&str; 6] = ["OOM", "MISCONF", "NOREPLICAS", "NOSCRIPT", "WRONGTYPE", "READONLY"];

/// The words of Redis up to 7.0, and of later versions and Valkey, for what a script may not do.
pub(super) const NOT_IN_SCRIPT: [&str; 2] =
    ["The user executing the script", "ACL failure in script"];

/// An error of the broker, for people: on one line, not too long, and without what was sent.
pub(super) fn shown(text: &[u8]) -> String {
    let text = &text[..text.len().min(LONGEST_TEXT)];
    let text = String::from_utf8_lossy(text);
    let code = text.split(' ').next().unwrap_or_default();
    if NOT_IN_SCRIPT.iter().any(|words| text.contains(words)) {
        return "it does not permit a command of a script (NOPERM)".to_owned();
    }
    if text.starts_with("ERR unknown command") {
        return format!("it does not know a command that hubs need; {TOO_OLD}");
    }
    let is_harmless = HARMLESS.contains(&code) || text.starts_with("ERR max number of clients");
    if !is_harmless {
        let is = |known: &&str| *known == code || text.contains(&format!(": -{known} "));
        let code = CODES.into_iter().find(is).or((code == "ERR").then_some("ERR"));
        let code = code.unwrap_or("an error");
        return format!("it answers {code}, with a text that may repeat what was sent");
    }
    let mut shown = String::from("it says: ");
    for part in text.chars() {
        if part.is_control() {
            let _ = write!(shown, "{}", part.escape_default());
        } else {
            shown.push(part);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_never_shown() {
        for text in [
            "ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `default`, `a-secret`, ",
            "ERR AUTH <a-secret> called without any password",
            "-a-secret",
            "a-secret",
            "SECRET a-secret",
            "",
        ] {
            let shown = shown(text.as_bytes());
            assert!(!shown.contains("a-secret"), "{shown}");
        }
        assert!(shown(b"ERR unknown command 'HELLO'").contains("Redis from 6.0 on"));
        assert!(shown(b"OOM no memory").contains("OOM"));
        let in_redis_6 = b"ERR Error running script (call to f_1): @user_script:37: -MISCONF Redis";
        assert!(shown(in_redis_6).contains("MISCONF"));
        let in_later_ones = b"ERR ACL failure in script: User a-secret has no permissions to run";
        assert!(shown(in_later_ones).contains("NOPERM") && !shown(in_later_ones).contains("a-"));
    }

    #[test]
    fn a_server_and_a_node_of_a_cluster_are_not_mixed_up() {
        let hello = |mode: &str, role: &str| {
            let (mode_size, role_size) = (mode.len(), role.len());
            format!(
                "%2\r\n$4\r\nmode\r\n${mode_size}\r\n{mode}\r\n$4\r\nrole\r\n${role_size}\r\n{role}\r\n"
            )
        };
        for (mode, role, is_in_cluster, why) in [
            ("standalone", "master", false, None),
            ("cluster", "master", true, None),
            ("cluster", "master", false, Some("redis+cluster://")),
            ("standalone", "master", true, Some("a node of a cluster")),
            ("standalone", "replica", false, Some("expected a master")),
            ("cluster", "replica", true, Some("expected a master")),
            ("sentinel", "sentinel", true, Some("redis+sentinel://")),
            ("sentinel", "sentinel", false, Some("redis+sentinel://")),
        ] {
            let reply = hello(mode, role);
            let (value, _) = Value::read(reply.as_bytes()).unwrap();
            let greeted = greeted(value, is_in_cluster);
            assert_eq!(greeted.is_ok(), why.is_none(), "{mode} {role}");
            assert!(greeted.err().is_none_or(|text| text.contains(why.unwrap())), "{mode} {role}");
        }
    }

    #[test]
    fn errors_that_help_are_shown_on_one_line() {
        let text = b"WRONGPASS invalid username-password pair";
        assert_eq!(shown(text), "it says: WRONGPASS invalid username-password pair");
        assert_eq!(shown(b"NOPERM no\r\nrights"), "it says: NOPERM no\\r\\nrights");
        let long = format!("NOPERM {}", "x".repeat(999));
        assert!(shown(long.as_bytes()).len() < 300);
    }
}
