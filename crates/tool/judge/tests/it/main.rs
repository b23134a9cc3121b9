//! The referee: judgements of simulated races with known costs, and of rounds made by hand.

mod axes;
mod belief;
mod counted;
mod curves;
mod disturbed;
mod duel_ends;
mod duels;
mod found_out;
mod gate;
mod judge;
mod latency_ratios;
mod operations;
mod pilots;
mod precision;
mod roles;
mod server_machine;
#[allow(dead_code, reason = "the examples use more of the simulation")]
#[path = "../simulated/mod.rs"]
mod simulated;
mod size;
mod statistics;
mod two_speeds;
mod unknown;
mod verdicts;
