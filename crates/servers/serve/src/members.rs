//! Servers whose sessions post to each other.

use crate::{
    Model,
    between::membership::PushSessionFactory,
    engines::serve_engine,
    host::{Host, ServeError},
    models::{asynchronous, cluster, green, threads},
};
use regatta_engine::{Session, SessionFactory, Sessions, Uplink};

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
    if let Some(because) = why_no_members(model) {
        let service = "sessions that post to each other";
        return Err(ServeError::Unsupported { model: model.name(), service, because });
    }
    match model {
        Model::Threads => threads::members::run(start, host),
        Model::Green => green::run_members(start, host),
        Model::Async => asynchronous::run_members(start, host),
        Model::Cluster => cluster::start_members(start, host, |_| Ok(()))?.run(),
        _ => serve_engine(|| Sessions::new(start.clone()), model, host),
    }
}

/// Why a model cannot run sessions that post to each other; `None` if it can.
pub(crate) fn why_no_members(model: Model) -> Option<&'static str> {
    matches!(model, Model::Fork | Model::Prefork).then_some(
        "a process that blocks in read cannot receive messages from others, and a second thread would make \
         it a different model; use threads, green or epoll",
    )
}

/// Like [`serve_members`], with sessions that have a connection to another server in common. `uplink` is called for each
/// core; only one of the results is used.
///
/// # Errors
/// Those of [`serve_members`]. Also fails on a model that has no event loop.
pub fn serve_joined_members<F, U>(
    start: &F,
    uplink: impl Fn() -> Option<U> + Sync,
    model: Model,
    host: &Host,
) -> Result<(), ServeError>
where
    F: SessionFactory + Clone + Sync,
    U: Uplink<<F::Session as Session>::Push>,
{
    serve_engine(|| Sessions::with_uplink(start.clone(), uplink()), model, host)
}

/// Why sessions on a model cannot have a connection to another server in common; `None` if they can.
pub(crate) fn why_not_joined(model: Model) -> Option<&'static str> {
    let is_engine =
        matches!(model, Model::Select | Model::Poll | Model::Epoll | Model::Percore | Model::Uring);
    (!is_engine).then_some(
        "the connection to the broker is served by an event loop of the hub, and this model has none that all of its \
         members share; use percore, uring or epoll",
    )
}
