//! The proxy in front of real redis-servers.

pub mod client;
pub mod cluster;
pub mod differential;
pub mod nodes;
pub mod sentinel;
pub mod tls;

use crate::support::{Server, regatta};
use client::Client;
use nodes::Node;
use std::{net::SocketAddr, time::Duration};

/// How long a failover may take. Sentinels that get no CPU for two seconds do nothing for the next thirty; nodes of a
/// cluster try again after six.
pub const FAILOVER: Duration = Duration::from_secs(90);

/// Declares a test for each model on which clients share connections to nodes (`sharing`), on which each client
/// has its own (`sequential`), or for all: see [`on_models!`]. It is ignored if there is no redis-server.
macro_rules! on_shard_models {
    ($test:ident: all) => {
        $crate::support::shard::on_shard_models! {
            $test: select, poll, epoll, percore, uring, threads, green, fork, prefork
        }
    };
    ($test:ident: sharing) => {
        $crate::support::shard::on_shard_models! { $test: select, poll, epoll, percore, uring }
    };
    ($test:ident: sequential) => {
        $crate::support::shard::on_shard_models! { $test: threads, green, fork, prefork }
    };
    ($test:ident: $($name:ident),+) => {
        $crate::support::on_models! {
            #[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
            $test: $($name),+
        }
    };
}
pub(crate) use on_shard_models;

/// Starts `count` nodes, and the proxy in front of them on this model.
pub fn sharded(model: &str, count: usize, more: &[&str]) -> (Vec<Node>, Server) {
    let nodes: Vec<Node> = (0..count).map(|_| Node::start(&[])).collect();
    let proxy = proxy(model, &nodes, more);
    (nodes, proxy)
}

pub fn proxy(model: &str, nodes: &[Node], more: &[&str]) -> Server {
    proxy_to(model, nodes.iter().map(Node::addr), more)
}

/// Starts the proxy in front of nodes at these addresses.
pub fn proxy_to(model: &str, nodes: impl Iterator<Item = SocketAddr>, more: &[&str]) -> Server {
    let addresses: Vec<String> = nodes.map(|node| node.to_string()).collect();
    Server::start(regatta!("shard --model {model} --nodes {}", addresses.join(",")).args(more))
}

pub fn client(proxy: &Server) -> Client {
    Client::connect(proxy.addr)
}
