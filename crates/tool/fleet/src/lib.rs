//! A load from several machines: agents, which run load processes there, and the leader that commands them.
//!
//! - `message`: what they say to each other.
//! - `agent`: runs load processes on its machine. Its decisions are a state machine without I/O.
//! - `leader`: divides a load among agents, leads it, and merges what they counted; asks an agent's site.
//! - `site`: what an agent runs beside load processes, e.g. contenders.
//! - [`clock`]: how far the clocks of agents are from the leader's, with bounds (pure).
//! - `ssh`: starts agents over SSH, and copies the program to their machines.
//! - [`nats`]: agents that dial out, and wait at a NATS broker for a leader.
//!
//! Everything goes through stdin and stdout of a command that the leader starts for each agent. When the
//! leader is gone, its agents see the end of stdin. When they hear nothing from it, the lease ends. Either
//! way they kill their load processes and exit.

pub mod clock;
pub mod nats;

mod agent;
mod error;
mod leader;
mod machine;
mod message;
mod site;
mod ssh;

pub use agent::agent;
pub use error::Error;
pub use leader::{AgentRun, AgentSoFar, Fleet, FleetRun, Machine, RemoteSite, Settings, Void};
pub use machine::{Build, PROGRAM, sha256};
pub use message::{Answer, FromAgent, Hello, LEASE, Request, ToAgent};
pub use site::{NewSite, Site};
pub use ssh::{Host, Ssh};
