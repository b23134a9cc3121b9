//! `percore`: a thread per core, each with callbacks over an epoll(7) and a listener of its own
//! (SO_REUSEPORT).

use crate::{
    host::{Host, ServeError},
    reactor,
};
use regatta_service::Program;
use regatta_sys::epoll::Epoll;

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    host.on_each_core(|places, listener| {
        reactor::run(program.clone(), host, places, listener, Epoll::new()?)
    })
}
