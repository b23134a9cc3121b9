//! Hubs at one broker, without sockets: seeded simulations in which links are cut, stall or open only half, the broker
//! restarts or fails over, and hubs die. What was promised to members is the checker, and planted faults show that it
//! finds them.

mod cable;
mod joined;
mod judge;
mod keys;
mod moved;
mod one_hub;
mod place;
mod planted;
mod presence;
mod recovery;
mod redis;
mod refused;
mod simulation;
mod stored;
