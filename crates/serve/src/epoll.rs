//! `epoll`: one thread, callbacks, epoll(7) edge-triggered.

use crate::{
    host::{Host, ServeError},
    reactor,
};
use regatta_engine::{Sessions, Start};
use regatta_sys::epoll::Epoll;

pub(crate) fn run<F: Start>(start: F, host: &Host) -> Result<(), ServeError> {
    reactor::run_alone(Sessions::new(start), host, Epoll::edge_triggered()?)
}
