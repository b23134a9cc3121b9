//! The built-in workload `shard`.

use super::{
    commands::Command,
    file::MixFile,
    keys::Distribution,
    mix::{Mix, Step},
};
use crate::workload::{conversation::Conversation, file::Kept};

/// Number of keys of each client.
const KEYS: usize = 100;
/// Bytes in a value.
const VALUE: usize = 100;

/// Each command with its weight in percent and its number of keys.
const COMMANDS: [(u32, Command, usize); 6] = [
    (50, Command::Get, 1),
    (30, Command::Set, 1),
    (5, Command::Mget, 10),
    (5, Command::Mset, 10),
    (2, Command::Del, 10),
    (8, Command::Incr, 1),
];

/// Returns a mix of all commands.
pub(super) fn shard() -> MixFile {
    let conversation =
        |(weight, command, keys)| Conversation { weight, steps: vec![Step::Keys(command, keys)] };
    let mix = Mix {
        keys: KEYS,
        value_bytes: VALUE,
        distribution: Distribution::Uniform,
        conversations: COMMANDS.map(conversation).into(),
    };
    let kept = Kept { name: "shard".into(), text: String::new(), lists: Vec::new() };
    MixFile { kept, mix }
}
