//! Connections of engines, engines under a manual driver and under the simulator.

mod connections;
mod relay;
mod simulation;
