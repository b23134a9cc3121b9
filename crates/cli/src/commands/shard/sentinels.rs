//! Nodes whose masters Sentinels manage.

use super::names;
use anyhow::{bail, ensure};
use regatta_keyspace::map::twemproxy::Server;
use regatta_shard::{Credentials, Sentinels};

/// What a node begins with that is the name of a master at the Sentinels.
const PREFIX: &str = "sentinel:";

/// Maximum number of Sentinels. All are asked at once.
const MOST: usize = 32;

/// A node that Sentinels manage.
pub struct Managed {
    /// The name of its master at the Sentinels.
    pub master: String,
    /// The rest of the node as it is written: `:WEIGHT` or `:WEIGHT NAME`, or nothing.
    rest: String,
}

impl Managed {
    /// The server of twemproxy for this node: its name is that of the master, unless it has one.
    ///
    /// # Errors
    /// Fails if the weight is missing or wrong.
    pub fn server(&self) -> anyhow::Result<Server> {
        let Managed { master, rest } = self;
        let has_name = rest.contains(' ');
        ensure!(
            rest.starts_with(':'),
            "the node sentinel:{master}: expected a weight with --map ketama or modula: sentinel:{master}:1"
        );
        // Only its name and its weight are used.
        let line = if has_name {
            format!("{master}:1{rest}")
        } else {
            format!("{master}:1{rest} {master}")
        };
        Ok(line.parse()?)
    }
}

/// The nodes that Sentinels manage: all or none.
///
/// # Errors
/// Says which node is written wrong, or what is missing.
pub fn managed(nodes: &[String], sentinels: &[String]) -> anyhow::Result<Option<Vec<Managed>>> {
    let count = nodes.iter().filter(|node| node.starts_with(PREFIX)).count();
    if count == 0 {
        ensure!(
            sentinels.is_empty(),
            "--sentinels has no use, because no node is one of Sentinels; write --nodes sentinel:NAME with the \
             names of the masters, or remove it"
        );
        return Ok(None);
    }
    ensure!(
        count == nodes.len(),
        "Sentinels must manage all nodes or none; write each node as sentinel:NAME, or none"
    );
    ensure!(
        !sentinels.is_empty(),
        "nodes of Sentinels need the addresses of these: --sentinels HOST:PORT,HOST:PORT,HOST:PORT"
    );
    ensure!(
        sentinels.len() <= MOST,
        "at most {MOST} Sentinels are possible, got {}",
        sentinels.len()
    );
    for (place, sentinel) in sentinels.iter().enumerate() {
        ensure!(
            !sentinels[..place].contains(sentinel),
            "the Sentinel {sentinel} is listed twice; each has one vote"
        );
    }
    let mut all: Vec<Managed> = Vec::with_capacity(count);
    for node in nodes {
        let text = node.strip_prefix(PREFIX).unwrap_or(node);
        let (master, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
        if master.is_empty() || master.contains(char::is_whitespace) {
            bail!(
                "the node {node}: expected sentinel:NAME with the name of a master, e.g. sentinel:shard-1"
            );
        }
        ensure!(
            all.iter().all(|other| other.master != master),
            "the master {master} is listed twice; its keys would be mixed"
        );
        all.push(Managed { master: master.to_owned(), rest: rest.to_owned() });
    }
    Ok(Some(all))
}

/// The Sentinels with their addresses.
///
/// # Errors
/// Fails if none has an address.
pub fn resolved(
    names: &[String],
    masters: Vec<String>,
    auth: Option<Credentials>,
) -> anyhow::Result<Sentinels> {
    let addresses = names::sentinels(names)?;
    Ok(Sentinels { names: names.to_vec(), addresses, masters, auth })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(nodes: &[&str], sentinels: &[&str]) -> Result<Option<Vec<Managed>>, String> {
        let all = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        managed(&all(nodes), &all(sentinels)).map_err(|error| error.to_string())
    }

    #[test]
    fn nodes_are_names_of_masters() {
        assert!(read(&["a:1"], &[]).unwrap().is_none());
        let all = read(&["sentinel:one", "sentinel:two"], &["a:1"]).unwrap().unwrap();
        let names: Vec<_> = all.iter().map(|node| &node.master[..]).collect();
        assert_eq!(names, ["one", "two"]);
        for (nodes, sentinels, expected) in [
            (&["a:1"][..], &["b:1"][..], "--sentinels has no use"),
            (&["a:1", "sentinel:b"], &["b:1"], "must manage all nodes or none"),
            (&["sentinel:b"], &[], "need the addresses of these: --sentinels"),
            (&["sentinel:b"], &["a:1", "a:1"], "the Sentinel a:1 is listed twice"),
            (&["sentinel:b", "sentinel:b"], &["a:1"], "the master b is listed twice"),
            (&["sentinel:"], &["a:1"], "expected sentinel:NAME"),
        ] {
            let error = read(nodes, sentinels).err().unwrap_or_default();
            assert!(error.contains(expected), "{nodes:?}: {error}");
        }
    }

    #[test]
    fn a_node_of_twemproxy_has_a_weight_and_perhaps_a_name() {
        for (node, name, weight) in
            [("sentinel:one:3", "one", 3), ("sentinel:one:2 other", "other", 2)]
        {
            let all = read(&[node], &["a:1"]).unwrap().unwrap();
            let server = all[0].server().unwrap();
            assert_eq!((server.name(), server.weight()), (name, weight));
        }
        let without = read(&["sentinel:one"], &["a:1"]).unwrap().unwrap();
        assert!(without[0].server().unwrap_err().to_string().contains("expected a weight"));
    }
}
