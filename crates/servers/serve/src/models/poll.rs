//! `poll`: one thread, callbacks, poll(2).

use crate::{
    host::{Host, ServeError},
    models::reactor,
};
use regatta_engine::Engine;
use regatta_sys::poll::Poll;

pub(crate) fn run<E: Engine>(engine: E, host: &Host) -> Result<(), ServeError> {
    reactor::run_alone(engine, host, Poll::new())
}
