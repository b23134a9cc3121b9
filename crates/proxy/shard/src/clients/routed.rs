//! A command, and where it goes.

use regatta_keyspace::route::Decision;
use regatta_proto::resp::Command;

/// A command of a client with its routing decision.
#[derive(Clone, Copy)]
pub(crate) struct Routed<'a> {
    pub command: &'a Command<'a>,
    pub decision: &'a Decision,
}
