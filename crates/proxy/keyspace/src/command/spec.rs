//! The positions of a command's keys, in the terms of Redis ("Command key specifications").

use super::flag::KeyFlags;

/// Some of the keys of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// How the command uses them (see [`flag`](super::flag)).
    pub flags: KeyFlags,
    /// Where the search starts.
    pub begin: Begin,
    /// Which arguments are keys from there on.
    pub find: Find,
}

/// Where the search for keys starts. The command's name has position 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At this argument.
    Index(u16),
    /// After this word, ignoring case.
    Keyword {
        /// The word.
        word: &'static str,
        /// The first argument to compare with it. Negative: the search starts this many arguments
        /// before the end and goes backwards.
        from: i16,
    },
    /// Not specified by Redis.
    Unknown,
}

/// Which arguments are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// Every `step`-th argument up to the last key.
    Range {
        /// The last key, relative to the first. Negative: relative to the end, where −1 is the last
        /// argument.
        last: i16,
        /// The distance from one key to the next.
        step: u16,
        /// With `last` −1 and a limit above 1, the keys are this fraction of the arguments: one
        /// half for 2.
        limit: u16,
    },
    /// An argument contains the number of keys.
    Number {
        /// The position of that argument, relative to the start of the search.
        at: u16,
        /// The position of the first key, relative to the start of the search.
        first: u16,
        /// The distance from one key to the next.
        step: u16,
    },
    /// Not specified by Redis.
    Unknown,
}

pub(super) const fn spec(flags: KeyFlags, begin: Begin, find: Find) -> KeySpec {
    KeySpec { flags, begin, find }
}

pub(super) const fn index(position: u16) -> Begin {
    Begin::Index(position)
}

pub(super) const fn keyword(word: &'static str, from: i16) -> Begin {
    Begin::Keyword { word, from }
}

pub(super) const fn range(last: i16, step: u16, limit: u16) -> Find {
    Find::Range { last, step, limit }
}

pub(super) const fn number(at: u16, first: u16, step: u16) -> Find {
    Find::Number { at, first, step }
}
