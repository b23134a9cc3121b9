//! Comparison of replies, with a list of the commands whose replies are unordered or random.

use regatta_proto::resp::Value;
use std::time::{SystemTime, UNIX_EPOCH};

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tree {
    Null,
    Integer(i64),
    Text(Vec<u8>),
    Error(Vec<u8>),
    List(Vec<Tree>),
}

impl Tree {
    pub fn read(bytes: &[u8]) -> Tree {
        Tree::take(bytes).0
    }

    fn take(bytes: &[u8]) -> (Tree, usize) {
        let (value, mut taken) = Value::read(bytes).expect("RESP");
        let tree = match value {
            Value::Null => Tree::Null,
            Value::Integer(number) => Tree::Integer(number),
            Value::Boolean(is) => Tree::Integer(is.into()),
            Value::Error(text) => Tree::Error(text.to_vec()),
            Value::Simple(text) | Value::Bulk(text) | Value::Number(text) => {
                Tree::Text(text.to_vec())
            }
            Value::Elements(_, count, _) => Tree::List(
                (0..count)
                    .map(|_| {
                        let (element, length) = Tree::take(&bytes[taken..]);
                        taken += length;
                        element
                    })
                    .collect(),
            ),
        };
        (tree, taken)
    }

    pub fn text(&self) -> String {
        match self {
            Tree::Text(text) | Tree::Error(text) => String::from_utf8_lossy(text).into_owned(),
            other => format!("{other:?}"),
        }
    }

    /// Returns the pairs of a list of alternating names and values.
    pub fn pairs(&self) -> impl Iterator<Item = (&Tree, &Tree)> {
        let elements: &[Tree] = if let Tree::List(elements) = self { elements } else { &[] };
        elements.chunks_exact(2).map(|pair| (&pair[0], &pair[1]))
    }

    /// Returns the value of a name.
    pub fn value(&self, name: &str) -> Option<&Tree> {
        self.pairs().find(|(one, _)| one.text() == name).map(|(_, value)| value)
    }

    /// Sorts the elements of a list.
    fn sorted(mut self) -> Tree {
        if let Tree::List(elements) = &mut self {
            elements.sort();
        }
        self
    }

    /// Sorts the elements of all nested lists.
    fn sorted_within(self) -> Tree {
        match self {
            Tree::List(elements) => {
                Tree::List(elements.into_iter().map(Tree::sorted_within).collect()).sorted()
            }
            other => other,
        }
    }

    /// Keeps only the types of the values.
    fn shape(self) -> Tree {
        match self {
            Tree::Integer(_) => Tree::Integer(0),
            Tree::Text(_) => Tree::Text(Vec::new()),
            Tree::List(elements) => Tree::List(elements.into_iter().map(Tree::shape).collect()),
            other => other,
        }
    }

    /// Replaces the identifier of an entry of a stream by a fixed one if it is of the last minute.
    fn without_present(self) -> Tree {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
        let text = self.text();
        let ms = text.split_once('-').and_then(|(ms, _)| ms.parse::<u128>().ok());
        match ms {
            Some(ms) if now.abs_diff(ms) < 60_000 => Tree::Text(b"now".to_vec()),
            _ => self,
        }
    }

    /// Keeps only the signs of numbers.
    fn without_numbers(self) -> Tree {
        match self {
            Tree::Integer(number) => Tree::Integer(number.signum()),
            Tree::List(elements) => {
                Tree::List(elements.into_iter().map(Tree::without_numbers).collect())
            }
            other => other,
        }
    }
}

/// Returns the part of a reply that must be the same. Each exception has its reason.
pub fn comparable(command: &str, reply: Tree) -> Tree {
    if matches!(reply, Tree::Error(_)) {
        return reply;
    }
    match command {
        // Sets and hashes have no order.
        "keys"
        | "smembers"
        | "sunion"
        | "sinter"
        | "sdiff"
        | "hkeys"
        | "hvals"
        | "hgetall"
        | "pubsub|channels"
        | "pubsub|shardchannels" => reply.sorted(),
        // LIMIT selects from elements without an order if BY is not a pattern.
        "sort" | "sort_ro" => reply.shape().sorted(),
        "hscan" | "zscan" => reply.sorted_within(),
        // The hash table of a set has any order, and streams have times.
        "dump" => reply.shape(),
        // The server's table of commands has no order.
        "acl|cat" => reply.sorted(),
        "command" | "command|list" | "command|docs" | "command|info" => reply.sorted_within(),
        // Random.
        "randomkey" | "srandmember" | "hrandfield" | "zrandmember" | "spop" | "lolwut"
        | "acl|genpass" => reply.shape(),
        // The cursor is a position in a hash table. Another test scans everything.
        "scan" | "sscan" => match reply {
            Tree::List(_) => Tree::List(Vec::new()),
            other => other,
        },
        // Times, and values that depend on them.
        "time" => reply.shape(),
        "xadd" => reply.without_present(),
        "object|idletime" | "xpending" | "xinfo|consumers" | "xinfo|groups" | "xinfo|stream" => {
            reply.shape()
        }
        "ttl" | "pttl" | "expiretime" | "pexpiretime" => reply.without_numbers(),
        // EVAL stores a script only on the node of its keys. Another test checks the answers.
        "script|exists" => reply.shape(),
        // Depends on how a hash table has grown.
        "memory|usage" => reply.shape(),
        // About the connection, or the server itself.
        "client|id" | "client|info" | "hello" | "info" | "slowlog|get" | "slowlog|len" => {
            Tree::Text(Vec::new())
        }
        _ => reply,
    }
}

/// The proxy's refusals, by the prefix of their text. The text has the reason.
const REFUSALS: [&str; 4] = [
    "CROSSSLOT ",
    "ERR the proxy does not support '",
    "ERR the nodes give different answers",
    // EVAL stores a script only on the node of its keys.
    "NOSCRIPT ",
];

/// Returns whether a reply is a refusal of the proxy with a reason.
pub fn is_refusal(reply: &Tree) -> bool {
    let Tree::Error(text) = reply else { return false };
    REFUSALS.iter().any(|prefix| text.starts_with(prefix.as_bytes()))
}
