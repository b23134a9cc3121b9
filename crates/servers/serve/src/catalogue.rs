//! The catalogue: all services by name, and which model runs which service.

use crate::{
    Host, Model, ServeError,
    children::each_connection,
    clock,
    engines::serve_engine,
    members::{serve_joined_members, serve_members, why_no_members, why_not_joined},
    models::{asynchronous, cluster, epoll, fork, green, prefork, threads},
    planted::{burn::Burning, null},
};
use regatta_engine::{Counter, Sessions};
use regatta_service::{
    Never, Program, ServiceProgram, by_hand, double,
    hash::Hash,
    hello::Hello,
    http::{Resource, Site},
    http2,
    hub::{Hub, Settings as HubSettings},
    operators::OperatorPages,
    tls::TlsSessionFactory,
};
use regatta_sys::shared::SharedCounter;
use rustls::ServerConfig;
use std::{io, path::Path, sync::Arc, thread, time::Duration};

/// A service that a server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Lines of integers in, their doubles out.
    Double,
    /// A dialogue in two steps.
    Dialogue,
    /// A minimal HTTP answer.
    Hello,
    /// A file read and hashed for every request, over HTTP.
    Hash,
    /// WebSocket members that receive each other's broadcasts.
    Hub,
    /// Redis commands, each forwarded to the node that has its key. [`serve`] does not run it,
    /// because it takes no nodes.
    Shard,
    /// Echoes all bytes without parsing them: the performance floor. Runs only on `epoll`.
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

    /// A one-line description.
    pub fn about(self) -> &'static str {
        match self {
            Service::Double => "reads a line with a 64-bit integer, returns its exact double",
            Service::Dialogue => {
                "asks for a first and a last name, then greets (only with --by-hand)"
            }
            Service::Hello => "HTTP: GET / returns the time",
            Service::Hash => {
                "HTTP: GET /hash?n=N reads a file, computes its SHA-256 N times and returns it"
            }
            Service::Hub => "WebSocket at /ws: echo, and broadcast to all members",
            Service::Shard => "Redis: the proxy of `regatta shard`, in front of --nodes",
            Service::Null => {
                "echoes all bytes without parsing them: the performance floor of a race"
            }
        }
    }
}

/// How the program that a server runs is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implementation {
    /// As a codec and a call, run in one of the three shared styles. The hub and the null server
    /// are exceptions.
    Shared,
    /// By hand, directly in the style of the model.
    ByHand,
}

/// Runs `service` on `model` until the host stops. `hash` reads `file`; the other services ignore
/// it.
///
/// # Errors
/// Fails if the server cannot listen on the address, if the model does not run the service as
/// `written`, if an option is missing or has no use, if the kernel refuses a call that the model
/// needs, or if an essential system call fails.
pub fn serve(
    service: Service,
    written: Implementation,
    model: Model,
    file: Option<&Path>,
    host: &Host,
) -> Result<(), ServeError> {
    let unsupported =
        |because| ServeError::Unsupported { model: model.name(), service: service.name(), because };
    check_offload(service, model, host)?;
    match (service, written) {
        (Service::Double, Implementation::Shared) => {
            run(ServiceProgram(double::Double), model, host)
        }
        (Service::Double, Implementation::ByHand) => run(by_hand::Double, model, host),
        (Service::Dialogue, Implementation::ByHand) => run(by_hand::Dialogue, model, host),
        (Service::Dialogue, Implementation::Shared) => {
            Err(unsupported("the dialogue is only written by hand; add --by-hand"))
        }
        (Service::Hello, Implementation::Shared) => run(site(Hello), model, host),
        (Service::Hash, Implementation::Shared) => {
            let file = file.ok_or(unsupported("it needs a file to read; specify one"))?;
            run(site(Hash::new(file)?), model, host)
        }
        (Service::Hub, Implementation::Shared) => {
            let how = HubHost { host, metrics: None, tls: None, started: Started::silently() };
            serve_hub(HubSettings::default(), model, how)
        }
        (
            Service::Hello | Service::Hash | Service::Hub | Service::Shard,
            Implementation::ByHand,
        ) => Err(unsupported("it is not written by hand; leave --by-hand out")),
        (Service::Shard, Implementation::Shared) => {
            Err(unsupported("it needs nodes; specify them with --nodes"))
        }
        (Service::Null, _) if model == Model::Epoll => null::run(host),
        (Service::Null, _) => {
            Err(unsupported("the null server has its own epoll loop; use --model epoll"))
        }
    }
}

/// Runs `hello` or `hash` over HTTP/2 until the host stops. Clients start with the preface of HTTP/2 (RFC
/// 9113, 3.3): there is neither TLS nor an upgrade.
///
/// # Errors
/// Like those of [`serve`].
pub fn serve_http2(
    service: Service,
    model: Model,
    file: Option<&Path>,
    host: &Host,
) -> Result<(), ServeError> {
    let unsupported =
        |because| ServeError::Unsupported { model: model.name(), service: service.name(), because };
    check_offload(service, model, host)?;
    match service {
        Service::Hello => run(http2_site(Hello, host), model, host),
        Service::Hash => {
            let file = file.ok_or(unsupported("it needs a file to read; specify one"))?;
            run(http2_site(Hash::new(file)?, host), model, host)
        }
        _ => {
            Err(unsupported("it does not speak HTTP/2; leave --http2 out, or serve hello or hash"))
        }
    }
}

/// Fails if offloading was requested but there is nothing to offload.
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
        (Service::Hash, Model::Fork | Model::Prefork | Model::Threads) => {
            Some("each connection has its own thread or process, so none waits for another's job")
        }
        (Service::Hash, _) => None,
        _ => Some("its replies need no long computation; leave --offload out, or serve hash"),
    }
}

fn site<R: Resource>(resource: R) -> ServiceProgram<Site<R>> {
    ServiceProgram(Site(resource))
}

fn http2_site<R: Resource<http2::Form>>(
    resource: R,
    host: &Host,
) -> ServiceProgram<http2::Site<R>> {
    let stop = host.stop.clone();
    let site = http2::Site::new(resource, host.limits.request);
    ServiceProgram(site.stops_when(move || stop.is_set()))
}

/// Runs `double` on `epoll` with a handicap: every call burns an additional `cost` of CPU, on
/// average. For tests of the measurement.
///
/// # Errors
/// Like those of [`serve`].
pub fn serve_handicapped(cost: Duration, host: &Host) -> Result<(), ServeError> {
    epoll::run(Sessions::new(ServiceProgram(Burning::new(cost, double::Double))), host)
}

/// The configuration of a hub's servers.
pub struct HubHost<'a> {
    /// The address and limits of the hub.
    pub host: &'a Host,
    /// The address and limits of its pages `/metrics`, `/live` and `/ready`, which use a thread per
    /// connection. They stop after the hub.
    pub metrics: Option<&'a Host>,
    /// Its certificates, if it uses TLS.
    pub tls: Option<Arc<ServerConfig>>,
    /// What happens when it starts.
    pub started: Started<'a>,
}

type OnStart<'a> = dyn FnOnce(&Hub) -> io::Result<()> + 'a;

/// What happens when a hub starts.
pub struct Started<'a> {
    /// Called once with the hub: before it listens, or on `cluster` in the parent when all processes run. The
    /// process does not fork after this.
    pub whole: Box<OnStart<'a>>,
    /// Called in each process of `cluster`, with its number from 0, before it serves.
    pub process: &'a dyn Fn(usize, &Hub) -> io::Result<()>,
}

impl Started<'_> {
    /// Nothing happens.
    pub fn silently() -> Self {
        Started { whole: Box::new(|_| Ok(())), process: &|_, _| Ok(()) }
    }
}

/// Runs the hub with these settings.
///
/// # Errors
/// Like those of [`serve`], and those of [`HubHost::started`]. Also fails on `cluster` if the members of a
/// room, or the rooms, are limited.
pub fn serve_hub(settings: HubSettings, model: Model, how: HubHost<'_>) -> Result<(), ServeError> {
    let HubHost { host, metrics, tls, started } = how;
    check_hub(&settings, model, host)?;
    if model == Model::Cluster {
        let hub = Hub::shared(settings, || SharedCounter::new().map(Counter::new))?;
        let (page, parent) = (hub.metrics(), hub.clone());
        // The page uses threads, so the processes are forked before.
        let begin = |number| (started.process)(number, &parent);
        let processes = match tls {
            Some(config) => {
                cluster::start_members(TlsSessionFactory::new(hub, config), host, begin)?
            }
            None => cluster::start_members(hub, host, begin)?,
        };
        (started.whole)(&parent)?;
        return with_metrics_page((page, || Ok(())), metrics, host, || processes.run());
    }
    let hub = Hub::new(settings);
    (started.whole)(&hub)?;
    let health = hub.broker_health();
    let has_broker = health.is_some();
    let is_ready = move || health.as_ref().map_or(Ok(()), |it| it.readiness(clock::now().instant));
    with_metrics_page((hub.metrics(), is_ready), metrics, host, || {
        let joined = hub.clone();
        let link = || joined.broker_link();
        match (tls, has_broker) {
            (Some(config), false) => {
                serve_members(TlsSessionFactory::new(hub, config), model, host)
            }
            (None, false) => serve_members(hub, model, host),
            (Some(config), true) => {
                serve_joined_members(&TlsSessionFactory::new(hub, config), link, model, host)
            }
            (None, true) => serve_joined_members(&hub, link, model, host),
        }
    })
}

/// Checks that a hub with these settings can run on this model.
///
/// # Errors
/// Says why it cannot.
pub fn check_hub(settings: &HubSettings, model: Model, host: &Host) -> Result<(), ServeError> {
    check_offload(Service::Hub, model, host)?;
    let (name, service) = (model.name(), Service::Hub.name());
    if let Some(because) = why_no_members(model) {
        return Err(ServeError::Unsupported { model: name, service, because });
    }
    if !host.drain.is_zero() && matches!(model, Model::Threads | Model::Green | Model::Async) {
        let because = "each member has its own thread or task there, and a stop closes all of them at \
                       once; leave the option out, or use percore, uring, cluster or epoll";
        return Err(ServeError::NoOption { model: name, service, option: "--drain", because });
    }
    let engine =
        matches!(model, Model::Select | Model::Poll | Model::Epoll | Model::Percore | Model::Uring);
    if settings.centrifuge && !engine {
        let (option, because) = match model {
            Model::Cluster => (
                "--centrifuge",
                "its processes do not know each other's members; leave the option out, or use percore or uring",
            ),
            _ => (
                "--centrifuge",
                "a connection can be in one room only there; leave the option out, or use percore or uring",
            ),
        };
        return Err(ServeError::NoOption { model: name, service, option, because });
    }
    if let Some(because) = why_not_joined(model).filter(|_| settings.broker.is_some()) {
        return Err(ServeError::NoOption { model: name, service, option: "--broker", because });
    }
    if let Some(option) = history_option(settings).filter(|_| model == Model::Cluster) {
        let because = "its processes have no memory in common, in which a room could keep its messages in one \
                       order; leave the option out, or use percore or uring";
        return Err(ServeError::NoOption { model: name, service, option, because });
    }
    match single_process_option(settings).filter(|_| model == Model::Cluster) {
        Some(option) => {
            let because = "two of its processes could admit the last one at the same moment; \
                           leave the option out, or use percore or uring";
            Err(ServeError::NoOption { model: name, service, option, because })
        }
        None => Ok(()),
    }
}

/// Returns an option that keeps messages.
fn history_option(settings: &HubSettings) -> Option<&'static str> {
    if settings.limits.history.are_kept() {
        return Some("--history");
    }
    let is_kept = settings.rooms.iter().any(|rule| rule.history.is_some_and(|kept| kept > 0));
    is_kept.then_some("history in [[room]]")
}

/// Returns an option that requires a single process. It depends on the current members of all
/// rooms, and members of other processes become known with a delay.
fn single_process_option(settings: &HubSettings) -> Option<&'static str> {
    let limits = settings.limits;
    let of_rooms = settings.rooms.iter().any(|rule| rule.max_members.is_some());
    let asked = [
        (limits.members_of_room < usize::MAX, "--max-room-members"),
        (limits.rooms < usize::MAX, "--max-rooms"),
        (of_rooms, "max_members in [[room]]"),
    ];
    asked.into_iter().find_map(|(asked, option)| asked.then_some(option))
}

/// Serves, and serves a page of metrics, `/live` and `/ready` if requested. If one ends, so does the other: the pages
/// last until the clients are drained, and have their own [`Stop`](crate::Stop).
///
/// # Errors
/// Those of `serve`, and of [`serve`](fn@serve) for the page.
pub fn with_metrics_page<R: Resource<Job = Never>>(
    (page, is_ready): (R, impl Fn() -> Result<(), &'static str> + Send + Sync + 'static),
    metrics: Option<&Host>,
    host: &Host,
    serve: impl FnOnce() -> Result<(), ServeError>,
) -> Result<(), ServeError> {
    let Some(metrics) = metrics else { return serve() };
    thread::scope(|scope| {
        let page = thread::Builder::new().name("metrics".into()).spawn_scoped(scope, || {
            let stop = host.stop.clone();
            let pages =
                OperatorPages::new(page, move || stop.readiness().and_then(|()| is_ready()));
            let ended = run(ServiceProgram(pages), Model::Threads, metrics);
            // Otherwise it was stopped, because serving has ended.
            if !metrics.stop.is_set() {
                host.stop.fail();
            }
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
        Model::Fork => fork::run(each_connection(program), host),
        Model::Prefork => prefork::run(each_connection(program), host),
        Model::Threads => threads::run(program, host),
        Model::Green => green::run(program, host),
        Model::Cluster => cluster::run(program, host),
        Model::Async => asynchronous::run(program, host),
        Model::Select | Model::Poll | Model::Epoll | Model::Percore | Model::Uring => {
            serve_engine(|| Sessions::new(program.clone()), model, host)
        }
    }
}
