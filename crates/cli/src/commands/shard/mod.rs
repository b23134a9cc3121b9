//! `regatta shard`: the sharding proxy in front of Redis nodes.

mod admission;
mod checks;
mod names;
mod options;
mod refused;
mod reload;
mod reports;
mod sentinels;
mod status;
mod tls;
mod unix;

pub use options::ShardOptions;

use crate::{
    drain::DrainReport,
    exit::Outcome,
    options::{
        metrics::metrics_host,
        values::{duration, limit, one_of},
    },
    output,
    reload::{Again, Reloads},
    service_manager,
};
use admission::AdmissionArgs;
use anyhow::{bail, ensure};
use checks::is_sequential;
use options::NO_NODES;
use refused::{Reason, Refused};
use regatta_serve::{
    Host, Model, ServeError, Service, Stop, serve_engine, serve_sequential, with_metrics_page,
};
use regatta_service::{
    Limits, Now,
    admission::ClientLimits,
    tls_engine::{Tls, TlsEngine},
};
use regatta_shard::{Counts, Metrics, Proxy, Sequential, Settings, Shared};
use reload::ReloadedProxy;
use reports::Reports;
use std::{
    io,
    net::SocketAddr,
    num::NonZeroUsize,
    path::PathBuf,
    sync::Arc,
    thread::available_parallelism,
    time::{Duration, Instant},
};
use tls::TlsArgs;
use unix::UnixArgs;

/// Put several Redis (or Valkey) nodes behind one port. Each key belongs to one node; MGET, MSET, DEL
/// and other commands are split over the nodes and their replies are merged. A command that the proxy
/// cannot answer as a single Redis would is refused with the reason. The proxy prints `listening on
/// ADDR` when it is ready, and notifies systemd. On SIGTERM or SIGINT it answers the requests that it has read, then exits.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  regatta shard --listen 127.0.0.1:6400 --nodes 127.0.0.1:6379,127.0.0.1:6380
  redis-cli -p 6400 mset a 1 b 2
  regatta shard --map ketama --hash fnv1a_64 --hash-tag '{}' \\
      --nodes '10.0.0.1:6379:1 one,10.0.0.2:6379:1 two'
  regatta shard --config shard.toml --check
  regatta shard status 127.0.0.1:9121

Each option is a key of the configuration file: `--node-timeout 5s` is `node_timeout = \"5s\"`."
)]
pub struct ShardArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Read options from this TOML file. An option of the command line replaces that of the file
    // It is read before the command line is parsed.
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Check the options, resolve the nodes, print the options as a configuration file, and exit. Nothing
    /// listens
    #[arg(long)]
    check: bool,
    /// The I/O model: epoll (one thread), percore or uring (one thread per core), poll or select. With
    /// threads, green, fork and prefork, which are for comparisons, each client has its own connections
    /// to the nodes
    #[arg(long, default_value = "percore",
          value_parser = |text: &str| one_of(text, &Model::ALL, Model::name))]
    model: Model,
    /// The address to listen on; port 0 lets the system choose. Not used if systemd passes a socket
    /// (LISTEN_FDS)
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR")]
    listen: SocketAddr,
    /// Threads of the models that have one per core. Default: all cores that this process may use
    #[arg(long, value_name = "N")]
    cores: Option<NonZeroUsize>,
    /// Close the connection of a client that sends nothing for this long, and is neither subscribed nor
    /// blocked. Default: never
    #[arg(long, value_parser = limit, value_name = "TIME")]
    idle_timeout: Option<Duration>,
    /// Close the connection of a client whose request is not complete this long after its first byte.
    /// A large request has a second more for each 16 KiB that has arrived
    #[arg(long, default_value = "30s", value_parser = limit, value_name = "TIME")]
    request_timeout: Duration,
    /// Maximum number of open client connections; more wait
    #[arg(long, value_name = "N")]
    max_connections: Option<NonZeroUsize>,
    /// How long the proxy still accepts new clients after SIGTERM or SIGINT, while /ready of --metrics
    /// already answers with 503, so that a load balancer sends them elsewhere
    #[arg(long, default_value = "0s", value_parser = duration, value_name = "TIME")]
    drain_delay: Duration,
    /// After that, close clients one after the other, spread evenly over this time: silent ones at their moment, each
    /// of the others right behind a reply, or at the end. Clients that ask for it (CLIENT MAINT_NOTIFICATIONS)
    /// are asked to reconnect first. 0s: all at once. Not on threads, green, fork and prefork
    #[arg(long, default_value = "0s", value_parser = duration, value_name = "TIME")]
    drain: Duration,
    /// How long to wait then for pending replies
    #[arg(long, default_value = "5s", value_parser = duration, value_name = "TIME")]
    grace: Duration,
    /// Serve Prometheus metrics at /metrics on this address; also /live, and /ready, which answers with 503
    /// once a stop is requested. Not on threads, green, fork and prefork. Default: no metrics
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
    /// Sample one of each 64 requests, and serve the keys that are requested most at /hot of --metrics. The page
    /// shows keys to everybody who can reach it
    #[arg(long, requires = "metrics")]
    hot_keys: bool,
    #[command(flatten)]
    options: ShardOptions,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    admission: AdmissionArgs,
    #[command(flatten)]
    unix: UnixArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Status(status::StatusArgs),
}

impl ShardArgs {
    /// The options that were given and that only some models support.
    fn of_some_models(&self) -> impl Iterator<Item = &'static str> {
        [
            self.metrics.map(|_| "--metrics"),
            (!self.drain.is_zero()).then_some("--drain"),
            self.tls.option(),
            self.options.option(),
            self.admission.option(),
            self.unix.option(),
        ]
        .into_iter()
        .flatten()
    }
}

/// Runs the proxy until SIGTERM or SIGINT, or shows the state of another one.
///
/// `again`: reads the options again, if they are in a file: on SIGHUP.
pub fn run(args: ShardArgs, again: Option<Again>) -> anyhow::Result<Outcome> {
    if let Some(Action::Status(args)) = &args.action {
        return status::run(args);
    }
    regatta_serve::raise_open_files();
    // Resolving names may take long: until the handlers below exist, a signal ends the process.
    let (mut settings, names) = args.options.settings(args.idle_timeout.is_none(), None)?;
    settings.hands_over = !args.drain.is_zero();
    settings.hot_keys = args.hot_keys;
    checks::check(args.model, args.of_some_models())?;
    let refused = Refused::default();
    ensure!(
        !args.options.is_cluster() || !args.tls.reaches_nodes(),
        "--node-tls-ca is not possible with --map cluster: the nodes report addresses without names for their \
         certificates; remove one of the two"
    );
    let names_of_servers = match settings.sentinels.as_deref() {
        Some(sentinels) => tls::managed(&args.tls, sentinels)?,
        None => names.clone(),
    };
    let tls = args.tls.read(&names_of_servers, &refused)?;
    if args.check {
        return Ok(Outcome::Success);
    }
    let unix = args.unix.listen()?;
    let stop = Stop::new()?;
    let reloads = match again.filter(|_| !is_sequential(args.model)) {
        Some(again) => Some(Reloads {
            signals: stop.on_signals_but_hangups(args.drain_delay)?,
            again,
            values: again()?.values,
            stop: stop.clone(),
        }),
        None => stop.on_signals(args.drain_delay).map(|()| None)?,
    };
    let limits = Limits::default();
    let host = Host {
        inherited: service_manager::listener(args.model)?,
        cores: args.cores.map_or_else(available_parallelism, Ok)?,
        limits: Limits {
            idle: args.idle_timeout.unwrap_or(limits.idle.max(args.request_timeout)),
            request: args.request_timeout,
        },
        connections: args.max_connections.map_or(usize::MAX, NonZeroUsize::get),
        unix: unix.as_ref().map(|unix| unix.socket()),
        drain: args.drain,
        grace: args.grace,
        on_ready: service_manager::ready,
        ..Host::new(args.listen, stop)
    };
    let certified = args.tls.checks_names().then(|| names.clone());
    let limits = Some(args.admission.limits());
    let proxied = Proxied { settings, names, tls, reloads, certified, limits, refused };
    serve_proxy(proxied, args.model, &host, args.metrics)?;
    Ok(Outcome::Success)
}

/// Serves `regatta serve shard`. Returns false if another service was requested. `options` is `None` if
/// no option of the proxy was given.
pub fn serve(
    options: Option<ShardOptions>,
    service: Service,
    model: Model,
    host: &Host,
) -> anyhow::Result<bool> {
    match (service, options) {
        (Service::Shard, Some(options)) => {
            if let Some(option) = options.option() {
                checks::check(model, [option])?;
            }
            let (settings, names) = options.settings(false, None)?;
            let proxied = Proxied {
                settings,
                names,
                tls: None,
                reloads: None,
                certified: None,
                limits: None,
                refused: Refused::default(),
            };
            serve_proxy(proxied, model, host, None)?;
            Ok(true)
        }
        (Service::Shard, None) => bail!(NO_NODES),
        (_, Some(_)) => {
            bail!("options of `shard` apply only to `serve shard` (`regatta serve --help`)")
        }
        (_, None) => Ok(false),
    }
}

/// What is served.
struct Proxied {
    settings: Settings,
    /// The nodes as HOST:PORT.
    names: Vec<String>,
    tls: Option<Arc<Tls>>,
    reloads: Option<Reloads>,
    /// On the number of clients. `None`: they are not counted, and refusals are not printed.
    limits: Option<ClientLimits>,
    /// Prints which clients were refused.
    refused: Refused,
    /// See [`ReloadedProxy`].
    certified: Option<Vec<String>>,
}

/// `metrics`: where the page with the metrics is served, if anywhere.
fn serve_proxy(
    proxied: Proxied,
    model: Model,
    host: &Host,
    metrics: Option<SocketAddr>,
) -> Result<(), ServeError> {
    let Proxied { settings, names, tls, reloads, certified, limits, refused } = proxied;
    if host.offload.is_some() {
        let because = "it has no long computations; remove --offload";
        let (model, service) = (model.name(), Service::Shard.name());
        return Err(ServeError::NoOffload { model, service, because });
    }
    let forks = matches!(model, Model::Fork | Model::Prefork);
    let counts =
        if forks { Counts::new(regatta_serve::shared_counter)? } else { Counts::default() };
    // A process with several threads must not fork.
    if !forks && settings.sentinels.is_none() {
        names::follow(&settings.nodes, names)?;
    }
    let has_seeds = !settings.seeds.is_empty() || settings.sentinels.is_some();
    let shared = Arc::new(Shared::counting(settings, counts));
    if has_seeds {
        names::follow_seeds(&shared)?;
    }
    let mut host = host.clone();
    if !is_sequential(model) {
        report(&shared, limits.is_some().then(|| refused.clone()));
        if let Some(limits) = limits {
            refused.follow()?;
            let has_tls = tls.as_ref().is_some_and(|tls| tls.clients.is_some());
            host.admission = Some(admission::admission(limits, &shared, &refused, has_tls));
        }
    }
    let host = &host;
    if let Some(reloads) = reloads {
        let admission = host.admission.clone();
        let proxy = ReloadedProxy { shared: Arc::clone(&shared), certified, admission };
        reloads.follow(proxy, |_| ())?;
    }
    let drain = report_drain(&shared, host)?;
    let metrics = metrics.map(|listen| metrics_host(listen, host)).transpose()?;
    let page = Metrics::new(Arc::clone(&shared));
    let ended = if is_sequential(model) {
        serve_sequential(Sequential::new(shared), model, host)
    } else {
        with_metrics_page((page, readiness(&shared)), metrics.as_ref(), host, || {
            let proxy = || Proxy::new(Arc::clone(&shared), rand::random());
            match &tls {
                None => serve_engine(proxy, model, host),
                Some(tls) => {
                    let now = Now { instant: Instant::now(), unix_s: 0 };
                    serve_engine(|| TlsEngine::new(proxy(), Arc::clone(tls), now), model, host)
                }
            }
        })
    };
    if let Some(drain) = drain {
        drain.end();
    }
    ended.map_err(|error| match error {
        ServeError::Unsupported { model, because, .. } => {
            ServeError::Unsupported { model, service: Service::Shard.name(), because }
        }
        other => other,
    })
}

/// Whether the proxy should get clients, or why not.
fn readiness(
    shared: &Arc<Shared>,
) -> impl Fn() -> Result<(), &'static str> + Send + Sync + 'static {
    let shared = Arc::clone(shared);
    move || match (shared.knows_slots(), shared.knows_masters()) {
        (true, true) => Ok(()),
        (false, _) => Err("starting: no node of the cluster has reported its slots yet"),
        (_, false) => Err("starting: no majority of the Sentinels has given all masters yet"),
    }
}

/// Prints when a drain begins and ends. `None`: there will be no drain.
fn report_drain(shared: &Arc<Shared>, host: &Host) -> io::Result<Option<DrainReport>> {
    let (over, begins, ended) = (host.drain, Arc::clone(shared), Arc::clone(shared));
    if over.is_zero() {
        return Ok(None);
    }
    let begins = move || format!("clients={} drain=\"{over:?}\"", begins.counts.clients());
    let ended = move |_| format!("clients={}", ended.counts.clients());
    DrainReport::follow(&host.stop, Some(over), begins, ended).map(Some)
}

/// Prints when a node is down, and when it answers again, what happens to a cluster or to masters, and to `refused` when
/// clients send wrong passwords.
fn report(shared: &Shared, refused: Option<Refused>) {
    let reports = Reports::default();
    let node = move |node: &str, address: SocketAddr, why: Option<&str>| {
        // TLS reports its failures itself, and that a master is not known is reported with the reason.
        if why.is_some_and(|why| why.starts_with(tls::NO_TLS)) || address.port() == 0 {
            return;
        }
        let why = why.map(|why| format!("down ({address}): {why}"));
        reports.report(node, why.as_deref(), "up again");
    };
    let who = if shared.settings.sentinels.is_some() { "sentinels" } else { "cluster" };
    let line = move |line: &str| output::log(&format!("regatta: {who}: {line}"));
    let denied = move || {
        if let Some(refused) = &refused {
            let detail = "AUTH or HELLO with a wrong user name or password";
            refused.note(Reason::WrongPassword, detail.into());
        }
    };
    shared.report_to(regatta_shard::Reports {
        node: Box::new(node),
        line: Box::new(line),
        denied: Box::new(denied),
    });
}
