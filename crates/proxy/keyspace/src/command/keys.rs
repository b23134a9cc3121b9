//! The positions of the keys in a request.
//!
//! They follow the specifications of the table, except for commands whose options must be read in
//! order: SORT, SORT_RO, GEORADIUS, GEORADIUSBYMEMBER, XREAD and XREADGROUP. For these, the
//! specifications of Redis are incomplete, or wrong if a key or a group has the name of an option.
//! Here, their options are read as the commands themselves read them. `tests/it/commands` compares the
//! results with `COMMAND GETKEYS` of a live redis-server.

use super::{
    entry::Command,
    flag::{INCOMPLETE, MOVABLEKEYS, NOT_KEY},
    options,
    spec::{Begin, Find, KeySpec},
};
use crate::arguments::Arguments;
use std::ops::Range;
use thiserror::Error;

/// Maximum number of specifications per command.
pub(super) const MOST: usize = 4;

/// Why the keys of a request cannot be determined.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum KeysError {
    /// The arguments are malformed. Redis answers such a request with an error.
    #[error("the arguments do not have the form that the command requires")]
    Malformed,
    /// The command may have keys whose positions Redis does not specify.
    #[error("Redis does not specify the positions of all keys of this command")]
    Incomplete,
}

/// The positions of keys among the arguments of a request, in the order of the specifications.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    spans: [Span; MOST],
    used: usize,
    current: usize,
}

/// Equally spaced positions.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    next: usize,
    last: usize,
    step: usize,
}

impl Keys {
    fn push(&mut self, span: Span) {
        self.spans[self.used] = span;
        self.used += 1;
    }
}

impl Iterator for Keys {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.current < self.used {
            let span = &mut self.spans[self.current];
            if span.next <= span.last {
                let position = span.next;
                span.next += span.step;
                return Some(position);
            }
            self.current += 1;
        }
        None
    }
}

impl Command {
    /// Returns the positions of the keys in a request of this command. They are empty if the
    /// request has no keys (e.g. `EVAL s 0`), and for some malformed requests (e.g. XREAD without
    /// STREAMS). A repeated key is returned each time.
    ///
    /// # Errors
    /// See [`KeysError`].
    pub fn keys<A: Arguments + ?Sized>(&self, args: &A) -> Result<Keys, KeysError> {
        let (keys, error) = self.known_keys(args);
        error.map_or(Ok(keys), Err)
    }

    /// The position of the only key, if it is the same in every request that has this argument.
    #[inline]
    pub(crate) fn only_key(&self) -> Option<usize> {
        match self.specs {
            [KeySpec { flags, begin: Begin::Index(at), find: Find::Range { last: 0, .. } }]
                if flags & (NOT_KEY | INCOMPLETE) == 0 && !self.has(MOVABLEKEYS) =>
            {
                Some(usize::from(*at))
            }
            _ => None,
        }
    }

    /// Returns the positions of the keys that are known, and the error if there may be more.
    pub(crate) fn known_keys<A: Arguments + ?Sized>(&self, args: &A) -> (Keys, Option<KeysError>) {
        if self.has(MOVABLEKEYS)
            && let Some(keys) = by_options(self.name, args)
        {
            return (keys, None);
        }
        let (mut keys, mut error) = (Keys::default(), None);
        for spec in self.specs.iter().filter(|spec| spec.flags & NOT_KEY == 0) {
            match span(spec, args, self.takes(args.count())) {
                Ok(Some(span)) => keys.push(span),
                Ok(None) => {}
                Err(wrong) => error = error.or(Some(wrong)),
            }
        }
        (keys, error)
    }
}

/// Returns the keys of one specification; `None` if there are none. `is_complete`: the command accepts
/// this number of arguments.
fn span<A: Arguments + ?Sized>(
    spec: &KeySpec,
    args: &A,
    is_complete: bool,
) -> Result<Option<Span>, KeysError> {
    if spec.flags & INCOMPLETE != 0 {
        return Err(KeysError::Incomplete);
    }
    let begin = match spec.begin {
        Begin::Index(position) => usize::from(position),
        Begin::Keyword { word, from } => match position_after(word, from, args) {
            Some(position) => position,
            None => return Ok(None),
        },
        Begin::Unknown => return Err(KeysError::Incomplete),
    };
    let (begin, count) = (begin as i64, args.count() as i64);
    let (first, last, step) = match spec.find {
        // A list of keys up to the end may be empty, e.g. the sources of PFMERGE.
        Find::Range { last: -1, limit: 0, .. } if begin == count && is_complete => return Ok(None),
        Find::Range { last, step, limit } => {
            let last = match (i64::from(last), i64::from(limit)) {
                (last @ 0.., _) => begin + last,
                (last, 0) => count + last,
                (last, limit) => begin + (count - begin) / limit + last,
            };
            (begin, last, step)
        }
        Find::Number { at, first, step } => {
            let at = (begin + i64::from(at)) as usize;
            let number = args.get(at).and_then(integer).ok_or(KeysError::Malformed)?;
            if number == 0 {
                return Ok(None);
            }
            let first = begin + i64::from(first);
            let last = number
                .saturating_sub(1)
                .saturating_mul(i64::from(step.max(1)))
                .saturating_add(first);
            (first, last, step)
        }
        Find::Unknown => return Err(KeysError::Incomplete),
    };
    if first >= count || last < first || last >= count {
        return Err(KeysError::Malformed);
    }
    Ok(Some(Span { next: first as usize, last: last as usize, step: usize::from(step.max(1)) }))
}

/// Returns the position after a word. As in Redis, a forward search does not compare the last
/// argument, because no key could follow it, and a backward search does not compare the first
/// argument after the name.
fn position_after<A: Arguments + ?Sized>(word: &str, from: i16, args: &A) -> Option<usize> {
    let found = match usize::try_from(from) {
        Ok(from) => (from..args.count().saturating_sub(1)).find(|at| args.is(*at, word)),
        Err(_) => {
            let start = args.count().checked_sub(usize::from(from.unsigned_abs()))?;
            (2..=start).rev().find(|at| args.is(*at, word))
        }
    };
    Some(found? + 1)
}

/// Parses a number like Redis: without a plus sign or leading zeros.
fn integer(text: &[u8]) -> Option<i64> {
    match text {
        b"0" => Some(0),
        [b'1'..=b'9', ..] | [b'-', b'1'..=b'9', ..] => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// Returns the keys of commands whose options must be read in order; `None` for other commands.
fn by_options<A: Arguments + ?Sized>(name: &str, args: &A) -> Option<Keys> {
    let mut keys = Keys::default();
    let destination = match name {
        "sort_ro" => None,
        "sort" => options::sort(args).destination,
        "georadius" | "georadiusbymember" => options::destination_of_georadius(args),
        "xread" | "xreadgroup" => {
            let Range { start, end } = options::streams(args).keys;
            if start < end {
                keys.push(Span { next: start, last: end - 1, step: 1 });
            }
            return Some(keys);
        }
        _ => return None,
    };
    for position in [Some(1), destination].into_iter().flatten() {
        if position < args.count() {
            keys.push(Span { next: position, last: position, step: 1 });
        }
    }
    Some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::flag::RW;
    use proptest::prelude::*;

    fn keys(line: &str) -> Result<Vec<usize>, KeysError> {
        let args: Vec<&str> = line.split_whitespace().collect();
        let command = Command::find(args[0].as_bytes()).expect("a command");
        let second = args.get(1).map_or(&b""[..], |arg| arg.as_bytes());
        let command = command.subcommand(second).unwrap_or(command);
        Ok(command.keys(&args[..])?.collect())
    }

    #[test]
    fn finds_keys_at_fixed_positions() {
        assert_eq!(keys("get a"), Ok(vec![1]));
        assert_eq!(keys("mget a b c"), Ok(vec![1, 2, 3]));
        assert_eq!(keys("mset a 1 b 2"), Ok(vec![1, 3]));
        assert_eq!(keys("blpop a b 0"), Ok(vec![1, 2]));
        assert_eq!(keys("bitop and d a b"), Ok(vec![2, 3, 4]));
        assert_eq!(keys("rename a b"), Ok(vec![1, 2]));
        assert_eq!(keys("object encoding a"), Ok(vec![2]));
        assert_eq!(keys("xinfo stream a full"), Ok(vec![2]));
        assert_eq!(keys("ping"), Ok(vec![]));
    }

    #[test]
    fn a_list_of_keys_at_the_end_may_be_empty_if_the_command_allows_it() {
        assert_eq!(keys("pfmerge d"), Ok(vec![1]));
        assert_eq!(keys("pfmerge d a b"), Ok(vec![1, 2, 3]));
        for too_short in ["del", "bitop and d", "sunionstore d", "pfmerge"] {
            assert_eq!(keys(too_short), Err(KeysError::Malformed), "{too_short}");
        }
    }

    #[test]
    fn finds_counted_keys() {
        assert_eq!(keys("eval s 2 a b c"), Ok(vec![3, 4]));
        assert_eq!(keys("eval s 0 a"), Ok(vec![]));
        assert_eq!(keys("zunionstore d 2 a b weights 1 2"), Ok(vec![1, 3, 4]));
        assert_eq!(keys("zunion 1 a"), Ok(vec![2]));
        assert_eq!(keys("blmpop 0 2 a b left"), Ok(vec![3, 4]));
        for wrong in ["-1", "3", "x", "01", "+1", "99999999999999999999", "9223372036854775807"] {
            let request = format!("zunion {wrong} a b");
            assert_eq!(keys(&request), Err(KeysError::Malformed), "{request}");
        }
    }

    /// As those of MSETEX, which the table lacks.
    #[test]
    fn counted_keys_may_have_a_value_each() {
        const SPECS: &[KeySpec] = &[crate::command::spec::spec(
            RW,
            Begin::Index(1),
            Find::Number { at: 0, first: 1, step: 2 },
        )];
        let command = Command { specs: SPECS, arity: -4, ..*Command::find(b"get").unwrap() };
        let keys = |line: &str| {
            let args: Vec<&str> = line.split_whitespace().collect();
            Ok(command.keys(&args[..])?.collect::<Vec<_>>())
        };
        assert_eq!(keys("msetex 1 a 1 b 2"), Ok(vec![2]));
        assert_eq!(keys("msetex 2 a 1 b 2 ex 9"), Ok(vec![2, 4]));
        for wrong in ["3", "-1", "-9223372036854775808", "9223372036854775807"] {
            assert_eq!(
                keys(&format!("msetex {wrong} a 1 b 2")),
                Err(KeysError::Malformed),
                "{wrong}"
            );
        }
    }

    #[test]
    fn keys_of_streams_are_the_first_half() {
        assert_eq!(keys("xread count 5 streams a b 0 0"), Ok(vec![4, 5]));
        assert_eq!(keys("xread STREAMS a 0"), Ok(vec![2]));
        assert_eq!(keys("xreadgroup group streams c streams a >"), Ok(vec![5]));
        assert_eq!(keys("xreadgroup count 1 group streams c streams a >"), Ok(vec![7]));
        assert_eq!(keys("xread count 5 a 0"), Ok(vec![]));
        assert_eq!(keys("xread block 5 streams a"), Ok(vec![]));
        assert_eq!(keys("xread block 5 streams a b 0"), Ok(vec![]));
        assert_eq!(keys("xread count streams"), Ok(vec![]));
    }

    #[test]
    fn finds_destinations_of_sort() {
        assert_eq!(keys("sort a"), Ok(vec![1]));
        assert_eq!(keys("sort a by w_* limit 0 1 get # store d"), Ok(vec![1, 10]));
        assert_eq!(keys("sort a by store store d"), Ok(vec![1, 5]));
        assert_eq!(keys("sort a store d store e"), Ok(vec![1, 5]));
        assert_eq!(keys("sort a store get store e"), Ok(vec![1, 5]));
        assert_eq!(keys("sort a store"), Ok(vec![1]));
        assert_eq!(keys("sort_ro a by store"), Ok(vec![1]));
    }

    #[test]
    fn finds_destinations_of_georadius() {
        assert_eq!(keys("georadius a 1 2 3 m"), Ok(vec![1]));
        assert_eq!(keys("georadius a 1 2 3 m store d"), Ok(vec![1, 7]));
        assert_eq!(keys("georadius a 1 2 3 m storedist store"), Ok(vec![1, 7]));
        assert_eq!(keys("georadius a 1 2 3 m store d store e"), Ok(vec![1, 9]));
        assert_eq!(keys("georadiusbymember a x 3 m storedist d"), Ok(vec![1, 6]));
    }

    #[test]
    fn unspecified_keys_are_an_error() {
        assert_eq!(keys("migrate h 1 a 0 5 keys a b"), Err(KeysError::Incomplete));
        // All other commands with incomplete specifications are read here.
        for command in Command::all() {
            let arguments = ["x"; 12];
            let incomplete = command.keys(&arguments[..]).err() == Some(KeysError::Incomplete);
            assert_eq!(incomplete, command.name == "migrate", "{}", command.name);
        }
    }

    #[test]
    fn a_search_can_go_backwards() {
        const SPECS: &[KeySpec] = &[KeySpec {
            flags: RW,
            begin: Begin::Keyword { word: "KEYS", from: -2 },
            find: Find::Range { last: -1, step: 1, limit: 0 },
        }];
        let command = Command { specs: SPECS, ..*Command::find(b"migrate").unwrap() };
        let keys = |args: &[&str]| command.keys(args).map(Iterator::collect::<Vec<_>>);
        assert_eq!(keys(&["m", "keys", "a", "keys", "b", "c"]), Ok(vec![4, 5]));
        assert_eq!(keys(&["m", "keys", "b", "c"]), Ok(vec![]));
        assert_eq!(keys(&["m"]), Ok(vec![]));
    }

    #[test]
    fn no_command_has_too_many_specifications() {
        assert!(Command::all().iter().all(|command| command.specs.len() <= MOST));
    }

    #[test]
    fn the_only_key_is_where_the_search_finds_it() {
        let mut some = 0;
        for command in Command::all() {
            let Some(only) = command.only_key() else { continue };
            some += 1;
            for count in 1..9 {
                let arguments = ["x"; 9];
                let found = command.keys(&arguments[..count]).map(Iterator::collect::<Vec<_>>);
                let expected =
                    if only < count { Ok(vec![only]) } else { Err(KeysError::Malformed) };
                assert_eq!(found, expected, "{} with {count} arguments", command.name);
            }
        }
        assert!(some > 100, "{some}");
        for other in ["mget", "rename", "eval", "sort", "ping", "migrate"] {
            assert_eq!(Command::find(other.as_bytes()).unwrap().only_key(), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn keys_are_among_the_arguments(
            number in 0..Command::all().len(),
            args in proptest::collection::vec(
                prop_oneof![
                    prop::sample::select(&["1", "2", "0", "-1", "streams", "store", "by", "get"][..])
                        .prop_map(|word| word.as_bytes().to_vec()),
                    proptest::collection::vec(any::<u8>(), 0..9),
                ],
                0..12,
            ),
        ) {
            if let Ok(keys) = Command::all()[number].keys(&args[..]) {
                let keys: Vec<usize> = keys.collect();
                prop_assert!(keys.iter().all(|key| (1..args.len()).contains(key)), "{keys:?}");
            }
        }
    }
}
