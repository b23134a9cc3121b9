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
    /// Lines of integers in, their doubles out.
    Double,
    /// A two-step dialogue.
    Dialogue,
    /// Sends back what it reads without looking: the floor. Runs on `epoll` only.
    Null,
}

impl Service {
    /// All services, in the order of the catalogue.
    pub const ALL: [Service; 3] = [Service::Double, Service::Dialogue, Service::Null];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Service::Double => "double",
            Service::Dialogue => "dialogue",
            Service::Null => "null",
        }
    }

    /// One line on what it does.
    pub fn about(self) -> &'static str {
        match self {
            Service::Double => "a line with a 64-bit integer in, its exact double out",
            Service::Dialogue => "asks for a first and a last name and greets (by hand only)",
            Service::Null => "sends back what it reads without looking: the floor of a race",
        }
    }
}

/// Who wrote the program that a server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Codec + call, in one of the three shared styles.
    Shared,
    /// By hand, in the style of the model.
    ByHand,
}

/// Runs `service` on `model` until the host stops.
///
/// # Errors
/// The address cannot be listened on, there is no such service on this model, or the kernel
/// refused what the model cannot go on without.
pub fn serve(
    service: Service,
    written: Written,
    model: Model,
    host: &Host,
) -> Result<(), ServeError> {
    let unsupported =
        |because| ServeError::Unsupported { model: model.name(), service: service.name(), because };
    match (service, written) {
        (Service::Double, Written::Shared) => run(Shared(double::Double), model, host),
        (Service::Double, Written::ByHand) => run(by_hand::Double, model, host),
        (Service::Dialogue, Written::ByHand) => run(by_hand::Dialogue, model, host),
        (Service::Dialogue, Written::Shared) => {
            Err(unsupported("the dialogue exists by hand only; add --by-hand"))
        }
        (Service::Null, _) if model == Model::Epoll => null::run(host),
        (Service::Null, _) => {
            Err(unsupported("the null server is an epoll loop of its own; use --model epoll"))
        }
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
