//! `percore`: a thread per core, each with callbacks over an epoll(7) and a listener of its own
//! (SO_REUSEPORT).

use crate::{
    host::{Host, ServeError},
    offload::Pool,
    reactor,
};
use regatta_service::Program;
use regatta_sys::epoll::Epoll;

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    let pool = Pool::of(host)?;
    host.on_each_core(|places, listener| {
        reactor::run(program.clone(), host, places, listener, Epoll::new()?, pool.clone())
    })
}
