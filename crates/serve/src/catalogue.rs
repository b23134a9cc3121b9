//! The catalogue: every model and every service by name.

use crate::{Host, ServeError, asynchronous, epoll, green, null, threads};
use regatta_service::{Program, Shared, by_hand, double};

/// An I/O model: a way of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// A thread per connection that blocks.
    Threads,
    /// One thread, callbacks, epoll.
    Epoll,
    /// Stackful coroutines over epoll, a scheduler per core.
    Green,
    /// Tokio tasks.
    Async,
}

impl Model {
    /// All models, in the order of the catalogue.
    pub const ALL: [Model; 4] = [Model::Threads, Model::Epoll, Model::Green, Model::Async];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Model::Threads => "threads",
            Model::Epoll => "epoll",
            Model::Green => "green",
            Model::Async => "async",
        }
    }

    /// One line on what waits for what, and on what it runs.
    pub fn about(self) -> &'static str {
        match self {
            Model::Threads => "sequential; blocking read; a thread per connection",
            Model::Epoll => "callbacks; level-triggered epoll; one thread",
            Model::Green => "sequential; epoll under stackful coroutines; a thread per core",
            Model::Async => "async; Tokio's reactor; work stealing, a thread per core",
        }
    }
}

/// Something that a server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Lines of integers in, their doubles out; codec + call, in the three shared styles.
    Double,
    /// The same, written by hand in each style.
    DoubleByHand,
    /// A two-step dialogue, written by hand in each style.
    Dialogue,
    /// Sends back what it reads without looking: the floor. Runs on `epoll` only.
    Null,
}

impl Service {
    /// All services, in the order of the catalogue.
    pub const ALL: [Service; 4] =
        [Service::Double, Service::DoubleByHand, Service::Dialogue, Service::Null];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Service::Double => "double",
            Service::DoubleByHand => "double-by-hand",
            Service::Dialogue => "dialogue",
            Service::Null => "null",
        }
    }

    /// One line on what it does.
    pub fn about(self) -> &'static str {
        match self {
            Service::Double => "a line with a 64-bit integer in, its exact double out",
            Service::DoubleByHand => "the same, written by hand in the style of the model",
            Service::Dialogue => "asks for a first and a last name and greets; by hand",
            Service::Null => "sends back what it reads without looking: the floor of a race",
        }
    }
}

/// Runs `service` on `model` until the host stops.
///
/// # Errors
/// The address cannot be listened on, the model does not run the service, or the kernel refused
/// what the model cannot go on without.
pub fn serve(service: Service, model: Model, host: &Host) -> Result<(), ServeError> {
    match service {
        Service::Double => run(Shared(double::Double), model, host),
        Service::DoubleByHand => run(by_hand::Double, model, host),
        Service::Dialogue => run(by_hand::Dialogue, model, host),
        Service::Null if model == Model::Epoll => null::run(host),
        Service::Null => Err(ServeError::Unsupported {
            model: model.name(),
            service: service.name(),
            because: "the null server is an epoll loop of its own; use --model epoll",
        }),
    }
}

fn run<P: Program>(program: P, model: Model, host: &Host) -> Result<(), ServeError> {
    match model {
        Model::Threads => threads::run(program, host),
        Model::Epoll => epoll::run(program, host),
        Model::Green => green::run(program, host),
        Model::Async => asynchronous::run(program, host),
    }
}
