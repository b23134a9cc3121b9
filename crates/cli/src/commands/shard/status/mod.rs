//! `regatta shard status`: the state of a running proxy, from its pages for operators.

mod hot;
mod page;
mod state;

use crate::{exit::Outcome, operator_page::fetch, output};
use anyhow::{Context, bail, ensure};
use hot::HotKeys;
use state::State;
use std::time::{SystemTime, UNIX_EPOCH};

/// Show the state of a running proxy, from the pages of its --metrics
///
/// Prints whether it is ready or drains its clients, clients, requests, errors, and for each node whether it is up, its
/// replies and errors, and how long it takes; with --hot-keys of the proxy also the ten keys that are requested most.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status:
  0  the proxy is ready, and all nodes are up
  1  it is starting or stopping, a node is down, or it knows no node
  2  it does not answer
With --ready, the state of the nodes does not count.")]
pub struct StatusArgs {
    /// The address of the metrics (--metrics of the proxy)
    #[arg(value_name = "HOST:PORT")]
    address: String,
    /// Print the state as JSON
    #[arg(long)]
    json: bool,
    /// Print only whether the proxy is ready, as /ready says: for the health check of a container. A node that is down
    /// does not change it
    #[arg(long, conflicts_with = "json")]
    ready: bool,
}

/// Prints the state.
pub fn run(args: &StatusArgs) -> anyhow::Result<Outcome> {
    let address = &args.address;
    let (is_ready, readiness) = readiness(address)?;
    if args.ready {
        output::print(&format!("{readiness}\n"))?;
        return Ok(if is_ready { Outcome::Success } else { Outcome::Failure });
    }
    let (status, page) = fetch(address, "/metrics")?;
    ensure!(status == 200, "http://{address}/metrics: expected the status 200, got {status}");
    let Some(mut state) = State::read(&page) else {
        bail!("http://{address}/metrics is not the page of a shard proxy");
    };
    state.is_ready = is_ready;
    state.readiness = readiness;
    state.hot_keys = hot_keys(address)?;
    if args.json {
        output::print(&regatta_report::pretty(&state))?;
    } else {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        output::print(&state.text(now))?;
    }
    let is_well = state.is_ready && state.is_up();
    Ok(if is_well { Outcome::Success } else { Outcome::Failure })
}

/// Whether the proxy is ready, and what it says about that.
fn readiness(address: &str) -> anyhow::Result<(bool, String)> {
    let (status, text) = fetch(address, "/ready")?;
    let is_ready = match status {
        200 => true,
        503 => false,
        other => {
            bail!("http://{address}/ready: expected the status 200 or 503, got {other}");
        }
    };
    Ok((is_ready, text.trim().to_owned()))
}

/// The hot keys. `None`: the proxy does not serve them.
fn hot_keys(address: &str) -> anyhow::Result<Option<HotKeys>> {
    let (status, text) = fetch(address, "/hot")?;
    if status == 404 {
        return Ok(None);
    }
    ensure!(status == 200, "http://{address}/hot: expected the status 200 or 404, got {status}");
    let read = serde_json::from_str(&text);
    read.map(Some).with_context(|| format!("http://{address}/hot is not a page of hot keys"))
}
