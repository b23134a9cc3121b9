//! Options of commands that must be read in order, since the value of an option may have the name of
//! another one.

use crate::arguments::Arguments;
use std::ops::Range;

/// What the options of SORT say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sort {
    /// The position behind the last option STORE.
    pub(crate) destination: Option<usize>,
    /// Whether a pattern of BY or GET has a `*`: then the command reads keys that it does not name.
    pub(crate) has_patterns: bool,
}

/// Reads the options of SORT or SORT_RO.
pub(crate) fn sort<A: Arguments + ?Sized>(args: &A) -> Sort {
    let (mut sort, mut at) = (Sort::default(), 2);
    while at < args.count() {
        at += if args.is(at, "limit") {
            3
        } else if args.is(at, "store") {
            sort.destination = Some(at + 1);
            2
        } else if args.is(at, "by") || args.is(at, "get") {
            sort.has_patterns |= args.get(at + 1).is_some_and(|pattern| pattern.contains(&b'*'));
            2
        } else {
            1
        };
    }
    sort
}

/// The position behind the last option STORE or STOREDIST of GEORADIUS or GEORADIUSBYMEMBER.
pub(crate) fn destination_of_georadius<A: Arguments + ?Sized>(args: &A) -> Option<usize> {
    let (mut destination, mut at) = (None, 5);
    while at < args.count() {
        if args.is(at, "store") || args.is(at, "storedist") {
            destination = Some(at + 1);
            at += 1;
        }
        at += 1;
    }
    destination
}

/// What the options of XREAD or XREADGROUP say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Streams {
    /// The positions of the keys: the first half of what follows STREAMS, since as many identifiers
    /// follow the keys. Empty if the request is malformed.
    pub(crate) keys: Range<usize>,
    /// Whether the option BLOCK is set.
    pub(crate) blocks: bool,
}

/// Reads the options of XREAD or XREADGROUP.
pub(crate) fn streams<A: Arguments + ?Sized>(args: &A) -> Streams {
    let (mut blocks, mut at) = (false, 1);
    while at < args.count() && !args.is(at, "streams") {
        at += if args.is(at, "group") {
            3
        } else if args.is(at, "block") {
            blocks = true;
            2
        } else if args.is(at, "count") {
            2
        } else {
            1
        };
    }
    let behind = args.count().saturating_sub(at + 1);
    let keys = if behind.is_multiple_of(2) { behind / 2 } else { 0 };
    Streams { keys: at + 1..at + 1 + keys, blocks }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<&str> {
        line.split_whitespace().collect()
    }

    #[test]
    fn options_of_sort() {
        for (line, destination, has_patterns) in [
            ("sort a", None, false),
            ("sort a BY w_* limit 0 1 get # store d", Some(10), true),
            ("sort a by nosort get #", None, false),
            ("sort a get d_*->f", None, true),
            ("sort a limit 0 by store d", Some(6), false),
            ("sort a limit 0 1 get store d", None, false),
            ("sort a store * desc", Some(3), false),
            ("sort a by", None, false),
        ] {
            assert_eq!(sort(&words(line)[..]), Sort { destination, has_patterns }, "{line}");
        }
    }

    #[test]
    fn options_of_streams() {
        for (line, keys, blocks) in [
            ("xread streams a 0", 2..3, false),
            ("xread BLOCK 0 streams a b 0 0", 4..6, true),
            ("xread count 1 streams block 0", 4..5, false),
            ("xreadgroup group block c streams a >", 5..6, false),
            ("xreadgroup group g c block 5 noack streams a >", 8..9, true),
        ] {
            assert_eq!(streams(&words(line)[..]), Streams { keys, blocks }, "{line}");
        }
        for malformed in ["xread streams a b 0", "xread streams", "xread count streams a 0"] {
            assert!(streams(&words(malformed)[..]).keys.is_empty(), "{malformed}");
        }
    }
}
