//! A client of the proxy before a cluster: its requests, and its model of its own keys.
//!
//! Without a pipeline, only a transaction may end with an error, and a script, which is never sent again: it gets the MOVED
//! or ASK of its slot. Each script writes, and makes such an error for its slot or another one, which must not be followed. In a
//! pipeline, a request for several keys may get
//! TRYAGAIN while its slot moves, because a later one could overtake it. If a slot moves away and back, a later request may
//! be carried out first; the earlier one must then be an error.

use super::{
    Seen,
    node::{TAGS, address, keys, slot_of, slot_of_key},
};
use rand::{Rng, rngs::SmallRng};
use regatta_proto::resp::{Replies, write_bulk, write_command};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A client.
pub struct Client {
    number: usize,
    depth: usize,
    left: usize,
    serial: u64,
    input: Vec<u8>,
    replies: Replies,
    expected: VecDeque<Expected>,
    /// A command of its transaction was refused.
    aborts: bool,
    /// The value of each key, if that is known.
    keys: BTreeMap<Vec<u8>, Option<Option<Vec<u8>>>>,
    /// Slots that a master had that has died.
    doubted: BTreeSet<u16>,
    /// How many of the pending requests were sent before that.
    doubtful: usize,
}

/// A request whose reply is pending.
#[derive(Clone, Debug)]
enum Expected {
    Command(Vec<Vec<u8>>),
    Ok,
    /// A command of a transaction, and whether it is a script.
    Queued(bool),
    Exec(Vec<Vec<Vec<u8>>>),
}

impl Client {
    pub fn new(number: usize, random: &mut SmallRng) -> Self {
        Client {
            number,
            depth: [1, 1, 3, 20][random.random_range(0..4)],
            left: random.random_range(5..60),
            serial: 0,
            input: Vec::new(),
            replies: Replies::default(),
            expected: VecDeque::new(),
            aborts: false,
            keys: BTreeMap::new(),
            doubted: BTreeSet::new(),
            doubtful: 0,
        }
    }

    /// The number of pending replies.
    pub fn owes(&self) -> usize {
        self.expected.len()
    }

    fn key(&self, tag: usize, random: &mut SmallRng) -> Vec<u8> {
        format!("c{}.{}{{t{tag}}}", self.number, random.random_range(0..3)).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        self.serial += 1;
        format!("{}.", self.serial).into_bytes()
    }

    /// A command for one slot, or for several.
    fn command(&mut self, tag: Option<usize>, random: &mut SmallRng) -> Vec<Vec<u8>> {
        let own = tag.unwrap_or_else(|| random.random_range(0..TAGS));
        let one = self.key(own, random);
        let many = random.random_range(2..5);
        let mut several: Vec<Vec<u8>> = (0..many)
            .map(|_| {
                let other = random.random_range(0..TAGS);
                let tag = tag.unwrap_or(if random.random_bool(0.5) { own } else { other });
                self.key(tag, random)
            })
            .collect();
        several.sort();
        several.dedup();
        let name = |name: &str| name.as_bytes().to_vec();
        match random.random_range(0..11) {
            0..3 => vec![name("set"), one, self.value()],
            3..5 => vec![name("get"), one],
            5..7 => vec![name("append"), one, self.value()],
            7 => [vec![name("mget")], several].concat(),
            8 => {
                let pairs = several.into_iter().flat_map(|key| [key, self.value()]);
                std::iter::once(name("mset")).chain(pairs.collect::<Vec<_>>()).collect()
            }
            9 => {
                let code = ["MOVED", "ASK"][random.random_range(0..2)];
                let tag = if random.random_bool(0.5) { own } else { (own + 1) % TAGS };
                let node = random.random_range(0..4);
                let error = format!("{code}_{}_{}{FORGED}", slot_of(tag), address(node));
                vec![name("eval"), error.into_bytes(), name("1"), one]
            }
            _ => [vec![name("del")], several].concat(),
        }
    }

    /// Sends requests, if it has fewer pending replies than its depth.
    pub fn send(&mut self, random: &mut SmallRng, out: &mut Vec<u8>) {
        if self.left == 0 || self.expected.len() >= self.depth {
            return;
        }
        self.left -= 1;
        if random.random_bool(0.1) {
            let tag = random.random_range(0..TAGS);
            let queued: Vec<_> =
                (0..random.random_range(1..4)).map(|_| self.command(Some(tag), random)).collect();
            write_command([&b"MULTI"[..]], out);
            self.expected.push_back(Expected::Ok);
            for args in &queued {
                write_command(args.iter().map(|arg| &arg[..]), out);
                self.expected.push_back(Expected::Queued(args[0] == b"eval"));
            }
            write_command([&b"EXEC"[..]], out);
            return self.expected.push_back(Expected::Exec(queued));
        }
        let args = self.command(None, random);
        write_command(args.iter().map(|arg| &arg[..]), out);
        self.expected.push_back(Expected::Command(args));
    }

    /// Handles bytes of the proxy.
    pub fn receive(&mut self, bytes: &[u8], seen: &mut Seen) -> Result<(), String> {
        self.input.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let found = self.replies.next(&self.input[at..]).map_err(|error| error.to_string())?;
            if !found.whole {
                // What was looked at is not looked at again.
                self.input.drain(..at);
                self.replies = Replies::default();
                return Ok(());
            }
            let reply = self.input[at..at + found.bytes].to_vec();
            at += found.bytes;
            seen.replies += 1;
            let expected = self.expected.pop_front().ok_or("a reply without a request")?;
            self.check(&expected, &reply, seen).map_err(|why| {
                format!("{} is no reply to {expected:?}: {why}", reply.escape_ascii())
            })?;
            if self.doubtful > 0 {
                self.doubtful -= 1;
                self.forget();
            }
        }
    }

    /// A master has died that has had these slots.
    pub fn doubt(&mut self, slots: &[u16]) {
        self.doubted.extend(slots);
        self.doubtful = self.expected.len();
        self.forget();
    }

    /// The values of keys in doubted slots are not known.
    fn forget(&mut self) {
        for (key, value) in &mut self.keys {
            if self.doubted.contains(&slot_of_key(key)) {
                *value = None;
            }
        }
    }

    /// All masters work again: from now on no request may fail. Asks for a key of each slot.
    pub fn ask_all(&mut self, out: &mut Vec<u8>) {
        self.doubted.clear();
        for tag in 0..TAGS {
            let key = format!("c{}.0{{t{tag}}}", self.number).into_bytes();
            write_command([&b"get"[..], &key], out);
            self.expected.push_back(Expected::Command(vec![b"get".to_vec(), key]));
        }
    }

    /// Whether this is an error because a master has died. Then the request may have been applied.
    fn is_down(&mut self, expected: &Expected, reply: &[u8]) -> bool {
        let codes = ["-SHARDDOWN ", "-SHARDTIMEOUT ", "-CLUSTERDOWN ", "-SHARDMOVED "];
        if !codes.iter().any(|code| reply.starts_with(code.as_bytes())) {
            return false;
        }
        let commands = match expected {
            Expected::Ok | Expected::Queued(_) => return false,
            Expected::Command(args) => std::slice::from_ref(args),
            Expected::Exec(queued) => &queued[..],
        };
        let keys: Vec<&Vec<u8>> = commands.iter().flat_map(|args| keys(args)).collect();
        let is_doubted = keys.iter().any(|key| self.doubted.contains(&slot_of_key(key)));
        if is_doubted {
            keys.into_iter().for_each(|key| *self.value_of(key) = None);
        }
        is_doubted
    }

    fn check(&mut self, expected: &Expected, reply: &[u8], seen: &mut Seen) -> Result<(), String> {
        let is = |code: &str| reply.starts_with(code.as_bytes());
        if self.is_down(expected, reply) {
            seen.down += 1;
            self.aborts &= !matches!(expected, Expected::Exec(_));
            return Ok(());
        }
        let right = match expected {
            Expected::Ok => Some(b"+OK\r\n".to_vec()),
            Expected::Queued(_) if is("-SHARDDOWN ") && !self.doubted.is_empty() => {
                self.aborts = true;
                return Ok(());
            }
            Expected::Queued(_) if is("-SHARDMOVED ") || is("-TRYAGAIN ") => {
                self.aborts = true;
                return Ok(());
            }
            Expected::Queued(true) if is("-MOVED ") || is("-ASK ") => {
                self.aborts = true;
                return Ok(());
            }
            Expected::Queued(_) => Some(b"+QUEUED\r\n".to_vec()),
            Expected::Exec(_) if is("-EXECABORT ") || is("-SHARDMOVED ") || is("-TRYAGAIN ") => {
                self.aborts = false;
                seen.aborted += 1;
                return Ok(());
            }
            Expected::Exec(_) if self.aborts => return Err("a command was refused".into()),
            Expected::Exec(queued) => {
                seen.transactions += 1;
                let replies = queued.iter().map(|args| self.reply_to(args)).collect::<Vec<_>>();
                let all: Option<Vec<Vec<u8>>> = replies.into_iter().collect();
                let head = format!("*{}\r\n", queued.len()).into_bytes();
                all.map(|all| [head, all.concat()].concat())
            }
            Expected::Command(args) if is("-TRYAGAIN ") && self.depth > 1 && args.len() > 2 => {
                seen.passed += 1;
                self.fail(args);
                return Ok(());
            }
            Expected::Command(args)
                if is("-SHARDMOVED ") && self.depth > 1 && is_overtaken(reply) =>
            {
                seen.overtaken += 1;
                self.fail(args);
                return Ok(());
            }
            Expected::Command(args) if args[0] == b"eval" && is_redirect(&args[3], reply) => {
                seen.refused_scripts += 1;
                return Ok(());
            }
            Expected::Command(args) => {
                seen.forged += u64::from(args[0] == b"eval");
                self.reply_to(args)
            }
        };
        match right {
            Some(right) if right != reply => Err(format!("expected {}", right.escape_ascii())),
            None if is("-") => Err("it is an error".into()),
            _ => Ok(()),
        }
    }

    /// What a key has. `None`: that is not known, because a request may have been applied.
    fn value_of(&mut self, key: &[u8]) -> &mut Option<Option<Vec<u8>>> {
        self.keys.entry(key.to_vec()).or_insert(Some(None))
    }

    /// Some parts of a request may have been applied.
    fn fail(&mut self, args: &[Vec<u8>]) {
        let step = match &args[0][..] {
            b"mset" => 2,
            b"del" => 1,
            _ => return,
        };
        args[1..].iter().step_by(step).for_each(|key| *self.value_of(key) = None);
    }

    /// Applies a command to the model. Returns the right reply, if it is known.
    fn reply_to(&mut self, args: &[Vec<u8>]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut is_known = true;
        match &args[0][..] {
            b"set" | b"mset" => {
                for pair in args[1..].chunks(2) {
                    *self.value_of(&pair[0]) = Some(Some(pair[1].clone()));
                }
                out.extend_from_slice(b"+OK\r\n");
            }
            b"append" => {
                let value = self.value_of(&args[1]).as_mut()?.get_or_insert_default();
                value.extend_from_slice(&args[2]);
                out.extend(format!(":{}\r\n", value.len()).into_bytes());
            }
            b"eval" => {
                if let Some(value) = self.value_of(&args[3]) {
                    value.get_or_insert_default().push(b'x');
                }
                let error = String::from_utf8_lossy(&args[1]).replace('_', " ");
                out.extend(format!("-{error}\r\n").into_bytes());
            }
            b"del" => {
                let mut count = 0;
                for key in &args[1..] {
                    let before = self.value_of(key).replace(None);
                    is_known &= before.is_some();
                    count += usize::from(before.flatten().is_some());
                }
                out.extend(format!(":{count}\r\n").into_bytes());
            }
            name => {
                if name == b"mget" {
                    out.extend(format!("*{}\r\n", args.len() - 1).into_bytes());
                }
                for key in &args[1..] {
                    match self.value_of(key).as_ref()? {
                        Some(value) => write_bulk(value, &mut out),
                        None => out.extend_from_slice(b"$-1\r\n"),
                    }
                }
            }
        }
        is_known.then_some(out)
    }

    /// Whether a key may have this value.
    pub fn permits(&mut self, key: &[u8], value: Option<&Vec<u8>>) -> bool {
        self.value_of(key).as_ref().is_none_or(|known| known.as_ref() == value)
    }

    /// All keys that it has used.
    pub fn used(&self) -> Vec<Vec<u8>> {
        self.keys.keys().cloned().collect()
    }
}

/// The end of an error that a script has made. The proxy does not look at it.
const FORGED: &str = "_forged";

/// Whether this is the error of a node that does not have this key.
fn is_redirect(key: &[u8], reply: &[u8]) -> bool {
    let slot = slot_of_key(key);
    let is = |code| reply.starts_with(format!("-{code} {slot} ").as_bytes());
    (is("MOVED") || is("ASK")) && !reply.ends_with(b" forged\r\n")
}

/// Whether this error says that a later command was carried out first.
fn is_overtaken(reply: &[u8]) -> bool {
    String::from_utf8_lossy(reply).contains("a later command was carried out first")
}
