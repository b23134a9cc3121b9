//! Checks whether the history of one key, as several clients saw it, can be explained by a server
//! that executes one operation after another (linearizability: Herlihy and Wing, 1990). Pure: a
//! history goes in, a verdict comes out.
//!
//! Each key is checked by itself. This decides the whole history, because linearizability is local.
//! An operation takes effect at one moment between its call and its end. An operation whose reply
//! never arrived may take effect at any later moment, or never.

pub mod counter;
pub mod register;
mod span;

pub use span::Span;
