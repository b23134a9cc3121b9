//! `percore`: a thread per core, each with callbacks over an epoll(7) and a listener of its own
//! (SO_REUSEPORT).

use crate::{
    host::{Host, ServeError},
    reactor,
};
use regatta_engine::{Engine, Sessions, Start};
use regatta_sys::epoll::Epoll;

pub(crate) fn run<F: Start + Clone + Sync>(start: F, host: &Host) -> Result<(), ServeError> {
    host.on_each_core(Sessions::<F>::POSTS, |seat| {
        reactor::run(Sessions::new(start.clone()), host, seat, Epoll::edge_triggered()?)
    })
}
