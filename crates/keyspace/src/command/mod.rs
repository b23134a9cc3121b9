//! The commands of Redis: what a live redis-server says of them, and where their keys are.
//!
//! The table is generated: `cargo run -p regatta-keyspace --example command_table` prints it from what the
//! redis-server on the machine says, and `tests/commands` checks that the server still says the same.

mod entry;
mod find;
pub mod flag;
mod keys;
pub(crate) mod options;
mod spec;
mod table;

pub use entry::Command;
pub use keys::{Keys, KeysError};
pub use spec::{Begin, Find, KeySpec};
pub use table::VERSION;
