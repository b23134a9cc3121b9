//! A broker: as much of a Redis server as a hub uses.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

/// The fixed part of the header of a message, before the name of its room.
const HEADER: usize = 19;

/// A connection of the broker.
#[derive(Default)]
struct Client {
    input: Vec<u8>,
    output: Vec<u8>,
    channels: BTreeSet<Vec<u8>>,
}

/// The broker, and what was published in each room, in its order.
#[derive(Default)]
pub struct Redis {
    clients: BTreeMap<usize, Client>,
    pub log: BTreeMap<String, Vec<String>>,
    /// When each message was published.
    pub times: BTreeMap<String, Instant>,
    pub now: Option<Instant>,
    pub is_replica: bool,
    /// A node of a cluster, at which hubs use sharded channels.
    is_in_cluster: bool,
    /// Whether a message comes back before its reply, as Redis 6 does it.
    pushes_first: bool,
}

impl Redis {
    pub fn new(pushes_first: bool) -> Redis {
        Redis { pushes_first, ..Redis::default() }
    }

    /// A node of a cluster.
    pub fn in_cluster() -> Redis {
        Redis { is_in_cluster: true, ..Redis::default() }
    }

    pub fn accepts(&mut self, client: usize) {
        self.clients.insert(client, Client::default());
    }

    pub fn closes(&mut self, client: usize) {
        self.clients.remove(&client);
    }

    /// Handles bytes of a client.
    pub fn receives(&mut self, client: usize, bytes: &[u8]) {
        let Some(one) = self.clients.get_mut(&client) else { return };
        one.input.extend_from_slice(bytes);
        while let Some((command, taken)) =
            self.clients.get(&client).and_then(|one| command(&one.input))
        {
            self.clients.get_mut(&client).unwrap().input.drain(..taken);
            self.carries_out(client, &command);
        }
    }

    /// Takes at most so many bytes for a client.
    pub fn output(&mut self, client: usize, most: usize) -> Vec<u8> {
        let Some(one) = self.clients.get_mut(&client) else { return Vec::new() };
        let most = most.min(one.output.len());
        one.output.drain(..most).collect()
    }

    fn carries_out(&mut self, client: usize, command: &[Vec<u8>]) {
        let one = self.clients.get_mut(&client).unwrap();
        match &*command[0] {
            b"HELLO" => {
                one.output.extend_from_slice(
                    b"%4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n$4\r\nmode\r\n",
                );
                let mode: &[u8] = if self.is_in_cluster {
                    b"$7\r\ncluster\r\n"
                } else {
                    b"$10\r\nstandalone\r\n"
                };
                one.output.extend_from_slice(mode);
                one.output.extend_from_slice(b"$4\r\nrole\r\n");
                let role: &[u8] =
                    if self.is_replica { b"$7\r\nreplica\r\n" } else { b"$6\r\nmaster\r\n" };
                one.output.extend_from_slice(role);
            }
            b"SUBSCRIBE" | b"SSUBSCRIBE" => {
                let kind = command[0].to_ascii_lowercase();
                for channel in &command[1..] {
                    one.channels.insert(channel.clone());
                    push(&mut one.output, &[&kind, channel]);
                    one.output.extend(format!(":{}\r\n", one.channels.len()).into_bytes());
                }
            }
            b"PUBLISH" | b"SPUBLISH" => self.publishes(client, &command[1], &command[2]),
            other => panic!("{}", other.escape_ascii()),
        }
    }

    fn publishes(&mut self, client: usize, channel: &Vec<u8>, message: &[u8]) {
        if String::from_utf8_lossy(channel).contains(":room:") {
            let room = &message[HEADER..HEADER + usize::from(message[HEADER - 1])];
            let payload = &message[HEADER + room.len()..];
            let [room, payload] =
                [room, payload].map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
            self.times.extend(self.now.map(|now| (payload.clone(), now)));
            self.log.entry(room).or_default().push(payload);
        }
        let kind: &[u8] = if self.is_in_cluster { b"smessage" } else { b"message" };
        let receivers = self.clients.values().filter(|one| one.channels.contains(channel)).count();
        let reply = format!(":{receivers}\r\n").into_bytes();
        for (number, one) in &mut self.clients {
            let is_own = *number == client;
            if is_own && !self.pushes_first {
                one.output.extend_from_slice(&reply);
            }
            if one.channels.contains(channel) {
                push(&mut one.output, &[kind, channel, message]);
            }
            if is_own && self.pushes_first {
                one.output.extend_from_slice(&reply);
            }
        }
    }
}

/// Appends a push of three elements, or the first two of them.
fn push(out: &mut Vec<u8>, parts: &[&[u8]]) {
    out.extend_from_slice(b">3\r\n");
    for part in parts {
        out.extend(format!("${}\r\n", part.len()).into_bytes());
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
}

/// The first command of these bytes, and its length.
fn command(bytes: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
    let number = |at: usize| {
        let end = bytes.get(at..)?.windows(2).position(|two| two == b"\r\n")? + at;
        let text = str::from_utf8(&bytes[at + 1..end]).unwrap();
        Some((text.parse::<usize>().unwrap(), end + 2))
    };
    let (count, mut at) = number(0)?;
    let mut parts = Vec::new();
    for _ in 0..count {
        let (length, start) = number(at)?;
        parts.push(bytes.get(start..start + length)?.to_vec());
        at = start + length + 2;
    }
    (at <= bytes.len()).then_some((parts, at))
}
