//! Options of `regatta serve hub`.

use crate::{
    options::{
        broker::{BrokerOptions, TlsOptions, check_with_broker},
        certificate::RenewedCertificate,
        metrics::metrics_host,
        renewed::Renewed,
        rooms::RoomTables,
        values::{duration, history_time, policy, policy_name},
        word::{read, word},
    },
    output,
};
use anyhow::{Context, bail};
use clap::Args;
use regatta_serve::{
    Bounds, HistoryLimits, Host, HubAccess, HubApi, HubBroker, HubHost, HubLimits, HubMemory,
    HubSettings, Jwt, Model, Origin, Policy, RoomRule, Service, Started, check_hub, serve_hub,
};
use rustls::ServerConfig;
use std::{
    net::SocketAddr,
    num::{NonZeroU32, NonZeroUsize},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

/// The options.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Options of `hub`")]
#[group(id = "of_the_hub", multiple = true)]
pub struct HubArgs {
    /// Allow WebSockets only from pages of this origin, e.g. https://example.com: a scheme, a host, and
    /// a port unless it is the scheme's default. Repeatable. Clients that send no Origin header are not
    /// web pages and are allowed. Default: all origins
    #[arg(long = "origin", value_name = "ORIGIN")]
    origins: Vec<Origin>,
    /// Require the token in this file, as `Authorization: Bearer …` or as `access_token=…` in the
    /// query. Conflicts with --jwt-key
    #[arg(long, value_name = "PATH", conflicts_with = "jwt_key")]
    token_file: Option<PathBuf>,
    /// Require a JSON Web Token, in the same places, signed with the key in this file: a secret for
    /// HS256 (a newline at the end of the file is ignored), a public key in PEM for the other
    /// algorithms. A token is valid from 30 s before its `nbf` until 30 s after its `exp`; without
    /// these it is always valid. A member whose token expires is disconnected. `channels` and `caps` limit
    /// the token to some rooms. A renewed key is used without a restart. Conflicts with --token-file
    #[arg(long, value_name = "PATH", requires = "jwt_algorithm")]
    jwt_key: Option<PathBuf>,
    /// Signature algorithm of the JSON Web Tokens: HS256, RS256 or EdDSA
    #[arg(long, value_name = "NAME", requires = "jwt_key", hide_possible_values = true)]
    jwt_algorithm: Option<Signed>,
    /// Like --jwt-key, with the public keys in this JSON Web Key Set: RS256, ES256 or EdDSA
    #[arg(long, value_name = "PATH", conflicts_with_all = ["jwt_key", "token_file"])]
    jwks: Option<PathBuf>,
    /// Refuse JSON Web Tokens whose `aud` is not, or does not contain, this
    #[arg(long, value_name = "TEXT")]
    jwt_audience: Option<String>,
    /// Refuse JSON Web Tokens whose `iss` is not this
    #[arg(long, value_name = "TEXT")]
    jwt_issuer: Option<String>,
    /// Let backends publish, disconnect members and see who is in which room, at /api/METHOD, with the key in
    /// this file as `X-API-Key`. The form is that of Centrifugo, so its server libraries work
    #[arg(long, value_name = "PATH")]
    api_key_file: Option<PathBuf>,
    /// Serve over TLS (wss://) with the certificates in this PEM file; the hub's own certificate comes
    /// first
    #[arg(long, value_name = "PATH", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, in PEM
    #[arg(long, value_name = "PATH", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Maximum number of members; more are refused with 503. Default: as many as the model supports
    #[arg(long, value_name = "N")]
    max_members: Option<NonZeroUsize>,
    /// Maximum number of members of one room. Not on `cluster`, where two processes could admit the
    /// last member at the same time
    #[arg(long, value_name = "N")]
    max_room_members: Option<NonZeroUsize>,
    /// Maximum number of rooms that are not empty, including the lobby. Not on `cluster`
    #[arg(long, value_name = "N")]
    max_rooms: Option<NonZeroUsize>,
    /// Maximum number of messages of one member per second; more get an error. A second's worth may come at
    /// once
    #[arg(long, value_name = "N")]
    member_rate: Option<NonZeroU32>,
    /// Maximum number of broadcasts of the members of one room per second; more get an error. On `cluster`,
    /// in each process
    #[arg(long, value_name = "N")]
    room_rate: Option<NonZeroU32>,
    /// Maximum number of members that join per second; more are refused with 503 and a Retry-After. On
    /// `cluster`, in each process
    #[arg(long, value_name = "N")]
    join_rate: Option<NonZeroU32>,
    /// Notify the members of a room who joins and leaves, and how many members it has. Members choose a
    /// name with `?name=…`; names need not be unique, and a name of more than 128 bytes is omitted
    #[arg(long)]
    presence: bool,
    /// Serve a web page at / to try the hub in a browser
    #[arg(long)]
    page: bool,
    /// Offer permessage-deflate: each broadcast is compressed once for all members that negotiated it,
    /// and these members may send compressed messages
    #[arg(long)]
    deflate: bool,
    /// Echo every message at /echo unchanged, for WebSocket conformance suites
    #[arg(long)]
    echo: bool,
    /// Let client libraries of Centrifugo connect at /connection/websocket, in JSON: a connection may be in
    /// several rooms. On percore, uring, epoll, poll and select
    #[arg(long)]
    centrifuge: bool,
    /// Ping a member that has been silent for this long; must be less than --idle-timeout. 0s: no
    /// pings. Default: 20s, or a third of --idle-timeout if that is less
    #[arg(long, value_parser = duration, value_name = "TIME")]
    ping_after: Option<Duration>,
    /// Maximum message size, in bytes; a member that sends a longer message is closed. Default: 1 MiB
    #[arg(long, value_name = "BYTES")]
    longest_message: Option<NonZeroUsize>,
    /// Policy for slow consumers: `close` (the member is closed with 1013; the default), `skip` (it
    /// misses broadcasts until its backlog has room), `conflate` (it receives only the newest
    /// broadcast)
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    slow: Option<Policy>,
    /// Maximum backlog of a slow member, in bytes of broadcasts beyond 64 KiB of output. Default: 1 MiB
    #[arg(long, value_name = "BYTES")]
    backlog: Option<NonZeroUsize>,
    /// Maximum backlog of a slow member, in broadcasts. Default: 10,000
    #[arg(long, value_name = "N")]
    backlog_messages: Option<NonZeroUsize>,
    /// Maximum memory that all members may make a process hold, in MiB: broadcasts, and what a member
    /// has from 16 KiB on (unread output, incomplete messages, broadcasts without a result). A member may
    /// have at most as much as is still free; one that needs more, and beyond three quarters of the limit
    /// every one that does not keep up, is disconnected. `cluster` has a process per core. Default: 256
    /// per core
    #[arg(long, value_name = "MIB")]
    memory: Option<NonZeroUsize>,
    /// Keep this many of the newest messages of each room, for members that come back: each message gets an
    /// offset, and a member that names its last one when it joins gets what it missed. Not on `cluster`, and
    /// only with --slow close. Default: 0
    #[arg(long, value_name = "N")]
    history: Option<usize>,
    /// How long they are kept, from 1s to 1d; also of a room without members. Default: 5m
    #[arg(long, value_name = "TIME", value_parser = history_time)]
    history_ttl: Option<Duration>,
    /// Join other hubs through this Redis (from 6.0 on) or Valkey server, redis://HOST:PORT, so that their members
    /// are in the same rooms; or through the master MASTER of Sentinels,
    /// redis+sentinel://HOST:PORT,HOST:PORT,HOST:PORT/MASTER; or through a cluster (from 7.0 on),
    /// redis+cluster://HOST:PORT,HOST:PORT,HOST:PORT with some of its nodes. With rediss in place of redis, over TLS. With
    /// --history, it keeps the messages. Only on models with an event loop
    #[arg(long, value_name = "URL")]
    broker: Option<String>,
    /// The user of the password for the broker. Default: `default`
    #[arg(long, value_name = "NAME", requires = "broker_password_file")]
    broker_user: Option<String>,
    /// The file with the password for the broker. It is read again when it changes: each new connection gets the
    /// newest password. Default: none is sent
    #[arg(long, value_name = "PATH", requires = "broker")]
    broker_password_file: Option<PathBuf>,
    /// The user of the password for the Sentinels. Default: `default`
    #[arg(long, value_name = "NAME", requires = "broker_sentinel_password_file")]
    broker_sentinel_user: Option<String>,
    /// The file with the password for the Sentinels, read like --broker-password-file. Default: none is sent
    #[arg(long, value_name = "PATH", requires = "broker")]
    broker_sentinel_password_file: Option<PathBuf>,
    /// Trust the certificate of a broker with rediss:// if a CA in this PEM file has signed it, and those of its
    /// Sentinels or of its cluster. The files for TLS are read again when they change
    #[arg(long, value_name = "PATH", requires = "broker")]
    broker_ca: Option<PathBuf>,
    /// The hub's certificate for a broker that requires one, in PEM
    #[arg(long, value_name = "PATH", requires = "broker_key", requires = "broker_ca")]
    broker_cert: Option<PathBuf>,
    /// The private key of --broker-cert, in PEM
    #[arg(long, value_name = "PATH", requires = "broker_cert")]
    broker_key: Option<PathBuf>,
    /// The name or IP address that the certificate of the broker must have, and those of its Sentinels or of its
    /// cluster. Default: the host in --broker; required with Sentinels and in a cluster
    #[arg(long, value_name = "NAME", requires = "broker_ca")]
    broker_server_name: Option<String>,
    /// The start of all channels at the broker: hubs with the same one have the same rooms. In a cluster it is their hash
    /// tag. Default: regatta
    #[arg(long, value_name = "TEXT", requires = "broker")]
    broker_prefix: Option<String>,
    /// Serve Prometheus metrics at /metrics on this address, on `cluster` without the number of rooms; also
    /// /live, and /ready, which answers with 503 once a stop is requested. Default: no metrics
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
}

/// Default memory per core, in MiB.
const MEMORY_PER_CORE: usize = 256;

/// Minimum length of the key of the API, in characters: as of a random number of 96 bits in base64.
const SHORTEST_API_KEY: usize = 16;

/// Signature algorithm of a JSON Web Token.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
enum Signed {
    #[value(name = "HS256")]
    Hs256,
    #[value(name = "RS256")]
    Rs256,
    #[value(name = "EdDSA")]
    EdDsa,
}

/// Serves a hub. Returns false if another service was requested. `args` is `None` if no option of the
/// hub was given.
pub fn serve(
    args: Option<HubArgs>,
    service: Service,
    model: Model,
    host: &Host,
) -> anyhow::Result<bool> {
    if service != Service::Hub {
        if args.is_some() {
            bail!("options of `hub` apply only to `serve hub` (`regatta serve --help`)");
        }
        return Ok(false);
    }
    let args = args.unwrap_or_default();
    args.serve(&RoomTables::default(), model, host, Started::silently())?;
    Ok(true)
}

impl HubArgs {
    /// Serves a hub. `started`: what happens then.
    pub fn serve(
        &self,
        rooms: &RoomTables,
        model: Model,
        host: &Host,
        started: Started<'_>,
    ) -> anyhow::Result<()> {
        let settings = self.settings(rooms, model, host)?;
        let metrics = self.metrics.map(|listen| metrics_host(listen, host)).transpose()?;
        let how = HubHost { host, metrics: metrics.as_ref(), tls: self.tls()?, started };
        Ok(serve_hub(settings, model, how)?)
    }

    /// Checks the options, and reads the files that they name.
    pub fn check(&self, rooms: &RoomTables, model: Model, host: &Host) -> anyhow::Result<()> {
        check_hub(&self.settings(rooms, model, host)?, model, host)?;
        self.tls().map(drop)
    }

    /// Returns the settings, and reads the files of tokens and keys.
    ///
    /// # Errors
    /// Says which options contradict each other, or which file cannot be used.
    pub fn settings(
        &self,
        rooms: &RoomTables,
        model: Model,
        host: &Host,
    ) -> anyhow::Result<HubSettings> {
        let idle = host.limits.idle;
        if let Some(after) = self.ping_after.filter(|after| *after >= idle) {
            let (after, idle) =
                (humantime::format_duration(after), humantime::format_duration(idle));
            bail!(
                "--ping-after {after} is not shorter than --idle-timeout {idle}: a silent member would be \
                 closed before it receives a ping; lower --ping-after or raise --idle-timeout, or use \
                 --ping-after 0s for no pings"
            );
        }
        let usual = HubSettings::default();
        let or = |number: Option<NonZeroUsize>, usual| number.map_or(usual, NonZeroUsize::get);
        let longest = or(self.longest_message, usual.longest);
        let cores = if model == Model::Cluster { 1 } else { host.cores.get() };
        let memory = or(self.memory, MEMORY_PER_CORE * cores).saturating_mul(1 << 20);
        if longest > memory / 8 {
            bail!(
                "--memory has room for less than eight messages of --longest-message {longest} bytes; raise \
                 --memory to at least {} MiB, or lower --longest-message",
                longest.saturating_mul(8).div_ceil(1 << 20)
            );
        }
        let history = self.history(rooms.rules())?;
        let settings = HubSettings {
            longest,
            origins: self.origins.clone(),
            access: self.access()?,
            api: self.api()?,
            broker: self.broker()?,
            limits: HubLimits {
                members: or(self.max_members, usize::MAX),
                members_of_room: or(self.max_room_members, usize::MAX),
                rooms: or(self.max_rooms, usize::MAX),
                messages_of_member: self.member_rate,
                broadcasts_of_room: self.room_rate,
                joins: self.join_rate,
                history,
            },
            rooms: rooms.rules().to_vec(),
            presence: self.presence,
            page: self.page,
            deflate: self.deflate,
            echo: self.echo,
            centrifuge: self.centrifuge,
            ping: match self.ping_after {
                Some(after) => (!after.is_zero()).then_some(after),
                None => usual.ping.map(|after| after.min(idle / 3)),
            },
            silence: idle,
            backlog: Bounds {
                bytes: or(self.backlog, usual.backlog.bytes),
                pushes: or(self.backlog_messages, usual.backlog.pushes),
                policy: self.slow.unwrap_or_default(),
                memory: Arc::new(HubMemory::new(memory)),
                ..usual.backlog
            },
            log: output::log,
            clock: Some(Instant::now),
        };
        check_with_broker(&settings)?;
        Ok(settings)
    }

    fn broker(&self) -> anyhow::Result<Option<Arc<HubBroker>>> {
        let Some(url) = &self.broker else { return Ok(None) };
        let options = BrokerOptions {
            url,
            user: self.broker_user.as_deref(),
            password: self.broker_password_file.as_deref(),
            prefix: self.broker_prefix.as_deref(),
            sentinel_user: self.broker_sentinel_user.as_deref(),
            sentinel_password: self.broker_sentinel_password_file.as_deref(),
            tls: TlsOptions {
                ca: self.broker_ca.as_deref(),
                certificate: self.broker_cert.as_deref(),
                key: self.broker_key.as_deref(),
                server_name: self.broker_server_name.as_deref(),
            },
        };
        Ok(Some(Arc::new(options.read()?)))
    }

    /// How much is kept of the messages of rooms. Fails if a room that keeps some lets slow members miss them.
    fn history(&self, rules: &[RoomRule]) -> anyhow::Result<HistoryLimits> {
        let history = HistoryLimits {
            messages: self.history.unwrap_or(0),
            time: self.history_ttl.unwrap_or(HistoryLimits::NONE.time),
        };
        let slow = self.slow.unwrap_or_default();
        let why = "a slow member of a room with a history reads what it missed there, and gets a gap where the \
                   history no longer has it";
        if history.are_kept() && slow != Policy::Close {
            bail!("--slow {} and --history: {why}; leave one out", policy_name(slow));
        }
        for rule in rules {
            let (kept, slow) =
                (rule.history.unwrap_or(history.messages), rule.slow.unwrap_or(slow));
            if kept > 0 && slow != Policy::Close {
                let (pattern, slow) = (rule.pattern.to_string(), policy_name(slow));
                bail!(
                    "[[room]] with match {pattern:?}: slow = \"{slow}\" and history = {kept}: {why}; set slow = \
                     \"close\" or history = 0 there"
                );
            }
        }
        let is_kept = |rule: &RoomRule| rule.history.is_some_and(|messages| messages > 0);
        if self.history_ttl.is_some() && !history.are_kept() && !rules.iter().any(is_kept) {
            bail!("--history-ttl has no effect without --history, or history in a table [[room]]");
        }
        Ok(history)
    }

    fn tls(&self) -> anyhow::Result<Option<Arc<ServerConfig>>> {
        let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let config = ServerConfig::builder().with_no_client_auth();
        let certificate = RenewedCertificate::read(cert, key, config.crypto_provider())?;
        let mut config = config.with_cert_resolver(Arc::new(certificate));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Some(Arc::new(config)))
    }

    fn access(&self) -> anyhow::Result<HubAccess> {
        if (self.jwks.is_none() && self.jwt_key.is_none())
            && (self.jwt_audience.is_some() || self.jwt_issuer.is_some())
        {
            bail!("--jwt-audience and --jwt-issuer need the keys of tokens: --jwks or --jwt-key");
        }
        if let Some(path) = &self.token_file {
            return Ok(HubAccess::Token(word(path, "token")?.into()));
        }
        let (path, signed) = match (&self.jwks, &self.jwt_key) {
            (Some(path), _) => (path.clone(), None),
            (None, Some(path)) => (path.clone(), self.jwt_algorithm),
            (None, None) => return Ok(HubAccess::Open),
        };
        let (audience, issuer) = (self.jwt_audience.clone(), self.jwt_issuer.clone());
        let keys = Renewed::read(vec![path.clone()], "set of token keys", move || {
            let keys = token_keys(&path, signed)?;
            for ignored in keys.ignored() {
                output::message(&format!("regatta: {}: {ignored}", path.display()));
            }
            Ok(keys.requiring(audience.clone(), issuer.clone()))
        })?;
        Ok(HubAccess::Jwt(Arc::new(move || keys.current())))
    }

    fn api(&self) -> anyhow::Result<Option<Arc<HubApi>>> {
        let Some(path) = &self.api_key_file else { return Ok(None) };
        let key = word(path, "key")?;
        if key.len() < SHORTEST_API_KEY {
            bail!(
                "the key in {} is too short: expected at least {SHORTEST_API_KEY} characters",
                path.display()
            );
        }
        Ok(Some(Arc::new(HubApi::new(&key))))
    }
}

/// The keys of tokens in a file: a key for this algorithm, or a key set.
fn token_keys(path: &Path, signed: Option<Signed>) -> anyhow::Result<Jwt> {
    let key = read(path)?;
    let Some(signed) = signed else {
        return Jwt::key_set(&key).with_context(|| format!("cannot use {}", path.display()));
    };
    let wrong = |name| format!("{} contains no public key in PEM for {name}", path.display());
    Ok(match signed {
        Signed::Hs256 if secret(&key).len() < 32 => {
            bail!(
                "the secret in {} is too short for HS256: expected at least 32 bytes (RFC 7518, 3.2)",
                path.display()
            )
        }
        Signed::Hs256 => Jwt::hs256(secret(&key)),
        Signed::Rs256 => Jwt::rs256(&key).with_context(|| wrong("RS256"))?,
        Signed::EdDsa => Jwt::eddsa(&key).with_context(|| wrong("EdDSA"))?,
    })
}

/// The secret in a file, without the newline that an editor or `echo` appends.
fn secret(file: &[u8]) -> &[u8] {
    let Some(line) = file.strip_suffix(b"\n") else { return file };
    line.strip_suffix(b"\r").unwrap_or(line)
}
