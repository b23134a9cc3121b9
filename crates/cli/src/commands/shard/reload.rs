//! Reloads: on SIGHUP the configuration file is read again, and what can change while clients are served is changed.
//! A file that is wrong changes nothing.

use super::{names, options::ShardOptions};
use crate::{output, service_manager};
use anyhow::{Context, bail, ensure};
use clap::{ArgMatches, FromArgMatches};
use regatta_keyspace::map::Map;
use regatta_serve::Stop;
use regatta_shard::{Nodes, Settings, Shared};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, Read},
    os::unix::net::UnixStream,
    sync::Arc,
    thread,
};

/// Reads the options again, from the configuration file and the command line.
pub type Again = fn() -> anyhow::Result<(ArgMatches, Values)>;

/// The values of options as they were written, by key.
pub type Values = BTreeMap<String, Vec<OsString>>;

/// Keys whose values apply at a reload; the others need a restart.
const LIVE: [&str; 15] = [
    "all_buffers",
    "allow_remap",
    "client_buffer",
    "hash",
    "hash_tag",
    "hot_keys",
    "map",
    "max_request",
    "node_password_file",
    "node_timeout",
    "node_user",
    "nodes",
    "password_file",
    "slowlog",
    "split_writes",
];

/// Number of sample keys that show whether a reload would look for keys elsewhere.
const SAMPLES: usize = 10_000;

/// What reloads need.
pub struct Reloads {
    /// Becomes readable at each SIGHUP.
    pub signals: UnixStream,
    /// Reads the options.
    pub again: Again,
    /// Their present values.
    pub values: Values,
    /// The nodes as HOST:PORT, if their certificates must have the names of these hosts.
    pub certified: Option<Vec<String>>,
    /// The server, which need not listen yet.
    pub stop: Stop,
}

impl Reloads {
    /// Reloads at each SIGHUP from now on, in a thread of its own, because resolving names blocks.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
    pub fn follow(mut self, shared: Arc<Shared>) -> io::Result<()> {
        let follow = move || {
            loop {
                // Several signals that arrive together are one.
                match self.signals.read(&mut [0; 64]) {
                    Ok(1..) => self.report(&shared),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => return,
                }
            }
        };
        thread::Builder::new().name("reload".into()).spawn(follow).map(drop)
    }

    /// Reloads, and prints what was done.
    fn report(&mut self, shared: &Shared) {
        // The service manager must not be notified before the service is ready.
        let is_ready = self.stop.readiness().is_ok();
        if is_ready {
            service_manager::reloading();
        }
        let report = match self.reload(shared) {
            Ok(report) => report,
            Err(error) => format!("the configuration stays as it is: {error:#}"),
        };
        if is_ready {
            service_manager::reloaded();
        }
        output::message(&format!("regatta: {report}"));
    }

    /// Reads the options and applies them. Returns what was done, for people.
    fn reload(&mut self, shared: &Shared) -> anyhow::Result<String> {
        let (matches, new) = (self.again)()?;
        let options = ShardOptions::from_arg_matches(&matches).context("the options")?;
        let before = shared.current();
        let (mut settings, names) = options.settings(before.patient, Some(&before.nodes))?;
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
        settings.slow_entries = before.slow_entries;
        let (epoch, has_other_passwords) = (before.map.epoch(), settings.auth != before.auth);
        if settings.map.assigns_like(&before.map) {
            settings.map = Arc::clone(&before.map);
        } else {
            settings.map = Arc::new(settings.map.with_epoch(epoch + 1));
        }
        if are_same(&settings.nodes, &before.nodes) {
            settings.nodes = Arc::clone(&before.nodes);
        } else {
            names::follow(&settings.nodes, names)?;
        }
        shared.reload(settings);
        let is_changed = |key: &&str| self.values.get(*key) != new.get(*key);
        let changed = new.keys().map(String::as_str).filter(is_changed);
        let (mut live, others): (Vec<&str>, Vec<&str>) =
            changed.partition(|key| LIVE.contains(key));
        let of_passwords = ["password_file", "node_password_file", "node_user"];
        if has_other_passwords && !of_passwords.iter().any(|key| live.contains(key)) {
            live.push("the passwords in the files");
        }
        let report = sentence(&live, &others);
        // What needs a restart is reported each time.
        self.values.extend(new.into_iter().filter(|(key, _)| LIVE.contains(&&**key)));
        Ok(report)
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

/// A sentence about what was done. `live`: the changed keys that apply; `others`: those that need a restart.
fn sentence(live: &[&str], others: &[&str]) -> String {
    let mut report = "the configuration was read again".to_owned();
    if !live.is_empty() {
        report += &format!("; changed: {}", live.join(", "));
    }
    if !others.is_empty() {
        report += &format!("; these need a restart: {}", others.join(", "));
    }
    report
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

    #[test]
    fn the_report_names_what_changed_and_what_needs_a_restart() {
        assert_eq!(sentence(&[], &[]), "the configuration was read again");
        assert_eq!(sentence(&["nodes"], &[]), "the configuration was read again; changed: nodes");
        assert_eq!(
            sentence(&["nodes"], &["listen", "model"]),
            "the configuration was read again; changed: nodes; these need a restart: listen, model"
        );
    }
}
