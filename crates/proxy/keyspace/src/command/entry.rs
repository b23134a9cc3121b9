//! A command of Redis.

use super::{flag::Flags, spec::KeySpec};

/// A command or a subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its name in lower case. A subcommand has its full name, e.g. `client|id`.
    pub name: &'static str,
    /// Its number of arguments, including its name and the subcommand's. Negative: the minimum
    /// number.
    pub arity: i16,
    /// See [`flag`](super::flag).
    pub flags: Flags,
    /// The version of Redis that introduced it.
    pub since: &'static str,
    /// The group in the Redis documentation, e.g. `string`.
    pub group: &'static str,
    /// Where its keys are.
    pub specs: &'static [KeySpec],
    /// Whether it has subcommands.
    pub is_container: bool,
    /// Its index in the table; larger if it is not there.
    pub(super) number: u16,
}

impl Command {
    /// Returns whether it has this flag (see [`flag`](super::flag)).
    #[inline]
    pub const fn has(&self, flag: Flags) -> bool {
        self.flags & flag != 0
    }

    /// Returns whether it accepts this number of arguments, including its name.
    #[inline]
    pub const fn takes(&self, arguments: usize) -> bool {
        let arity = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { arguments >= arity } else { arguments == arity }
    }

    /// Its index in [`Command::all`]. That of a command which a node described is beyond its end.
    #[inline]
    pub const fn number(&self) -> usize {
        self.number as usize
    }

    /// Returns whether it is a subcommand.
    #[inline]
    pub fn is_subcommand(&self) -> bool {
        self.name.contains('|')
    }
}

/// A command of the table.
#[expect(clippy::too_many_arguments, reason = "a row of the table")]
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

/// A command of the table with subcommands.
#[expect(clippy::too_many_arguments, reason = "a row of the table")]
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
