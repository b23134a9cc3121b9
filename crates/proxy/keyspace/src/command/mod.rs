//! The commands of Redis, as reported by a live redis-server, and the positions of their keys.
//!
//! The table is generated: `cargo run -p regatta-keyspace --example command_table` prints it from
//! the data of the installed redis-server. `tests/it/commands` checks that it still matches. A newer node describes
//! the commands that it lacks ([`Description`]).

mod description;
mod entry;
mod find;
pub mod flag;
mod keys;
pub(crate) mod options;
mod spec;
mod table;

pub use description::Description;
pub use entry::Command;
pub use keys::{Keys, KeysError};
pub use spec::{Begin, Find, KeySpec};
pub use table::VERSION;
