//! `poll`: one thread, callbacks, poll(2).

use crate::{
    host::{Host, ServeError},
    reactor,
};
use regatta_service::Program;
use regatta_sys::poll::Poll;

pub(crate) fn run<P: Program>(program: P, host: &Host) -> Result<(), ServeError> {
    reactor::run_alone(program, host, Poll::new())
}
