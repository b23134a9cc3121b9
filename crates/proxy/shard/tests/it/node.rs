//! A node: a small Redis server.

use regatta_proto::resp::{Command, CommandLimits, Commands, write_bulk, write_command};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

/// The configuration of every node: the parameters with credentials, and others.
pub const CONFIGURATION: [(&str, &str); 5] = [
    ("maxclients", "10000"),
    ("requirepass", "hidden"),
    ("maxmemory", "0"),
    ("masterauth", "hidden"),
    ("masteruser", "hidden"),
];

/// The users of the nodes with their passwords, besides the one that needs none. Where users matter, each key ends with
/// `@` and the user as which it is used, or a tag does at its end.
pub const USERS: [(&str, &str); 2] = [("ann", "a"), ("bob", "b")];

/// The user of a connection at first.
pub const DEFAULT: &str = "default";

/// An element that is pushed while the proxy stops.
pub const ELEMENT: &[u8] = b"pushed in a drain";

/// The data of a node, which survives a crash.
#[derive(Default)]
pub struct Data {
    strings: BTreeMap<(u32, Vec<u8>), Vec<u8>>,
    lists: BTreeMap<(u32, Vec<u8>), VecDeque<Vec<u8>>>,
    /// How often each key was changed, for WATCH.
    changes: BTreeMap<(u32, Vec<u8>), u64>,
    /// The numbers of the connections that are blocked, and of those that CLIENT UNBLOCK has ended.
    blocked: BTreeSet<u64>,
    unblocked: BTreeSet<u64>,
    /// The commands that were received, if they are recorded.
    asked: Option<BTreeSet<Asked>>,
}

/// A command: the length of each argument, and its first bytes.
pub type Asked = Vec<(usize, Vec<u8>)>;

/// One connection, from the node's side.
pub struct Session {
    /// The number that CLIENT ID returns.
    number: u64,
    /// The maximum size of an argument, in bytes.
    longest: usize,
    commands: Commands,
    input: Vec<u8>,
    database: u32,
    resp3: bool,
    /// The user may not run MULTI.
    refuses_multi: bool,
    /// The user as which commands are carried out.
    user: Vec<u8>,
    /// The node has the users.
    pub knows_users: bool,
    /// The node only pretends to change the user (an injected fault).
    pub is_forgetful: bool,
    /// The commands queued since MULTI.
    multi: Option<Vec<Vec<Vec<u8>>>>,
    watched: Vec<((u32, Vec<u8>), u64)>,
    /// The prefix of the commands (`p`, `s` or nothing) and the name of each subscription.
    subscriptions: Vec<(String, Vec<u8>)>,
    /// BLPOP waits on this list until this time.
    blocked: Option<(Vec<u8>, Instant)>,
}

/// A message for subscribers.
pub struct Published {
    /// It goes to the subscribers of shard channels (SPUBLISH).
    is_sharded: bool,
    channel: Vec<u8>,
    text: Vec<u8>,
}

impl Session {
    pub fn new(number: u64, longest: usize, refuses_multi: bool) -> Self {
        Session {
            number,
            longest,
            refuses_multi,
            user: DEFAULT.into(),
            knows_users: true,
            is_forgetful: false,
            commands: Commands::new(CommandLimits::default()),
            input: Vec::new(),
            database: 0,
            resp3: false,
            multi: None,
            watched: Vec::new(),
            subscriptions: Vec::new(),
            blocked: None,
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Whether AUTH was never accepted over it.
    pub fn is_of_default(&self) -> bool {
        self.user == DEFAULT.as_bytes()
    }

    /// Whether a command of this session waits.
    pub fn is_blocked(&self) -> bool {
        self.blocked.is_some()
    }

    /// Adds an element to the list on which a command of this session waits, if one does. Returns
    /// whether it did.
    pub fn push_to_blocked(&self, element: &[u8], data: &mut Data) -> bool {
        let Some((key, _)) = self.blocked.as_ref().filter(|(key, _)| key.starts_with(b"never"))
        else {
            return false;
        };
        data.lists.entry((self.database, key.clone())).or_default().push_back(element.to_vec());
        true
    }

    /// Carries out the next command if it is complete. Returns whether it was.
    pub fn step(
        &mut self,
        data: &mut Data,
        now: Instant,
        out: &mut Vec<u8>,
        published: &mut Vec<Published>,
    ) -> bool {
        if let Some((key, until)) = self.blocked.take() {
            if data.unblocked.remove(&self.number) {
                out.extend_from_slice(b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
                return true;
            }
            if !self.pop(data, &key, out) {
                if now < until {
                    self.blocked = Some((key, until));
                    return false;
                }
                out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"*-1\r\n" });
            }
            data.blocked.remove(&self.number);
            return true;
        }
        let args = loop {
            let (taken, command) = self.commands.next(&self.input).expect("the proxy speaks RESP");
            let args: Option<Vec<Vec<u8>>> = command.map(|command: Command<'_>| {
                check_form(&command);
                command.args().map(<[u8]>::to_vec).collect()
            });
            self.input.drain(..taken);
            match args {
                Some(args) => break args,
                None if taken == 0 => return false,
                None => {}
            }
        };
        self.check_user(&args);
        if let Some(asked) = &mut data.asked {
            let shortened = |arg: &Vec<u8>| (arg.len(), arg[..arg.len().min(200)].to_vec());
            asked.insert(args.iter().map(shortened).collect());
        }
        self.command(&args, data, now, out, published);
        true
    }

    /// Checks that a command is carried out as the user as which its client sent it.
    fn check_user(&self, args: &[Vec<u8>]) {
        for arg in args.iter().skip(1).filter(|arg| arg.len() < 100) {
            if let Some(at) = arg.iter().rposition(|byte| *byte == b'@') {
                let marked = &arg[at + 1..];
                let is_right = marked.strip_suffix(b"}").unwrap_or(marked) == self.user;
                let (arg, user) = (arg.escape_ascii(), self.user.escape_ascii());
                assert!(is_right, "{} {arg} as {user}", args[0].escape_ascii());
            }
        }
    }

    fn authenticate(&mut self, args: &[Vec<u8>], out: &mut Vec<u8>) {
        let is = |(name, password): &(&str, &str)| {
            args[1] == name.as_bytes() && args[2] == password.as_bytes()
        };
        if args.len() < 3 {
            return out.extend_from_slice(b"-ERR AUTH <password> called without any password\r\n");
        }
        if !self.knows_users || !USERS.iter().any(is) {
            return out.extend_from_slice(
                b"-WRONGPASS invalid username-password pair or user is disabled.\r\n",
            );
        }
        if !self.is_forgetful {
            self.user.clone_from(&args[1]);
        }
        out.extend_from_slice(b"+OK\r\n");
    }

    #[expect(clippy::too_many_lines, reason = "one case for each command")]
    #[expect(clippy::too_many_arguments, reason = "a row of the cases")]
    fn command(
        &mut self,
        args: &[Vec<u8>],
        data: &mut Data,
        now: Instant,
        out: &mut Vec<u8>,
        published: &mut Vec<Published>,
    ) {
        let longest = args.iter().map(Vec::len).max().unwrap_or(0);
        assert!(longest <= self.longest, "Redis would close the connection: {longest} bytes");
        let name = String::from_utf8_lossy(&args[0]).to_ascii_uppercase();
        if let Some(queue) = &mut self.multi
            && !matches!(&name[..], "EXEC" | "DISCARD" | "MULTI" | "WATCH")
        {
            queue.push(args.to_vec());
            return out.extend_from_slice(b"+QUEUED\r\n");
        }
        let place = |at: usize| (self.database, args[at].clone());
        match &name[..] {
            "AUTH" => self.authenticate(args, out),
            "ECHO" => self.value(Some(&args[1]), out),
            "PING" => out.extend_from_slice(b"+PONG\r\n"),
            "SELECT" => match std::str::from_utf8(&args[1]).unwrap().parse() {
                Ok(database @ 0..=15) => {
                    self.database = database;
                    out.extend_from_slice(b"+OK\r\n");
                }
                _ => out.extend_from_slice(b"-ERR DB index is out of range\r\n"),
            },
            "HELLO" => {
                self.resp3 = args[1] == b"3";
                out.extend_from_slice(b"%1\r\n$6\r\nserver\r\n$4\r\nfake\r\n");
            }
            "INFO" => {
                assert_eq!(args[1], b"server");
                self.value(Some(&b"# Server\r\nredis_version:6.2.14\r\n".to_vec()), out);
            }
            "COMMAND" => {
                assert_eq!(args[1], b"INFO");
                let (arity, flag) = match &args[2][..] {
                    b"xget" => (2, "readonly"),
                    b"xset" => (3, "write"),
                    _ => return out.extend_from_slice(b"*1\r\n*-1\r\n"),
                };
                let fields =
                    format!("*1 *6 +any :{arity} *1 +{flag} :1 :1 :1 ").replace(' ', "\r\n");
                out.extend_from_slice(fields.as_bytes());
            }
            "SET" | "XSET" => {
                data.change(place(1));
                data.strings.insert(place(1), args[2].clone());
                out.extend_from_slice(b"+OK\r\n");
            }
            "GET" | "XGET" => self.value(data.strings.get(&place(1)), out),
            "MGET" => {
                out.extend_from_slice(format!("*{}\r\n", args.len() - 1).as_bytes());
                (1..args.len()).for_each(|at| self.value(data.strings.get(&place(at)), out));
            }
            "MSET" => {
                for at in (1..args.len()).step_by(2) {
                    data.change(place(at));
                    data.strings.insert(place(at), args[at + 1].clone());
                }
                out.extend_from_slice(b"+OK\r\n");
            }
            "DEL" => {
                let mut count = 0;
                for at in 1..args.len() {
                    data.change(place(at));
                    count += usize::from(data.strings.remove(&place(at)).is_some());
                }
                out.extend_from_slice(format!(":{count}\r\n").as_bytes());
            }
            "INCR" => {
                let value = data.strings.entry(place(1)).or_insert_with(|| b"0".to_vec());
                let number = std::str::from_utf8(value).unwrap().parse::<i64>().unwrap() + 1;
                *value = number.to_string().into_bytes();
                data.change(place(1));
                out.extend_from_slice(format!(":{number}\r\n").as_bytes());
            }
            "RPUSH" => {
                let list = data.lists.entry(place(1)).or_default();
                list.push_back(args[2].clone());
                out.extend_from_slice(format!(":{}\r\n", list.len()).as_bytes());
            }
            "BLPOP" => {
                if !self.pop(data, &args[1], out) {
                    let seconds: u64 = std::str::from_utf8(&args[2]).unwrap().parse().unwrap();
                    let seconds = if seconds == 0 { u64::from(u32::MAX) } else { seconds };
                    self.blocked = Some((args[1].clone(), now + Duration::from_secs(seconds)));
                    data.blocked.insert(self.number);
                }
            }
            "CLIENT" if args[1] == b"ID" => {
                out.extend_from_slice(format!(":{}\r\n", self.number).as_bytes());
            }
            "CLIENT" => {
                assert_eq!((&args[1][..], &args[3][..]), (&b"UNBLOCK"[..], &b"ERROR"[..]));
                let number = std::str::from_utf8(&args[2]).unwrap().parse().unwrap();
                let was_blocked = data.blocked.remove(&number);
                if was_blocked {
                    data.unblocked.insert(number);
                }
                out.extend_from_slice(if was_blocked { b":1\r\n" } else { b":0\r\n" });
            }
            "CONFIG" if args[2] == b"proto-max-bulk-len" => {
                let longest = self.longest.to_string().into_bytes();
                out.extend_from_slice(if self.resp3 { b"%1\r\n" } else { b"*2\r\n" });
                self.value(Some(&args[2]), out);
                self.value(Some(&longest), out);
            }
            "EVAL" => {
                let numbers = String::from_utf8_lossy(&args[1]).into_owned();
                let mut numbers = numbers.split(' ').map(|text| text.parse().unwrap());
                out.extend(scripted(numbers.next().unwrap(), numbers.next().unwrap()));
            }
            "CONFIG" => {
                let parameters =
                    CONFIGURATION.iter().filter(|one| fits(&args[2], one.0.as_bytes()));
                let mut parameters: Vec<_> = parameters.collect();
                // Each server has its own order.
                if data.strings.len() % 2 == 1 {
                    parameters.reverse();
                }
                let (kind, each) = if self.resp3 { ('%', 1) } else { ('*', 2) };
                out.extend_from_slice(format!("{kind}{}\r\n", parameters.len() * each).as_bytes());
                for (name, value) in parameters {
                    write_bulk(name.as_bytes(), out);
                    write_bulk(value.as_bytes(), out);
                }
            }
            "MULTI" if self.refuses_multi => {
                out.extend_from_slice(b"-NOPERM this user may not run 'multi'\r\n");
            }
            "MULTI" => {
                self.multi = Some(Vec::new());
                out.extend_from_slice(b"+OK\r\n");
            }
            "DISCARD" => {
                self.multi = None;
                self.watched.clear();
                out.extend_from_slice(b"+OK\r\n");
            }
            "WATCH" => {
                let version = data.changes.get(&place(1)).copied().unwrap_or(0);
                self.watched.push((place(1), version));
                out.extend_from_slice(b"+OK\r\n");
            }
            "UNWATCH" => {
                self.watched.clear();
                out.extend_from_slice(b"+OK\r\n");
            }
            "EXEC" => {
                let queue = self.multi.take().unwrap_or_default();
                let changed = |(key, version): &((u32, Vec<u8>), u64)| {
                    data.changes.get(key).copied().unwrap_or(0) != *version
                };
                let is_dirty = self.watched.iter().any(changed);
                self.watched.clear();
                if is_dirty {
                    return out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"*-1\r\n" });
                }
                out.extend_from_slice(format!("*{}\r\n", queue.len()).as_bytes());
                for args in queue {
                    self.command(&args, data, now, out, published);
                }
            }
            _ if name.ends_with("SUBSCRIBE") => {
                let kind = name.to_ascii_lowercase();
                let (prefix, leaves) = match kind.trim_end_matches("subscribe") {
                    "un" => ("", true),
                    other => (other.trim_end_matches("un"), other.ends_with("un")),
                };
                let subscription = (prefix.to_string(), args[1].clone());
                self.subscriptions.retain(|other| *other != subscription);
                if !leaves {
                    self.subscriptions.push(subscription);
                }
                let count = self.subscriptions.len();
                out.extend_from_slice(if self.resp3 { b">3\r\n" } else { b"*3\r\n" });
                out.extend_from_slice(format!("${}\r\n{kind}\r\n", kind.len()).as_bytes());
                self.value(Some(&args[1]), out);
                out.extend_from_slice(format!(":{count}\r\n").as_bytes());
            }
            "PUBLISH" | "SPUBLISH" => {
                let is_sharded = name == "SPUBLISH";
                let (channel, text) = (args[1].clone(), args[2].clone());
                published.push(Published { is_sharded, channel, text });
                out.extend_from_slice(b":1\r\n");
            }
            _ => panic!("a node received {name}"),
        }
    }

    /// Writes a message to this session, once for each subscription that it fits.
    pub fn message(&self, published: &Published, out: &mut Vec<u8>) {
        let Published { is_sharded, channel, text } = published;
        for (prefix, name) in &self.subscriptions {
            let parts: &[&[u8]] = match &prefix[..] {
                "" if !is_sharded && name == channel => &[b"message", channel, text],
                "s" if *is_sharded && name == channel => &[b"smessage", channel, text],
                "p" if !is_sharded && fits(name, channel) => &[b"pmessage", name, channel, text],
                _ => continue,
            };
            let start = out.len();
            write_command(parts.iter().copied(), out);
            out[start] = if self.resp3 { b'>' } else { b'*' };
        }
    }

    fn value(&self, value: Option<&Vec<u8>>, out: &mut Vec<u8>) {
        match value {
            Some(value) => {
                out.extend_from_slice(format!("${}\r\n", value.len()).as_bytes());
                out.extend_from_slice(value);
                out.extend_from_slice(b"\r\n");
            }
            None if self.resp3 => out.extend_from_slice(b"_\r\n"),
            None => out.extend_from_slice(b"$-1\r\n"),
        }
    }

    fn pop(&self, data: &mut Data, key: &[u8], out: &mut Vec<u8>) -> bool {
        let list = data.lists.get_mut(&(self.database, key.to_vec()));
        let Some(element) = list.and_then(VecDeque::pop_front) else { return false };
        write_command([key, &element], out);
        true
    }
}

/// Returns whether a name fits a pattern, in which only `*` is special.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match pattern {
        [] => name.is_empty(),
        [b'*', rest @ ..] => (0..=name.len()).any(|at| fits(rest, &name[at..])),
        [byte, rest @ ..] => name.first() == Some(byte) && fits(rest, &name[1..]),
    }
}

/// Returns the reply of a script: `depth` nested arrays, and a status of this length inside.
pub fn scripted(depth: usize, length: usize) -> Vec<u8> {
    [&b"*1\r\n".repeat(depth)[..], b"+", &vec![b'x'; length], b"\r\n"].concat()
}

/// Redis closes a connection on which a number is not in its canonical form. All clients of a core
/// share it.
fn check_form(command: &Command<'_>) {
    let mut canonical = Vec::new();
    write_command(command.args(), &mut canonical);
    let sent = command.bytes.escape_ascii();
    assert!(command.bytes == canonical, "Redis would close the connection: {sent}");
}

impl Data {
    /// No data. `records`: commands are recorded.
    pub fn new(records: bool) -> Self {
        Data { asked: records.then(BTreeSet::new), ..Data::default() }
    }

    /// The commands that were recorded.
    pub fn asked(&self) -> impl Iterator<Item = &Asked> {
        self.asked.iter().flatten()
    }

    /// How often an element is in the lists.
    pub fn count(&self, element: &[u8]) -> usize {
        self.lists.values().flatten().filter(|one| *one == element).count()
    }

    fn change(&mut self, key: (u32, Vec<u8>)) {
        *self.changes.entry(key).or_default() += 1;
    }
}
