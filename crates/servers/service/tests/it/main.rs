//! Programs over their styles, by hand and under the simulator.

mod broker;
mod centrifuge;
mod history;
mod hub;
mod last_delivery;
mod memory;
mod refusals;
mod results;
mod rooms;
mod simulation;
mod styles;
mod tls;
mod tls_engine;
