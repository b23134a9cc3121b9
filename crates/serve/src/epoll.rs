//! `epoll`: one thread, callbacks, epoll(7) level-triggered.

use crate::{
    host::{Host, ServeError},
    reactor,
};
use regatta_service::Program;
use regatta_sys::epoll::Epoll;

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    reactor::run_alone(program, host, Epoll::new()?)
}
