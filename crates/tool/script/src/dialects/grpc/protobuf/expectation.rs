//! The expected message of a reply, compared by its fields.

use super::{compare, cost::Cost, limits::Limits, wire::decode};
use crate::dialects::grpc::hex::in_hex;
use prost_reflect::{DynamicMessage, MessageDescriptor, ReflectMessage};
use std::sync::OnceLock;

/// Maximum number of encodings of the expected message that are known to be right.
const KNOWN: usize = 4;

/// An encoding that is longer than this is known only if it is at most twice as long as the shortest one.
const LONGEST_KNOWN: usize = 1 << 16;

/// Maximum number of characters of a message that are shown.
const SHOWN: usize = 300;

/// An expected message.
#[derive(Debug)]
pub struct Expectation {
    message: DynamicMessage,
    /// Encodings of it, in the order in which they were found. A message with these bytes is right without
    /// being decoded.
    known: [OnceLock<Box<[u8]>>; KNOWN],
    longest_known: usize,
    limits: Limits,
}

impl Expectation {
    /// Creates an expectation from an encoding of the message.
    pub fn new(of: &MessageDescriptor, bytes: &[u8]) -> Result<Expectation, String> {
        let message = decode(of, bytes, Cost::MOST)?;
        let limits = Limits::of(&message, bytes.len());
        let longest_known = LONGEST_KNOWN.max(2 * bytes.len());
        let known = [const { OnceLock::new() }; KNOWN];
        let _ = known[0].set(bytes.into());
        Ok(Expectation { message, known, longest_known, limits })
    }

    /// Maximum number of bytes of a message that can be right.
    #[inline]
    pub fn longest(&self) -> usize {
        self.limits.bytes
    }

    /// Returns what is wrong with a message, if anything.
    #[inline]
    pub fn fault(&self, bytes: &[u8]) -> Option<String> {
        let mut known = self.known.iter().map_while(OnceLock::get);
        if known.any(|known| **known == *bytes) { None } else { self.compare(bytes) }
    }

    /// Compares a message whose bytes are not known to be right.
    #[cold]
    fn compare(&self, bytes: &[u8]) -> Option<String> {
        let of = self.message.descriptor();
        let received = match decode(&of, bytes, self.limits.cost) {
            Ok(received) => received,
            Err(why) => return Some(format!("{why}: {}", in_hex(bytes))),
        };
        if let Some(difference) = compare::difference(&self.message, &received) {
            let compare::Difference { path, received, expected } = difference;
            let name = of.full_name();
            return Some(format!(
                "a message {name} in which `{path}` is {received}; expected {expected}"
            ));
        }
        if bytes.len() <= self.longest_known {
            for known in &self.known {
                // Another thread may have come first, perhaps with the same bytes.
                if **known.get_or_init(|| bytes.into()) == *bytes {
                    break;
                }
            }
        }
        None
    }

    /// The expected message, for people: as JSON, which is cut if it is long.
    #[cold]
    pub fn in_words(&self) -> String {
        let json = serde_json::to_string(&self.message);
        let json = json.unwrap_or_else(|_| self.message.to_string());
        let mut shown: String = json.chars().take(SHOWN).collect();
        if shown.len() < json.len() {
            shown.push_str("...");
        }
        format!("the message {} {shown}", self.message.descriptor().full_name())
    }
}
