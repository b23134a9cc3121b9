//! The exchanges of a run, and what is needed to write their requests and check their replies.

use super::{commands::Framed, names::Names};
use crate::script::Script;

/// The request of one exchange.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ask {
    /// A command with generated keys.
    Keys {
        /// Index in [`Exchanges::commands`].
        command: u32,
        /// Index of its first key in [`Exchanges::keys`].
        first: u32,
    },
    /// A command written in the workload file; the script has its bytes.
    Bytes(Expectation),
}

/// What the reply to a command of a workload file must be. The bytes to compare with are in the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expectation {
    /// Exactly these bytes.
    Exact,
    /// An error that starts with these bytes.
    Error,
    /// Anything but an error.
    Any,
}

/// The exchanges of a run.
#[derive(Debug)]
pub(super) struct Exchanges {
    /// The requests of client number 0, as its first ones. Those of other clients differ only in
    /// digits.
    pub script: Script,
    pub asks: Vec<Ask>,
    pub commands: Vec<Framed>,
    /// The keys of all commands, concatenated.
    pub keys: Vec<u16>,
    pub names: Names,
    /// Number of keys of each client.
    pub keys_each: usize,
}

impl Exchanges {
    /// Returns the request of an exchange; the script repeats.
    #[inline]
    pub fn ask(&self, exchange: u32) -> Ask {
        self.asks[exchange as usize % self.asks.len()]
    }

    /// Returns a command and its keys.
    #[inline]
    pub fn command(&self, command: u32, first: u32) -> (&Framed, &[u16]) {
        let framed = &self.commands[command as usize];
        (framed, &self.keys[first as usize..][..framed.keys])
    }
}
