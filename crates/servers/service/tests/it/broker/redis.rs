//! A broker: as much of a Redis server as a hub uses.

use super::{
    keys::Keys,
    stored::{Answer, Process, Stored},
};
use sha1::Digest;
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashSet},
    io::Write,
    time::Instant,
};

/// The fixed part of the header of a message, before the name of its room.
const HEADER: usize = 19;

/// A connection of the broker.
#[derive(Default)]
struct Client {
    input: Vec<u8>,
    output: Vec<u8>,
    channels: HashSet<Vec<u8>>,
}

/// The broker, and what was published in each room, in its order.
#[derive(Default)]
pub struct Redis {
    clients: BTreeMap<usize, Client>,
    pub log: BTreeMap<String, Vec<String>>,
    /// When each message was published.
    pub times: BTreeMap<String, Instant>,
    /// Messages that were published without a place although some hub keeps histories: the hub that did not know that ends
    /// the reign within a second, which may be after messages behind them.
    pub unplaced: BTreeSet<String>,
    /// Messages that it has read on connections that their hubs had dropped: their outcome is unknown, and messages that were
    /// sent after them may have been published before.
    pub late: BTreeSet<String>,
    /// It reads on such a connection.
    reads_late: bool,
    pub now: Option<Instant>,
    /// What hubs keep for presence.
    pub keys: Keys,
    /// A node of a cluster, at which hubs use sharded channels.
    is_in_cluster: bool,
    /// What is stored, and what was stored when it was last saved.
    pub stored: Stored,
    pub saved: Stored,
    pub process: Process,
    /// A mistake: another process is not noticed.
    pub is_blind: bool,
    /// A mistake: hubs with histories do not hear what no script has published.
    pub hides_holes: bool,
    /// Commands that it refuses, each with an error.
    pub refused: BTreeMap<&'static str, &'static str>,
    /// The scripts that it knows, by their names.
    scripts: BTreeMap<String, Script>,
    /// Whether a message comes back before its reply, as Redis 6 does it.
    pushes_first: bool,
}

/// What a script does.
#[derive(Clone, Copy, Debug)]
enum Script {
    Beats,
    Publishes,
    Looks,
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

    /// Handles bytes of a client that has dropped the connection.
    pub fn receives_late(&mut self, client: usize, bytes: &[u8]) {
        self.reads_late = true;
        self.receives(client, bytes);
        self.reads_late = false;
    }

    /// Its process has ended, and another one, with this number, has what was saved, or all.
    pub fn restarts(&mut self, run: u64, has_all: bool) {
        if !has_all {
            self.stored = self.saved.clone();
        }
        self.saved = self.stored.clone();
        self.scripts.clear();
        if !self.is_blind {
            (self.process.run, self.process.before) = (run, 0);
        }
    }

    /// It was a replica of a server with this number, and is a master from now on.
    pub fn is_promoted(&mut self, before: u64) {
        if self.process.is_replica && !self.is_blind {
            self.process.before = before;
        }
        self.process.is_replica = false;
    }

    /// It has had no replica for an hour, and forgets that it was one. Hubs have been there meanwhile.
    pub fn forgets(&mut self) {
        if self.stored.knows(&self.process) {
            self.process.before = 0;
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
        if let Some(why) = self.refused.get(str::from_utf8(&command[0]).unwrap()) {
            return one.output.extend(format!("-{why}\r\n").into_bytes());
        }
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
                let role: &[u8] = if self.process.is_replica {
                    b"$7\r\nreplica\r\n"
                } else {
                    b"$6\r\nmaster\r\n"
                };
                one.output.extend_from_slice(role);
            }
            b"SUBSCRIBE" | b"SSUBSCRIBE" => {
                let kind = command[0].to_ascii_lowercase();
                for channel in &command[1..] {
                    one.channels.insert(channel.clone());
                    push(&mut one.output, &[&kind, channel]);
                    number(':', one.channels.len(), &mut one.output);
                }
            }
            b"PUBLISH" | b"SPUBLISH" => self.publishes(client, &command[1], &command[2]),
            b"EXISTS" => {
                let number = u8::from(self.stored.has_reign());
                one.output.extend(format!(":{number}\r\n").into_bytes());
            }
            b"SCRIPT" => {
                let (digest, script) = script(&command[2]);
                one.output.extend(format!("${}\r\n{digest}\r\n", digest.len()).into_bytes());
                self.scripts.insert(digest, script);
            }
            b"EVALSHA" => self.runs(client, command),
            _ if Keys::has(&command[0]) => {
                let now = self.now.expect("the time is known");
                self.keys.carries_out(command, now, &mut one.output);
            }
            other => panic!("{}", other.escape_ascii()),
        }
    }

    fn runs(&mut self, client: usize, command: &[Vec<u8>]) {
        let text = |at: usize| str::from_utf8(&command[at]).unwrap();
        let number = |at: usize| text(at).parse::<u64>().unwrap();
        let process = self.process;
        let answer = match self.scripts.get(text(1)) {
            None => Answer::Refused("NOSCRIPT No matching script."),
            Some(Script::Beats) => {
                let age = text(7).parse().ok();
                self.stored.beats(&process, text(5), age.map(|age| (text(6), age)))
            }
            Some(Script::Publishes) => {
                let limits = (number(7) as usize, number(8));
                let message = (room(text(4)), &*command[10]);
                self.stored.publishes(&process, message, limits, text(9))
            }
            Some(Script::Looks) => {
                let place = (room(text(4)), (number(7) as usize, number(8)));
                let span = (text(10), text(11), text(12));
                self.stored.looks(&process, place, text(6), (number(9) == 1, span))
            }
        };
        let output = &mut self.clients.get_mut(&client).unwrap().output;
        match answer {
            Answer::Refused(why) => output.extend(format!("-{why}\r\n").into_bytes()),
            Answer::Published(message) => self.publishes(client, &command[6], &message),
            Answer::Reign(parts) => {
                output.extend_from_slice(b"*3\r\n");
                parts.iter().for_each(|part| bulk(part.as_bytes(), output));
            }
            Answer::Seen(epoch, top, is_all, messages) => {
                output.extend(format!("*{}\r\n", 3 + 2 * messages.len()).into_bytes());
                bulk(epoch.as_bytes(), output);
                bulk(top.to_string().as_bytes(), output);
                output.extend(format!(":{}\r\n", u8::from(is_all)).into_bytes());
                for (offset, message) in messages {
                    bulk(offset.to_string().as_bytes(), output);
                    bulk(&message, output);
                }
            }
        }
    }

    fn publishes(&mut self, client: usize, channel: &Vec<u8>, message: &[u8]) {
        if String::from_utf8_lossy(channel).contains(":room:") {
            let inner = inside(message);
            let room = &inner[HEADER..HEADER + usize::from(inner[HEADER - 1])];
            let payload = &inner[HEADER + room.len()..];
            let [room, payload] =
                [room, payload].map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
            if message[0] == 1 && self.stored.has_reign() {
                self.unplaced.insert(payload.clone());
            }
            if self.reads_late {
                self.late.insert(payload.clone());
            }
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
            let is_hidden = self.hides_holes && message[0] == 1 && !is_own;
            if one.channels.contains(channel) && !is_hidden {
                push(&mut one.output, &[kind, channel, message]);
            }
            if is_own && self.pushes_first {
                one.output.extend_from_slice(&reply);
            }
        }
    }
}

/// The name of a script, and what it does.
fn script(text: &[u8]) -> (String, Script) {
    thread_local! {
        static KNOWN: RefCell<BTreeMap<Vec<u8>, (String, Script)>> = RefCell::default();
    }
    let known = KNOWN.with_borrow(|known| known.get(text).cloned());
    known.unwrap_or_else(|| {
        let new = new_script(text);
        KNOWN.with_borrow_mut(|known| known.insert(text.to_vec(), new.clone()));
        new
    })
}

fn new_script(text: &[u8]) -> (String, Script) {
    let digest = sha1::Sha1::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    let text = str::from_utf8(text).unwrap();
    let script = if text.contains("-- A heartbeat") {
        Script::Beats
    } else if text.contains("-- Publishes a message") {
        Script::Publishes
    } else {
        Script::Looks
    };
    (digest, script)
}

/// The room whose key this is.
fn room(key: &str) -> &str {
    let parts = key.rsplit_once(':').and_then(|(rest, _)| rest.rsplit_once(':'));
    let (rest, length) = parts.unwrap();
    &rest[rest.len() - length.parse::<usize>().unwrap()..]
}

/// A message without the header that a script puts before it.
pub fn inside(message: &[u8]) -> &[u8] {
    if message[0] == 2 { message.splitn(5, |byte| *byte == b' ').last().unwrap() } else { message }
}

fn number(kind: char, number: usize, out: &mut Vec<u8>) {
    write!(out, "{kind}{number}\r\n").expect("a Vec takes all");
}

fn bulk(text: &[u8], out: &mut Vec<u8>) {
    number('$', text.len(), out);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// Appends a push of three elements, or the first two of them.
fn push(out: &mut Vec<u8>, parts: &[&[u8]]) {
    out.extend_from_slice(b">3\r\n");
    parts.iter().for_each(|part| bulk(part, out));
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
