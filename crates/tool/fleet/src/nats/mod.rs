//! A standing fleet: agents that dial out to a NATS broker, and wait there for a leader.
//!
//! - `init` writes the files of a fleet, and `config` reads them.
//! - `targets` and `policy`: what an agent carries out; `pace`: how often; `meter`: whether that sends too much (pure).
//! - `packet` and `stream`: messages over a carrier that loses packets (pure).
//! - `broker` and `pump`: the connection to the broker, and lines of pipes.
//! - `relay`: the leader's side of a session, a process of its own for each agent.
//! - `standing`: the agent, and `session`, its side of a session.
//! - `list`: who is there.
//! - `manifest`: what starts the agents on the machines of Kubernetes or Slurm.
//!
//! Leader and agent are those of a load over SSH, with the same messages over pipes. In place of `ssh` the leader
//! starts a relay, and the standing agent starts an agent for each session. So neither the leader nor the agent that
//! measures has anything of NATS in its process, and the end of a process ends what it stands for.

mod broker;
mod config;
mod init;
mod list;
mod manifest;
mod meter;
mod pace;
mod packet;
mod policy;
mod pump;
mod relay;
mod session;
mod silence;
mod standing;
mod stream;
mod targets;

pub use init::init;
pub use list::{About, Listed, Seen, State, list};
pub use manifest::{Kubernetes, Limits, Members, Memory, Slurm};
pub use policy::Policy;
pub use relay::{agents, relay};
pub use session::AgentCommand;
pub use standing::standing;
pub use targets::Targets;
