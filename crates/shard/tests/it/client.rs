//! A client: its requests, and its checks of the replies.

use super::{
    expect::{Expected, Model},
    seen::{Seen, Trouble},
};
use rand::{Rng, rngs::SmallRng};
use regatta_proto::resp::{Replies, Value, write_command};
use std::collections::{BTreeMap, VecDeque};

/// A client.
pub struct Client {
    number: usize,
    model: Model,
    replies: Replies,
    input: Vec<u8>,
    looked: usize,
    expected: VecDeque<Expected>,
    pub depth: usize,
    pub left: usize,
    serial: u64,
    /// The client only subscribes and receives messages.
    pub listens: bool,
    /// Confirmations received so far, and the last message per publisher and channel.
    confirmations: usize,
    heard: BTreeMap<Vec<u8>, u64>,
    published: u64,
}

/// Channels for messages.
const CHANNELS: [&[u8]; 4] = [b"news", b"sport", b"weather", b"music"];

impl Client {
    pub fn new(number: usize, random: &mut SmallRng) -> Self {
        Client {
            number,
            model: Model::default(),
            replies: Replies::default(),
            input: Vec::new(),
            looked: 0,
            expected: VecDeque::new(),
            depth: *[1, 1, 4, 40].get(random.random_range(0..4)).unwrap_or(&1),
            left: random.random_range(1..60),
            serial: 0,
            listens: random.random_ratio(1, 8),
            confirmations: 0,
            heard: BTreeMap::new(),
            published: 0,
        }
    }

    pub fn owes(&self) -> usize {
        self.expected.len()
    }

    fn key(&self, random: &mut SmallRng) -> Vec<u8> {
        format!("c{}:{}", self.number, random.random_range(0..6)).into_bytes()
    }

    fn value(&mut self, random: &mut SmallRng) -> Vec<u8> {
        self.serial += 1;
        let mut value = format!("{}.{}.", self.number, self.serial).into_bytes();
        let more = match random.random_range(0..200) {
            0 => random.random_range(60_000..300_000),
            1..20 => random.random_range(0..5000),
            _ => random.random_range(0..30),
        };
        value.resize(value.len() + more, b'x');
        value
    }

    fn ask(&mut self, args: &[&[u8]], expected: Expected, out: &mut Vec<u8>) {
        write_command(args.iter().copied(), out);
        self.expected.push_back(expected);
    }

    /// Sends the password.
    pub fn authenticate(&mut self, password: &[u8], out: &mut Vec<u8>) {
        self.ask(&[b"AUTH", password], Expected::Exactly(b"+OK\r\n".to_vec()), out);
    }

    /// Sends a request or a group of requests, unless the client is at its pipeline depth or has sent
    /// all.
    pub fn send(&mut self, random: &mut SmallRng, out: &mut Vec<u8>) {
        if self.left == 0 || self.expected.len() >= self.depth {
            return;
        }
        self.left -= 1;
        if self.listens {
            return self.listen(random, out);
        }
        let key = self.key(random);
        match random.random_range(0..28) {
            0..5 => self.ask(&[b"get", &key], Expected::Get(key.clone()), out),
            5..10 => {
                let value = self.value(random);
                self.ask(&[b"SET", &key, &value], Expected::Set(key.clone(), value.clone()), out);
            }
            10..12 => {
                let keys: Vec<Vec<u8>> =
                    (0..random.random_range(1..6)).map(|_| self.key(random)).collect();
                let mut args: Vec<&[u8]> = vec![b"MGET"];
                args.extend(keys.iter().map(|key| &key[..]));
                self.ask(&args, Expected::Mget(keys.clone()), out);
            }
            12..14 => {
                let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
                for _ in 0..random.random_range(1..6) {
                    pairs.push((self.key(random), self.value(random)));
                }
                let mut args: Vec<&[u8]> = vec![b"mset"];
                pairs.iter().for_each(|(key, value)| args.extend([&key[..], &value[..]]));
                self.ask(&args, Expected::Mset(pairs.clone()), out);
            }
            14..16 => {
                let mut keys: Vec<Vec<u8>> =
                    (0..random.random_range(1..6)).map(|_| self.key(random)).collect();
                keys.sort();
                keys.dedup();
                let mut args: Vec<&[u8]> = vec![b"del"];
                args.extend(keys.iter().map(|key| &key[..]));
                self.ask(&args, Expected::Del(keys.clone()), out);
            }
            16..19 => {
                let key = [b"n:", &key[..]].concat();
                self.ask(&[b"incr", &key], Expected::Incr(key.clone()), out);
            }
            19 => {
                let text = self.value(random);
                let reply = [format!("${}\r\n", text.len()).as_bytes(), &text, b"\r\n"].concat();
                self.ask(&[b"echo", &text], Expected::Exactly(reply), out);
            }
            20 => {
                let name = format!("nonsense{}", self.serial);
                self.serial += 1;
                let reply =
                    format!("-ERR unknown command '{name}', with args beginning with: \r\n");
                self.ask(&[name.as_bytes()], Expected::Exactly(reply.into_bytes()), out);
            }
            21 => {
                let reply = b"-ERR wrong number of arguments for 'get' command\r\n";
                self.ask(&[b"GET"], Expected::Exactly(reply.to_vec()), out);
            }
            22 => {
                let database = random.random_range(0..3);
                let text = database.to_string();
                self.ask(&[b"select", text.as_bytes()], Expected::Select(database), out);
            }
            23 if random.random_bool(0.5) => {
                let resp3 = random.random_bool(0.5);
                let version: &[u8] = if resp3 { b"3" } else { b"2" };
                self.ask(&[b"hello", version], Expected::Hello(resp3), out);
            }
            23 => {
                self.serial += 1;
                let list = format!("l{}.{}", self.number, self.serial).into_bytes();
                let element = self.value(random);
                self.ask(&[b"rpush", &list, &element], Expected::Push, out);
                let pop = Expected::Pop(list.clone(), element.clone());
                self.ask(&[b"blpop", &list, b"1"], pop, out);
            }
            24..26 => self.transaction(random, out),
            _ => {
                self.published += 1;
                let channel = CHANNELS[random.random_range(0..CHANNELS.len())];
                let text = format!("{} {}", self.number, self.published);
                self.ask(&[b"publish", channel, text.as_bytes()], Expected::Publish, out);
            }
        }
    }

    fn transaction(&mut self, random: &mut SmallRng, out: &mut Vec<u8>) {
        let tag = format!("{{t{}.{}}}", self.number, random.random_range(0..3));
        let key = |name: &str| [name.as_bytes(), tag.as_bytes()].concat();
        let watches = random.random_bool(0.3);
        if watches {
            self.ask(&[b"watch", &key("a")], Expected::Simply("OK"), out);
            if random.random_bool(0.2) {
                return self.ask(&[b"unwatch"], Expected::Simply("OK"), out);
            }
            self.ask(&[b"get", &key("a")], Expected::Get(key("a")), out);
        }
        self.ask(&[b"multi"], Expected::Exactly(b"+OK\r\n".to_vec()), out);
        let mut queued = Vec::new();
        for _ in 0..random.random_range(0..4) {
            let (args, expected): (Vec<Vec<u8>>, Expected) = match random.random_range(0..4) {
                0 => {
                    let value = self.value(random);
                    let set = Expected::Set(key("a"), value.clone());
                    (vec![b"set".to_vec(), key("a"), value], set)
                }
                1 => (vec![b"get".to_vec(), key("a")], Expected::Get(key("a"))),
                2 => (vec![b"incr".to_vec(), key("n")], Expected::Incr(key("n"))),
                _ => (vec![b"ping".to_vec()], Expected::Simply("PONG")),
            };
            let args: Vec<&[u8]> = args.iter().map(|arg| &arg[..]).collect();
            self.ask(&args, Expected::Queued, out);
            queued.push(expected);
        }
        if random.random_bool(0.2) {
            self.ask(&[b"discard"], Expected::Simply("OK"), out);
        } else {
            self.ask(&[b"exec"], Expected::Exec(queued), out);
        }
    }

    fn listen(&mut self, random: &mut SmallRng, out: &mut Vec<u8>) {
        let some: Vec<&[u8]> = CHANNELS.into_iter().filter(|_| random.random_bool(0.6)).collect();
        if some.is_empty() {
            return;
        }
        let name: &[u8] = if random.random_bool(0.7) { b"subscribe" } else { b"unsubscribe" };
        let mut args = vec![name];
        args.extend(&some);
        self.ask(&args, Expected::Subscribed(some.len()), out);
    }

    /// Checks the bytes received.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        trouble: Trouble,
        seen: &mut Seen,
    ) -> Result<(), String> {
        self.input.extend_from_slice(bytes);
        loop {
            let found = self.replies.next(&self.input[self.looked..]);
            let found = found.map_err(|error| format!("no RESP: {error}"))?;
            self.looked += found.bytes;
            if !found.whole {
                return Ok(());
            }
            let reply: Vec<u8> = self.input.drain(..self.looked).collect();
            self.looked = 0;
            seen.replies += 1;
            self.reply(&reply, trouble, seen)
                .map_err(|error| format!("client {}: {error}", self.number))?;
        }
    }

    fn reply(&mut self, reply: &[u8], trouble: Trouble, seen: &mut Seen) -> Result<(), String> {
        if let Some((kind, channel, last)) = parts(reply) {
            match &kind[..] {
                b"message" => return self.message(channel, &last, trouble, seen),
                b"subscribe" | b"unsubscribe" => {
                    let Some(Expected::Subscribed(count)) = self.expected.front() else {
                        return Err("a confirmation that was not requested".into());
                    };
                    self.confirmations += 1;
                    if self.confirmations == *count {
                        self.confirmations = 0;
                        self.expected.pop_front();
                    }
                    return Ok(());
                }
                _ => {}
            }
        }
        let Some(expected) = self.expected.pop_front() else {
            return Err(format!("\"{}\" was not requested", reply.escape_ascii()));
        };
        seen.failures += u64::from(trouble.explains(reply));
        let is_refused = reply.windows(15).any(|part| part == b" refused MULTI:");
        seen.refused_transactions += u64::from(is_refused);
        seen.large_values += u64::from(reply.starts_with(b"-SHARDTOOLARGE "));
        if matches!(expected, Expected::Exec(_)) && reply.starts_with(b"*") && reply != b"*-1\r\n" {
            seen.transactions += 1;
        }
        if matches!(expected, Expected::Pop(..)) && reply.starts_with(b"*2") {
            seen.pops += 1;
        }
        self.model.check(&expected, reply, trouble)
    }

    fn message(
        &mut self,
        channel: Vec<u8>,
        text: &[u8],
        trouble: Trouble,
        seen: &mut Seen,
    ) -> Result<(), String> {
        if !self.listens {
            return Err("a message for a client without subscriptions".into());
        }
        let text = String::from_utf8_lossy(text);
        let (publisher, number) = text.split_once(' ').ok_or("a message without a publisher")?;
        let number: u64 = number.parse().map_err(|_| "a message without a number")?;
        let key = [publisher.as_bytes(), b" ", &channel].concat();
        let last = self.heard.insert(key, number).unwrap_or(0);
        seen.messages += 1;
        if number > last || trouble.fails && number != last {
            Ok(())
        } else {
            Err(format!("message {number} of {publisher} after {last}"))
        }
    }
}

/// The three elements of a message or a confirmation.
fn parts(reply: &[u8]) -> Option<(Vec<u8>, Vec<u8>, Vec<u8>)> {
    let (Value::Elements(_, 3, bytes), _) = Value::read(reply)? else { return None };
    let (Value::Bulk(kind), one) = Value::read(bytes)? else { return None };
    let (Value::Bulk(channel), two) = Value::read(&bytes[one..])? else { return None };
    let (last, _) = Value::read(&bytes[one + two..])?;
    let last = match last {
        Value::Bulk(text) => text.to_vec(),
        Value::Integer(number) => number.to_string().into_bytes(),
        _ => return None,
    };
    Some((kind.to_vec(), channel.to_vec(), last))
}
