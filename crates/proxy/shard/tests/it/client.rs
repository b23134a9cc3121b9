//! A client: its requests, and its checks of the replies.

mod login;

use super::{
    expect::{Expected, Model},
    node::{DEFAULT, ELEMENT, scripted},
    seen::{Seen, Trouble},
};
use rand::{Rng, rngs::SmallRng};
use regatta_proto::resp::{Replies, Value, write_command};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
    /// The client subscribes and receives messages. Between subscriptions it reads and writes.
    pub listens: bool,
    /// The prefixes of commands and the names that it has subscribed to: as requested, and as
    /// confirmed.
    requested: BTreeSet<Subscription>,
    confirmed: BTreeSet<Subscription>,
    /// A SUBSCRIBE or UNSUBSCRIBE failed. Messages may still arrive until the connection is closed.
    is_unsure: bool,
    /// It has sent a command that blocks forever.
    pub is_blocked: bool,
    /// It often sends large values, transactions of several megabytes, and values of more than one.
    sends_much: bool,
    /// The size of its longest request, in bytes.
    pub longest: usize,
    /// Confirmations of the current command so far, and the last message of each publisher through
    /// each subscription.
    confirmations: usize,
    heard: BTreeMap<(Subscription, Vec<u8>), u64>,
    published: u64,
    /// The user as which it sends requests, if users matter.
    user: Option<&'static str>,
    /// A right password may be refused: the client sends nothing before it knows.
    is_careful: bool,
    /// The user that it will be if its password is accepted, which it waits for.
    becomes: Option<&'static str>,
    /// It only sends passwords, most of them wrong.
    guesses: bool,
}

/// A subscription: the prefix of its commands, and the name.
pub type Subscription = (&'static str, Vec<u8>);

/// Channels for messages, and patterns.
const CHANNELS: [&[u8]; 4] = [b"news", b"sport", b"weather", b"music"];
const PATTERNS: [&[u8]; 2] = [b"n*", b"*r*"];

impl Client {
    pub fn new(number: usize, sends_much: bool, trouble: Trouble, random: &mut SmallRng) -> Self {
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
            requested: BTreeSet::new(),
            confirmed: BTreeSet::new(),
            is_unsure: false,
            is_blocked: false,
            sends_much,
            longest: 0,
            confirmations: 0,
            heard: BTreeMap::new(),
            published: 0,
            user: trouble.has_users.then_some(DEFAULT),
            is_careful: trouble.fails || trouble.lacks_users,
            becomes: None,
            guesses: false,
        }
    }

    /// One that only sends passwords, most of them wrong.
    pub fn guessing(number: usize, trouble: Trouble, random: &mut SmallRng) -> Self {
        Client { listens: false, guesses: true, ..Client::new(number, false, trouble, random) }
    }

    pub fn owes(&self) -> usize {
        self.expected.len()
    }

    fn key(&self, random: &mut SmallRng) -> Vec<u8> {
        format!("c{}:{}{}", self.number, random.random_range(0..6), self.suffix()).into_bytes()
    }

    fn value(&mut self, random: &mut SmallRng) -> Vec<u8> {
        self.serial += 1;
        let mut value = format!("{}.{}.", self.number, self.serial).into_bytes();
        let often = if self.sends_much { 3 } else { 1 };
        let more = match random.random_range(0..200) {
            rare if rare < often => random.random_range(60_000..300_000),
            3..20 => random.random_range(0..5000),
            _ => random.random_range(0..30),
        };
        value.resize(value.len() + more, b'x');
        value
    }

    fn ask(&mut self, args: &[&[u8]], expected: Expected, out: &mut Vec<u8>) {
        let start = out.len();
        write_command(args.iter().copied(), out);
        self.longest = self.longest.max(out.len() - start);
        self.expected.push_back(expected);
    }

    /// Sends the password.
    pub fn authenticate(&mut self, password: &[u8], out: &mut Vec<u8>) {
        self.ask(&[b"AUTH", password], Expected::Exactly(b"+OK\r\n".to_vec()), out);
    }

    /// Sends a request or a group of requests, unless the client is at its pipeline depth or has sent
    /// all.
    #[expect(clippy::too_many_lines, reason = "one case for each kind of command")]
    pub fn send(&mut self, random: &mut SmallRng, out: &mut Vec<u8>, seen: &mut Seen) {
        if self.left == 0 || self.expected.len() >= self.depth || self.becomes.is_some() {
            return;
        }
        self.left -= 1;
        if self.listens {
            return self.listen(random, out);
        }
        if self.user.is_some() && (self.guesses || random.random_ratio(1, 8)) {
            return self.log_in(random, out, seen);
        }
        match random.random_range(0..80) {
            0 => return self.script(random, out),
            1 if random.random_bool(0.2) => return self.malformed(random, out),
            2 if random.random_bool(0.2) => return self.configuration(random, out),
            _ => {}
        }
        let key = self.key(random);
        if self.sends_much && random.random_ratio(1, 300) {
            // More than some nodes accept in an argument.
            let value = vec![b'x'; 1_100_000];
            return self.ask(
                &[b"set", &key, &value],
                Expected::Set(key.clone(), value.clone()),
                out,
            );
        }
        match random.random_range(0..28) {
            0..5 => {
                // The proxy's table lacks the other names.
                let name: &[u8] = if random.random_bool(0.2) { b"xGet" } else { b"get" };
                self.ask(&[name, &key], Expected::Get(key.clone()), out);
            }
            5..10 => {
                let value = self.value(random);
                let name: &[u8] = if random.random_bool(0.2) { b"XSET" } else { b"SET" };
                self.ask(&[name, &key, &value], Expected::Set(key.clone(), value.clone()), out);
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
                // With users, a node answers it, which may be down.
                let expected = match self.user {
                    Some(_) => Expected::Scripted(reply),
                    None => Expected::Exactly(reply),
                };
                self.ask(&[b"echo", &text], expected, out);
            }
            20 => {
                let name = format!("nonsense{}", self.serial);
                self.serial += 1;
                let reply =
                    format!("-ERR unknown command '{name}', with args beginning with: \r\n");
                // A node is asked for it, and may be down.
                self.ask(&[name.as_bytes()], Expected::Scripted(reply.into_bytes()), out);
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
            23 if random.random_bool(0.2) => {
                let list = format!("never{}{}", self.number, self.suffix()).into_bytes();
                self.ask(&[b"blpop", &list, b"0"], Expected::Never, out);
                self.is_blocked = true;
            }
            23 => {
                self.serial += 1;
                let list =
                    format!("l{}.{}{}", self.number, self.serial, self.suffix()).into_bytes();
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
                let name: &[u8] = if random.random_bool(0.7) { b"publish" } else { b"spublish" };
                self.ask(&[name, channel, text.as_bytes()], Expected::Publish, out);
            }
        }
    }

    /// Runs a script whose reply is nested, with a long line inside.
    fn script(&mut self, random: &mut SmallRng, out: &mut Vec<u8>) {
        let depth = [0, 1, 70, 1000][random.random_range(0..4)];
        let length = [0, 9, 99, 66_000][random.random_range(0..4)];
        let key = self.key(random);
        let script = format!("{depth} {length}");
        let expected = Expected::Scripted(scripted(depth, length));
        self.ask(&[b"eval", script.as_bytes(), b"1", &key], expected, out);
    }

    /// Reads the configuration of the nodes.
    fn configuration(&mut self, random: &mut SmallRng, out: &mut Vec<u8>) {
        let (pattern, expected) = [
            ("max*", Expected::Configuration),
            ("*", Expected::Secret),
            ("require*", Expected::Secret),
            ("masteruser", Expected::Secret),
        ][random.random_range(0..4)]
        .clone();
        self.ask(&[b"config", b"get", pattern.as_bytes()], expected, out);
    }

    /// Sends a request that Redis refuses. The connection is closed after the error.
    fn malformed(&mut self, random: &mut SmallRng, out: &mut Vec<u8>) {
        let (request, error) = [
            ("*02\r\n$3\r\nget\r\n$1\r\nk\r\n", "invalid multibulk length"),
            ("*2\r\n$03\r\nget\r\n$1\r\nk\r\n", "invalid bulk length"),
            ("*2\r\n$3\r\nget\r\n$-0\r\n\r\n", "invalid bulk length"),
            ("*2\r\n$3\r\nget\r\n$+1\r\nk\r\n", "invalid bulk length"),
        ][random.random_range(0..4)];
        out.extend_from_slice(request.as_bytes());
        let reply = format!("-ERR Protocol error: {error}\r\n");
        self.expected.push_back(Expected::Exactly(reply.into_bytes()));
        self.left = 0;
    }

    fn transaction(&mut self, random: &mut SmallRng, out: &mut Vec<u8>) {
        let place = random.random_range(0..3);
        let tag = format!("{{t{}.{place}{}}}", self.number, self.suffix());
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
        if self.sends_much && random.random_ratio(1, 20) {
            let value = vec![b'x'; 400_000];
            for _ in 0..8 {
                self.ask(&[b"set", &key("a"), &value], Expected::Queued, out);
                queued.push(Expected::Set(key("a"), value.clone()));
            }
        }
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
        } else if random.random_bool(0.05) {
            let reply = b"-EXECABORT Transaction discarded because of: wrong number of arguments \
                          for 'exec' command\r\n";
            self.ask(&[b"exec", b"now"], Expected::Exactly(reply.to_vec()), out);
        } else {
            self.ask(&[b"exec"], Expected::Exec(queued), out);
        }
    }

    fn listen(&mut self, random: &mut SmallRng, out: &mut Vec<u8>) {
        // Without subscriptions, any command is allowed.
        if self.requested.is_empty() && random.random_bool(0.5) {
            let (key, value) = (self.key(random), self.value(random));
            return match random.random_range(0..6) {
                0 if self.expected.is_empty() => {
                    self.ask(&[b"hello", b"3"], Expected::Hello(true), out);
                }
                0..3 => {
                    let set = Expected::Set(key.clone(), value.clone());
                    self.ask(&[b"set", &key, &value], set, out);
                }
                _ => self.ask(&[b"get", &key], Expected::Get(key.clone()), out),
            };
        }
        let prefix = *["", "", "", "p", "s"].get(random.random_range(0..5)).unwrap_or(&"");
        let all = if prefix == "p" { &PATTERNS[..] } else { &CHANNELS[..] };
        let leaves = random.random_bool(if self.requested.is_empty() { 0.1 } else { 0.5 });
        // A pending SUBSCRIBE may fail, and then there is less to end.
        let is_pending = self.expected.iter().any(|one| matches!(one, Expected::Subscribed(_)));
        let is_certain = !is_pending && self.requested == self.confirmed;
        if leaves && is_certain && random.random_bool(0.5) {
            // The names are left out: all subscriptions of this kind end.
            let ended: Vec<Subscription> =
                self.requested.iter().filter(|(kind, _)| *kind == prefix).cloned().collect();
            self.requested.retain(|(kind, _)| *kind != prefix);
            let name = format!("{prefix}unsubscribe");
            return self.ask(&[name.as_bytes()], Expected::Subscribed(ended.len().max(1)), out);
        }
        let some: Vec<&[u8]> = all.iter().copied().filter(|_| random.random_bool(0.6)).collect();
        if some.is_empty() {
            return;
        }
        for name in &some {
            let subscription = (prefix, name.to_vec());
            match leaves {
                true => self.requested.remove(&subscription),
                false => self.requested.insert(subscription),
            };
        }
        let name = format!("{prefix}{}subscribe", if leaves { "un" } else { "" });
        let mut args = vec![name.as_bytes()];
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
        if let Some(parts) = parts(reply)
            && let Some((prefix, what)) = split(&parts[0])
        {
            if what == "message" {
                return self.message(prefix, &parts, trouble, seen);
            }
            let Some(Expected::Subscribed(count)) = self.expected.front() else {
                return Err("a confirmation that was not requested".into());
            };
            self.confirmations += 1;
            if self.confirmations == *count {
                self.confirmations = 0;
                self.expected.pop_front();
            }
            let subscription = (prefix, parts[1].clone());
            match what {
                "subscribe" => self.confirmed.insert(subscription),
                _ => self.confirmed.remove(&subscription),
            };
            return Ok(());
        }
        let Some(expected) = self.expected.pop_front() else {
            return Err(format!("\"{}\" was not requested", reply.escape_ascii()));
        };
        let is_of_login = matches!(expected, Expected::Auth | Expected::HelloAs(_));
        let is_login = is_of_login && !reply.starts_with(b"-");
        if is_of_login
            && let Some(user) = self.becomes.take()
            && is_login
        {
            self.user = Some(user);
        }
        seen.logins += u64::from(is_login);
        seen.wrong_passwords += u64::from(matches!(expected, Expected::Denied));
        seen.refused_users += u64::from(reply.starts_with(b"-WRONGPASS node "));
        seen.failures += u64::from(trouble.explains(reply));
        self.is_unsure |= matches!(expected, Expected::Subscribed(_)) && trouble.explains(reply);
        let is_refused = reply.windows(15).any(|part| part == b" refused MULTI:");
        seen.refused_transactions += u64::from(is_refused);
        let has_limit = reply.starts_with(b"-SHARDTOOLARGE node ");
        seen.long_arguments += u64::from(has_limit);
        seen.large_values += u64::from(reply.starts_with(b"-SHARDTOOLARGE ") && !has_limit);
        if matches!(expected, Expected::Exec(_)) && reply.starts_with(b"*") && reply != b"*-1\r\n" {
            seen.transactions += 1;
        }
        if matches!(&expected, Expected::Scripted(whole) if whole.len() > 64 * 1024) {
            seen.long_lines += 1;
        }
        seen.secrets += u64::from(matches!(expected, Expected::Secret));
        let pops_in_drain =
            reply.starts_with(b"*2") && reply.ends_with(&[ELEMENT, b"\r\n"].concat());
        seen.delivered_in_drain += u64::from(pops_in_drain);
        seen.malformed += u64::from(reply.starts_with(b"-ERR Protocol error: "));
        if matches!(expected, Expected::Pop(..)) && reply.starts_with(b"*2") {
            seen.pops += 1;
        }
        self.model.check(&expected, reply, trouble)
    }

    fn message(
        &mut self,
        prefix: &'static str,
        parts: &[Vec<u8>],
        trouble: Trouble,
        seen: &mut Seen,
    ) -> Result<(), String> {
        let [_, name, .., text] = parts else { return Err("an incomplete message".into()) };
        let subscription = (prefix, name.clone());
        let text = String::from_utf8_lossy(text);
        if !self.confirmed.contains(&subscription) && !self.is_unsure {
            return Err(format!("message {text} for {subscription:?}, which is not subscribed"));
        }
        seen.messages_while_leaving += u64::from(!self.requested.contains(&subscription));
        let (publisher, number) = text.split_once(' ').ok_or("a message without a publisher")?;
        let number: u64 = number.parse().map_err(|_| "a message without a number")?;
        let from = [publisher.as_bytes(), b" ", &parts[parts.len() - 2]].concat();
        let last = self.heard.insert((subscription, from), number).unwrap_or(0);
        seen.messages += 1;
        if number > last || trouble.fails && number != last {
            Ok(())
        } else {
            Err(format!("message {number} of {publisher} after {last}"))
        }
    }
}

/// The elements of a message or a confirmation.
fn parts(reply: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (Value::Elements(_, count @ 3..=4, bytes), _) = Value::read(reply)? else { return None };
    let (mut parts, mut at) = (Vec::new(), 0);
    for _ in 0..count {
        let (value, taken) = Value::read(&bytes[at..])?;
        at += taken;
        parts.push(match value {
            Value::Bulk(text) => text.to_vec(),
            Value::Integer(number) => number.to_string().into_bytes(),
            Value::Null => Vec::new(),
            _ => return None,
        });
    }
    Some(parts)
}

/// Splits the kind of a message or a confirmation into its prefix and the rest.
fn split(kind: &[u8]) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        b"message" => ("", "message"),
        b"pmessage" => ("p", "message"),
        b"smessage" => ("s", "message"),
        b"subscribe" => ("", "subscribe"),
        b"psubscribe" => ("p", "subscribe"),
        b"ssubscribe" => ("s", "subscribe"),
        b"unsubscribe" => ("", "unsubscribe"),
        b"punsubscribe" => ("p", "unsubscribe"),
        b"sunsubscribe" => ("s", "unsubscribe"),
        _ => return None,
    })
}
