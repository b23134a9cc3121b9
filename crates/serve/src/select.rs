//! `select`: one thread, callbacks, select(2). Connections that its set cannot hold wait.

use crate::{
    host::{Host, ServeError},
    reactor,
};
use regatta_engine::Engine;
use regatta_sys::select::{SET, Select};

/// Connections that it holds: its set, less what a process has open besides.
pub(crate) const CONNECTIONS: u32 = SET as u32 - 24;

pub(crate) fn run<E: Engine>(engine: E, host: &Host) -> Result<(), ServeError> {
    let connections = host.connections.min(CONNECTIONS as usize);
    let host = Host { connections, ..host.clone() };
    reactor::run_alone(engine, &host, Select::new())
}
