//! `poll`: one thread, callbacks, poll(2).

use crate::{
    host::{Host, ServeError},
    reactor,
};
use regatta_engine::{Sessions, Start};
use regatta_sys::poll::Poll;

pub(crate) fn run<F: Start>(start: F, host: &Host) -> Result<(), ServeError> {
    reactor::run_alone(Sessions::new(start), host, Poll::new())
}
