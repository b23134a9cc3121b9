//! Generates requests for every Redis command, from the server's description of its arguments (COMMAND
//! DOCS).

use super::same::Tree;
use crate::support::shard::client::Client;
use rand::{Rng, rngs::SmallRng, seq::IndexedRandom};
use regatta_keyspace::command::{Command, flag};

/// A command or a subcommand, as the server documents it.
#[derive(Debug)]
pub struct Documented {
    /// In lower case, `client|id`.
    pub name: String,
    pub group: String,
    arguments: Vec<Argument>,
}

#[derive(Debug)]
struct Argument {
    name: String,
    kind: String,
    token: Option<String>,
    is_optional: bool,
    is_multiple: bool,
    repeats_token: bool,
    arguments: Vec<Argument>,
}

/// Returns all commands. A command with subcommands is represented by these.
pub fn documented(client: &mut Client) -> Vec<Documented> {
    let mut all = Vec::new();
    let reply = Tree::read(&client.ask(&["COMMAND", "DOCS"]));
    for (name, document) in reply.pairs() {
        add(name, document, &mut all);
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

fn add(name: &Tree, document: &Tree, all: &mut Vec<Documented>) {
    match document.value("subcommands") {
        Some(subcommands) => {
            for (name, document) in subcommands.pairs() {
                add(name, document, all);
            }
        }
        None => all.push(Documented {
            name: name.text(),
            group: document.value("group").map(Tree::text).unwrap_or_default(),
            arguments: arguments(document),
        }),
    }
}

fn arguments(document: &Tree) -> Vec<Argument> {
    let Some(Tree::List(arguments)) = document.value("arguments") else { return Vec::new() };
    arguments
        .iter()
        .map(|argument| {
            let text = |name| argument.value(name).map(Tree::text);
            let flags: Vec<String> = match argument.value("flags") {
                Some(Tree::List(flags)) => flags.iter().map(Tree::text).collect(),
                _ => Vec::new(),
            };
            let has = |flag: &str| flags.iter().any(|one| one == flag);
            Argument {
                name: text("name").unwrap_or_default(),
                kind: text("type").unwrap_or_default(),
                token: text("token"),
                is_optional: has("optional"),
                is_multiple: has("multiple"),
                repeats_token: has("multiple_token"),
                arguments: self::arguments(argument),
            }
        })
        .collect()
}

/// Names of keys that have a value, by their type. Each also exists with the tags.
const KEYS: [(&str, &str); 10] = [
    ("string", "str"),
    ("string", "num"),
    ("list", "list"),
    ("hash", "hash"),
    ("set", "set"),
    ("sorted-set", "zset"),
    ("stream", "stream"),
    ("hyperloglog", "hll"),
    ("geo", "geo"),
    ("bitmap", "bits"),
];
const TAGS: [&str; 3] = ["", "{a}", "{b}"];

/// Returns the requests that fill a server.
pub fn filling() -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for tag in TAGS {
        for line in [
            "set strT hello",
            "set numT 10",
            "set bitsT abc",
            "rpush listT a b c a 1",
            "hset hashT field1 v1 field2 2 a b",
            "sadd setT a b c 1 2",
            "zadd zsetT 1 a 2 b 3 c 1.5 m1",
            "xadd streamT 1-1 field1 v1",
            "xadd streamT 2-1 a b",
            "xgroup create streamT group1 0",
            "xreadgroup group group1 consumer1 count 1 streams streamT >",
            "pfadd hllT a b c",
            "geoadd geoT 13.361389 38.115556 a 15.087269 37.502669 b",
        ] {
            let words = line.split(' ');
            all.push(words.map(|word| word.replace('T', tag)).collect());
        }
    }
    all
}

/// A generator of requests.
pub struct Generator {
    pub random: SmallRng,
    serial: u64,
    /// The reply of DUMP for a string.
    dumped: Vec<u8>,
    parts: Parts,
}

/// Which optional parts a request has, and how often it repeats what may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parts {
    /// None, and once.
    Least,
    /// All, and twice.
    All,
    Random,
}

/// Maximum number of truncated requests for a command.
const TRUNCATED: usize = 6;

fn may_block(name: &str) -> bool {
    let known = Command::all().iter().find(|command| command.name == name);
    known.is_some_and(|command| command.has(flag::BLOCKING))
}

fn takes_time(arguments: &[Argument]) -> bool {
    let is_time = |name: &str| TIMES.contains(&name);
    arguments.iter().any(|one| is_time(&one.name) || takes_time(&one.arguments))
}

/// The names of arguments that are times from now on.
const TIMES: [&str; 3] = ["seconds", "milliseconds", "ttl"];

/// The choices that all arguments of one request share.
struct Choice<'a> {
    group: &'a str,
    /// The tag of all keys; `None` for a random tag for each.
    tag: Option<&'static str>,
}

impl Generator {
    pub fn new(random: SmallRng, dumped: Vec<u8>) -> Self {
        Generator { random, serial: 100, dumped, parts: Parts::Random }
    }

    /// Makes a request for this command without its optional parts, and requests with all of them: one
    /// truncated to each number of arguments that the command accepts, and a whole one. `least`: the
    /// minimum.
    pub fn forms(&mut self, command: &Documented, least: usize) -> Vec<Vec<Vec<u8>>> {
        self.parts = Parts::Least;
        let mut all = vec![self.well_formed(command, 1.0)];
        self.parts = Parts::All;
        let full = self.well_formed(command, 1.0);
        for count in least..full.len().min(least + TRUNCATED) {
            // Other values: a time that another request sets may be the same in one millisecond.
            let mut request = self.well_formed(command, 1.0);
            request.truncate(count);
            all.push(request);
        }
        all.push(full);
        self.parts = Parts::Random;
        all
    }

    /// Makes a request for this command. Most are well-formed.
    pub fn request(&mut self, command: &Documented) -> Vec<Vec<u8>> {
        let mut request = self.well_formed(command, 0.8);
        let words = command.name.split('|').count();
        match self.random.random_range(0..40) {
            0 if request.len() > words => {
                request.pop();
            }
            1 => request.push(b"more".to_vec()),
            2 if request.len() > words => {
                let at = self.random.random_range(words..request.len());
                request[at] = match self.word() {
                    // As a timeout, 0 would mean forever.
                    word if word == b"0" && may_block(&command.name) => b"0.01".to_vec(),
                    // As a time, these could be over for one server and not yet for the other.
                    word if matches!(&word[..], b"1" | b"2") && takes_time(&command.arguments) => {
                        b"x".to_vec()
                    }
                    // Redis accepts any number as a cursor, even one that it has never returned.
                    word if word.starts_with(b"-") && command.name == "scan" => b"x".to_vec(),
                    word => word,
                };
            }
            _ => {}
        }
        request
    }

    /// `same_tag`: the probability that all keys have the same tag.
    fn well_formed(&mut self, command: &Documented, same_tag: f64) -> Vec<Vec<u8>> {
        let mut request: Vec<Vec<u8>> = command
            .name
            .split('|')
            .map(|word| match self.random.random_bool(0.5) {
                true => word.to_ascii_uppercase().into_bytes(),
                false => word.as_bytes().to_vec(),
            })
            .collect();
        let same = self.random.random_bool(same_tag);
        let tag = same.then(|| *TAGS.choose(&mut self.random).expect("some"));
        let choice = Choice { group: &command.group, tag };
        self.list(&command.arguments, &choice, &mut request);
        request
    }

    /// Returns whether a request has an optional part.
    fn has_part(&mut self) -> bool {
        match self.parts {
            Parts::Least => false,
            Parts::All => true,
            Parts::Random => self.random.random_bool(0.4),
        }
    }

    /// Returns how often a request repeats something, at most this often.
    fn times(&mut self, most: usize) -> usize {
        match self.parts {
            Parts::Least => 1,
            Parts::All => 2,
            Parts::Random => self.random.random_range(1..=most),
        }
    }

    fn list(&mut self, arguments: &[Argument], choice: &Choice<'_>, out: &mut Vec<Vec<u8>>) {
        let mut at = 0;
        while let Some(argument) = arguments.get(at) {
            at += 1;
            let next = arguments.get(at);
            let is_keys =
                |next: Option<&Argument>| next.is_some_and(|n| n.kind == "key" && n.is_multiple);
            if argument.name == "numkeys" && is_keys(next) {
                let count = self.times(3);
                let stated = if self.random.random_bool(0.95) { count } else { 7 };
                out.push(stated.to_string().into_bytes());
                (0..count).for_each(|_| out.push(self.key(choice)));
                at += 1;
            } else if argument.kind == "key"
                && argument.is_multiple
                && next.is_some_and(|n| n.is_multiple && n.name == "id")
            {
                let count = self.times(2);
                (0..count).for_each(|_| out.push(self.key(choice)));
                (0..count).for_each(|_| out.push(self.id()));
                at += 1;
            } else {
                self.argument(argument, choice, out);
            }
        }
    }

    fn argument(&mut self, argument: &Argument, choice: &Choice<'_>, out: &mut Vec<Vec<u8>>) {
        if argument.is_optional && !self.has_part() {
            return;
        }
        let times = if argument.is_multiple { self.times(3) } else { 1 };
        for time in 0..times {
            if let Some(token) = &argument.token
                && (time == 0 || argument.repeats_token)
            {
                out.push(token.as_bytes().to_vec());
            }
            match &argument.kind[..] {
                "pure-token" => {}
                "block" => self.list(&argument.arguments, choice, out),
                "oneof" => {
                    // An identifier that a server generates from its clock differs between servers.
                    let fit: Vec<&Argument> =
                        argument.arguments.iter().filter(|one| one.name != "auto_id").collect();
                    if let Some(one) = fit.choose(&mut self.random) {
                        self.argument(one, choice, out);
                    }
                }
                "key" => out.push(self.key(choice)),
                _ => out.push(self.value(argument)),
            }
        }
    }

    fn key(&mut self, choice: &Choice<'_>) -> Vec<u8> {
        let fit: Vec<&str> = KEYS
            .iter()
            .filter(|(group, _)| {
                *group == choice.group || *group == "bitmap" && choice.group == "string"
            })
            .map(|(_, name)| *name)
            .collect();
        let name = match self.random.random_range(0..20) {
            0 => "missing",
            1 => "other",
            2 => KEYS.choose(&mut self.random).expect("some").1,
            _ => match fit.choose(&mut self.random) {
                Some(name) => name,
                None => KEYS.choose(&mut self.random).expect("some").1,
            },
        };
        let tag = choice.tag.unwrap_or_else(|| TAGS.choose(&mut self.random).expect("some"));
        format!("{name}{tag}").into_bytes()
    }

    fn id(&mut self) -> Vec<u8> {
        let ids: [&[u8]; 6] = [b"0", b"1-1", b"2-1", b"0-0", b"1", b">"];
        ids.choose(&mut self.random).expect("some").to_vec()
    }

    fn word(&mut self) -> Vec<u8> {
        let words: [&[u8]; 22] = [
            b"a",
            b"b",
            b"c",
            b"field1",
            b"field2",
            b"m1",
            b"v1",
            b"hello",
            b"1",
            b"2",
            b"-1",
            b"0",
            b"",
            b"1.5",
            b"x y",
            b"\x00\xff\r\n",
            b"-",
            b"+",
            b"[a",
            b"(b",
            b"1-1",
            b"*",
        ];
        words.choose(&mut self.random).expect("some").to_vec()
    }

    #[expect(clippy::too_many_lines, reason = "one case for each kind of argument")]
    fn value(&mut self, argument: &Argument) -> Vec<u8> {
        let pick = |random: &mut SmallRng, from: &[&str]| {
            from.choose(random).expect("some").as_bytes().to_vec()
        };
        let random = &mut self.random;
        match (&argument.name[..], &argument.kind[..]) {
            ("timeout", _) => pick(random, &["0.01", "0.02", "-1", "x"]),
            ("milliseconds", _) if argument.token.as_deref() == Some("BLOCK") => {
                pick(random, &["5", "10"])
            }
            // Times that do not expire during the test, or that have expired already. They differ by
            // seconds, because GT and LT compare them with earlier ones.
            (name, _) if TIMES.contains(&name) && random.random_bool(0.5) => {
                self.serial += 1;
                (500_000_000 + self.serial * 7919 % 10_007 * 10_000).to_string().into_bytes()
            }
            (name, _) if TIMES.contains(&name) => pick(random, &["0", "-1"]),
            (_, "unix-time") => pick(random, &["4102444800", "4102444800000", "1", "0"]),
            ("script", _) => pick(
                random,
                &[
                    "return 1",
                    "return redis.call('get', KEYS[1])",
                    "return {KEYS[1], ARGV[1]}",
                    "return redis.call('incr', KEYS[1])",
                    "return {err='MY error'}",
                    "nonsense(",
                ],
            ),
            ("function-code", _) => pick(
                random,
                &[
                    "#!lua name=lib1\nredis.register_function('f1', function(k, a) return #k end)",
                    "#!lua name=lib2\nredis.register_function{function_name='f2', callback=function(k, a) return redis.call('get', k[1]) end, flags={'no-writes'}}",
                    "nonsense",
                ],
            ),
            ("function", _) => pick(random, &["f1", "f2", "f3"]),
            ("library-name", _) => pick(random, &["lib1", "lib2", "lib3"]),
            ("sha1", _) => pick(
                random,
                &[
                    "e0e1f9fabfc9d4800c877a703b823ac0578ff8db",
                    "0000000000000000000000000000000000000000",
                ],
            ),
            ("group" | "groupname", _) => pick(random, &["group1", "group2"]),
            ("consumer" | "consumername", _) => pick(random, &["consumer1", "consumer2"]),
            // Of ZRANGE, whose options determine what it means.
            ("start", "string") if random.random_bool(0.4) => b"0".to_vec(),
            ("stop", "string") => pick(random, &["1", "2", "-1", "+", "[c"]),
            ("id" | "last-id" | "lastid" | "start" | "end", "string") => {
                self.serial += 1;
                let fresh = format!("{}-0", self.serial).into_bytes();
                if self.random.random_bool(0.5) { fresh } else { self.id() }
            }
            ("cursor", _) => pick(random, &["0", "0", "0", "x"]),
            ("min-idle-time", _) => pick(random, &["0", "600000000", "x"]),
            ("serialized-value", _) if random.random_bool(0.9) => self.dumped.clone(),
            ("operation", _) => pick(random, &["AND", "OR", "NOT", "x"]),
            ("longitude", _) => pick(random, &["13.36", "15.08", "200"]),
            ("latitude", _) => pick(random, &["38.11", "37.5", "-100"]),
            ("min" | "max", "string") => {
                pick(random, &["-", "+", "[a", "(c", "-inf", "+inf", "1", "(2"])
            }
            ("encoding", _) => pick(random, &["u8", "i16", "u3"]),
            ("database" | "index" | "db" | "index1" | "index2" | "destination-db", _) => {
                pick(random, &["0", "1", "15"])
            }
            ("channel" | "shardchannel", _) => pick(random, &["news", "sport", "__keyspace@0__:a"]),
            ("protover", _) => pick(random, &["2", "3", "4", "x"]),
            (_, "integer") => pick(random, &["0", "1", "2", "3", "5", "-1", "-2", "10", "x"]),
            (_, "double") => pick(random, &["1", "1.5", "-2", "0.25", "100", "x"]),
            (_, "pattern") => pick(random, &["*", "s*", "[a-c]*", "field?", "nothing"]),
            _ => self.word(),
        }
    }
}
