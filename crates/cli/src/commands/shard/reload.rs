//! What a reload changes in a running proxy, and what it refuses.

use super::{admission::AdmissionArgs, names, options::ShardOptions};
use crate::reload::{Applied, InFiles, Options, Reloaded};
use anyhow::{Context, bail, ensure};
use clap::FromArgMatches;
use regatta_keyspace::map::Map;
use regatta_service::admission::Admission;
use regatta_shard::{Nodes, Settings, Shared};
use std::sync::Arc;

/// The keys with passwords, which need a restart if `auth` has changed, which itself needs one.
const OF_PASSWORDS: [&str; 3] = ["node_password_file", "node_user", "password_file"];

/// Number of sample keys that show whether a reload would look for keys elsewhere.
const SAMPLES: usize = 10_000;

/// A proxy whose options can be applied while it runs.
pub struct ReloadedProxy {
    /// What its cores share.
    pub shared: Arc<Shared>,
    /// The nodes as HOST:PORT, if their certificates must have the names of these hosts.
    pub certified: Option<Vec<String>>,
    /// Has the limits on the number of clients, if there are any.
    pub admission: Option<Arc<Admission>>,
}

impl Reloaded for ReloadedProxy {
    const LIVE: &'static [&'static str] = &[
        "all_buffers",
        "allow_remap",
        "client_buffer",
        "hash",
        "hash_tag",
        "hot_keys",
        "map",
        "max_clients",
        "max_clients_per_address",
        "max_request",
        "node_password_file",
        "node_timeout",
        "node_user",
        "nodes",
        "password_file",
        "sentinel_password_file",
        "sentinel_user",
        "sentinels",
        "slowlog",
        "split_writes",
    ];

    fn apply(&mut self, options: &Options) -> anyhow::Result<Applied> {
        let matches = &options.matches;
        let limits = AdmissionArgs::from_arg_matches(matches).context("the options")?.limits();
        let options = ShardOptions::from_arg_matches(matches).context("the options")?;
        let before = self.shared.current();
        let (mut settings, names) = options.settings(before.patient, Some(&before.nodes))?;
        let is_cluster = options.is_cluster();
        ensure!(
            before.seeds.is_empty() != is_cluster,
            "a change from or to map = \"cluster\" needs a restart"
        );
        ensure!(
            before.sentinels.is_some() == settings.sentinels.is_some(),
            "a change from or to nodes of Sentinels needs a restart"
        );
        if is_cluster {
            (settings.map, settings.nodes) = (Arc::clone(&before.map), Arc::clone(&before.nodes));
        }
        check(&before, &settings, options.allow_remap)?;
        if self.certified.as_ref().is_some_and(|certified| *certified != names) {
            bail!(
                "other nodes need a restart, because their certificates must have their names (or set \
                 node_tls_server_name)"
            );
        }
        settings.hot_keys = matches.get_flag("hot_keys");
        // These were decided at the start.
        settings.hands_over = before.hands_over;
        settings.shards_pubsub = before.shards_pubsub;
        settings.slow_entries = before.slow_entries;
        let keeps_auth = settings.auth.of_nodes != before.auth.of_nodes;
        if keeps_auth {
            settings.auth = before.auth.clone();
        }
        let (epoch, has_other_passwords) = (before.map.epoch(), settings.auth != before.auth);
        if settings.map.assigns_like(&before.map) {
            settings.map = Arc::clone(&before.map);
        } else {
            settings.map = Arc::new(settings.map.with_epoch(epoch + 1));
        }
        if settings.sentinels.is_some() {
            // Their addresses are those that the Sentinels give.
        } else if are_same(&settings.nodes, &before.nodes) {
            settings.nodes = Arc::clone(&before.nodes);
        } else {
            names::follow(&settings.nodes, names)?;
        }
        self.shared.reload(settings);
        if let Some(admission) = &self.admission {
            admission.set_limits(limits);
        }
        let what = "the passwords in the files";
        Ok(Applied {
            in_files: has_other_passwords.then_some(InFiles { what, keys: &OF_PASSWORDS }),
            kept: if keeps_auth { &OF_PASSWORDS } else { &[] },
        })
    }
}

/// Checks that the nodes may be replaced.
fn check(before: &Settings, after: &Settings, allows_remap: bool) -> anyhow::Result<()> {
    let counts = [before, after].map(|settings| settings.nodes.count());
    ensure!(
        counts[0] == counts[1],
        "it has {} of {} nodes: another number of nodes needs a restart",
        counts[1],
        counts[0]
    );
    let elsewhere = elsewhere((&before.map, &before.nodes), (&after.map, &after.nodes));
    if elsewhere > 0 && !allows_remap {
        bail!(
            "it would look for {:.1}% of {SAMPLES} sample keys at another node; if their data has moved, set \
             allow_remap = true for this reload",
            elsewhere as f64 * 100.0 / SAMPLES as f64
        );
    }
    Ok(())
}

/// How many of the sample keys belong to a node with another name. Every second key has hash tags.
fn elsewhere(before: (&Map, &Nodes), after: (&Map, &Nodes)) -> usize {
    let has_moved = |key: &Vec<u8>| {
        let name = |(map, nodes): (&Map, &Nodes)| nodes.name(map.node(key)).to_owned();
        name(before) != name(after)
    };
    let tags = [before.0.hash_tag(), after.0.hash_tag()];
    (0..SAMPLES).map(|number| sample(number, tags)).filter(has_moved).count()
}

/// A sample key: `key:2`, or, with these tags, `a{key:3}3` and so on.
fn sample(number: usize, tags: [Option<[u8; 2]>; 2]) -> Vec<u8> {
    let key = format!("key:{number}");
    match tags[number / 2 % 2] {
        Some([open, close]) if number % 2 == 1 => {
            let end = number.to_string();
            [b"a", &[open][..], key.as_bytes(), &[close], end.as_bytes()].concat()
        }
        _ => key.into_bytes(),
    }
}

fn are_same(one: &Nodes, other: &Nodes) -> bool {
    (0..one.count())
        .all(|node| one.name(node) == other.name(node) && one.address(node) == other.address(node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_keyspace::map::{
        Slots, Twemproxy,
        twemproxy::{Distribution, Hash, Server},
    };

    fn nodes(names: &[&str]) -> Nodes {
        Nodes::new(names.iter().map(|name| ((*name).to_owned(), ([127, 0, 0, 1], 1).into())))
    }

    #[test]
    fn keys_of_a_node_with_another_name_are_elsewhere() {
        let map = Map::new(1, Slots::even(2).unwrap());
        let (one, swapped, other) = (nodes(&["a", "b"]), nodes(&["b", "a"]), nodes(&["a", "c"]));
        assert_eq!(elsewhere((&map, &one), (&map, &one)), 0);
        assert_eq!(elsewhere((&map, &one), (&map, &swapped)), SAMPLES);
        let half = elsewhere((&map, &one), (&map, &other));
        assert!((4_500..5_500).contains(&half), "{half}");
    }

    #[test]
    fn keys_with_other_hash_tags_are_elsewhere() {
        let servers = ["a:1:1", "b:1:1"].map(|line| line.parse::<Server>().unwrap());
        let map = |tag| {
            Map::new(1, Twemproxy::new(Distribution::Ketama, Hash::Fnv1a64, tag, &servers).unwrap())
        };
        let nodes = nodes(&["a", "b"]);
        for (before, after) in
            [(None, Some(*b"{}")), (Some(*b"{}"), None), (Some(*b"{}"), Some(*b"$$"))]
        {
            let moved = elsewhere((&map(before), &nodes), (&map(after), &nodes));
            assert!(moved > SAMPLES / 10, "{before:?} {after:?}: {moved}");
        }
    }
}
