//! Sequential programs that open their own connections, on the models that can run them.

use crate::{
    Model,
    children::each_straight,
    host::{Host, ServeError},
    models::{fork, green, prefork, threads},
};
use regatta_engine::Counter;
use regatta_service::style::own_connections::ConnectingProgram;
use regatta_sys::shared::SharedCounter;
use std::io;

/// Runs a sequential program that opens its own connections until the host stops.
///
/// # Errors
/// Fails if the server cannot listen on the address, if the model cannot run such a program, or if
/// an essential system call fails.
pub fn serve_sequential<P: ConnectingProgram>(
    program: P,
    model: Model,
    host: &Host,
) -> Result<(), ServeError> {
    match model {
        Model::Fork => fork::run(each_straight(program), host),
        Model::Prefork => prefork::run(each_straight(program), host),
        Model::Threads => threads::run_straight(program, host),
        Model::Green => green::run_straight(program, host),
        _ => Err(ServeError::Unsupported {
            model: model.name(),
            service: "a sequential program",
            because: "the model has no blocking calls; use fork, prefork, threads or green",
        }),
    }
}

/// Creates a counter in memory that the processes of `fork` and `prefork` share.
///
/// # Errors
/// Those of mmap(2).
pub fn shared_counter() -> io::Result<Counter> {
    SharedCounter::new().map(Counter::new)
}
