//! The referee: contenders, their supervision, rounds, and what the rounds say.

mod contest;

pub use contest::{Contest, ContestError, Loads};
