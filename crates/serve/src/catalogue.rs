//! The catalogue: every service by name, and who runs which on what.

use crate::{
    Host, Model, ServeError, asynchronous, burn::Burning, cluster, engines::serve_engine, epoll,
    fork, green, members::serve_members, null, prefork, threads,
};
use regatta_engine::{Counter, Sessions};
use regatta_service::{
    Program, Shared, by_hand, double,
    hash::Hash,
    hello::Hello,
    http::{Resource, Site},
    hub::{Hub, Metrics, Settings as HubSettings},
    sealed::Sealed,
};
use regatta_sys::shared::SharedCounter;
use rustls::ServerConfig;
use std::{path::Path, sync::Arc, thread, time::Duration};

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
    /// WebSocket members that hear each other's broadcasts.
    Hub,
    /// Redis commands, each passed on to the node that has its key. Not run by [`serve`], which knows no
    /// nodes.
    Shard,
    /// Sends back what it reads without looking: the floor. Runs on `epoll` only.
    Null,
}

impl Service {
    /// All services, in the order of the catalogue.
    pub const ALL: [Service; 7] = [
        Service::Double,
        Service::Dialogue,
        Service::Hello,
        Service::Hash,
        Service::Hub,
        Service::Shard,
        Service::Null,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Service::Double => "double",
            Service::Dialogue => "dialogue",
            Service::Hello => "hello",
            Service::Hash => "hash",
            Service::Hub => "hub",
            Service::Shard => "shard",
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
            Service::Hub => "WebSocket at /ws: echo, and broadcast to all members",
            Service::Shard => "Redis: the proxy of `regatta shard`, in front of --nodes",
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
    check_offload(service, model, host)?;
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
        (Service::Hub, Written::Shared) => {
            serve_hub(HubSettings::default(), model, HubHost { host, metrics: None, tls: None })
        }
        (Service::Hello | Service::Hash | Service::Hub | Service::Shard, Written::ByHand) => {
            Err(unsupported("it is not written by hand; leave --by-hand out"))
        }
        (Service::Shard, Written::Shared) => {
            Err(unsupported("it needs nodes; give it some with --nodes"))
        }
        (Service::Null, _) if model == Model::Epoll => null::run(host),
        (Service::Null, _) => {
            Err(unsupported("the null server is an epoll loop of its own; use --model epoll"))
        }
    }
}

/// Fails where there is nothing to offload, and it was asked for.
fn check_offload(service: Service, model: Model, host: &Host) -> Result<(), ServeError> {
    match nothing_to_offload(service, model).filter(|_| host.offload.is_some()) {
        Some(because) => {
            let (model, service) = (model.name(), service.name());
            Err(ServeError::NoOffload { model, service, because })
        }
        None => Ok(()),
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

/// How a hub is run.
pub struct HubHost<'a> {
    /// Where and within which limits.
    pub host: &'a Host,
    /// Where its page for Prometheus is, `/metrics`, with a thread for each of its connections. The hub and
    /// the page stop together.
    pub metrics: Option<&'a Host>,
    /// Its certificates, if it speaks through TLS.
    pub tls: Option<Arc<ServerConfig>>,
}

/// Runs the hub with these settings.
///
/// # Errors
/// As [`serve`].
pub fn serve_hub(settings: HubSettings, model: Model, how: HubHost<'_>) -> Result<(), ServeError> {
    let HubHost { host, metrics, tls } = how;
    check_offload(Service::Hub, model, host)?;
    if model == Model::Cluster {
        if let Some(option) = of_one_process(&settings) {
            let because = "two of its processes could let in a last one at the same moment; leave the \
                           option out, or use percore or uring";
            let (model, service) = (model.name(), Service::Hub.name());
            return Err(ServeError::NoOption { model, service, option, because });
        }
        let hub = Hub::shared(settings, || SharedCounter::new().map(Counter::new))?;
        let page = hub.metrics();
        // The page has threads, so the processes are made before.
        let processes = match tls {
            Some(config) => cluster::start_members(Sealed::new(hub, config), host)?,
            None => cluster::start_members(hub, host)?,
        };
        return beside(page, metrics, host, || processes.run());
    }
    let hub = Hub::new(settings);
    let ended = beside(hub.metrics(), metrics, host, || match tls {
        Some(config) => serve_members(Sealed::new(hub, config), model, host),
        None => serve_members(hub, model, host),
    });
    ended.map_err(|error| match error {
        ServeError::Unsupported { model, because, .. } => {
            ServeError::Unsupported { model, service: Service::Hub.name(), because }
        }
        other => other,
    })
}

/// An option that needs one process: it depends on all members of a room at this moment, and those of other
/// processes are known a moment later.
fn of_one_process(settings: &HubSettings) -> Option<&'static str> {
    let limits = settings.limits;
    let asked = [
        (limits.members_of_room < usize::MAX, "--max-room-members"),
        (limits.rooms < usize::MAX, "--max-rooms"),
    ];
    asked.into_iter().find_map(|(asked, option)| asked.then_some(option))
}

/// Serves the hub, and its page where one is wanted. If one ends, so does the other.
fn beside(
    page: Metrics,
    metrics: Option<&Host>,
    host: &Host,
    serve: impl FnOnce() -> Result<(), ServeError>,
) -> Result<(), ServeError> {
    let Some(metrics) = metrics else { return serve() };
    thread::scope(|scope| {
        let page = thread::Builder::new().name("metrics".into()).spawn_scoped(scope, || {
            let ended = run(site(page), Model::Threads, metrics);
            host.stop.set();
            ended
        })?;
        let ended = serve();
        metrics.stop.set();
        let page = page.join().expect("serving does not panic");
        ended.and(page)
    })
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
