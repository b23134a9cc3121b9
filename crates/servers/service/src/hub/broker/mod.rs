//! The broker of a hub: a Redis or Valkey server that joins several hubs, so that their members are in the same rooms.
//!
//! A message is published there, and delivered to all members of its room on all hubs when it comes back, also to its
//! sender. So the order of a room is that of one channel of the broker, and it is the same on all hubs. `link` is the
//! connection, `tls` what may be around it, `attempt` which addresses are tried for it, `moves` what
//! follows from another server, `sent` what was published and has not come back, `newest` the
//! newest message of each hub, `queue` what waits
//! until that is less, and `window` how much it may be; `history` keeps histories there; `presence` is what
//! hubs know of the members of one another; `settings` and `health` are shared with the rest of the hub.

mod attempt;
mod envelope;
mod greeting;
mod health;
mod history;
mod input;
mod link;
mod moves;
mod newest;
mod partition;
mod presence;
mod queue;
mod sent;
mod settings;
mod texts;
mod tls;
mod window;

pub use health::Health;
pub(super) use health::{LEAVES, Settling};
pub use settings::{Broker, BrokerTls, Password, Place};
pub(super) use texts::{failure, write_not_published, write_published};
pub use tls::BrokerLink;
