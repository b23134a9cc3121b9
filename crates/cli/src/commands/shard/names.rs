//! The addresses of nodes. A name is resolved at the start, and again after a connection was lost:
//! the node may have moved.

use anyhow::{Context, bail};
use regatta_shard::{Nodes, Shared};
use std::{
    io,
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    sync::Arc,
    thread,
    time::Duration,
};

/// Maximum time to open a connection, to find out which address of a name a node listens on.
const TRY: Duration = Duration::from_secs(1);

/// Maximum number of addresses of the nodes of a cluster that are asked for the others.
const MOST_SEEDS: usize = 256;

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

/// Resolves nodes of a cluster, each `HOST:PORT`, to all their addresses. One that cannot be resolved is left out if another
/// one can.
///
/// # Errors
/// Fails if none has an address.
pub fn seeds(nodes: &[String]) -> anyhow::Result<Vec<SocketAddr>> {
    all(nodes, &Machine)
}

/// Resolves the nodes of a cluster that are asked for the others again whenever no node that is known answers, and the
/// Sentinels whenever too few answer: they may have other addresses. In a thread of its own, because resolving blocks.
///
/// # Errors
/// Fails if the thread cannot be started.
pub fn follow_seeds(shared: &Arc<Shared>) -> io::Result<()> {
    let shared = Arc::clone(shared);
    let follow = move || {
        loop {
            shared.wait_for_doubted_seeds();
            let settings = shared.current();
            match &settings.sentinels {
                Some(known) => {
                    if let Ok(addresses) = sentinels(&known.names) {
                        shared.set_sentinels(addresses);
                    }
                }
                None => {
                    if let Ok(seeds) = seeds(&settings.seed_names) {
                        shared.set_seeds(seeds);
                    }
                }
            }
            thread::sleep(PAUSE);
        }
    };
    thread::Builder::new().name("names".into()).spawn(follow).map(drop)
}

/// Resolves Sentinels, each `HOST:PORT`, to one address each. `None`: this one cannot be resolved now.
///
/// # Errors
/// Fails if none has an address.
pub fn sentinels(names: &[String]) -> anyhow::Result<Vec<Option<SocketAddr>>> {
    let mut failure = None;
    let resolve = |name: &String| match Machine.resolve(name) {
        Ok(addresses) => addresses.first().copied(),
        Err(error) => {
            let text = format!("cannot resolve the Sentinel {name} (expected HOST:PORT)");
            failure.get_or_insert(anyhow::Error::new(error).context(text));
            None
        }
    };
    let addresses: Vec<Option<SocketAddr>> = names.iter().map(resolve).collect();
    match failure {
        Some(failure) if addresses.iter().all(Option::is_none) => Err(failure),
        _ => Ok(addresses),
    }
}

fn all(nodes: &[String], network: &impl Network) -> anyhow::Result<Vec<SocketAddr>> {
    let (mut found, mut failure) = (Vec::new(), None);
    for node in nodes {
        match network.resolve(node) {
            Ok(addresses) => found.extend(addresses),
            Err(error) => {
                let text = format!("cannot resolve the node {node} (expected HOST:PORT)");
                failure.get_or_insert(anyhow::Error::new(error).context(text));
            }
        }
    }
    found.dedup();
    found.truncate(MOST_SEEDS);
    match failure {
        Some(failure) if found.is_empty() => Err(failure),
        _ if found.is_empty() => bail!("the nodes {} have no address", nodes.join(",")),
        _ => Ok(found),
    }
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
    fn all_addresses_of_a_cluster_are_asked() {
        struct Names;
        impl Network for Names {
            fn resolve(&self, node: &str) -> io::Result<Vec<SocketAddr>> {
                match node {
                    "redis:1" => {
                        Ok(["10.0.0.1:1", "10.0.0.2:1"].map(|at| at.parse().unwrap()).into())
                    }
                    "empty:1" => Ok(Vec::new()),
                    _ => Err(io::Error::other("no such host")),
                }
            }

            fn accepts(&self, _: SocketAddr) -> bool {
                unreachable!("no connection is opened")
            }
        }
        let seeds = |nodes: &[&str]| {
            all(&nodes.iter().map(ToString::to_string).collect::<Vec<_>>(), &Names)
        };
        let found = seeds(&["gone:1", "redis:1"]).unwrap();
        let found: Vec<String> = found.iter().map(SocketAddr::to_string).collect();
        assert_eq!(found, ["10.0.0.1:1", "10.0.0.2:1"]);
        assert!(
            seeds(&["gone:1"]).unwrap_err().to_string().contains("cannot resolve the node gone:1")
        );
        assert!(seeds(&["empty:1"]).unwrap_err().to_string().contains("no address"));
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
