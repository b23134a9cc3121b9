//! Handoffs: clients that ask for it are requested to reconnect before the proxy disconnects them.
//!
//! The command and the push are those of Redis Cloud and Redis Software, which redis-py (from 6.4), go-redis (from
//! 9.16) and other clients understand: `CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type TYPE`, and the push
//! `MOVING sequence seconds endpoint`. The server closes the connection after so many seconds. With a null endpoint,
//! these clients connect to the same address again after half of that time, and close the old connection when it has no
//! request in flight.

use regatta_keyspace::Arguments;
use regatta_proto::resp::Command;

/// Where a client is in a paced drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// There is no drain, or its turn has not come.
    #[default]
    No,
    /// It was asked to reconnect, and leaves by itself.
    Asked,
    /// It is disconnected when the proxy serves it next and it is idle then.
    WhenIdle,
}

/// The kinds of endpoints that a client may ask for. The proxy always answers with none.
const TYPES: [&str; 5] = ["none", "internal-ip", "internal-fqdn", "external-ip", "external-fqdn"];

/// Returns whether this is CLIENT MAINT_NOTIFICATIONS.
pub(crate) fn is_request(command: &Command<'_>) -> bool {
    command.is(0, "client") && command.is(1, "maint_notifications")
}

/// Returns whether a request asks for handoffs, or the text of an error without the leading `-`.
pub(crate) fn asks(command: &Command<'_>) -> Result<bool, &'static [u8]> {
    let is_type = || TYPES.iter().any(|kind| command.is(4, kind));
    match command.len() {
        3 if command.is(2, "off") => Ok(false),
        3 if command.is(2, "on") => Ok(true),
        5 if command.is(2, "on") && command.is(3, "moving-endpoint-type") && is_type() => Ok(true),
        _ => Err(b"ERR syntax error"),
    }
}

/// The push that asks a client to reconnect to the same address. `sequence`: clients ignore a push with a number that
/// they know. `seconds`: until the connection is closed.
pub(crate) fn moving(sequence: u64, seconds: u64) -> Vec<u8> {
    format!(">4\r\n$6\r\nMOVING\r\n:{sequence}\r\n:{seconds}\r\n_\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_proto::resp::{CommandLimits, Commands};

    fn asked(line: &str) -> Result<bool, &'static [u8]> {
        let bytes = format!("{line}\r\n").into_bytes();
        let mut commands = Commands::new(CommandLimits::default());
        let (_, command) = commands.next(&bytes).unwrap();
        let command = command.unwrap();
        assert!(is_request(&command), "{line}");
        asks(&command)
    }

    #[test]
    fn a_client_asks_for_handoffs_with_any_kind_of_endpoint() {
        for kind in TYPES {
            let line = format!("client maint_notifications on moving-endpoint-type {kind}");
            assert_eq!(asked(&line), Ok(true));
            assert_eq!(asked(&line.to_ascii_uppercase()), Ok(true));
        }
        assert_eq!(asked("CLIENT MAINT_NOTIFICATIONS ON"), Ok(true));
        assert_eq!(asked("CLIENT MAINT_NOTIFICATIONS OFF"), Ok(false));
    }

    #[test]
    fn other_forms_are_errors() {
        for rest in [
            "",
            " maybe",
            " on moving-endpoint-type",
            " on moving-endpoint-type x",
            " on endpoint none",
            " off moving-endpoint-type none",
        ] {
            let error = asked(&format!("client maint_notifications{rest}")).unwrap_err();
            assert_eq!(error, b"ERR syntax error", "{rest}");
        }
    }
}
