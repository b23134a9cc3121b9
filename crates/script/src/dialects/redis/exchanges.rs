//! The exchanges of a run, and what is needed to write their requests and to check their replies.

use super::{commands::Framed, names::Names};
use crate::script::Script;

/// What one exchange asks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ask {
    /// A command with keys of the load's own.
    Keys {
        /// Which of [`Exchanges::commands`].
        command: u32,
        /// The first of its keys in [`Exchanges::keys`].
        first: u32,
    },
    /// A command as it stands in the workload file: the script has its bytes.
    Bytes(Due),
}

/// What the reply to a command of a workload file is to be like. What it is compared with lies in the
/// script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// These bytes.
    Exact,
    /// An error that begins with these bytes.
    Error,
    /// Anything but an error.
    Any,
}

/// The exchanges of a run.
#[derive(Debug)]
pub(super) struct Exchanges {
    /// The requests of a client with the number 0, as its first ones: those of others differ in digits.
    pub script: Script,
    pub asks: Vec<Ask>,
    pub commands: Vec<Framed>,
    /// The keys of all commands, one after the other.
    pub keys: Vec<u16>,
    pub names: Names,
    /// Keys of each client.
    pub keys_each: usize,
}

impl Exchanges {
    /// What an exchange asks; the script repeats.
    #[inline]
    pub fn ask(&self, exchange: u32) -> Ask {
        self.asks[exchange as usize % self.asks.len()]
    }

    /// A command with keys, and the keys.
    #[inline]
    pub fn command(&self, command: u32, first: u32) -> (&Framed, &[u16]) {
        let framed = &self.commands[command as usize];
        (framed, &self.keys[first as usize..][..framed.keys])
    }
}
