//! Programs over their styles, by hand and under the simulator.

mod hub;
mod memory;
mod results;
mod simulation;
mod styles;
mod tls;
mod tls_engine;
