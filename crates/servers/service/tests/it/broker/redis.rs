//! A broker: as much of a Redis server as a hub uses.

use super::stored::{Answer, Process, Stored};
use sha1::Digest;
use std::collections::{BTreeMap, BTreeSet};

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
    /// Messages that the server has lost.
    pub lost: BTreeSet<String>,
    /// Messages that a member has heard, or whose sender knows that they are published.
    pub heard: BTreeSet<String>,
    /// What is stored, and what was stored when it was last saved or copied.
    pub stored: Stored,
    pub saved: Stored,
    pub process: Process,
    /// A mistake: another server goes on with the reign of the one before.
    pub keeps_reign: bool,
    /// A mistake: hubs with histories do not hear what no script has published.
    pub hides_holes: bool,
    /// Hubs without histories may not ask whether others have some.
    pub hides_reign: bool,
    /// The scripts that it knows: the first words of their texts.
    scripts: BTreeMap<String, String>,
    /// Whether a message comes back before its reply, as Redis 6 does it.
    pushes_first: bool,
}

impl Redis {
    pub fn new(pushes_first: bool) -> Redis {
        Redis { pushes_first, ..Redis::default() }
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

    /// Its process ends, and another one has what was saved, or all. `is_replica`: it was a replica.
    pub fn restarts(&mut self, has_all: bool, is_replica: bool) {
        let before = self.stored.clone();
        if !has_all {
            self.stored = self.saved.clone();
        }
        self.process.run += 1;
        self.process.replid += 1;
        self.process.was_promoted = is_replica;
        self.process.started =
            if is_replica { self.process.now.saturating_sub(90_000) } else { self.process.now };
        if self.keeps_reign {
            self.process.run -= 1;
            self.process.replid -= 1;
        }
        for (room, log) in &self.log {
            let is_lost = |payload: &&String| {
                before.holds(room, payload) && !self.stored.holds(room, payload)
            };
            self.lost.extend(log.iter().filter(is_lost).cloned());
        }
        self.saved = self.stored.clone();
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
            b"HELLO" => one.output.extend_from_slice(
                b"%4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n\
                  $4\r\nrole\r\n$6\r\nmaster\r\n",
            ),
            b"SUBSCRIBE" => {
                for channel in &command[1..] {
                    one.channels.insert(channel.clone());
                    push(&mut one.output, &[b"subscribe", channel]);
                    one.output.extend(format!(":{}\r\n", one.channels.len()).into_bytes());
                }
            }
            b"PUBLISH" => self.publishes(client, &command[1], &command[2]),
            b"EXISTS" if self.hides_reign => one.output.extend_from_slice(b"-NOPERM no\r\n"),
            b"EXISTS" => {
                let number = u8::from(self.stored.has_reign());
                one.output.extend(format!(":{number}\r\n").into_bytes());
            }
            b"SCRIPT" => {
                let text = String::from_utf8(command[2].clone()).unwrap();
                let digest = digest_of(&text);
                one.output.extend(format!("${}\r\n{digest}\r\n", digest.len()).into_bytes());
                self.scripts.insert(digest, text);
            }
            b"EVALSHA" => self.runs(client, command),
            other => panic!("{}", other.escape_ascii()),
        }
    }

    fn runs(&mut self, client: usize, command: &[Vec<u8>]) {
        let text = |at: usize| str::from_utf8(&command[at]).unwrap();
        let room = |at: usize| text(at).split_once(":history:").unwrap().1;
        let number = |at: usize| text(at).parse::<u64>().unwrap_or_default();
        let script = self.scripts[text(1)].clone();
        let process = self.process;
        let answer = if script.contains("-- A hub keeps histories.") {
            self.stored.beats(&process, text(4), (text(5), number(6), number(7)))
        } else if script.contains("-- Publishes a message") {
            let limits = (number(7) as usize, number(8));
            self.stored.publishes(&process, (room(4), &command[10]), limits, text(9))
        } else {
            let limits = (number(7) as usize, number(8));
            let span = (text(10), text(11), text(12));
            self.stored.looks(&process, (room(4), limits), text(6), (number(9) == 1, span))
        };
        let output = &mut self.clients.get_mut(&client).unwrap().output;
        match answer {
            Answer::Refused(why) => output.extend(format!("-{why}\r\n").into_bytes()),
            Answer::Published(message) => self.publishes(client, &command[6], &message),
            Answer::Texts(texts) => {
                output.extend(format!("*{}\r\n", texts.len()).into_bytes());
                for (at, text) in texts.iter().enumerate() {
                    if texts.len() % 2 == 1
                        && at == 2
                        && text.len() == 1
                        && !script.contains("-- A hub")
                    {
                        output.extend_from_slice(&[b":", &text[..], b"\r\n"].concat());
                    } else {
                        output.extend(format!("${}\r\n", text.len()).into_bytes());
                        output.extend_from_slice(text);
                        output.extend_from_slice(b"\r\n");
                    }
                }
            }
        }
    }

    fn publishes(&mut self, client: usize, channel: &Vec<u8>, message: &[u8]) {
        if !String::from_utf8_lossy(channel).contains(":beat:") {
            let inner = inside(message);
            let room = &inner[HEADER..HEADER + usize::from(inner[HEADER - 1])];
            let payload = &inner[HEADER + room.len()..];
            let [room, payload] =
                [room, payload].map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
            self.log.entry(room).or_default().push(payload);
        }
        let receivers = self.clients.values().filter(|one| one.channels.contains(channel)).count();
        let reply = format!(":{receivers}\r\n").into_bytes();
        for (number, one) in &mut self.clients {
            let is_own = *number == client;
            if is_own && !self.pushes_first {
                one.output.extend_from_slice(&reply);
            }
            let is_hidden = self.hides_holes && message[0] == 1 && !is_own;
            if one.channels.contains(channel) && !is_hidden {
                push(&mut one.output, &[b"message", channel, message]);
            }
            if is_own && self.pushes_first {
                one.output.extend_from_slice(&reply);
            }
        }
    }
}

/// The name of a script.
fn digest_of(text: &str) -> String {
    sha1::Sha1::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A message without the header that a script puts before it.
pub fn inside(message: &[u8]) -> &[u8] {
    if message[0] == 2 { message.splitn(6, |byte| *byte == b' ').last().unwrap() } else { message }
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
