//! The keys of a Redis server that hubs use for presence.

use super::redis::{bulk, number};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// When it expires, and its fields.
type Hash = (Option<Instant>, BTreeMap<Vec<u8>, Vec<u8>>);

/// Strings that expire, and hashes.
#[derive(Default)]
pub struct Keys {
    strings: BTreeMap<Vec<u8>, Instant>,
    hashes: BTreeMap<Vec<u8>, Hash>,
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

    /// Whether all would be gone if there were no hubs.
    pub fn all_expire(&self) -> bool {
        self.hashes.values().all(|(until, _)| until.is_some())
    }

    /// Carries out a command, and appends the reply.
    pub fn carries_out(&mut self, command: &[&[u8]], now: Instant, out: &mut Vec<u8>) {
        if !self.never_expire {
            self.strings.retain(|_, until| now < *until);
            self.hashes.retain(|_, (until, _)| until.is_none_or(|until| now < until));
        }
        let Keys { strings, hashes, .. } = self;
        let key = command[1];
        let millis =
            |text: &[u8]| Duration::from_millis(str::from_utf8(text).unwrap().parse().unwrap());
        match command[0] {
            b"SET" => {
                assert_eq!(command[3], b"PX");
                strings.insert(key.to_vec(), now + millis(command[4]));
                out.extend_from_slice(b"+OK\r\n");
            }
            b"PEXPIRE" => {
                let (string, hash) = (strings.get_mut(key), hashes.get_mut(key));
                let is_there = string.is_some() || hash.is_some();
                let expires_at = now + millis(command[2]);
                string.into_iter().for_each(|until| *until = expires_at);
                hash.into_iter().for_each(|(until, _)| *until = Some(expires_at));
                number(b':', usize::from(is_there), out);
            }
            b"MGET" => {
                number(b'*', command.len() - 1, out);
                command[1..].iter().for_each(|key| {
                    value(strings.contains_key(*key).then_some(&b"1"[..]), out);
                });
            }
            b"HSET" => {
                let (_, hash) = hashes.entry(key.to_vec()).or_default();
                hash.insert(command[2].to_vec(), command[3].to_vec());
                out.extend_from_slice(b":1\r\n");
            }
            b"HDEL" => {
                let (_, hash) = hashes.entry(key.to_vec()).or_default();
                let removed = hash.remove(command[2]).is_some();
                hashes.retain(|_, (_, hash)| !hash.is_empty());
                number(b':', usize::from(removed), out);
            }
            b"HGET" => {
                let found = hashes.get(key).and_then(|(_, hash)| hash.get(command[2]));
                value(found.map(Vec::as_slice), out);
            }
            _ => {
                let all: Vec<_> = hashes.get(key).into_iter().flat_map(|(_, hash)| hash).collect();
                number(b'%', all.len(), out);
                for (field, value) in all {
                    bulk(field, out);
                    bulk(value, out);
                }
            }
        }
    }
}

fn value(value: Option<&[u8]>, out: &mut Vec<u8>) {
    match value {
        Some(value) => bulk(value, out),
        None => out.extend_from_slice(b"_\r\n"),
    }
}
