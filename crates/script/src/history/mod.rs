//! Whether what several clients saw of one key can be explained by a server that does one thing after
//! the other (linearizability: Herlihy and Wing, 1990). Pure: a history goes in, a verdict comes out.
//!
//! Each key is checked by itself, which decides the whole, since linearizability is local. An operation
//! takes effect at one moment between its call and its end. One whose reply never came may take effect at
//! any later moment, or never.

pub mod counter;
pub mod register;
mod span;

pub use span::Span;
