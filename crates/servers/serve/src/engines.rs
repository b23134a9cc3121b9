//! Engines, on the models that can run them.

use crate::{
    Model,
    host::{Host, ServeError},
    models::{epoll, percore, poll, select, uring},
};
use regatta_engine::Engine;

/// Runs engines created by `engine` until the host stops: one on the single-threaded models, one
/// per core on `percore` and `uring`.
///
/// # Errors
/// Fails if the server cannot listen on the address, if the model runs no engines, if the kernel
/// refuses a call that the model needs, or if an essential system call fails.
pub fn serve_engine<E: Engine>(
    engine: impl Fn() -> E + Sync,
    model: Model,
    host: &Host,
) -> Result<(), ServeError> {
    match model {
        Model::Select => select::run(engine(), host),
        Model::Poll => poll::run(engine(), host),
        Model::Epoll => epoll::run(engine(), host),
        Model::Percore => percore::run(engine, host),
        Model::Uring => uring::run(engine, host),
        Model::Fork | Model::Prefork | Model::Threads | Model::Green | Model::Async => {
            Err(ServeError::Unsupported {
                model: model.name(),
                service: "engine",
                because: "it serves each connection with a separate program, but one engine \
                          serves all connections; use epoll, percore or uring",
            })
        }
        Model::Cluster => Err(ServeError::Unsupported {
            model: model.name(),
            service: "engine",
            because: "an engine cannot span its processes; use percore or uring",
        }),
    }
}
