//! `epoll`: one thread, callbacks, epoll(7) edge-triggered.

use crate::{
    host::{Host, ServeError},
    models::reactor,
};
use regatta_engine::Engine;
use regatta_sys::epoll::Epoll;

pub(crate) fn run<E: Engine>(engine: E, host: &Host) -> Result<(), ServeError> {
    reactor::run_alone(engine, host, Epoll::edge_triggered()?)
}
