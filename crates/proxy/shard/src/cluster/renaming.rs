//! Commands of publish/subscribe that are sent under another name, as their sharded forms. Without sockets.

use regatta_keyspace::Arguments;
use regatta_proto::resp::{Command, CommandLimits, Commands, write_bulk};

/// Memory in which a command gets its other name.
#[derive(Debug, Default)]
pub(crate) struct Renaming {
    commands: Option<Commands>,
    bytes: Vec<u8>,
}

/// Bytes of it that are kept.
const SPARE: usize = 64 << 10;

/// Whether a command with this name is sent under another one.
pub(crate) fn is_renamed(name: &str) -> bool {
    matches!(name, "publish" | "pubsub|numsub" | "pubsub|channels")
}

impl Renaming {
    /// Gives a command its other name: SPUBLISH instead of PUBLISH, PUBSUB SHARDNUMSUB instead of PUBSUB NUMSUB.
    pub(crate) fn rename(
        &mut self,
        command: &Command<'_>,
        limits: CommandLimits,
    ) -> Option<Command<'_>> {
        self.bytes.clear();
        self.bytes.shrink_to(SPARE);
        write(command, &mut self.bytes);
        let commands = self.commands.get_or_insert_with(|| Commands::new(limits));
        commands.set_limits(limits);
        let (_, renamed) = commands.next(&self.bytes).ok()?;
        renamed
    }
}

/// Writes a command with its other name.
fn write(command: &Command<'_>, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    out.push(b'*');
    out.extend_from_slice(digits.format(command.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    let is_container = command.is(0, "pubsub");
    for (at, word) in command.args().enumerate() {
        match at {
            0 if !is_container => write_bulk(b"spublish", out),
            1 if is_container && command.is(1, "numsub") => write_bulk(b"shardnumsub", out),
            1 if is_container => write_bulk(b"shardchannels", out),
            _ => write_bulk(word, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_proto::resp::write_command;

    #[test]
    fn only_the_name_changes() {
        let bytes_of = |words: &[&str]| {
            let mut bytes = Vec::new();
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            write_command(words, &mut bytes);
            bytes
        };
        for (words, expected) in [
            (&["PUBLISH", "a", "b c"][..], &["spublish", "a", "b c"][..]),
            (&["pubsub", "NUMSUB", "x", "y"], &["pubsub", "shardnumsub", "x", "y"]),
            (&["PUBSUB", "channels"], &["PUBSUB", "shardchannels"]),
        ] {
            let (limits, bytes) = (CommandLimits::default(), bytes_of(words));
            let mut commands = Commands::new(limits);
            let (_, command) = commands.next(&bytes).unwrap();
            let mut renaming = Renaming::default();
            let renamed = renaming.rename(&command.unwrap(), limits).unwrap();
            assert_eq!(renamed.bytes, bytes_of(expected));
        }
    }
}
