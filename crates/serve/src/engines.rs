//! Engines that are no sessions, on the models that can run them.

use crate::{
    Model, epoll,
    host::{Host, ServeError},
    percore, poll, select, uring,
};
use regatta_engine::Engine;

/// Runs engines until the host stops: one on the models of one thread, one for each core on
/// `percore` and `uring`, made by `engine`.
///
/// # Errors
/// The address cannot be listened on, the model runs no engines, or the kernel refused what the model
/// cannot go on without.
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
                because: "it gives each connection a program of its own; an engine serves them \
                          together: use epoll, percore or uring",
            })
        }
        Model::Cluster => Err(ServeError::Unsupported {
            model: model.name(),
            service: "engine",
            because: "its processes share nothing; use percore or uring",
        }),
    }
}
