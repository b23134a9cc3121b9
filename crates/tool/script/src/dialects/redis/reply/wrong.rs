//! Describes wrong replies in words.

use crate::dialects::redis::names::{Identity, Names};
use crate::text::{line, printable};
use regatta_proto::resp::{Malformed, Value};

/// The expected and the received reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub expected: String,
    pub received: String,
}

impl Wrong {
    /// `data` starts with the reply, which may be incomplete.
    #[cold]
    pub fn new(names: &Names, expected: String, data: &[u8]) -> Box<Wrong> {
        let received = match Value::read(data) {
            Some((Value::Bulk(value), taken)) => {
                let what = match names.read(value) {
                    Some(identity) => in_words(identity),
                    None => format!("{} bytes that no client wrote as a value", value.len()),
                };
                // The end of its line may be missing.
                format!("{} ({what})", printable(data.get(..taken).unwrap_or(data)))
            }
            None if data.first() == Some(&b'$') => printable(data),
            _ => printable(line(data)),
        };
        Box::new(Wrong { expected, received })
    }

    /// Describes bytes that are not a valid reply.
    #[cold]
    pub fn malformed(expected: String, data: &[u8], why: Malformed) -> Box<Wrong> {
        Box::new(Wrong { expected, received: format!("{} ({why})", printable(line(data))) })
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
