//! Flags of commands and of their keys, with the names that Redis uses.
//!
//! Source: the documentation of COMMAND ("Flags") and "Command key specifications".

/// Type of a set of flags of a command.
pub type Flags = u32;

/// May change data.
pub const WRITE: Flags = 1;
/// Reads data and does not change it.
pub const READONLY: Flags = 1 << 1;
/// Refused when the server is out of memory.
pub const DENYOOM: Flags = 1 << 2;
/// Administers the server.
pub const ADMIN: Flags = 1 << 3;
/// Belongs to publish/subscribe.
pub const PUBSUB: Flags = 1 << 4;
/// Not allowed in scripts.
pub const NOSCRIPT: Flags = 1 << 5;
/// May block the connection.
pub const BLOCKING: Flags = 1 << 6;
/// Allowed while the server loads its data.
pub const LOADING: Flags = 1 << 7;
/// Allowed on a replica whose data is stale.
pub const STALE: Flags = 1 << 8;
/// Not shown by MONITOR.
pub const SKIP_MONITOR: Flags = 1 << 9;
/// Not written to the slow log.
pub const SKIP_SLOWLOG: Flags = 1 << 10;
/// Allowed for a slot that is being imported, as after ASKING.
pub const ASKING: Flags = 1 << 11;
/// Takes constant or logarithmic time.
pub const FAST: Flags = 1 << 12;
/// Allowed before authentication.
pub const NO_AUTH: Flags = 1 << 13;
/// May be sent without keys.
pub const NO_MANDATORY_KEYS: Flags = 1 << 14;
/// Not allowed while the server loads its data in the background.
pub const NO_ASYNC_LOADING: Flags = 1 << 15;
/// Not allowed in a transaction.
pub const NO_MULTI: Flags = 1 << 16;
/// The positions of keys depend on the arguments.
pub const MOVABLEKEYS: Flags = 1 << 17;
/// Allowed while a script runs for too long.
pub const ALLOW_BUSY: Flags = 1 << 18;
/// Belongs to a module. No command of the table has it.
pub const MODULE: Flags = 1 << 19;

/// Type of a set of flags of a key.
pub type KeyFlags = u16;

/// The value is read only.
pub const RO: KeyFlags = 1;
/// The value is read and written.
pub const RW: KeyFlags = 1 << 1;
/// The value is overwritten.
pub const OW: KeyFlags = 1 << 2;
/// The key is removed.
pub const RM: KeyFlags = 1 << 3;
/// The value is returned, copied or used.
pub const ACCESS: KeyFlags = 1 << 4;
/// The value is changed.
pub const UPDATE: KeyFlags = 1 << 5;
/// Something is added to the value.
pub const INSERT: KeyFlags = 1 << 6;
/// Something is removed from the value.
pub const DELETE: KeyFlags = 1 << 7;
/// Not a key, although a cluster routes by it: a channel.
pub const NOT_KEY: KeyFlags = 1 << 8;
/// The specification does not find all keys.
pub const INCOMPLETE: KeyFlags = 1 << 9;
/// The other flags depend on the arguments.
pub const VARIABLE_FLAGS: KeyFlags = 1 << 10;
