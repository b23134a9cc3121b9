//! A client of the proxy. It sets and gets keys of its own, and checks each reply.

use super::Seen;
use rand::{Rng, rngs::SmallRng};
use regatta_keyspace::map::{Map, Slots};
use regatta_proto::resp::{Replies, write_command};
use std::collections::VecDeque;

/// The node whose master never changes: its clients get no error.
pub const CALM: usize = 1;

pub struct Client {
    keys: Vec<Key>,
    replies: Replies,
    bytes: Vec<u8>,
    expected: VecDeque<Expected>,
}

struct Key {
    name: String,
    node: usize,
    /// How many values were sent.
    sent: u32,
}

/// What a reply must be.
struct Expected {
    key: usize,
    is_get: bool,
    /// The number of the last value before it.
    last: u32,
}

impl Client {
    pub fn new(number: usize) -> Self {
        let map = Map::new(1, Slots::even(2).expect("two nodes"));
        let key = |at: usize| {
            let name = format!("c{number}.k{at}");
            Key { node: map.node(name.as_bytes()), name, sent: 0 }
        };
        let keys: Vec<Key> = (0..6).map(key).collect();
        assert!((0..2).all(|node| keys.iter().any(|key| key.node == node)), "keys of both nodes");
        Client { keys, replies: Replies::default(), bytes: Vec::new(), expected: VecDeque::new() }
    }

    pub fn owes(&self) -> usize {
        self.expected.len()
    }

    /// Sends some commands.
    pub fn send(&mut self, random: &mut SmallRng, out: &mut Vec<u8>) {
        for _ in 0..random.random_range(0..3) {
            let at = random.random_range(0..self.keys.len());
            self.ask(at, random.random_bool(0.5), out);
        }
    }

    /// Sends a command for a key of each node.
    pub fn ask_all(&mut self, out: &mut Vec<u8>) {
        for node in 0..2 {
            let at = self.keys.iter().position(|key| key.node == node).expect("a key");
            self.ask(at, false, out);
        }
    }

    fn ask(&mut self, at: usize, is_get: bool, out: &mut Vec<u8>) {
        if self.owes() > 20 {
            return;
        }
        let key = &mut self.keys[at];
        if is_get {
            write_command([&b"get"[..], key.name.as_bytes()], out);
        } else {
            key.sent += 1;
            let value = format!("{}:{}", key.name, key.sent);
            write_command([&b"set"[..], key.name.as_bytes(), value.as_bytes()], out);
        }
        self.expected.push_back(Expected { key: at, is_get, last: key.sent });
    }

    /// Checks replies. Returns how many were errors.
    pub fn receive(&mut self, bytes: &[u8], seen: &mut Seen) -> Result<usize, String> {
        self.bytes.extend_from_slice(bytes);
        let mut errors = 0;
        loop {
            let mut replies = std::mem::take(&mut self.replies);
            let found = replies.next(&self.bytes).map_err(|_| "malformed")?;
            if !found.whole {
                // It is looked at again with more bytes.
                return Ok(errors);
            }
            let reply: Vec<u8> = self.bytes.drain(..found.bytes).collect();
            let text = String::from_utf8_lossy(&reply).into_owned();
            let expected =
                self.expected.pop_front().ok_or(format!("one reply too many: {text}"))?;
            seen.replies += 1;
            let key = &self.keys[expected.key];
            if text.starts_with('-') {
                seen.errors += 1;
                errors += 1;
                seen.read_only += u64::from(text.starts_with("-READONLY"));
                let is_permitted = [
                    "-SHARDDOWN node one",
                    "-SHARDMOVED node one",
                    "-SHARDTIMEOUT node one",
                    "-READONLY",
                ]
                .iter()
                .any(|start| text.starts_with(start));
                if key.node == CALM || !is_permitted {
                    return Err(format!("{}: {text}", key.name));
                }
                continue;
            }
            let is_right = match expected.is_get {
                false => text == "+OK\r\n",
                true => is_value(key, &text, expected.last),
            };
            if !is_right {
                return Err(format!("{} (after value {}): {text}", key.name, expected.last));
            }
        }
    }
}

/// Whether this is a value that the key may have. The last writes may be lost in a failover.
fn is_value(key: &Key, reply: &str, last: u32) -> bool {
    if reply == "$-1\r\n" {
        return last == 0 || key.node != CALM;
    }
    let value = reply.split("\r\n").nth(1).unwrap_or_default();
    let number = value.strip_prefix(&key.name[..]).and_then(|rest| rest.strip_prefix(':'));
    let Some(number) = number.and_then(|number| number.parse::<u32>().ok()) else { return false };
    if key.node == CALM { number == last } else { number <= last }
}
