//! How many requests of each command were answered alike, and what is required of that.

use super::generate::Documented;
use regatta_keyspace::command::{Command, flag};
use std::collections::BTreeMap;

/// The outcome of a request.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// The same reply, not an error.
    Same,
    /// The same error.
    SameError,
    /// The proxy refused the request with a reason.
    Refused,
}

/// Counts of outcomes, by command.
pub type Counts = BTreeMap<String, Count>;

/// Counts for one command: same replies, same replies without an error, and refusals.
#[derive(Default)]
pub struct Count {
    same: usize,
    good: usize,
    refused: usize,
}

impl Count {
    pub fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Same => (self.same, self.good) = (self.same + 1, self.good + 1),
            Outcome::SameError => self.same += 1,
            Outcome::Refused => self.refused += 1,
        }
    }

    /// Returns whether the proxy refused the command and never answered it without an error.
    fn is_refused(&self) -> bool {
        self.good == 0 && self.refused > 0
    }
}

pub fn report(counts: &Counts) {
    let refused: Vec<&str> =
        counts.iter().filter(|(_, count)| count.is_refused()).map(|(name, _)| &name[..]).collect();
    let same = counts.values().filter(|count| count.refused == 0).count();
    let asked: usize = counts.values().map(|count| count.same + count.refused).sum();
    println!(
        "{} commands, {asked} requests: {same} always the same, {} the same or refused, {} refused",
        counts.len(),
        counts.len() - same - refused.len(),
        refused.len()
    );
    println!("refused: {}", refused.join(" "));
}

/// Commands that concern several nodes: the proxy splits them by key, sends them to all nodes, or, like
/// SCAN, to one node after another.
const SPLIT: [&str; 12] = [
    "mget",
    "mset",
    "del",
    "unlink",
    "exists",
    "touch",
    "dbsize",
    "flushdb",
    "flushall",
    "keys",
    "randomkey",
    "scan",
];

/// Panics if too much is refused. `is_queued`: in transactions, whose keys must be on one node.
pub fn judge(commands: &[Documented], counts: &Counts, is_queued: bool) {
    let refused = counts.values().filter(|count| count.is_refused()).count();
    if !is_queued {
        assert!(refused * 4 <= counts.len(), "{refused} of {} commands are refused", counts.len());
        for name in SPLIT {
            let count = &counts[name];
            assert!(count.good > 0 && count.refused == 0, "{name} is refused");
        }
    }
    let mut checked = 0;
    for command in commands {
        let Some(known) = Command::all().iter().find(|one| one.name == command.name) else {
            // A node described it.
            continue;
        };
        let is_data = known.has(flag::WRITE) || known.has(flag::READONLY);
        if !is_data || !has_one_key(known) || EXCEPTIONS.contains(&known.name) {
            continue;
        }
        checked += 1;
        let Some(count) = counts.get(known.name) else { continue };
        assert!(count.refused == 0, "{} has one key and is refused", known.name);
        assert!(is_queued || count.good > 0, "{} was never answered without an error", known.name);
    }
    println!("{checked} commands with one key, none refused");
}

/// Commands with one key that are not judged, with the reason. A refusal has its reason in the reply.
const EXCEPTIONS: [&str; 5] = [
    // Refused with BY or GET: their patterns read other keys.
    "sort",
    "sort_ro",
    // Refused: they are part of the migration between nodes.
    "migrate",
    "restore-asking",
    // For tests of the server: its arguments are not documented.
    "pfdebug",
];

fn has_one_key(command: &Command) -> bool {
    use regatta_keyspace::command::{Begin, Find};
    matches!(
        command.specs,
        [spec] if matches!(spec.begin, Begin::Index { .. })
            && matches!(spec.find, Find::Range { last: 0, .. })
    )
}
