//! One request to both servers, and the comparison of the replies.

use super::{
    generate::filling,
    judge::Outcome,
    same::{Tree, comparable, is_refusal},
};
use crate::support::shard::client::Client;
use regatta_proto::resp::write_command;
use std::fmt;

/// A library of functions that is loaded whenever the servers are filled.
const LIBRARY: &str = "#!lua name=lib1
redis.register_function('f1', function(keys, args) return #keys end)
redis.register_function{function_name='f2', flags={'no-writes'},
    callback=function(keys, args) return redis.call('type', keys[1]) end}";

/// How requests are sent.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    /// With version 3 of the protocol.
    pub resp3: bool,
    /// Between MULTI and EXEC.
    pub is_queued: bool,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = if self.resp3 { "RESP3" } else { "RESP2" };
        write!(f, "{version}{}:", if self.is_queued { " in MULTI" } else { "" })
    }
}

/// Commands that change the state of the connection. Both connections are reopened after them.
pub const OF_THE_CONNECTION: [&str; 16] = [
    "multi",
    "exec",
    "discard",
    "watch",
    "unwatch",
    "subscribe",
    "psubscribe",
    "ssubscribe",
    "unsubscribe",
    "punsubscribe",
    "sunsubscribe",
    "quit",
    "reset",
    "hello",
    "select",
    "auth",
];

/// Commands that the proxy answers by the rules of Redis 7.0: it has no cluster, clients have no names with special
/// characters, and others have fewer arguments. CLIENT SETINFO is not known in transactions.
const OF_REDIS_7_0: [&str; 9] = [
    "client|setinfo",
    "cluster|replicate",
    "readonly",
    "readwrite",
    "cluster|keyslot",
    "client|setname",
    "command|getkeys",
    "command|getkeysandflags",
    "script|debug",
];

/// A connection to one server, and one to the proxy.
pub struct Pair {
    one: Client,
    sharded: Client,
    pub mode: Mode,
    /// Whether the servers are newer than Redis 7.0.
    is_newer: bool,
}

impl Pair {
    pub fn new(mut one: Client, mut sharded: Client, mode: Mode) -> Pair {
        if mode.resp3 {
            for client in [&mut one, &mut sharded] {
                assert_eq!(client.say("HELLO 3")[..1], *"%");
            }
        }
        let is_newer = !one.say("INFO server").contains("redis_version:7.0.");
        Pair { one, sharded, mode, is_newer }
    }

    /// Replaces all data of both.
    pub fn fill(&mut self) {
        let mut requests: Vec<Vec<String>> = ["FLUSHALL", "FUNCTION FLUSH"].map(words).to_vec();
        requests.push(["FUNCTION", "LOAD", LIBRARY].map(String::from).to_vec());
        requests.extend(filling());
        let mut bytes = Vec::new();
        for request in &requests {
            write_command(request.iter().map(String::as_bytes), &mut bytes);
        }
        for client in [&mut self.one, &mut self.sharded] {
            client.raw(&bytes);
            for request in &requests {
                let reply = client.next().expect("a reply");
                assert_ne!(reply[0], b'-', "{request:?}: {}", reply.escape_ascii());
            }
        }
    }

    /// Sends a request to both. What the proxy refuses is not sent to the server. The error describes the
    /// difference of the replies.
    pub fn exchange(&mut self, name: &str, request: &[Vec<u8>]) -> Result<Outcome, String> {
        let sharded = ask(&mut self.sharded, self.mode, name, request);
        if sharded.iter().any(is_refusal) {
            return Ok(Outcome::Refused);
        }
        let one = ask(&mut self.one, self.mode, name, request);
        let comparable = |replies: &[Tree]| -> Vec<Tree> {
            replies.iter().map(|reply| self.comparable(name, reply.clone())).collect()
        };
        if comparable(&one) == comparable(&sharded) {
            let is_error = |reply: &Tree| match reply {
                Tree::List(all) if self.mode.is_queued => matches!(all[..], [Tree::Error(_)]),
                reply => matches!(reply, Tree::Error(_)),
            };
            let failed = one.iter().any(is_error);
            return Ok(if failed { Outcome::SameError } else { Outcome::Same });
        }
        if self.mode.is_queued && is_found_earlier(&one, &sharded) {
            return Ok(Outcome::SameError);
        }
        if self.is_newer && (are_errors(&one, &sharded) || OF_REDIS_7_0.contains(&name)) {
            return Ok(Outcome::Refused);
        }
        let short = |replies: &[Tree]| {
            let text: Vec<String> = replies.iter().map(show).collect();
            text.join(", ").chars().take(300).collect::<String>()
        };
        Err(format!(
            "{}\n  one server: {}\n  the proxy:  {}",
            line(request),
            short(&one),
            short(&sharded)
        ))
    }

    fn comparable(&self, name: &str, reply: Tree) -> Tree {
        match reply {
            // The reply to EXEC.
            Tree::List(all) if self.mode.is_queued => {
                Tree::List(all.into_iter().map(|reply| comparable(name, reply)).collect())
            }
            reply => comparable(name, reply),
        }
    }
}

/// Whether both are errors. The proxy checks some arguments by the rules of Redis 7.0.
fn are_errors(one: &[Tree], sharded: &[Tree]) -> bool {
    let is_error = |replies: &[Tree]| matches!(replies.first(), Some(Tree::Error(_)));
    is_error(one) && is_error(sharded)
}

/// Returns whether the proxy found an error when the command was queued, and discarded the transaction. The
/// server found the same error when it carried out the command.
fn is_found_earlier(one: &[Tree], sharded: &[Tree]) -> bool {
    let ([_, Tree::List(carried_out)], [early, Tree::Error(discarded)]) = (one, sharded) else {
        return false;
    };
    discarded.starts_with(b"EXECABORT ") && carried_out[..] == [early.clone()]
}

/// Sends a request and returns the replies. In a transaction, these are the replies to the request and to
/// EXEC.
fn ask(client: &mut Client, mode: Mode, name: &str, request: &[Vec<u8>]) -> Vec<Tree> {
    if !mode.is_queued {
        client.send(request);
        return all(client, replies(name, request));
    }
    let mut bytes = Vec::new();
    write_command([&b"MULTI"[..]], &mut bytes);
    write_command(request.iter().map(Vec::as_slice), &mut bytes);
    write_command([&b"EXEC"[..]], &mut bytes);
    client.raw(&bytes);
    assert_eq!(client.next().as_deref(), Some(&b"+OK\r\n"[..]));
    (0..2).map(|_| Tree::read(&client.next().expect("a reply"))).collect()
}

fn all(client: &mut Client, count: usize) -> Vec<Tree> {
    let mut all = Vec::new();
    while all.len() < count {
        let Some(reply) = client.next() else { break };
        let tree = Tree::read(&reply);
        let failed = matches!(tree, Tree::Error(_));
        all.push(tree);
        if failed {
            break;
        }
    }
    all
}

/// Returns the number of replies to a request.
fn replies(name: &str, request: &[Vec<u8>]) -> usize {
    match name {
        "subscribe" | "psubscribe" | "ssubscribe" | "unsubscribe" | "punsubscribe"
        | "sunsubscribe" => (request.len() - 1).max(1),
        _ => 1,
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(String::from).collect()
}

/// Shows a request.
pub fn line(request: &[Vec<u8>]) -> String {
    let words: Vec<String> = request.iter().map(|word| word.escape_ascii().to_string()).collect();
    words.join(" ")
}

/// Shows a reply.
pub fn show(reply: &Tree) -> String {
    match reply {
        Tree::List(elements) => {
            format!("[{}]", elements.iter().map(show).collect::<Vec<_>>().join(" "))
        }
        Tree::Text(text) => format!("'{}'", text.escape_ascii()),
        Tree::Error(text) => format!("-{}", text.escape_ascii()),
        other => format!("{other:?}"),
    }
}
