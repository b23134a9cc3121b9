//! `percore`: a thread per core, each with callbacks, its own epoll(7) and its own listener
//! (SO_REUSEPORT).

use crate::{
    host::{Host, ServeError},
    models::reactor,
};
use regatta_engine::Engine;
use regatta_sys::epoll::Epoll;

pub(crate) fn run<E: Engine>(engine: impl Fn() -> E + Sync, host: &Host) -> Result<(), ServeError> {
    host.on_each_core(E::POSTS, |seat| reactor::run(engine(), host, seat, Epoll::edge_triggered()?))
}
