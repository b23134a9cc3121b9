//! Server streaming: a response with any number of messages.
//!
//! `expectation` has what is expected of the messages of a stream, as a number and a `template` for each.
//! `progress` has what has arrived of them.

mod expectation;
mod progress;
mod template;
#[cfg(test)]
mod tests;

pub use expectation::{MessageStream, expect};
pub(super) use progress::Progress;
pub use template::Template;
