//! Options that must be read in order, because the value of an option may look like another option.

use crate::arguments::Arguments;
use std::ops::Range;

/// The options of SORT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sort {
    /// The position after the last STORE.
    pub(crate) destination: Option<usize>,
    /// Whether a pattern of BY or GET contains `*`: then the command reads keys that it does not
    /// name.
    pub(crate) has_patterns: bool,
}

/// Parses the options of SORT or SORT_RO.
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

/// Returns the position after the last STORE or STOREDIST of GEORADIUS or GEORADIUSBYMEMBER.
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

/// The options of XREAD or XREADGROUP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Streams {
    /// The positions of the keys: the first half of the arguments after STREAMS, because each key
    /// has one identifier after them. Empty if STREAMS is missing, or if the number of arguments
    /// after it is odd.
    pub(crate) keys: Range<usize>,
    /// Whether BLOCK is present.
    pub(crate) blocks: bool,
}

/// Parses the options of XREAD or XREADGROUP.
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
    fn reads_the_options_of_sort() {
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
    fn reads_the_options_of_streams() {
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
