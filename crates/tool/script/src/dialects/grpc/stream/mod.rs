//! Server streaming: a response with any number of messages.
//!
//! `expectation` has what is expected of the messages of a stream: their number, and what each of them must be.
//! `progress` has what has arrived of them.

mod expectation;
mod progress;
#[cfg(test)]
mod tests;

pub use expectation::{ExpectedMessage, MessageStream, StreamExpectation};
pub(super) use progress::Progress;
