//! Programs over their styles, by hand and under the simulator.

mod hub;
mod memory;
mod results;
mod sealed;
mod simulation;
mod styles;
