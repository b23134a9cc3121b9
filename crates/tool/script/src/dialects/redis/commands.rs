//! Commands with generated keys, and their bytes.

use super::names::{Identity, Kind, Names, Owner};
use std::fmt;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Set,
    Get,
    Mset,
    Mget,
    Del,
    Incr,
}

impl Command {
    pub const ALL: [Command; 6] =
        [Command::Set, Command::Get, Command::Mset, Command::Mget, Command::Del, Command::Incr];

    /// Its name, as it is sent.
    pub fn name(self) -> &'static str {
        match self {
            Command::Set => "SET",
            Command::Get => "GET",
            Command::Mset => "MSET",
            Command::Mget => "MGET",
            Command::Del => "DEL",
            Command::Incr => "INCR",
        }
    }

    /// Whether it can have several keys.
    pub fn has_several(self) -> bool {
        matches!(self, Command::Mset | Command::Mget | Command::Del)
    }

    /// Whether it stores values.
    pub fn stores(self) -> bool {
        matches!(self, Command::Set | Command::Mset)
    }

    /// Whether it deletes its keys.
    pub fn deletes(self) -> bool {
        self == Command::Del
    }

    /// The kind of value that its keys hold.
    pub fn kind(self) -> Kind {
        if self == Command::Incr { Kind::Counter } else { Kind::Value }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A command with a number of keys.
#[derive(Debug)]
pub(super) struct Framed {
    pub command: Command,
    /// Number of keys of each request.
    pub keys: usize,
    /// The bytes of the request before its keys.
    request: Vec<u8>,
    /// The header of a reply that is an array.
    pub reply: Vec<u8>,
}

impl Framed {
    /// Creates a command with this number of keys.
    pub fn new(command: Command, keys: usize) -> Framed {
        let name = command.name();
        let args = 1 + keys * if command.stores() { 2 } else { 1 };
        let request = format!("*{args}\r\n${}\r\n{name}\r\n", name.len()).into_bytes();
        Framed { command, keys, request, reply: format!("*{keys}\r\n").into_bytes() }
    }

    /// Appends the request for these keys of `owner`, sent by `author` as its request number `version`.
    #[expect(clippy::too_many_arguments, reason = "the parts of a request")]
    pub fn write(
        &self,
        names: &Names,
        (owner, author): (&Owner, &Owner),
        keys: &[u16],
        version: u64,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(&self.request);
        let kind = self.command.kind();
        for key in keys {
            names.write_key(kind, owner, *key, out);
            if self.command.stores() {
                names.write_value(Identity { author: *author, key: *key, version }, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_proto::resp::write_command;

    #[test]
    fn writes_the_same_requests_as_the_codec() {
        let names = Names::new(3, 40);
        let (owner, author) = (Owner::new(1, 0), Owner::new(2, 0));
        let mut values = Vec::new();
        for key in [5, 6] {
            let mut framed = Vec::new();
            names.write_value(Identity { author, key, version: 9 }, &mut framed);
            values.push(framed["$40\r\n".len()..framed.len() - 2].to_vec());
        }
        let keys = ["k:3:0000010000:0005", "k:3:0000010000:0006"];
        let of = |words: &[&[u8]]| {
            let mut bytes = Vec::new();
            write_command(words.iter().copied(), &mut bytes);
            bytes
        };
        let [first, second] = keys.map(str::as_bytes);
        for (command, count, expected) in [
            (Command::Set, 1, of(&[b"SET", first, &values[0]])),
            (Command::Get, 1, of(&[b"GET", first])),
            (Command::Mset, 2, of(&[b"MSET", first, &values[0], second, &values[1]])),
            (Command::Mget, 2, of(&[b"MGET", first, second])),
            (Command::Del, 1, of(&[b"DEL", first])),
            (Command::Incr, 1, of(&[b"INCR", b"n:3:0000010000:0005"])),
        ] {
            let mut bytes = Vec::new();
            let framed = Framed::new(command, count);
            framed.write(&names, (&owner, &author), &[5, 6][..count], 9, &mut bytes);
            assert_eq!(bytes, expected, "{command}");
        }
        assert_eq!(Framed::new(Command::Mget, 100).reply, b"*100\r\n");
    }
}
