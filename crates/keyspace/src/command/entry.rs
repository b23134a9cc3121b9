//! A command of Redis.

use super::{flag::Flags, spec::KeySpec};

/// A command or a subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its name in lower case; of a subcommand the whole name, e.g. `client|id`.
    pub name: &'static str,
    /// How many arguments it takes, its name (and the subcommand's) included. If negative, at least so
    /// many.
    pub arity: i16,
    /// See [`flag`](super::flag).
    pub flags: Flags,
    /// The version of Redis that introduced it.
    pub since: &'static str,
    /// The group in Redis' documentation, e.g. `string`.
    pub group: &'static str,
    /// Where its keys are.
    pub specs: &'static [KeySpec],
    /// Whether it has subcommands.
    pub is_container: bool,
    /// Its place in the table.
    pub(super) number: u16,
}

impl Command {
    /// Whether it has this flag (see [`flag`](super::flag)).
    #[inline]
    pub const fn has(&self, flag: Flags) -> bool {
        self.flags & flag != 0
    }

    /// Whether it takes so many arguments, its name included.
    #[inline]
    pub const fn takes(&self, arguments: usize) -> bool {
        let arity = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { arguments >= arity } else { arguments == arity }
    }

    /// Its place in [`Command::all`].
    #[inline]
    pub const fn number(&self) -> usize {
        self.number as usize
    }

    /// Whether it is a subcommand.
    #[inline]
    pub fn is_subcommand(&self) -> bool {
        self.name.contains('|')
    }
}

/// A command of the table.
pub(super) const fn command(
    name: &'static str,
    arity: i16,
    flags: Flags,
    since: &'static str,
    group: &'static str,
    specs: &'static [KeySpec],
) -> Command {
    Command { name, arity, flags, since, group, specs, is_container: false, number: 0 }
}

/// A command of the table that has subcommands.
pub(super) const fn container(
    name: &'static str,
    arity: i16,
    flags: Flags,
    since: &'static str,
    group: &'static str,
    specs: &'static [KeySpec],
) -> Command {
    Command { is_container: true, ..command(name, arity, flags, since, group, specs) }
}
