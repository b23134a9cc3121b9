//! Describes wrong replies in words.

use super::names::{Identity, Names};
use crate::text::{line, printable};
use regatta_proto::resp::{Malformed, Value};

/// The expected and the received reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub expected: String,
    pub received: String,
}

impl Wrong {
    /// `came` starts with the reply, which may be incomplete.
    #[cold]
    pub fn new(names: &Names, expected: String, came: &[u8]) -> Box<Wrong> {
        let received = match Value::read(came) {
            Some((Value::Bulk(value), taken)) => {
                let what = match names.read(value) {
                    Some(identity) => in_words(identity),
                    None => format!("{} bytes that no client wrote as a value", value.len()),
                };
                // The end of its line may be missing.
                format!("{} ({what})", printable(came.get(..taken).unwrap_or(came)))
            }
            None if came.first() == Some(&b'$') => printable(came),
            _ => printable(line(came)),
        };
        Box::new(Wrong { expected, received })
    }

    /// Describes bytes that are not a valid reply.
    #[cold]
    pub fn malformed(expected: String, came: &[u8], why: Malformed) -> Box<Wrong> {
        Box::new(Wrong { expected, received: format!("{} ({why})", printable(line(came))) })
    }
}

/// Describes a value by its origin.
pub(super) fn in_words(Identity { author, key, version }: Identity) -> String {
    let client = author.slot();
    match version {
        0 => format!("the first value of key {key} of client {client}"),
        version => {
            format!("the value that request {version} of client {client} wrote to key {key}")
        }
    }
}
