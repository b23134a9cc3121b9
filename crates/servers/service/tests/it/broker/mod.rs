//! Hubs at one broker, without sockets: seeded simulations in which links are cut, stall or open only half, the broker
//! restarts or fails over, and hubs die. What was promised to members is the checker, and planted faults show that it
//! finds them.

mod cable;
mod judge;
mod moved;
mod place;
mod planted;
mod recovery;
mod redis;
mod simulation;
mod stored;
