//! `regatta shard status`: the state of a running proxy, from the page with its metrics.

mod page;
mod state;

use crate::{exit::Outcome, operator_page::fetch, output};
use anyhow::{bail, ensure};
use state::State;

/// Show the state of a running proxy, from its metrics
///
/// Prints clients, requests, errors, and for each node whether it is up, its replies and errors, and how long it takes.
/// The exit status is 0 if all nodes are up, 1 if one is down, and 2 if the proxy does not answer.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// The address of the metrics (--metrics of the proxy)
    #[arg(value_name = "HOST:PORT")]
    address: String,
    /// Print the state as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the state.
pub fn run(args: &StatusArgs) -> anyhow::Result<Outcome> {
    let address = &args.address;
    let (status, page) = fetch(address, "/metrics")?;
    ensure!(status == 200, "http://{address}/metrics: expected the status 200, got {status}");
    let Some(state) = State::read(&page) else {
        bail!("http://{address}/metrics is not the page of a shard proxy");
    };
    if args.json {
        output::print(&(serde_json::to_string_pretty(&state)? + "\n"))?;
    } else {
        output::print(&state.to_string())?;
    }
    Ok(if state.is_up() { Outcome::Success } else { Outcome::Failure })
}
