//! The texts of errors, in the wording of Redis if it has the same error.
//!
//! Source: `commandCheckExistence` and `commandCheckArity` in `server.c` of Redis. `tests/it/commands`
//! compares the texts with a live redis-server.

use crate::{arguments::Arguments, command::Command};

/// Maximum number of bytes of a name that Redis shows, and roughly that of the arguments.
const SHOWN: usize = 128;

/// Error of an unknown command.
pub(super) fn unknown<A: Arguments + ?Sized>(args: &A) -> Vec<u8> {
    let mut shown = Vec::new();
    for position in 1..args.count() {
        if shown.len() >= SHOWN {
            break;
        }
        let argument = shortened(args, position, SHOWN - shown.len());
        shown.extend_from_slice(b"'");
        shown.extend_from_slice(argument);
        shown.extend_from_slice(b"' ");
    }
    let name = shortened(args, 0, SHOWN);
    line(&[b"ERR unknown command '", name, b"', with args beginning with: ", &shown])
}

/// Error of an unknown subcommand.
pub(super) fn unknown_subcommand<A: Arguments + ?Sized>(args: &A) -> Vec<u8> {
    let (name, command) = (shortened(args, 1, SHOWN), shortened(args, 0, SHOWN));
    let command = command.to_ascii_uppercase();
    line(&[b"ERR unknown subcommand '", name, b"'. Try ", &command, b" HELP."])
}

/// Error of a wrong number of arguments. EXEC ends its transaction even then, and reports that.
pub(super) fn arity(command: &Command) -> Vec<u8> {
    let code: &[u8] = match command.name {
        "exec" => b"EXECABORT Transaction discarded because of: ",
        _ => b"ERR ",
    };
    line(&[code, b"wrong number of arguments for '", command.name.as_bytes(), b"' command"])
}

/// Error of keys on several nodes.
pub fn cross_slot() -> Vec<u8> {
    b"CROSSSLOT Keys in request don't hash to the same slot".to_vec()
}

/// Error of an invalid SCAN cursor.
pub(super) fn invalid_cursor() -> Vec<u8> {
    b"ERR invalid cursor".to_vec()
}

/// Error of a SCAN cursor of other slots.
pub(super) fn moved_scan() -> Vec<u8> {
    b"SHARDMOVED the slots of the cluster have moved; restart the scan".to_vec()
}

/// Error of a Redis Cluster command. The proxy behaves like a single Redis.
pub(super) fn no_cluster() -> Vec<u8> {
    b"ERR This instance has cluster support disabled".to_vec()
}

/// Error of a command that the proxy does not support.
pub fn unsupported(command: &Command, reason: &str) -> Vec<u8> {
    format!("ERR the proxy does not support '{}': {reason}", command.name).into_bytes()
}

/// Returns an argument like `%.*s` in C: up to the first zero byte, and at most `most` bytes.
fn shortened<A: Arguments + ?Sized>(args: &A, position: usize, most: usize) -> &[u8] {
    let argument = args.get(position).unwrap_or_default();
    let argument = &argument[..argument.len().min(most)];
    let end = argument.iter().position(|byte| *byte == 0).unwrap_or(argument.len());
    &argument[..end]
}

/// Joins the parts to one line: line breaks become spaces.
fn line(parts: &[&[u8]]) -> Vec<u8> {
    let mut text = parts.concat();
    for byte in &mut text {
        if matches!(byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).expect("UTF-8")
    }

    #[test]
    fn an_unknown_command_is_shown_with_its_arguments() {
        assert_eq!(
            text(unknown(&["foo", "a", "b c"][..])),
            "ERR unknown command 'foo', with args beginning with: 'a' 'b c' "
        );
        assert_eq!(
            text(unknown(&["fo\r\no\0x"][..])),
            "ERR unknown command 'fo  o', with args beginning with: "
        );
    }

    #[test]
    fn long_arguments_are_truncated() {
        let long = "x".repeat(200);
        let shown = "x".repeat(128);
        assert_eq!(
            text(unknown(&[&long[..], &long[..], "more"][..])),
            format!("ERR unknown command '{shown}', with args beginning with: '{shown}' ")
        );
        let (one, rest) = ("y".repeat(100), "x".repeat(128 - 103));
        assert_eq!(
            text(unknown(&["a", &one[..], &long[..]][..])),
            format!("ERR unknown command 'a', with args beginning with: '{one}' '{rest}' ")
        );
    }

    #[test]
    fn an_unknown_subcommand_points_to_help() {
        assert_eq!(
            text(unknown_subcommand(&["client", "Foo"][..])),
            "ERR unknown subcommand 'Foo'. Try CLIENT HELP."
        );
    }
}
