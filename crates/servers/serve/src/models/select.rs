//! `select`: one thread, callbacks, select(2). Connections beyond the size of its set wait in the
//! accept queue.

use crate::{
    host::{Host, ServeError},
    models::reactor,
};
use regatta_engine::Engine;
use regatta_sys::select::{SET, Select};

/// Maximum number of connections: the size of its set, minus a reserve for other descriptors of the
/// process.
pub(crate) const CONNECTIONS: u32 = SET as u32 - 24;

pub(crate) fn run<E: Engine>(engine: E, host: &Host) -> Result<(), ServeError> {
    let connections = host.connections.min(CONNECTIONS as usize);
    let host = Host { connections, ..host.clone() };
    reactor::run_alone(engine, &host, Select::new())
}
