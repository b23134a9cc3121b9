//! The proxy as it is run, in front of real redis-servers. Without redis-server on the PATH its tests are
//! skipped, and say so.

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

/// Those on which each client has connections of its own.
const SEQUENTIAL: [&str; 4] = ["threads", "green", "fork", "prefork"];

/// The models of `SHARING` that run here.
fn models() -> Vec<&'static str> {
    let mut models = support::models();
    models.retain(|model| SHARING.contains(model));
    models
}

/// All models that carry the proxy and run here.
fn all_models() -> Vec<&'static str> {
    [models(), SEQUENTIAL.to_vec()].concat()
}

/// Whether the full form was asked for, which takes minutes.
fn is_full() -> bool {
    env::var("REGATTA_SHARD").is_ok_and(|how| how == "full")
}

/// So many nodes, and the proxy in front of them on this model. `None`, and a line that says so, if
/// there is no redis-server.
fn sharded(model: &str, count: usize, more: &[&str]) -> Option<(Vec<Node>, Server)> {
    let nodes: Option<Vec<Node>> = (0..count).map(|_| Node::start(&[])).collect();
    let Some(nodes) = nodes else {
        eprintln!("skipped: there is no redis-server on the PATH; scripts/setup installs it");
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
