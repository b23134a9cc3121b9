//! Lookup of commands by name, in a hash table built at compile time.

use super::{entry::Command, table::TABLE};

/// Size of the hash table: a power of two, large enough that most names are found at once.
const PLACES: usize = 1024;

/// Length of the longest name. A longer word is not a command, and is not hashed.
const LONGEST: usize = longest();

static COMMANDS: [Command; TABLE.len()] = numbered();

/// For each slot of the hash table, the number of a command plus one; 0: empty.
static INDEX: [u16; PLACES] = index();

/// FNV-1a, 32 bits.
const BASIS: u32 = 0x811c_9dc5;
const PRIME: u32 = 0x0100_0193;

impl Command {
    /// All commands and subcommands, sorted by name.
    pub const fn all() -> &'static [Command] {
        &COMMANDS
    }

    /// Returns the command with this name, ignoring case. Finds no subcommands.
    #[inline]
    pub fn find(name: &[u8]) -> Option<&'static Command> {
        if name.len() > LONGEST {
            return None;
        }
        let found = probe(add(BASIS, name), |full| full.eq_ignore_ascii_case(name))?;
        (!found.is_subcommand()).then_some(found)
    }

    /// Returns the subcommand with this name, ignoring case.
    #[inline]
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static Command> {
        if !self.is_container || name.len() > LONGEST {
            return None;
        }
        let own = self.name.as_bytes();
        probe(add(add(add(BASIS, own), b"|"), name), |full| {
            full.len() == own.len() + 1 + name.len()
                && full.starts_with(own)
                && full[own.len()] == b'|'
                && full[own.len() + 1..].eq_ignore_ascii_case(name)
        })
    }
}

/// Returns the command with this hash for whose name `is_right` holds.
#[inline]
fn probe(hash: u32, is_right: impl Fn(&[u8]) -> bool) -> Option<&'static Command> {
    let mut place = place(hash);
    loop {
        let number = INDEX[place];
        if number == 0 {
            return None;
        }
        let command = &COMMANDS[usize::from(number) - 1];
        if is_right(command.name.as_bytes()) {
            return Some(command);
        }
        place = (place + 1) % PLACES;
    }
}

#[inline]
const fn place(hash: u32) -> usize {
    (hash ^ (hash >> 16)) as usize % PLACES
}

/// Continues a hash with these bytes, in lower case.
#[inline]
const fn add(mut hash: u32, bytes: &[u8]) -> u32 {
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at].to_ascii_lowercase() as u32).wrapping_mul(PRIME);
        at += 1;
    }
    hash
}

const fn numbered() -> [Command; TABLE.len()] {
    let mut commands = TABLE;
    let mut number = 0;
    while number < commands.len() {
        commands[number].number = number as u16;
        number += 1;
    }
    commands
}

const fn index() -> [u16; PLACES] {
    let table = &TABLE;
    assert!(PLACES.is_power_of_two() && PLACES > 2 * table.len(), "the hash table is too full");
    let mut index = [0; PLACES];
    let mut number = 0;
    while number < table.len() {
        let mut place = place(add(BASIS, table[number].name.as_bytes()));
        while index[place] != 0 {
            place = (place + 1) % PLACES;
        }
        index[place] = number as u16 + 1;
        number += 1;
    }
    index
}

const fn longest() -> usize {
    let table = &TABLE;
    let (mut longest, mut number) = (0, 0);
    while number < table.len() {
        if table[number].name.len() > longest {
            longest = table[number].name.len();
        }
        number += 1;
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_command_is_found_in_any_case() {
        for (number, command) in Command::all().iter().enumerate() {
            assert_eq!(command.number(), number);
            for name in [command.name.to_owned(), command.name.to_ascii_uppercase()] {
                let found = match name.split_once('|') {
                    None => Command::find(name.as_bytes()),
                    Some((container, name)) => Command::find(container.as_bytes())
                        .and_then(|container| container.subcommand(name.as_bytes())),
                };
                assert_eq!(found, Some(command));
            }
        }
    }

    #[test]
    fn names_are_sorted_and_subcommands_have_a_container() {
        assert!(Command::all().is_sorted_by(|one, other| one.name < other.name));
        for command in Command::all() {
            if let Some((container, _)) = command.name.split_once('|') {
                assert!(Command::find(container.as_bytes()).unwrap().is_container, "{container}");
            }
        }
    }

    #[test]
    fn other_words_are_not_commands() {
        for word in ["", "g", "gett", "client|id", "CLIENT|ID", "get|", "ge\0t", "subscribe "] {
            assert_eq!(Command::find(word.as_bytes()), None, "{word}");
        }
        assert_eq!(Command::find(&[b'a'; 1000]), None);
        let client = Command::find(b"client").unwrap();
        for word in ["", "idd", "client|id", "|id", "i"] {
            assert_eq!(client.subcommand(word.as_bytes()), None, "{word}");
        }
        assert_eq!(Command::find(b"get").unwrap().subcommand(b"id"), None);
    }

    #[test]
    fn most_names_are_found_at_once() {
        let mut steps = 0;
        for command in Command::all() {
            let mut place = place(add(BASIS, command.name.as_bytes()));
            while INDEX[place] as usize != command.number() + 1 {
                place = (place + 1) % PLACES;
                steps += 1;
            }
        }
        assert!(steps < Command::all().len() / 2, "{steps} steps");
    }

    #[test]
    fn an_entry_has_its_arity_version_and_group() {
        let get = Command::find(b"GET").unwrap();
        assert_eq!((get.arity, get.since, get.group), (2, "1.0.0", "string"));
        assert!(get.takes(2) && !get.takes(1) && !get.takes(3));
        let mset = Command::find(b"mset").unwrap();
        assert!(mset.takes(3) && mset.takes(1000) && !mset.takes(2));
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_looked_up(
            name in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..40),
                "[a-z|]{0,12}".prop_map(String::into_bytes),
            ],
        ) {
            let text = String::from_utf8_lossy(&name).to_ascii_lowercase();
            let known = Command::all().iter().find(|command| command.name == text);
            let expected = known.filter(|command| !command.is_subcommand());
            prop_assert_eq!(Command::find(&name), expected);
        }
    }
}
