//! What nodes have said about commands that the table lacks.

use regatta_engine::Conn;
use regatta_keyspace::command;
use regatta_proto::resp::Command;
use std::{collections::HashMap, time::Instant};

/// Maximum number of names that a core remembers.
const MOST: usize = 1024;
/// Maximum length of the name of a command or subcommand. A longer word is none.
const LONGEST: usize = 64;
/// What is known about commands that the table lacks, by name.
#[derive(Debug, Default)]
pub(crate) struct Described(HashMap<Vec<u8>, Known>);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    /// A node was asked over this connection.
    Asked(Conn),
    Is(&'static command::Command),
    /// The node does not know it. It counts as unknown until then.
    Not(Instant),
}

/// What ends the name of a command in that of a question. No name has it.
const END: u8 = 0;

/// The name under which it is noted that a command was asked for over a connection of this pool.
pub(crate) fn asked_in(name: Vec<u8>, pool: usize) -> Vec<u8> {
    match pool {
        0 => name,
        _ => [&name[..], &[END], pool.to_string().as_bytes()].concat(),
    }
}

/// The name of the command in such a name.
pub(crate) fn name_of(asked: &[u8]) -> &[u8] {
    asked.split(|byte| *byte == END).next().unwrap_or_default()
}

impl Described {
    /// What is known about a name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<Known> {
        self.0.get(name).copied()
    }

    pub(crate) fn insert(&mut self, name: Vec<u8>, known: Known) {
        self.0.insert(name, known);
    }

    /// Forgets a name: it is asked for again.
    pub(crate) fn remove(&mut self, name: &[u8]) {
        self.0.remove(name);
    }

    /// Forgets everything, except what another connection than `lost` is about to report.
    pub(crate) fn forget(&mut self, lost: Conn) {
        self.0.retain(|_, known| matches!(known, Known::Asked(conn) if *conn != lost));
    }

    /// The name to ask for, in lower case: of the command, or of the subcommand if it has some. `None` if no node can
    /// know it.
    pub(crate) fn name(&self, command: &Command<'_>) -> Option<Vec<u8>> {
        let word = |at| {
            let word: &[u8] = command.arg(at)?;
            let is_name = (1..=LONGEST).contains(&word.len())
                && word.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'|');
            is_name.then(|| word.to_ascii_lowercase())
        };
        let name = word(0)?;
        let is_container = match command::Command::find(&name) {
            Some(known) => known.is_container,
            None => matches!(self.0.get(&name), Some(Known::Is(known)) if known.is_container),
        };
        match is_container && command.len() > 1 {
            true => Some([&name[..], b"|", &word(1)?].concat()),
            false => Some(name),
        }
    }

    /// Whether one more name can be remembered. Those that are unknown make room.
    pub(crate) fn has_room(&mut self) -> bool {
        if self.0.len() >= MOST {
            self.0.retain(|_, known| !matches!(known, Known::Not(_)));
        }
        self.0.len() < MOST
    }
}
