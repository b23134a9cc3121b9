//! INFO: what the proxy reports of itself and of the nodes, in sections as in Redis.

use crate::shared::Shared;
use regatta_proto::resp::Command;
use std::fmt::Display;

/// The sections, in the order of Redis, and the proxy's own one.
const SECTIONS: [&str; 8] =
    ["Server", "Clients", "Memory", "Stats", "Replication", "Cluster", "Keyspace", "Nodes"];

/// Names that stand for all sections.
const ALL: [&str; 3] = ["all", "everything", "default"];

/// What the core of a client knows, and `Shared` does not.
pub(crate) struct Core<'a> {
    /// Bytes held for its clients.
    pub(crate) held: usize,
    /// Returns the state of a node.
    pub(crate) state: &'a dyn Fn(usize) -> String,
}

/// Returns the sections that a client asks for; all if it names none. Unknown names are ignored, as in Redis.
pub(crate) fn info(command: &Command<'_>, shared: &Shared, core: &Core<'_>) -> String {
    let names = || command.args().skip(1);
    let is_named = |name: &str| names().any(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let has_all = command.len() == 1 || ALL.iter().any(|name| is_named(name));
    let mut text = String::new();
    for section in SECTIONS.into_iter().filter(|section| has_all || is_named(section)) {
        let is_first = text.is_empty();
        text += if is_first { "# " } else { "\r\n# " };
        text += &format!("{section}\r\n");
        add(section, shared, core, &mut text);
    }
    text
}

/// Adds the fields of a section.
fn add(section: &str, shared: &Shared, core: &Core<'_>, text: &mut String) {
    let (counts, settings) = (&shared.counts, shared.current());
    let nodes = &settings.nodes;
    let connections = counts.connections.get();
    let mut field = |name: &str, value: &dyn Display| *text += &format!("{name}:{value}\r\n");
    match section {
        "Server" => {
            field("redis_version", &shared.version());
            field("redis_mode", &"standalone");
            field("arch_bits", &usize::BITS);
            field("proxy", &"regatta");
            field("proxy_version", &env!("CARGO_PKG_VERSION"));
        }
        "Clients" => {
            let connected = connections.saturating_sub(counts.disconnections.get());
            field("connected_clients", &connected);
        }
        "Memory" => {
            field("clients_memory_on_this_core", &core.held);
            field("clients_memory_limit_per_core", &settings.all_bytes);
        }
        "Stats" => {
            field("total_connections_received", &connections);
            field("clients_disconnected_for_unread_replies", &counts.unread.get());
            field("clients_disconnected_at_the_memory_limit", &counts.evicted.get());
            field("node_connections_lost", &counts.lost.get());
            field("node_timeouts", &counts.timeouts.get());
        }
        "Replication" => {
            field("role", &"master");
            field("connected_slaves", &0);
        }
        "Cluster" => field("cluster_enabled", &0),
        "Nodes" => {
            // A free place in a cluster has no name.
            let named = || (0..nodes.count()).filter(|node| !nodes.name(*node).is_empty());
            field("nodes", &named().count());
            for node in named() {
                let (name, address) = (nodes.name(node), nodes.address(node));
                let state = (core.state)(node);
                let value = format!("name={name},address={address},state={state}");
                field(&format!("node{node}"), &value);
            }
        }
        // Keyspace: only the nodes know how many keys they have, and DBSIZE asks them.
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{node::nodes::Nodes, observe::version::Version, settings::Settings};
    use regatta_keyspace::{
        command::VERSION,
        map::{Map, Slots},
    };
    use regatta_proto::resp::{CommandLimits, Commands};

    fn shared() -> Shared {
        let node = |name: &str| (name.to_owned(), ([127, 0, 0, 1], 6379).into());
        let nodes = Nodes::new([node("one"), node("two")]);
        Shared::new(Settings::new(Map::new(1, Slots::even(2).unwrap()), nodes))
    }

    fn says(shared: &Shared, line: &str) -> String {
        let bytes = format!("{line}\r\n").into_bytes();
        let mut commands = Commands::new(CommandLimits::default());
        let (_, command) = commands.next(&bytes).unwrap();
        let state = |node: usize| if node == 0 { "up" } else { "down, refused" }.to_owned();
        info(&command.unwrap(), shared, &Core { held: 77, state: &state })
    }

    #[test]
    fn sections_are_those_that_are_named() {
        let shared = shared();
        let replication = "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n";
        assert_eq!(says(&shared, "INFO replication"), replication);
        assert_eq!(
            says(&shared, "info KEYSPACE Replication cluster nothing"),
            format!("{replication}\r\n# Cluster\r\ncluster_enabled:0\r\n\r\n# Keyspace\r\n")
        );
        assert_eq!(says(&shared, "INFO nothing"), "");
        let all = says(&shared, "INFO");
        for section in SECTIONS {
            assert!(all.contains(&format!("# {section}\r\n")), "{section}: {all}");
        }
        for name in ALL {
            assert_eq!(says(&shared, &format!("INFO {name}")), all);
        }
        assert!(all.contains("clients_memory_on_this_core:77\r\n"), "{all}");
        let node = "node1:name=two,address=127.0.0.1:6379,state=down, refused\r\n";
        assert!(all.ends_with(node), "{all}");
    }

    #[test]
    fn the_version_is_the_lowest_that_is_known() {
        let shared = shared();
        let has = |version: &str| {
            says(&shared, "INFO server").contains(&format!("redis_version:{version}\r\n"))
        };
        assert!(has(VERSION), "none is known");
        for (node, version) in [(1, "8.2.1"), (0, "6.2.14")] {
            shared.versions.set(node, Version::parse(version.as_bytes()).unwrap());
            assert!(has(version), "{version}");
        }
    }
}
