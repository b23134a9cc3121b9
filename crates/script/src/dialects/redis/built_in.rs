//! The workload `shard`, which needs no file.

use super::{
    commands::Command,
    file::MixFile,
    keys::Distribution,
    mix::{Mix, Step},
};
use crate::workload::{conversation::Conversation, file::Kept};

/// Keys of a client.
const KEYS: usize = 100;
/// Bytes of a value.
const VALUE: usize = 100;

/// How often each command is asked, in percent, and with how many keys.
const COMMANDS: [(u32, Command, usize); 6] = [
    (50, Command::Get, 1),
    (30, Command::Set, 1),
    (5, Command::Mget, 10),
    (5, Command::Mset, 10),
    (2, Command::Del, 10),
    (8, Command::Incr, 1),
];

/// A bit of every command.
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
