//! The leader: connects to agents, divides a load among them, leads it, and merges what they counted.

mod across;
mod division;
mod fleet;
mod link;
mod members;
mod remote_site;
mod report;
mod session;

pub use fleet::{AgentRun, AgentSoFar, Fleet, FleetRun, Void};
pub use link::Machine;
pub use members::Settings;
pub use remote_site::RemoteSite;
