//! Agents and leaders as processes of this machine, without SSH.

mod agent;
mod common;
mod failing;
mod same;
mod site;
