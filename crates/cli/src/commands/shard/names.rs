//! The addresses of nodes. A name is resolved at the start, and again after a connection was lost:
//! the node may have moved.

use anyhow::Context;
use regatta_shard::Nodes;
use std::{
    io,
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    sync::Arc,
    thread,
    time::Duration,
};

/// Maximum time to open a connection, to find out which address of a name a node listens on.
const TRY: Duration = Duration::from_secs(1);

/// Pause after resolving, so that a node that is down is not resolved continuously.
const PAUSE: Duration = Duration::from_secs(1);

/// How names are resolved, and which addresses can be reached.
trait Network {
    fn resolve(&self, node: &str) -> io::Result<Vec<SocketAddr>>;
    fn accepts(&self, address: SocketAddr) -> bool;
}

/// The network of this machine.
struct Machine;

impl Network for Machine {
    fn resolve(&self, node: &str) -> io::Result<Vec<SocketAddr>> {
        Ok(node.to_socket_addrs()?.collect())
    }

    fn accepts(&self, address: SocketAddr) -> bool {
        TcpStream::connect_timeout(&address, TRY).is_ok()
    }
}

/// Resolves a node, `HOST:PORT`. If it has several addresses, each is tried, the one `before` first. Takes up to a second for
/// each of them.
///
/// # Errors
/// Fails if the name cannot be resolved.
pub fn resolve(node: &str, before: Option<SocketAddr>) -> anyhow::Result<SocketAddr> {
    let address = choose(node, before, &Machine)
        .with_context(|| format!("cannot resolve the node {node} (expected HOST:PORT)"))?;
    address.with_context(|| format!("the node {node} has no address"))
}

/// Follows the addresses of the nodes from now on, in a thread of its own, because resolving blocks. It ends when a
/// reload replaces the nodes.
/// `nodes`: each as `HOST:PORT`.
///
/// # Errors
/// Fails if the thread cannot be started.
pub fn follow(nodes: &Arc<Nodes>, names: Vec<String>) -> io::Result<()> {
    if names.iter().all(|name| name.parse::<SocketAddr>().is_ok()) {
        return Ok(());
    }
    let nodes = Arc::clone(nodes);
    let follow = move || {
        while let Some(lost) = nodes.wait_for_lost() {
            for node in lost {
                let before = nodes.address(node);
                if let Ok(Some(address)) = choose(&names[node], Some(before), &Machine) {
                    nodes.set_address(node, address);
                }
            }
            thread::sleep(PAUSE);
        }
    };
    thread::Builder::new().name("names".into()).spawn(follow).map(drop)
}

/// Chooses an address: the first that accepts a connection, beginning with the one `before`. If none
/// does, that one or the first.
fn choose(
    node: &str,
    before: Option<SocketAddr>,
    network: &impl Network,
) -> io::Result<Option<SocketAddr>> {
    let mut addresses = network.resolve(node)?;
    addresses.sort_by_key(|address| Some(*address) != before);
    Ok(match addresses[..] {
        [] | [_] => addresses.first().copied(),
        [first, ..] => {
            let found = addresses.into_iter().find(|address| network.accepts(*address));
            Some(found.unwrap_or(first))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The addresses of the only name, and those that accept connections.
    struct Fake(Vec<&'static str>, Vec<&'static str>);

    impl Network for Fake {
        fn resolve(&self, node: &str) -> io::Result<Vec<SocketAddr>> {
            assert_eq!(node, "redis:6379");
            Ok(self.0.iter().map(|address| address.parse().unwrap()).collect())
        }

        fn accepts(&self, address: SocketAddr) -> bool {
            assert!(self.0.len() > 1, "a single address is not tried");
            self.1.contains(&&address.to_string()[..])
        }
    }

    #[test]
    fn the_first_address_that_accepts_connections_is_chosen() {
        let (a, b, c) = ("[::1]:6379", "127.0.0.1:6379", "10.0.0.1:6379");
        for (all, accept, before, expected) in [
            (vec![a, b], vec![a, b], None, a),
            (vec![a, b], vec![b], None, b),
            (vec![a, b, c], vec![c], Some(b), c),
            // The one before, if it still belongs to the name.
            (vec![a, b], vec![a, b], Some(b), b),
            (vec![a, b], vec![a, b], Some(c), a),
            (vec![a, b], vec![], Some(b), b),
            (vec![a, b], vec![], None, a),
            // The node has moved.
            (vec![c], vec![], Some(b), c),
        ] {
            let before = before.map(|address| address.parse().unwrap());
            let chosen = choose("redis:6379", before, &Fake(all.clone(), accept)).unwrap();
            assert_eq!(chosen.unwrap().to_string(), expected, "{all:?}, {before:?}");
        }
        assert_eq!(choose("redis:6379", None, &Fake(vec![], vec![])).unwrap(), None);
    }
}
