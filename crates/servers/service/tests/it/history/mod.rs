//! The hub with histories of its rooms, without sockets: seeded simulations in which clients are slow, lose their
//! connections and come back with their positions, and the API for backends.

mod api;
mod joining;
mod judge;
pub(crate) mod simulation;
