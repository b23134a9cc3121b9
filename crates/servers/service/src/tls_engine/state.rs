//! The engine with TLS.

use super::{
    config::{Tls, Upstreams},
    table::Table,
};
use regatta_engine::{Core, Effects, Engine, Limits, Now};
use std::sync::Arc;

/// An engine whose connections use TLS. It is an engine itself. The engine inside has neither jobs
/// nor letters ([`Never`](crate::Never)).
pub struct TlsEngine<E: Engine> {
    pub(super) core: Core<E>,
    pub(super) tls: Arc<Tls>,
    pub(super) conns: Table,
    /// Reused for the plaintext of input.
    pub(super) plain: Vec<u8>,
}

/// What it does to its connections.
pub(super) type Fx<E> = Effects<TlsEngine<E>>;

impl<E: Upstreams> TlsEngine<E> {
    /// Wraps an engine without connections.
    pub fn new(engine: E, tls: Arc<Tls>, now: Now) -> Self {
        // The limits are those of the outer connections: these are never settled, so they have no
        // timers.
        let core = Core::new(engine, Limits::default(), now);
        TlsEngine { core, tls, conns: Table::default(), plain: Vec::new() }
    }

    /// The engine inside.
    pub fn engine(&self) -> &E {
        self.core.engine()
    }
}
