//! The load on hubs, with a small hub that uses another WebSocket crate. The hub can make errors: each
//! wrong delivery is found and named. Uses the project's own messages and the adapters.

mod adapters;
mod nodes;
mod own;
mod passing;
pub mod server;

use crate::common::plan;
use regatta_load::{Plan, Tally, Until};
use regatta_script::Workload;
use std::net::SocketAddr;

/// Number of members of each load that broadcasts.
const MEMBERS: usize = 8;

fn broadcasts(address: SocketAddr, workload: Workload) -> Plan {
    let until = Until::Requests(400);
    Plan { connections: MEMBERS, until, workload, ..plan(address) }
}

fn count(tally: &Tally, name: &str) -> u64 {
    tally.operations.iter().find(|one| one.operation.name == name).unwrap().whole_run
}
