//! The keys of a Redis server that hubs use for presence.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Strings that expire, and hashes.
#[derive(Default)]
pub struct Keys {
    strings: BTreeMap<Vec<u8>, Instant>,
    hashes: BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>,
    /// A mistake: nothing expires.
    pub never_expire: bool,
}

impl Keys {
    /// Whether a command is one of those for keys.
    pub fn has(command: &[u8]) -> bool {
        [&b"SET"[..], b"PEXPIRE", b"MGET", b"HSET", b"HDEL", b"HGET", b"HGETALL"].contains(&command)
    }

    pub fn is_empty(&self) -> bool {
        self.strings.is_empty() && self.hashes.is_empty()
    }

    /// Carries out a command, and appends the reply.
    pub fn carries_out(&mut self, command: &[Vec<u8>], now: Instant, out: &mut Vec<u8>) {
        if !self.never_expire {
            self.strings.retain(|_, until| now < *until);
        }
        let Keys { strings, hashes, .. } = self;
        let key = &command[1];
        let millis =
            |text: &[u8]| Duration::from_millis(str::from_utf8(text).unwrap().parse().unwrap());
        match &*command[0] {
            b"SET" => {
                assert_eq!(command[3], b"PX");
                strings.insert(key.clone(), now + millis(&command[4]));
                out.extend_from_slice(b"+OK\r\n");
            }
            b"PEXPIRE" => {
                let string = strings.get_mut(key);
                let is_there = string.is_some() || hashes.contains_key(key);
                string.into_iter().for_each(|until| *until = now + millis(&command[2]));
                out.extend(format!(":{}\r\n", u8::from(is_there)).into_bytes());
            }
            b"MGET" => {
                out.extend(format!("*{}\r\n", command.len() - 1).into_bytes());
                command[1..].iter().for_each(|key| {
                    bulk(strings.contains_key(key).then_some(&b"1"[..]), out);
                });
            }
            b"HSET" => {
                let hash = hashes.entry(key.clone()).or_default();
                hash.insert(command[2].clone(), command[3].clone());
                out.extend_from_slice(b":1\r\n");
            }
            b"HDEL" => {
                let hash = hashes.entry(key.clone()).or_default();
                let removed = hash.remove(&command[2]).is_some();
                hashes.retain(|_, hash| !hash.is_empty());
                out.extend(format!(":{}\r\n", u8::from(removed)).into_bytes());
            }
            b"HGET" => {
                bulk(
                    hashes.get(key).and_then(|hash| hash.get(&command[2])).map(Vec::as_slice),
                    out,
                );
            }
            _ => {
                let all: Vec<_> = hashes.get(key).into_iter().flatten().collect();
                out.extend(format!("%{}\r\n", all.len()).into_bytes());
                for (field, value) in all {
                    bulk(Some(field), out);
                    bulk(Some(value), out);
                }
            }
        }
    }
}

fn bulk(value: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(value) = value else { return out.extend_from_slice(b"_\r\n") };
    out.extend(format!("${}\r\n", value.len()).into_bytes());
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
