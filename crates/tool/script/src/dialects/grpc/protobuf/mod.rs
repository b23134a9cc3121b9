//! Messages by their fields: `.proto` files, messages as JSON, and the comparison of messages. One message of
//! Protocol Buffers has many encodings, so bytes alone do not show whether a message is right.
//!
//! `proto` compiles `.proto` files into descriptors, which `descriptors` checks and [`Types`] (`types`) has. `json`
//! reads a message as JSON, after `members` has refused what it would read in another way than written, and
//! `order` sorts its maps. A message that arrives is compared by `expectation`: `wire` refuses what the descriptors
//! do not describe, `limits` and `cost` bound what it takes to decode a message, and `compare` finds the first field that
//! differs. `numbered` has the expected messages of a stream.

mod compare;
mod cost;
mod descriptors;
mod expectation;
mod field;
mod json;
mod limits;
mod members;
mod names;
mod numbered;
mod order;
mod proto;
#[cfg(test)]
mod tests;
mod types;
mod wire;

pub use expectation::Expectation;
pub use numbered::Numbered;
pub use types::Types;
