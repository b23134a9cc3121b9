//! Where the keys of a command are, as Redis describes it ("Command key specifications").

use super::flag::KeyFlags;

/// Some of the keys of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// What happens to them (see [`flag`](super::flag)).
    pub flags: KeyFlags,
    /// Where to begin.
    pub begin: Begin,
    /// What is a key from there on.
    pub find: Find,
}

/// Where the search for keys begins. Positions count the command's name as 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At this argument.
    Index(u16),
    /// Behind this word, in upper or lower case.
    Keyword {
        /// The word.
        word: &'static str,
        /// The first argument that is compared with it. If negative, the search begins so many
        /// arguments before the end, and goes backwards.
        from: i16,
    },
    /// Redis does not say.
    Unknown,
}

/// What is a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// Every `step`-th argument up to a last one.
    Range {
        /// The last key: so many arguments behind the first. If negative, so many before the end: −1 is
        /// the last argument.
        last: i16,
        /// The distance from one key to the next.
        step: u16,
        /// With `last` −1 and a limit above 1, the keys are one part of this many of the arguments.
        limit: u16,
    },
    /// An argument has the number of keys.
    Number {
        /// That argument, counted from where the search begins.
        at: u16,
        /// The first key, counted from there, too.
        first: u16,
        /// The distance from one key to the next.
        step: u16,
    },
    /// Redis does not say.
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
