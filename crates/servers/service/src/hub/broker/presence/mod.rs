//! Presence of a hub at a broker: its members are notified of those of all nodes, and backends may ask for all.
//!
//! Each node stores its members of a room in a field of a hash (`state`), and publishes each change (`note`), at most ten
//! times in a second. `room` has what the members of a room were notified of, and `machine` decides what is sent: it has
//! neither sockets nor clocks. `hearing` is what comes from other nodes, `living` which of them live. `desk` is between the
//! machine and the connection.

#[cfg(test)]
mod cases;
mod desk;
mod hearing;
mod living;
mod machine;
mod note;
mod room;
mod state;
#[cfg(test)]
mod tests;

pub(super) use desk::{Desk, Question};
