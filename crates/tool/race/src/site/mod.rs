//! Where contenders run: on this machine, or on another one, with an agent that starts, freezes and reads them
//! there. What is done to a contender is the same in both places ([`held`]); from another machine it is asked for
//! by messages ([`wire`]).
//!
//! - [`start`]: starts a contender on this machine.
//! - [`held`]: a contender on this machine, and what is asked of it.
//! - [`hosted`]: a contender wherever it is, from the side of the race.
//! - [`server`]: the machine of the contenders, from the side of the race.
//! - [`agent`]: the same from the side of the agent there.
//! - [`boot`]: whether both are one machine.
//! - [`served_by`], [`ends`]: who serves its port, how it ended.

pub(crate) mod agent;
mod boot;
pub(crate) mod ends;
pub(crate) mod held;
pub(crate) mod hosted;
pub(crate) mod served_by;
pub(crate) mod server;
pub(crate) mod start;
pub(crate) mod wire;
