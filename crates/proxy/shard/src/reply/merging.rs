//! Merging of replies from several nodes into one.

use crate::{
    node::nodes::Nodes,
    reply::{configuration, errors},
};
use regatta_keyspace::route::{Cursor, Merge, Plan};
use regatta_proto::resp::{Replies, Value};
use std::{collections::HashSet, ops::Range, sync::Arc};

/// A reply that is merged from the replies of several nodes.
#[derive(Debug)]
pub(crate) struct Merging {
    rule: Rule,
    /// The parts, each with its outcome so far.
    parts: Vec<Part>,
    /// How many parts are still pending.
    left: usize,
    /// Total bytes of the parts received so far.
    held: usize,
    /// Whether the command changes data.
    writes: bool,
    /// What the parts are for.
    of: &'static str,
    confirmation: Confirmation,
    nodes: Arc<Nodes>,
}

/// Whether it must be known before a reply is written that the slots of a cluster have not moved.
#[derive(Debug)]
enum Confirmation {
    NotNeeded,
    Needed,
    Given,
    /// This error is the reply instead, without the leading `-`.
    Refused(String),
}

#[derive(Debug)]
struct Part {
    /// The node that received this part.
    node: usize,
    outcome: Outcome,
}

#[derive(Debug)]
enum Outcome {
    Waiting,
    /// The node's complete reply.
    Reply(Vec<u8>),
    /// The node replied with this error, without the leading `-` and the line end.
    Error(Vec<u8>),
    /// The node did not reply, or its reply is malformed. Contains an error, without the leading `-`.
    Lost(Vec<u8>),
}

impl Outcome {
    fn bytes(&self) -> usize {
        match self {
            Outcome::Waiting => 0,
            Outcome::Reply(bytes) | Outcome::Error(bytes) | Outcome::Lost(bytes) => bytes.len(),
        }
    }
}

/// How the parts are merged into one reply.
#[derive(Debug)]
pub(crate) enum Rule {
    /// By the command's merge rule.
    All(Merge),
    /// Elements are returned in the order of the keys in the request. `keys`: for each part, the
    /// positions of its keys; `width`: elements per key.
    InOrder { keys: Vec<Vec<u32>>, width: usize },
    /// A reply of one node to SCAN: the node's cursor is converted to the client's.
    Scan { cursor: Cursor, nodes: usize },
    /// Confirmations of subscriptions, which the proxy writes once all nodes have confirmed.
    Confirmation(Vec<u8>),
}

impl Rule {
    /// The rule for a request that was split according to this plan.
    pub(crate) fn split(merge: Merge, plan: &Plan) -> Rule {
        match merge {
            Merge::InOrder(width) => Rule::InOrder {
                keys: plan
                    .parts()
                    .map(|part| part.keys().map(|key| key as u32).collect())
                    .collect(),
                width: usize::from(width),
            },
            other => Rule::All(other),
        }
    }
}

impl Merging {
    /// Creates a merge to which each of these nodes contributes one reply.
    pub(crate) fn new(
        rule: Rule,
        asked: impl IntoIterator<Item = usize>,
        writes: bool,
        nodes: Arc<Nodes>,
    ) -> Self {
        let parts: Vec<Part> =
            asked.into_iter().map(|node| Part { node, outcome: Outcome::Waiting }).collect();
        Merging {
            rule,
            left: parts.len(),
            held: 0,
            parts,
            writes,
            of: "nodes",
            confirmation: Confirmation::NotNeeded,
            nodes,
        }
    }

    /// The parts are for slots of a cluster, of which a node may have several.
    pub(crate) fn is_by_slots(&mut self) {
        self.of = "slots";
    }

    /// Total bytes of the parts received so far.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left == 0 && !self.awaits_confirmation()
    }

    /// The slots must not have moved when all parts have arrived; for SCAN, only if another node is next, or none.
    pub(crate) fn needs_confirmation(&mut self) {
        self.confirmation = Confirmation::Needed;
    }

    /// Whether all parts have arrived without an error, and it is not known yet whether slots have moved.
    pub(crate) fn awaits_confirmation(&self) -> bool {
        self.left == 0
            && matches!(self.confirmation, Confirmation::Needed)
            && self.has_succeeded()
            && (!matches!(self.rule, Rule::Scan { .. }) || self.next_of_node() == Some(0))
    }

    /// The slots have not moved, or this error is the reply.
    pub(crate) fn confirm(&mut self, refusal: Option<String>) {
        self.confirmation = refusal.map_or(Confirmation::Given, Confirmation::Refused);
    }

    fn has_succeeded(&self) -> bool {
        self.parts.iter().all(|part| matches!(part.outcome, Outcome::Reply(_)))
    }

    /// Records a node's reply.
    pub(crate) fn reply(&mut self, part: usize, reply: &[u8]) {
        let outcome = match Value::read(reply) {
            Some((Value::Error(text), _)) => Outcome::Error(text.to_vec()),
            Some(_) => Outcome::Reply(reply.to_vec()),
            None => Outcome::Lost(b"ERR its reply is malformed".to_vec()),
        };
        self.set(part, outcome);
    }

    /// Records that a node did not reply. `why`: an error, without the leading `-`.
    pub(crate) fn lost(&mut self, part: usize, why: &[u8]) {
        self.set(part, Outcome::Lost(why.to_vec()));
    }

    fn set(&mut self, part: usize, outcome: Outcome) {
        if let Some(Part { outcome: before @ Outcome::Waiting, .. }) = self.parts.get_mut(part) {
            self.held += outcome.bytes();
            *before = outcome;
            self.left -= 1;
        }
    }

    /// Writes the merged reply. All parts must have arrived.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if let Confirmation::Refused(text) = &self.confirmation {
            errors::write(out, &[text.as_bytes()]);
        } else if self.has_succeeded() {
            let start = out.len();
            if self.merge(out).is_none() {
                out.truncate(start);
                errors::write(out, &[b"ERR the nodes returned replies that cannot be merged"]);
            }
        } else {
            self.fail(out);
        }
    }

    /// Writes an error, because not all nodes succeeded.
    fn fail(&self, out: &mut Vec<u8>) {
        let mut errors = self.parts.iter().map(|part| match &part.outcome {
            Outcome::Error(text) => Some(text),
            _ => None,
        });
        // If all nodes return the same error, a single Redis would return it, too.
        if let Some(Some(first)) = errors.next()
            && errors.all(|error| error == Some(first))
        {
            return errors::write(out, &[first]);
        }
        let done = self.parts.iter().filter(|p| matches!(p.outcome, Outcome::Reply(_))).count();
        let failed = self.parts.iter().find_map(|part| match &part.outcome {
            Outcome::Error(text) | Outcome::Lost(text) => Some((part.node, text)),
            _ => None,
        });
        let Some((node, text)) = failed else { return };
        let (code, text) = errors::split_code(text);
        let applied = format!("applied on {done} of {} {}; ", self.parts.len(), self.of);
        let applied: &[u8] = if self.writes { applied.as_bytes() } else { b"" };
        let node = format!("node {}: ", self.nodes.name(node));
        errors::write(out, &[code, b" ", applied, node.as_bytes(), text]);
    }

    fn replies(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        self.parts.iter().map(|part| match &part.outcome {
            Outcome::Reply(reply) => &reply[..],
            _ => &[],
        })
    }

    fn values(&self) -> impl Iterator<Item = Option<Value<'_>>> {
        self.replies().map(|reply| Some(Value::read(reply)?.0))
    }

    /// Returns `None` if a reply does not fit the rule.
    #[expect(clippy::too_many_lines, reason = "one case for each way of merging")]
    fn merge(&self, out: &mut Vec<u8>) -> Option<()> {
        match &self.rule {
            Rule::All(Merge::Sum) => {
                let mut sum = 0_i64;
                for value in self.values() {
                    let Value::Integer(number) = value? else { return None };
                    sum = sum.checked_add(number)?;
                }
                number(b':', sum, out);
            }
            Rule::All(Merge::Ok) => {
                for value in self.values() {
                    if value? != Value::Simple(b"OK") {
                        return None;
                    }
                }
                out.extend_from_slice(b"+OK\r\n");
            }
            Rule::All(Merge::Same) => {
                let mut replies = self.replies();
                let first = replies.next()?;
                if replies.any(|reply| reply != first) {
                    errors::write(out, &[b"ERR the nodes give different answers"]);
                } else {
                    out.extend_from_slice(first);
                }
            }
            Rule::All(Merge::Configuration) => configuration::merge(self.replies(), out)?,
            Rule::All(Merge::Concatenation) => {
                let mut count = 0;
                for value in self.values() {
                    count += elements(value?)?.1;
                }
                number(b'*', count as i64, out);
                for value in self.values() {
                    out.extend_from_slice(elements(value?)?.2);
                }
            }
            Rule::All(Merge::Union) => {
                let (mut seen, mut all) = (HashSet::new(), Vec::new());
                for value in self.values() {
                    let (_, count, bytes) = elements(value?)?;
                    for range in ranges(bytes, count)? {
                        if seen.insert(&bytes[range.clone()]) {
                            all.push(&bytes[range]);
                        }
                    }
                }
                number(b'*', all.len() as i64, out);
                all.iter().for_each(|element| out.extend_from_slice(element));
            }
            Rule::All(Merge::Least) => {
                let mut least: Option<Vec<i64>> = None;
                for value in self.values() {
                    let (_, count, bytes) = elements(value?)?;
                    let mut numbers = Vec::with_capacity(count);
                    for range in ranges(bytes, count)? {
                        let Value::Integer(number) = Value::read(&bytes[range])?.0 else {
                            return None;
                        };
                        numbers.push(number);
                    }
                    least = Some(match least {
                        None => numbers,
                        Some(least) if least.len() == numbers.len() => {
                            least.iter().zip(&numbers).map(|(one, other)| *one.min(other)).collect()
                        }
                        Some(_) => return None,
                    });
                }
                let least = least?;
                number(b'*', least.len() as i64, out);
                least.iter().for_each(|one| number(b':', *one, out));
            }
            Rule::All(Merge::AnyValue) => {
                let is_null = |reply: &[u8]| matches!(Value::read(reply), Some((Value::Null, _)));
                let found = self.replies().find(|reply| !is_null(reply));
                out.extend_from_slice(found.or_else(|| self.replies().next())?);
            }
            Rule::All(Merge::InOrder(_)) => return None, // needs the keys: see `Rule::InOrder`
            Rule::InOrder { keys, width } => self.in_order(keys, *width, out)?,
            Rule::Scan { cursor, nodes } => self.scan(*cursor, *nodes, out)?,
            Rule::Confirmation(text) => out.extend_from_slice(text),
        }
        Some(())
    }

    fn in_order(&self, keys: &[Vec<u32>], width: usize, out: &mut Vec<u8>) -> Option<()> {
        let count: usize = keys.iter().map(Vec::len).sum();
        let mut places: Vec<&[u8]> = vec![&[]; count];
        for (reply, keys) in self.replies().zip(keys) {
            let (_, count, bytes) = elements(Value::read(reply)?.0)?;
            if count != keys.len() * width {
                return None;
            }
            let ranges = ranges(bytes, count)?;
            for (key, ranges) in keys.iter().zip(ranges.chunks(width)) {
                places[*key as usize] = &bytes[ranges.first()?.start..ranges.last()?.end];
            }
        }
        number(b'*', (count * width) as i64, out);
        places.iter().for_each(|element| out.extend_from_slice(element));
        Some(())
    }

    /// The node's own cursor in its reply to SCAN.
    fn next_of_node(&self) -> Option<u64> {
        let (_, 2, bytes) = elements(Value::read(self.replies().next()?)?.0)? else { return None };
        let (Value::Bulk(next), _) = Value::read(bytes)? else { return None };
        std::str::from_utf8(next).ok()?.parse().ok()
    }

    fn scan(&self, cursor: Cursor, nodes: usize, out: &mut Vec<u8>) -> Option<()> {
        let reply = self.replies().next()?;
        let (_, 2, bytes) = elements(Value::read(reply)?.0)? else { return None };
        let (Value::Bulk(next), at) = Value::read(bytes)? else { return None };
        let next = std::str::from_utf8(next).ok()?.parse().ok()?;
        let next = cursor.after(next, nodes)?.to_string();
        out.extend_from_slice(b"*2\r\n");
        number(b'$', next.len() as i64, out);
        out.extend_from_slice(next.as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&bytes[at..]);
        Some(())
    }
}

/// The elements of an array or a set: its kind, their number, and their bytes. `None` for others.
fn elements(value: Value<'_>) -> Option<(u8, usize, &[u8])> {
    match value {
        Value::Elements(kind @ (b'*' | b'~'), count, bytes) => Some((kind, count, bytes)),
        _ => None,
    }
}

/// The byte ranges of `count` consecutive elements.
fn ranges(bytes: &[u8], count: usize) -> Option<Vec<Range<usize>>> {
    let (mut replies, mut at) = (Replies::default(), 0);
    let mut ranges = Vec::with_capacity(count);
    for _ in 0..count {
        let found = replies.next(&bytes[at..]).ok()?;
        if !found.whole {
            return None;
        }
        ranges.push(at..at + found.bytes);
        at += found.bytes;
    }
    (at == bytes.len()).then_some(ranges)
}

fn number(kind: u8, number: i64, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_keyspace::map::{Map, Slots};

    fn nodes() -> Arc<Nodes> {
        Arc::new(Nodes::new((0..4).map(|i| (format!("n{i}"), ([127, 0, 0, 1], 1 + i).into()))))
    }

    fn all(rule: Rule, writes: bool, replies: &[&str]) -> String {
        let mut merging = Merging::new(rule, 0..replies.len(), writes, nodes());
        for (part, reply) in replies.iter().enumerate().rev() {
            assert!(!merging.is_done());
            match reply.strip_prefix("lost ") {
                Some(why) => merging.lost(part, why.as_bytes()),
                None => merging.reply(part, reply.as_bytes()),
            }
        }
        assert!(merging.is_done());
        let mut out = Vec::new();
        merging.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn merged(merge: Merge, replies: &[&str]) -> String {
        all(Rule::All(merge), false, replies)
    }

    const MISFIT: &str = "-ERR the nodes returned replies that cannot be merged\r\n";

    #[test]
    fn merges_by_each_rule() {
        for (merge, replies, expected) in [
            (Merge::Sum, &[":1\r\n", ":0\r\n", ":41\r\n"][..], ":42\r\n"),
            (Merge::Sum, &[":1\r\n", "+OK\r\n"], MISFIT),
            (Merge::Sum, &[":9223372036854775807\r\n", ":1\r\n"], MISFIT),
            (Merge::Ok, &["+OK\r\n", "+OK\r\n"], "+OK\r\n"),
            (Merge::Ok, &["+OK\r\n", ":1\r\n"], MISFIT),
            (Merge::Same, &["$1\r\na\r\n", "$1\r\na\r\n"], "$1\r\na\r\n"),
            (
                Merge::Same,
                &["$1\r\na\r\n", "$1\r\nb\r\n"],
                "-ERR the nodes give different answers\r\n",
            ),
            (
                Merge::Concatenation,
                &["*1\r\n$1\r\na\r\n", "*0\r\n", "*2\r\n$1\r\nb\r\n*1\r\n:1\r\n"],
                "*3\r\n$1\r\na\r\n$1\r\nb\r\n*1\r\n:1\r\n",
            ),
            (Merge::Concatenation, &["*0\r\n", ":1\r\n"], MISFIT),
            (
                Merge::Union,
                &["*2\r\n$1\r\na\r\n$1\r\nb\r\n", "*2\r\n$1\r\nb\r\n$1\r\nc\r\n"],
                "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
            ),
            (Merge::Least, &["*2\r\n:1\r\n:1\r\n", "*2\r\n:0\r\n:1\r\n"], "*2\r\n:0\r\n:1\r\n"),
            (Merge::Least, &["*2\r\n:1\r\n:1\r\n", "*1\r\n:0\r\n"], MISFIT),
            (Merge::AnyValue, &["$-1\r\n", "$1\r\na\r\n"], "$1\r\na\r\n"),
            (Merge::AnyValue, &["_\r\n", "_\r\n"], "_\r\n"),
        ] {
            assert_eq!(merged(merge, replies), expected, "{merge:?} {replies:?}");
        }
    }

    #[test]
    fn elements_are_returned_in_the_order_of_the_keys() {
        let rule = || Rule::InOrder { keys: vec![vec![0, 3], vec![1], vec![2]], width: 1 };
        let replies = ["*2\r\n$1\r\na\r\n$1\r\nd\r\n", "*1\r\n$-1\r\n", "*1\r\n$2\r\n\r\n\r\n"];
        let expected = "*4\r\n$1\r\na\r\n$-1\r\n$2\r\n\r\n\r\n$1\r\nd\r\n";
        assert_eq!(all(rule(), false, &replies), expected);
        let too_few = ["*1\r\n$1\r\na\r\n", "*1\r\n$-1\r\n", "*1\r\n$-1\r\n"];
        assert_eq!(all(rule(), false, &too_few), MISFIT);
        let pairs = Rule::InOrder { keys: vec![vec![1], vec![0]], width: 2 };
        let replies = ["*2\r\n$1\r\na\r\n:1\r\n", "*2\r\n$1\r\nb\r\n:2\r\n"];
        assert_eq!(all(pairs, false, &replies), "*4\r\n$1\r\nb\r\n:2\r\n$1\r\na\r\n:1\r\n");
    }

    #[test]
    fn the_rule_of_a_split_request_has_the_keys_of_each_part() {
        let (map, mut plan) = (Map::new(0, Slots::even(4).unwrap()), Plan::default());
        let decision =
            regatta_keyspace::route::decide(&["mget", "a", "b", "c", "a"][..], &map, &mut plan);
        let regatta_keyspace::route::Route::Split(merge) = decision.route else {
            panic!("{decision:?}")
        };
        let Rule::InOrder { keys, width: 1 } = Rule::split(merge, &plan) else { panic!() };
        let mut all = keys.concat();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
        assert!(keys.iter().any(|keys| keys.contains(&0) && keys.contains(&3)));
    }

    #[test]
    fn the_cursor_of_a_scan_contains_the_node() {
        let map = Map::new(1, Slots::even(4).unwrap());
        let cursor = Cursor::parse((1_u64 << 48).to_string().as_bytes(), &map).unwrap();
        let rule = Rule::Scan { cursor, nodes: 4 };
        let next = (1_u64 << 48 | 7).to_string();
        assert_eq!(
            all(rule, false, &["*2\r\n$1\r\n7\r\n*1\r\n$1\r\na\r\n"]),
            format!("*2\r\n${}\r\n{next}\r\n*1\r\n$1\r\na\r\n", next.len())
        );
    }

    #[test]
    fn a_partly_failed_write_reports_how_many_nodes_applied_it() {
        assert_eq!(
            all(Rule::All(Merge::Ok), true, &["+OK\r\n", "-OOM no memory\r\n", "+OK\r\n"]),
            "-OOM applied on 2 of 3 nodes; node n1: no memory\r\n"
        );
        assert_eq!(
            all(Rule::All(Merge::Sum), true, &[":1\r\n", "lost SHARDDOWN it is gone"]),
            "-SHARDDOWN applied on 1 of 2 nodes; node n1: it is gone\r\n"
        );
    }

    #[test]
    fn a_read_fails_if_one_node_fails() {
        let rule = Rule::InOrder { keys: vec![vec![0], vec![1]], width: 1 };
        assert_eq!(
            all(rule, false, &["*1\r\n$-1\r\n", "lost SHARDDOWN it is gone"]),
            "-SHARDDOWN node n1: it is gone\r\n"
        );
    }

    #[test]
    fn an_error_that_all_nodes_return_is_passed_on_unchanged() {
        let error = "-ERR syntax error\r\n";
        assert_eq!(all(Rule::All(Merge::Ok), true, &[error, error]), error);
        assert_eq!(
            all(Rule::All(Merge::Ok), true, &[error, "-ERR other\r\n"]),
            "-ERR applied on 0 of 2 nodes; node n0: syntax error\r\n"
        );
    }
}
