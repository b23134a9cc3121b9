//! `regatta shard`: the sharding proxy in front of Redis nodes.

mod names;
mod reload;
mod status;
mod tls;

use crate::{
    exit::Outcome,
    options::{
        metrics::metrics_host,
        values::{duration, limit, one_of},
    },
    service_manager,
};
use anyhow::{Context, bail, ensure};
use regatta_keyspace::map::{
    Map, RedisSharding, Slots, Twemproxy,
    twemproxy::{Distribution, Hash, Server},
};
use regatta_serve::{
    Host, Model, ServeError, Service, Stop, serve_engine, serve_sequential, with_metrics_page,
};
use regatta_service::{
    Limits, Now,
    tls_engine::{Tls, TlsEngine},
};
use regatta_shard::{
    Auth, Counts, Credentials, Metrics, Nodes, Proxy, Sequential, Settings, Shared,
};
use reload::{Again, Reloads};
use std::{
    fs,
    net::SocketAddr,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
    thread::available_parallelism,
    time::{Duration, Instant},
};
use tls::TlsArgs;

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
    /// After that, close clients one after the other, spread evenly over this time: silent ones at once, each
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
    #[command(flatten)]
    options: ShardOptions,
    #[command(flatten)]
    tls: TlsArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Status(status::StatusArgs),
}

/// Options of the proxy on every I/O model.
#[derive(Debug, clap::Args)]
#[group(id = "of_the_proxy", multiple = true)]
pub struct ShardOptions {
    /// The nodes (at least one) as HOST:PORT, separated by commas. With --map ketama or modula, write
    /// them as in twemproxy's configuration: HOST:PORT:WEIGHT, or 'HOST:PORT:WEIGHT NAME'
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    nodes: Vec<String>,
    /// How keys map to nodes. slots: 16,384 slots as in Redis Cluster, in equal ranges; redissharding:
    /// as in the program RedisSharding; ketama, modula: as in twemproxy
    #[arg(long, default_value = "slots", value_name = "MAP",
          value_parser = |text: &str| one_of(text, &MapName::ALL, MapName::name))]
    map: MapName,
    /// The hash function of --map ketama and modula, by its name in twemproxy
    #[arg(long, default_value = "fnv1a_64", value_name = "NAME",
          value_parser = |text: &str| one_of(text, &Hash::ALL, Hash::name))]
    hash: Hash,
    /// The two characters that enclose the part of a key to hash, with --map ketama and modula;
    /// twemproxy's hash_tag. Default: the whole key is hashed
    #[arg(long, value_name = "CHARS")]
    hash_tag: Option<String>,
    /// MSET, DEL and UNLINK with keys on several nodes: allow splits them over the nodes, so that other
    /// clients may see some keys changed before others; refuse answers with CROSSSLOT, as Redis Cluster
    /// does
    #[arg(long, default_value = "allow", value_name = "HOW",
          value_parser = |text: &str| one_of(text, &SplitWrites::ALL, SplitWrites::name))]
    split_writes: SplitWrites,
    /// On a reload (SIGHUP), accept nodes and a map that would look for keys at other nodes than before
    #[arg(long)]
    allow_remap: bool,
    /// Require clients to send AUTH with the password in this file, as the user `default`. A newline at
    /// the end of the file is ignored
    #[arg(long, value_name = "PATH")]
    password_file: Option<PathBuf>,
    /// The file with the password that the proxy sends to the nodes
    #[arg(long, value_name = "PATH")]
    node_password_file: Option<PathBuf>,
    /// The user name that the proxy sends to the nodes
    #[arg(long, default_value = "default", value_name = "NAME", requires = "node_password_file")]
    node_user: String,
    /// Maximum time for a reply from a node, except to a blocking command
    #[arg(long, default_value = "10s", value_parser = limit, value_name = "TIME")]
    node_timeout: Duration,
    /// Maximum MiB of unread replies of one client, at most 512. A reply without room is replaced by an
    /// error, or disconnects the client if it has begun. On threads, green, fork and prefork only merged
    /// replies count, because the others wait in the nodes
    #[arg(long, default_value = "64", value_parser = mib, value_name = "MIB")]
    client_buffer: NonZeroUsize,
    /// Maximum MiB of memory for all clients of one core: unread replies, and requests that are
    /// incomplete or queued. Beyond it, the clients with the most are disconnected. Not on threads,
    /// green, fork and prefork
    #[arg(long, default_value = "256", value_name = "MIB")]
    all_buffers: NonZeroUsize,
    /// Maximum size of one request, in MiB; at most 512
    #[arg(long, default_value = "64", value_parser = mib, value_name = "MIB")]
    max_request: NonZeroUsize,
    /// Log requests to which a node takes this long or longer to reply, for SLOWLOG GET; 0s logs all, off
    /// none. Not on threads, green, fork and prefork
    #[arg(long, default_value = "10ms", value_parser = slow, value_name = "TIME")]
    slowlog: Slow,
    /// Maximum number of entries of the slow log, at most 10000; the oldest make room
    #[arg(long, default_value = "128", value_parser = slowlog_entries, value_name = "N")]
    slowlog_entries: NonZeroUsize,
}

/// From which time on a request is slow, if any is.
#[derive(Clone, Copy, Debug)]
struct Slow(Option<Duration>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MapName {
    Slots,
    RedisSharding,
    Ketama,
    Modula,
}

impl MapName {
    const ALL: [MapName; 4] =
        [MapName::Slots, MapName::RedisSharding, MapName::Ketama, MapName::Modula];

    fn name(self) -> &'static str {
        match self {
            MapName::Slots => "slots",
            MapName::RedisSharding => "redissharding",
            MapName::Ketama => "ketama",
            MapName::Modula => "modula",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SplitWrites {
    Allow,
    Refuse,
}

impl SplitWrites {
    const ALL: [SplitWrites; 2] = [SplitWrites::Allow, SplitWrites::Refuse];

    fn name(self) -> &'static str {
        match self {
            SplitWrites::Allow => "allow",
            SplitWrites::Refuse => "refuse",
        }
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
    let (mut settings, names) = args.options.settings(args.idle_timeout.is_none())?;
    settings.hands_over = !args.drain.is_zero();
    check_metrics(args.model, args.metrics)?;
    check_drain(args.model, args.drain)?;
    check_tls(args.model, &args.tls)?;
    let tls = args.tls.read(&names)?;
    if args.check {
        return Ok(Outcome::Success);
    }
    let stop = Stop::new()?;
    let reloads = match again.filter(|_| !is_sequential(args.model)) {
        Some(again) => Some(Reloads {
            signals: stop.on_signals_but_hangups(args.drain_delay)?,
            again,
            values: again()?.1,
            has_node_names: args.tls.checks_names(),
        }),
        None => stop.on_signals(args.drain_delay).map(|()| None)?,
    };
    let limits = Limits::default();
    let host = Host {
        listen: args.listen,
        inherited: service_manager::listener(args.model)?,
        cores: args.cores.map_or_else(available_parallelism, Ok)?,
        limits: Limits {
            idle: args.idle_timeout.unwrap_or(limits.idle.max(args.request_timeout)),
            request: args.request_timeout,
        },
        connections: args.max_connections.map_or(usize::MAX, NonZeroUsize::get),
        offload: None,
        drain: args.drain,
        grace: args.grace,
        on_ready: service_manager::ready,
        stop,
    };
    serve_proxy(Proxied { settings, names, tls, reloads }, args.model, &host, args.metrics)?;
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
            let (settings, names) = options.settings(false)?;
            serve_proxy(Proxied { settings, names, tls: None, reloads: None }, model, host, None)?;
            Ok(true)
        }
        (Service::Shard, None) => bail!(NO_NODES),
        (_, Some(_)) => {
            bail!("options of `shard` apply only to `serve shard` (`regatta serve --help`)")
        }
        (_, None) => Ok(false),
    }
}

const NO_NODES: &str = "`shard` needs nodes: --nodes 127.0.0.1:6379,127.0.0.1:6380";

/// Whether each client has its own connections to the nodes, and sequential code.
fn is_sequential(model: Model) -> bool {
    matches!(model, Model::Fork | Model::Prefork | Model::Threads | Model::Green)
}

fn check_metrics(model: Model, metrics: Option<SocketAddr>) -> Result<(), ServeError> {
    match metrics {
        Some(_) if is_sequential(model) => {
            let because = "requests are counted only where clients share connections to the nodes; use \
                           percore, uring, epoll, poll or select";
            let (model, service, option) = (model.name(), Service::Shard.name(), "--metrics");
            Err(ServeError::NoOption { model, service, option, because })
        }
        _ => Ok(()),
    }
}

fn check_tls(model: Model, tls: &TlsArgs) -> Result<(), ServeError> {
    match tls.option() {
        Some(option) if is_sequential(model) => {
            let because = "TLS needs a model whose threads serve many clients; use percore, uring, \
                           epoll, poll or select";
            let (model, service) = (model.name(), Service::Shard.name());
            Err(ServeError::NoOption { model, service, option, because })
        }
        _ => Ok(()),
    }
}

fn check_drain(model: Model, drain: Duration) -> Result<(), ServeError> {
    if drain.is_zero() || !is_sequential(model) {
        return Ok(());
    }
    let because = "each client has its own program there, and a stop closes all of them at once; use \
                   percore, uring, epoll, poll or select";
    let (model, service, option) = (model.name(), Service::Shard.name(), "--drain");
    Err(ServeError::NoOption { model, service, option, because })
}

/// What is served.
struct Proxied {
    settings: Settings,
    /// The nodes as HOST:PORT.
    names: Vec<String>,
    tls: Option<Arc<Tls>>,
    reloads: Option<Reloads>,
}

/// `metrics`: where the page with the metrics is served, if anywhere.
fn serve_proxy(
    proxied: Proxied,
    model: Model,
    host: &Host,
    metrics: Option<SocketAddr>,
) -> Result<(), ServeError> {
    let Proxied { settings, names, tls, reloads } = proxied;
    if host.offload.is_some() {
        let because = "it has no long computations; remove --offload";
        let (model, service) = (model.name(), Service::Shard.name());
        return Err(ServeError::NoOffload { model, service, because });
    }
    let forks = matches!(model, Model::Fork | Model::Prefork);
    let counts =
        if forks { Counts::new(regatta_serve::shared_counter)? } else { Counts::default() };
    // A process with several threads must not fork.
    if !forks {
        names::follow(&settings.nodes, names)?;
    }
    let shared = Arc::new(Shared::counting(settings, counts));
    if let Some(reloads) = reloads {
        reloads.follow(Arc::clone(&shared))?;
    }
    let metrics = metrics.map(|listen| metrics_host(listen, host)).transpose()?;
    let page = Metrics::new(Arc::clone(&shared));
    let ended = if is_sequential(model) {
        serve_sequential(Sequential::new(shared), model, host)
    } else {
        with_metrics_page(page, metrics.as_ref(), host, || {
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
    ended.map_err(|error| match error {
        ServeError::Unsupported { model, because, .. } => {
            ServeError::Unsupported { model, service: Service::Shard.name(), because }
        }
        other => other,
    })
}

impl ShardOptions {
    /// Returns the settings, and the nodes as HOST:PORT. `patient`: clients that send nothing are not
    /// disconnected.
    fn settings(&self, patient: bool) -> anyhow::Result<(Settings, Vec<String>)> {
        let (map, nodes, names) = map(self)?;
        let mut settings = Settings::new(map, nodes);
        let read = |user, path: &Option<PathBuf>| {
            path.as_deref().map(|path| credentials(user, path)).transpose()
        };
        settings.auth = Auth {
            clients: read("default", &self.password_file)?,
            nodes: read(&self.node_user, &self.node_password_file)?,
        };
        let bytes = |mib: NonZeroUsize| mib.get().saturating_mul(1 << 20);
        settings.node_timeout = self.node_timeout;
        settings.client_bytes = bytes(self.client_buffer);
        settings.all_bytes = bytes(self.all_buffers);
        settings.request.bulk = bytes(self.max_request);
        settings.request.command = bytes(self.max_request);
        settings.patient = patient;
        settings.splits_writes = self.split_writes == SplitWrites::Allow;
        settings.slow = self.slowlog.0;
        settings.slow_entries = self.slowlog_entries.get();
        Ok((settings, names))
    }
}

/// Returns the map, the nodes, and each of them as HOST:PORT.
fn map(args: &ShardOptions) -> anyhow::Result<(Map, Nodes, Vec<String>)> {
    ensure!(!args.nodes.is_empty(), NO_NODES);
    let is_twemproxy = matches!(args.map, MapName::Ketama | MapName::Modula);
    if args.hash_tag.is_some() && !is_twemproxy {
        bail!("--hash-tag applies only to --map ketama and modula; remove it");
    }
    let count = args.nodes.len();
    if !is_twemproxy {
        let nodes = nodes(args.nodes.iter().map(|node| (&node[..], &node[..])))?;
        let map = match args.map {
            MapName::RedisSharding => Map::new(1, RedisSharding::new(count)?),
            _ => Map::new(1, Slots::even(count)?),
        };
        return Ok((map, nodes, args.nodes.clone()));
    }
    let servers: Vec<Server> =
        args.nodes.iter().map(|line| Ok(line.parse()?)).collect::<anyhow::Result<_>>()?;
    let tag = args.hash_tag.as_deref().map(|tag| {
        <[u8; 2]>::try_from(tag.as_bytes())
            .with_context(|| format!("--hash-tag {tag}: expected two characters, e.g. {{}}"))
    });
    let distribution = match args.map {
        MapName::Modula => Distribution::Modula,
        _ => Distribution::Ketama,
    };
    let nodes = nodes(servers.iter().map(|server| (server.name(), server.address())))?;
    let names = servers.iter().map(|server| server.address().to_string()).collect();
    let map = Twemproxy::new(distribution, args.hash, tag.transpose()?, &servers)?;
    Ok((Map::new(1, map), nodes, names))
}

/// Resolves nodes, each with its name for messages and as HOST:PORT.
fn nodes<'a>(nodes: impl Iterator<Item = (&'a str, &'a str)>) -> anyhow::Result<Nodes> {
    let resolved = nodes.map(|(name, node)| Ok((name.to_string(), names::resolve(node)?)));
    Ok(Nodes::new(resolved.collect::<anyhow::Result<Vec<_>>>()?))
}

/// The largest value of --client-buffer and --max-request, in MiB: that of an argument in Redis. Offsets
/// in a client's stash of replies have 32 bits, and the stash may be several times as large.
const MOST_MIB: usize = 512;

fn mib(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse::<NonZeroUsize>().ok().filter(|number| number.get() <= MOST_MIB);
    number.ok_or_else(|| format!("expected a number from 1 to {MOST_MIB}"))
}

fn slow(text: &str) -> Result<Slow, String> {
    match text {
        "off" => Ok(Slow(None)),
        _ => Ok(Slow(Some(duration(text).map_err(|error| format!("{error}, or off"))?))),
    }
}

/// The largest value of --slowlog-entries. An entry takes up to about a kilobyte, and SLOWLOG GET copies all.
const MOST_ENTRIES: usize = 10_000;

fn slowlog_entries(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse::<NonZeroUsize>().ok().filter(|number| number.get() <= MOST_ENTRIES);
    number.ok_or_else(|| format!("expected a number from 1 to {MOST_ENTRIES}"))
}

fn credentials(user: &str, path: &Path) -> anyhow::Result<Credentials> {
    let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = text.strip_suffix(b"\n").unwrap_or(&text);
    let password = text.strip_suffix(b"\r").unwrap_or(text).to_vec();
    ensure!(!password.is_empty(), "{} contains no password", path.display());
    Ok(Credentials { user: user.as_bytes().to_vec(), password })
}
