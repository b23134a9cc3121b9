//! Programs over their styles, by hand and under the simulator.

mod hub;
mod simulation;
mod styles;
