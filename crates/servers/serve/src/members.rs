//! Servers whose sessions post to each other.

use crate::{
    Model,
    between::membership::PushSessionFactory,
    engines::serve_engine,
    host::{Host, ServeError},
    models::{asynchronous, cluster, green, threads},
};
use regatta_engine::Sessions;

/// Runs sessions that post to each other until the host stops.
///
/// # Errors
/// Fails if the model cannot run them, if the server cannot listen on the address, or if an
/// essential system call fails.
pub fn serve_members<F: PushSessionFactory>(
    start: F,
    model: Model,
    host: &Host,
) -> Result<(), ServeError> {
    let because = match model {
        Model::Threads => return threads::members::run(start, host),
        Model::Green => return green::run_members(start, host),
        Model::Async => return asynchronous::run_members(start, host),
        Model::Select | Model::Poll | Model::Epoll | Model::Percore | Model::Uring => {
            return serve_engine(|| Sessions::new(start.clone()), model, host);
        }
        Model::Cluster => return cluster::start_members(start, host)?.run(),
        Model::Fork | Model::Prefork => {
            "a process that blocks in read cannot receive messages from others, and a second \
             thread would make it a different model; use threads, green or epoll"
        }
    };
    let service = "sessions that post to each other";
    Err(ServeError::Unsupported { model: model.name(), service, because })
}
