//! The proxy in front of real redis-servers. The tests are skipped if redis-server is not on PATH.

mod client;
mod differential;
mod everyday;
mod generate;
mod killed;
mod nodes;
mod regressions;
mod same;
#[path = "../support/mod.rs"]
mod support;
mod unread;

use client::Client;
use nodes::Node;
use std::{env, process::Command};
use support::Server;

/// The models on which clients share connections to nodes.
const SHARING: [&str; 5] = ["select", "poll", "epoll", "percore", "uring"];

/// The models on which each client has its own connections to nodes.
const SEQUENTIAL: [&str; 4] = ["threads", "green", "fork", "prefork"];

/// Returns the models of `SHARING` that run on this machine.
fn models() -> Vec<&'static str> {
    let mut models = support::models();
    models.retain(|model| SHARING.contains(model));
    models
}

/// Returns all models that support the proxy and run on this machine.
fn all_models() -> Vec<&'static str> {
    [models(), SEQUENTIAL.to_vec()].concat()
}

/// Returns whether the full form is requested (`REGATTA_SHARD=full`), which takes minutes.
fn is_full() -> bool {
    env::var("REGATTA_SHARD").is_ok_and(|how| how == "full")
}

/// Starts `count` nodes, and the proxy in front of them on this model. Prints a message and returns
/// `None` if redis-server is not installed.
fn sharded(model: &str, count: usize, more: &[&str]) -> Option<(Vec<Node>, Server)> {
    let nodes: Option<Vec<Node>> = (0..count).map(|_| Node::start(&[])).collect();
    let Some(nodes) = nodes else {
        eprintln!("skipped: redis-server is not on PATH; scripts/setup installs it");
        return None;
    };
    let proxy = proxy(model, &nodes, more);
    Some((nodes, proxy))
}

fn proxy(model: &str, nodes: &[Node], more: &[&str]) -> Server {
    let addresses: Vec<String> = nodes.iter().map(|node| node.addr().to_string()).collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_regatta"));
    command.args(["shard", "--model", model, "--nodes", &addresses.join(",")]).args(more);
    Server::start(command)
}

fn client(proxy: &Server) -> Client {
    Client::connect(proxy.addr)
}
