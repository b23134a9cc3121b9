//! The catalogue: every model and every service by name.

use crate::{
    Host, ServeError, asynchronous, burn::Burning, cluster, engines::serve_engine, epoll, fork,
    green, null, prefork, select, threads,
};
use regatta_engine::Sessions;
use regatta_service::{
    Program, Shared, by_hand, double,
    hash::Hash,
    hello::Hello,
    http::{Resource, Site},
};
use std::{path::Path, time::Duration};

/// An I/O model: a way of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// A process per connection that blocks.
    Fork,
    /// A fixed pool of processes that block, one connection each.
    Prefork,
    /// A thread per connection that blocks.
    Threads,
    /// Stackful coroutines over epoll, a scheduler per core.
    Green,
    /// One thread, callbacks, select.
    Select,
    /// One thread, callbacks, poll.
    Poll,
    /// One thread, callbacks, epoll.
    Epoll,
    /// A process per core, callbacks, epoll.
    Cluster,
    /// A thread per core, callbacks, epoll.
    Percore,
    /// A ring and a thread per core, callbacks, io_uring.
    Uring,
    /// Tokio tasks.
    Async,
}

/// What a model is, in the terms in which I/O models are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// What runs: processes or threads, and how many.
    pub runs_on: &'static str,
    /// The call in which it waits.
    pub waits_in: &'static str,
    /// Whether the program's calls seem to block.
    pub blocking: bool,
    /// Whether the program must be written as callbacks.
    pub callbacks: bool,
    /// Connections that it holds, where something other than memory and descriptors limits them.
    pub limit: Option<u32>,
}

impl Model {
    /// All models, in the order of the catalogue.
    pub const ALL: [Model; 11] = [
        Model::Fork,
        Model::Prefork,
        Model::Threads,
        Model::Green,
        Model::Select,
        Model::Poll,
        Model::Epoll,
        Model::Cluster,
        Model::Percore,
        Model::Uring,
        Model::Async,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Model::Fork => "fork",
            Model::Prefork => "prefork",
            Model::Threads => "threads",
            Model::Green => "green",
            Model::Select => "select",
            Model::Poll => "poll",
            Model::Epoll => "epoll",
            Model::Cluster => "cluster",
            Model::Percore => "percore",
            Model::Uring => "uring",
            Model::Async => "async",
        }
    }

    /// What it is.
    pub fn traits(self) -> Traits {
        let blocking = |runs_on, waits_in| Traits {
            runs_on,
            waits_in,
            blocking: true,
            callbacks: false,
            limit: None,
        };
        let callbacks = |runs_on, waits_in| Traits {
            runs_on,
            waits_in,
            blocking: false,
            callbacks: true,
            limit: None,
        };
        match self {
            Model::Fork => Traits {
                limit: Some(fork::CONNECTIONS),
                ..blocking("process per connection", "read")
            },
            Model::Prefork => {
                Traits { limit: Some(prefork::WORKERS), ..blocking("256 processes", "read") }
            }
            Model::Threads => Traits {
                limit: Some(threads::CONNECTIONS),
                ..blocking("thread per connection", "read")
            },
            Model::Green => blocking("thread per core", "epoll_wait"),
            Model::Select => {
                Traits { limit: Some(select::CONNECTIONS), ..callbacks("one thread", "select") }
            }
            Model::Poll => callbacks("one thread", "poll"),
            Model::Epoll => callbacks("one thread", "epoll_wait"),
            Model::Cluster => callbacks("process per core", "epoll_wait"),
            Model::Percore => callbacks("thread per core", "epoll_wait"),
            Model::Uring => callbacks("thread per core", "io_uring_enter"),
            Model::Async => {
                Traits { callbacks: false, ..callbacks("thread per core", "epoll_wait") }
            }
        }
    }

    /// Why it does not run on this machine, and what to do; `None` where it does.
    pub fn refused(self) -> Option<String> {
        if self == Model::Uring { regatta_sys::uring::refused() } else { None }
    }
}

/// Something that a server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Lines of integers in, their doubles out.
    Double,
    /// A two-step dialogue.
    Dialogue,
    /// The smallest HTTP answer.
    Hello,
    /// A file read and hashed for every request, over HTTP.
    Hash,
    /// Sends back what it reads without looking: the floor. Runs on `epoll` only.
    Null,
}

impl Service {
    /// All services, in the order of the catalogue.
    pub const ALL: [Service; 5] =
        [Service::Double, Service::Dialogue, Service::Hello, Service::Hash, Service::Null];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Service::Double => "double",
            Service::Dialogue => "dialogue",
            Service::Hello => "hello",
            Service::Hash => "hash",
            Service::Null => "null",
        }
    }

    /// One line on what it does.
    pub fn about(self) -> &'static str {
        match self {
            Service::Double => "a line with a 64-bit integer in, its exact double out",
            Service::Dialogue => "asks for a first and a last name and greets (by hand only)",
            Service::Hello => "HTTP: GET / is told the time",
            Service::Hash => {
                "HTTP: GET /hash?n=N reads a file and is told its SHA-256, computed N times"
            }
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

/// Runs `service` on `model` until the host stops. `hash` reads `file`; the others need none.
///
/// # Errors
/// The address cannot be listened on, there is no such service on this model, or the kernel
/// refused what the model cannot go on without.
pub fn serve(
    service: Service,
    written: Written,
    model: Model,
    file: Option<&Path>,
    host: &Host,
) -> Result<(), ServeError> {
    let unsupported =
        |because| ServeError::Unsupported { model: model.name(), service: service.name(), because };
    if host.offload.is_some()
        && let Some(because) = nothing_to_offload(service, model)
    {
        let (model, service) = (model.name(), service.name());
        return Err(ServeError::NoOffload { model, service, because });
    }
    match (service, written) {
        (Service::Double, Written::Shared) => run(Shared(double::Double), model, host),
        (Service::Double, Written::ByHand) => run(by_hand::Double, model, host),
        (Service::Dialogue, Written::ByHand) => run(by_hand::Dialogue, model, host),
        (Service::Dialogue, Written::Shared) => {
            Err(unsupported("the dialogue exists by hand only; add --by-hand"))
        }
        (Service::Hello, Written::Shared) => run(site(Hello), model, host),
        (Service::Hash, Written::Shared) => {
            let file = file.ok_or(unsupported("it needs a file to read; give it one"))?;
            run(site(Hash::new(file)?), model, host)
        }
        (Service::Hello | Service::Hash, Written::ByHand) => {
            Err(unsupported("it is not written by hand; leave --by-hand out"))
        }
        (Service::Null, _) if model == Model::Epoll => null::run(host),
        (Service::Null, _) => {
            Err(unsupported("the null server is an epoll loop of its own; use --model epoll"))
        }
    }
}

fn nothing_to_offload(service: Service, model: Model) -> Option<&'static str> {
    match (service, model) {
        (Service::Hash, Model::Fork | Model::Prefork | Model::Threads) => Some(
            "each connection has a thread or process of its own, so none waits for another's job",
        ),
        (Service::Hash, _) => None,
        _ => Some("its replies need nothing that takes long; leave --offload out, or serve hash"),
    }
}

fn site<R: Resource>(resource: R) -> Shared<Site<R>> {
    Shared(Site(resource))
}

/// Runs `double` on `epoll` with a handicap: every call burns `cost` of CPU besides, on average. For
/// tests of whoever measures.
///
/// # Errors
/// As [`serve`].
pub fn serve_burning(cost: Duration, host: &Host) -> Result<(), ServeError> {
    epoll::run(Sessions::new(Shared(Burning::new(cost, double::Double))), host)
}

fn run<P: Program>(program: P, model: Model, host: &Host) -> Result<(), ServeError> {
    match model {
        Model::Fork => fork::run(program, host),
        Model::Prefork => prefork::run(program, host),
        Model::Threads => threads::run(program, host),
        Model::Green => green::run(program, host),
        Model::Cluster => cluster::run(program, host),
        Model::Async => asynchronous::run(program, host),
        Model::Select | Model::Poll | Model::Epoll | Model::Percore | Model::Uring => {
            serve_engine(|| Sessions::new(program.clone()), model, host)
        }
    }
}
