//! Options of the proxy, and the settings that follow from them.

use super::{names, sentinels};
use crate::options::values::{duration, limit, one_of};
use anyhow::{Context, bail, ensure};
use regatta_keyspace::map::{
    Map, RedisSharding, Slots, Twemproxy,
    twemproxy::{Distribution, Hash, Server},
};
use regatta_shard::{Auth, Credentials, Nodes, Settings};
use sentinels::Managed;
use std::{
    fs,
    net::SocketAddr,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

pub const NO_NODES: &str = "`shard` needs nodes: --nodes 127.0.0.1:6379,127.0.0.1:6380";

/// Options of the proxy on every I/O model.
#[derive(Debug, clap::Args)]
#[group(id = "of_the_proxy", multiple = true)]
pub struct ShardOptions {
    /// The nodes (at least one) as HOST:PORT, separated by commas; or sentinel:NAME, see --sentinels. With --map
    /// ketama or modula, write them as in twemproxy's configuration: HOST:PORT:WEIGHT, or 'HOST:PORT:WEIGHT NAME'
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    nodes: Vec<String>,
    /// The Sentinels (at most 32) as HOST:PORT, separated by commas, if the nodes are masters that they manage: write
    /// --nodes sentinel:NAME with the name of each master. What a majority of them gives counts. Not on threads, green,
    /// fork and prefork
    #[arg(long, value_name = "SENTINELS", value_delimiter = ',')]
    sentinels: Vec<String>,
    /// The user name that the proxy sends to the Sentinels
    #[arg(
        long,
        default_value = "default",
        value_name = "NAME",
        requires = "sentinel_password_file"
    )]
    sentinel_user: String,
    /// The file with the password that the proxy sends to the Sentinels
    #[arg(long, value_name = "PATH", requires = "sentinels")]
    sentinel_password_file: Option<PathBuf>,
    /// How keys map to nodes. slots: 16,384 slots as in Redis Cluster, in equal ranges; redissharding:
    /// as in the program RedisSharding; ketama, modula: as in twemproxy; cluster: the nodes are a Redis
    /// Cluster, which reports its slots, and --nodes are some of them. Not on threads, green, fork and prefork
    #[arg(long, default_value = "slots", value_name = "MAP", hide_possible_values = true)]
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
    #[arg(long, default_value = "allow", value_name = "HOW", hide_possible_values = true)]
    split_writes: SplitWrites,
    /// Publish/subscribe with --map cluster. classic: as clients send it; the nodes pass each message on to all others.
    /// sharded: SUBSCRIBE, UNSUBSCRIBE and PUBLISH are sent as SSUBSCRIBE, SUNSUBSCRIBE and SPUBLISH, so all
    /// publishers and subscribers must use such proxies
    #[arg(long, default_value = "classic", value_name = "HOW", hide_possible_values = true)]
    pubsub: PubSub,
    /// On a reload (SIGHUP), accept nodes and a map that would look for keys at other nodes than before
    #[arg(long)]
    pub allow_remap: bool,
    /// Who checks the passwords of clients. one: the proxy, with --password-file, if any; nodes: the nodes. AUTH and
    /// HELLO of a client are then tried at a node, and its requests are sent as its user, whose rights the nodes check.
    /// At most 64 users at once. Not on threads, green, fork and prefork
    #[arg(long, default_value = "one", value_name = "WHO", hide_possible_values = true)]
    auth: Authority,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum MapName {
    Slots,
    #[value(name = "redissharding")]
    RedisSharding,
    Ketama,
    Modula,
    Cluster,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SplitWrites {
    Allow,
    Refuse,
}

/// How messages are published in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum PubSub {
    Classic,
    Sharded,
}

/// Who checks the passwords of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Authority {
    One,
    Nodes,
}

impl ShardOptions {
    /// The option that only some models support, if it was given.
    pub fn option(&self) -> Option<&'static str> {
        let is_cluster = self.is_cluster().then_some("--map cluster");
        let is_managed = self.is_managed().then_some("--sentinels");
        is_cluster.or(is_managed).or((self.auth == Authority::Nodes).then_some("--auth nodes"))
    }

    /// Whether the nodes are those of a Redis Cluster.
    pub fn is_cluster(&self) -> bool {
        self.map == MapName::Cluster
    }

    /// Whether Sentinels manage the masters of the nodes.
    pub fn is_managed(&self) -> bool {
        !self.sentinels.is_empty()
    }

    fn auth(&self) -> anyhow::Result<Auth> {
        let read = |user, path: &Option<PathBuf>| {
            path.as_deref().map(|path| credentials(user, path)).transpose()
        };
        let of_nodes = self.auth == Authority::Nodes;
        for (option, path) in [
            ("--password-file", &self.password_file),
            ("--node-password-file", &self.node_password_file),
        ] {
            ensure!(
                !of_nodes || path.is_none(),
                "{option} has no use with --auth nodes, with which each client sends its own password to the \
                 nodes; remove one of the two"
            );
        }
        Ok(Auth {
            clients: read("default", &self.password_file)?,
            nodes: read(&self.node_user, &self.node_password_file)?,
            of_nodes,
        })
    }

    /// Returns the settings, and the nodes as HOST:PORT, except those of a cluster or of Sentinels. `patient`: clients
    /// that send nothing are not disconnected. `present`: the nodes whose addresses are preferred, if they have several.
    pub fn settings(
        &self,
        patient: bool,
        present: Option<&Nodes>,
    ) -> anyhow::Result<(Settings, Vec<String>)> {
        let (mut settings, names) = match self.is_cluster() {
            true => (Settings::of_cluster(seeds(self)?), Vec::new()),
            false => match sentinels::managed(&self.nodes, &self.sentinels)? {
                Some(managed) => (managed_settings(self, &managed)?, Vec::new()),
                None => {
                    let (map, nodes, names) = map(self, present)?;
                    (Settings::new(map, nodes), names)
                }
            },
        };
        if self.is_cluster() {
            settings.seed_names = self.nodes.clone().into();
        }
        settings.auth = self.auth()?;
        let bytes = |mib: NonZeroUsize| mib.get().saturating_mul(1 << 20);
        settings.node_timeout = self.node_timeout;
        settings.client_bytes = bytes(self.client_buffer);
        settings.all_bytes = bytes(self.all_buffers);
        settings.request.bulk = bytes(self.max_request);
        settings.request.command = bytes(self.max_request);
        settings.patient = patient;
        settings.splits_writes = self.split_writes == SplitWrites::Allow;
        settings.shards_pubsub = self.pubsub == PubSub::Sharded;
        ensure!(
            !settings.shards_pubsub || self.is_cluster(),
            "--pubsub sharded applies only to --map cluster; remove it"
        );
        settings.slow = self.slowlog.0;
        settings.slow_entries = self.slowlog_entries.get();
        Ok((settings, names))
    }
}

/// Returns the addresses of some nodes of a cluster, which report the others. One that cannot be resolved is left out if
/// another one can.
fn seeds(args: &ShardOptions) -> anyhow::Result<Vec<SocketAddr>> {
    ensure!(!args.nodes.is_empty(), NO_NODES);
    ensure!(
        args.hash_tag.is_none(),
        "--hash-tag applies only to --map ketama and modula; remove it"
    );
    ensure!(
        args.auth == Authority::One,
        "--auth nodes is not possible with --map cluster; use --password-file and --node-password-file"
    );
    ensure!(
        args.sentinels.is_empty() && !args.nodes.iter().any(|node| node.starts_with("sentinel:")),
        "a Redis Cluster has no Sentinels; remove --sentinels, and give nodes of the cluster as HOST:PORT"
    );
    names::seeds(&args.nodes)
}

/// Returns the map, the nodes, and each of them as HOST:PORT.
fn map(args: &ShardOptions, present: Option<&Nodes>) -> anyhow::Result<(Map, Nodes, Vec<String>)> {
    ensure!(!args.nodes.is_empty(), NO_NODES);
    let is_twemproxy = matches!(args.map, MapName::Ketama | MapName::Modula);
    if args.hash_tag.is_some() && !is_twemproxy {
        bail!("--hash-tag applies only to --map ketama and modula; remove it");
    }
    if !is_twemproxy {
        let nodes = nodes(args.nodes.iter().map(|node| (&node[..], &node[..])), present)?;
        return Ok((by_order(args)?, nodes, args.nodes.clone()));
    }
    let servers: Vec<Server> =
        args.nodes.iter().map(|line| Ok(line.parse()?)).collect::<anyhow::Result<_>>()?;
    let nodes = nodes(servers.iter().map(|server| (server.name(), server.address())), present)?;
    let names = servers.iter().map(|server| server.address().to_string()).collect();
    Ok((by_servers(args, &servers)?, nodes, names))
}

/// The map in which only the order of the nodes counts.
fn by_order(args: &ShardOptions) -> anyhow::Result<Map> {
    let count = args.nodes.len();
    Ok(match args.map {
        MapName::RedisSharding => Map::new(1, RedisSharding::new(count)?),
        _ => Map::new(1, Slots::even(count)?),
    })
}

/// The map of twemproxy.
fn by_servers(args: &ShardOptions, servers: &[Server]) -> anyhow::Result<Map> {
    let tag = args.hash_tag.as_deref().map(|tag| {
        <[u8; 2]>::try_from(tag.as_bytes())
            .with_context(|| format!("--hash-tag {tag}: expected two characters, e.g. {{}}"))
    });
    let distribution = match args.map {
        MapName::Modula => Distribution::Modula,
        _ => Distribution::Ketama,
    };
    let map = Twemproxy::new(distribution, args.hash, tag.transpose()?, servers)?;
    Ok(Map::new(1, map))
}

/// The settings for nodes that Sentinels manage.
fn managed_settings(args: &ShardOptions, managed: &[Managed]) -> anyhow::Result<Settings> {
    ensure!(
        args.auth == Authority::One,
        "--auth nodes is not possible with --sentinels; use --password-file and --node-password-file"
    );
    let is_twemproxy = matches!(args.map, MapName::Ketama | MapName::Modula);
    ensure!(
        args.hash_tag.is_none() || is_twemproxy,
        "--hash-tag applies only to --map ketama and modula; remove it"
    );
    let masters: Vec<String> = managed.iter().map(|node| node.master.clone()).collect();
    let (map, names) = match is_twemproxy {
        true => {
            let servers =
                managed.iter().map(Managed::server).collect::<anyhow::Result<Vec<_>>>()?;
            let names = servers.iter().map(|server| server.name().to_owned()).collect();
            (by_servers(args, &servers)?, names)
        }
        false => (by_order(args)?, masters.clone()),
    };
    let password = args.sentinel_password_file.as_deref();
    let auth = password.map(|path| credentials(&args.sentinel_user, path)).transpose()?;
    let sentinels = sentinels::resolved(&args.sentinels, masters, auth)?;
    Ok(Settings::of_sentinels(map, names, sentinels))
}

/// Resolves nodes, each with its name for messages and as HOST:PORT. One of the same name in `present` has a preferred
/// address.
fn nodes<'a>(
    nodes: impl Iterator<Item = (&'a str, &'a str)>,
    present: Option<&Nodes>,
) -> anyhow::Result<Nodes> {
    let before = |name: &str| {
        let present = present?;
        let node = (0..present.count()).find(|node| present.name(*node) == name)?;
        Some(present.address(node))
    };
    let resolved =
        nodes.map(|(name, node)| Ok((name.to_string(), names::resolve(node, before(name))?)));
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
