//! Agents and leaders as processes of this machine, without SSH, and with a broker.

mod agent;
mod common;
mod failing;
mod nats;
mod same;
mod site;
