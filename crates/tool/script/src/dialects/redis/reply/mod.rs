//! What comes on a connection, and whether it is right.

mod doubt;
mod framing;
mod log;
mod opening;
mod private;
pub mod receive;
mod shared;
pub mod talk;
#[cfg(test)]
mod tests;
mod wrong;
