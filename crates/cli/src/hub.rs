//! Options of `regatta serve hub`.

use crate::values::{duration, one_of};
use anyhow::{Context, bail};
use clap::Args;
use regatta_serve::{
    Bounds, Host, HubAccess, HubHost, HubLimits, HubSettings, Jwt, Model, Origin, Policy, Service,
    serve_hub,
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use std::{
    fs,
    net::SocketAddr,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// The options.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Options of `hub`")]
#[group(id = "of_the_hub", multiple = true)]
pub struct HubArgs {
    /// Let pages of this origin alone open a WebSocket: a scheme, a host, and a port unless it is the
    /// scheme's own, such as https://example.com; may be given several times. Clients that name no origin
    /// are no pages, and may. Absent: all
    #[arg(long = "origin", value_name = "ORIGIN")]
    origins: Vec<Origin>,
    /// Let only those in who bring the token in this file, in `Authorization: Bearer …` or as
    /// `access_token=…` in the query. Not together with --jwt-key
    #[arg(long, value_name = "PATH", conflicts_with = "jwt_key")]
    token_file: Option<PathBuf>,
    /// Let only those in who bring, in the same places, a JSON Web Token that was signed with the key in this
    /// file: a secret for HS256, of which a line end at the end of the file is no part; a public key in PEM
    /// for the others. A token is valid from 30 s before its `nbf` until 30 s after its `exp`; without these
    /// it is always valid. Other claims, such as `aud` and `iss`, are ignored. The token is checked when the
    /// WebSocket opens: a member whose token expires later stays connected. Not together with --token-file
    #[arg(long, value_name = "PATH", requires = "jwt_algorithm")]
    jwt_key: Option<PathBuf>,
    /// How the JSON Web Tokens are signed: HS256, RS256 or EdDSA
    #[arg(long, value_name = "NAME", requires = "jwt_key",
          value_parser = |text: &str| one_of(text, &Signed::ALL, Signed::name))]
    jwt_algorithm: Option<Signed>,
    /// Speak through TLS (wss://), with the certificates in this file, in PEM: the hub's first
    #[arg(long, value_name = "PATH", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, in PEM
    #[arg(long, value_name = "PATH", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Members at most; more are refused with 503. Absent: as many as the model holds
    #[arg(long, value_name = "N")]
    max_members: Option<NonZeroUsize>,
    /// Members of one room at most. Not on `cluster`: two processes could let in a last one at the same moment
    #[arg(long, value_name = "N")]
    max_room_members: Option<NonZeroUsize>,
    /// Rooms at most in which somebody is, the lobby included. Not on `cluster`
    #[arg(long, value_name = "N")]
    max_rooms: Option<NonZeroUsize>,
    /// Tell the members of a room who comes and goes, and how many they are. Members name themselves with
    /// `?name=…`; names may repeat, and one of more than 128 bytes is left out
    #[arg(long)]
    presence: bool,
    /// Serve a page at / for trying the hub in a browser
    #[arg(long)]
    page: bool,
    /// Compress broadcasts for members who offer permessage-deflate, once for all of them, and let them send
    /// compressed messages
    #[arg(long)]
    deflate: bool,
    /// Send every message at /echo back as it came, for suites that test WebSocket itself
    #[arg(long)]
    echo: bool,
    /// Send a ping to a member that has been silent for this long, which must be less than --idle-timeout;
    /// 0s: no pings. Absent: 20s, or a third of --idle-timeout if that is less
    #[arg(long, value_parser = duration, value_name = "TIME")]
    ping_after: Option<Duration>,
    /// The longest message, in bytes; who sends a longer one is closed. Absent: 1 MiB
    #[arg(long, value_name = "BYTES")]
    longest_message: Option<NonZeroUsize>,
    /// What becomes of a member that reads too slowly: `close` (it is closed with 1013, the default), `skip`
    /// (it misses broadcasts until there is room), `conflate` (it gets the newest only)
    #[arg(long, value_name = "POLICY",
          value_parser = |text: &str| one_of(text, &POLICIES, policy_name))]
    slow: Option<Policy>,
    /// Bytes of broadcasts that wait for a slow member, beyond 64 KiB of its output. Absent: 1 MiB
    #[arg(long, value_name = "BYTES")]
    backlog: Option<NonZeroUsize>,
    /// Broadcasts that wait for a slow member. Absent: 10,000
    #[arg(long, value_name = "N")]
    backlog_messages: Option<NonZeroUsize>,
    /// Show Prometheus metrics at /metrics on this address; on `cluster` without the number of rooms.
    /// Absent: nowhere
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
}

const POLICIES: [Policy; 3] = [Policy::Close, Policy::Skip, Policy::Conflate];

fn policy_name(policy: Policy) -> &'static str {
    match policy {
        Policy::Close => "close",
        Policy::Skip => "skip",
        Policy::Conflate => "conflate",
    }
}

/// How a JSON Web Token is signed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Signed {
    Hs256,
    Rs256,
    EdDsa,
}

impl Signed {
    const ALL: [Signed; 3] = [Signed::Hs256, Signed::Rs256, Signed::EdDsa];

    fn name(self) -> &'static str {
        match self {
            Signed::Hs256 => "HS256",
            Signed::Rs256 => "RS256",
            Signed::EdDsa => "EdDSA",
        }
    }
}

/// Serves a hub; false where another service was asked for. `args` is `None` where no option of the hub was
/// given.
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
    let settings = args.settings(host)?;
    let metrics = args.metrics.map(|listen| Host {
        listen,
        cores: NonZeroUsize::MIN,
        connections: 16,
        offload: None,
        on_ready: |addr| eprintln!("metrics at http://{addr}/metrics"),
        ..host.clone()
    });
    let how = HubHost { host, metrics: metrics.as_ref(), tls: args.tls()? };
    serve_hub(settings, model, how)?;
    Ok(true)
}

impl HubArgs {
    fn settings(&self, host: &Host) -> anyhow::Result<HubSettings> {
        let idle = host.limits.idle;
        if let Some(after) = self.ping_after.filter(|after| *after >= idle) {
            let (after, idle) =
                (humantime::format_duration(after), humantime::format_duration(idle));
            bail!(
                "--ping-after {after} is not shorter than --idle-timeout {idle}: a silent member would be \
                 closed before it is sent a ping; lower the one or raise the other, or write \
                 --ping-after 0s for no pings"
            );
        }
        let usual = HubSettings::default();
        let or = |number: Option<NonZeroUsize>, usual| number.map_or(usual, NonZeroUsize::get);
        Ok(HubSettings {
            longest: or(self.longest_message, usual.longest),
            origins: self.origins.clone(),
            access: self.access()?,
            limits: HubLimits {
                members: or(self.max_members, usize::MAX),
                members_of_room: or(self.max_room_members, usize::MAX),
                rooms: or(self.max_rooms, usize::MAX),
            },
            presence: self.presence,
            page: self.page,
            deflate: self.deflate,
            echo: self.echo,
            ping: match self.ping_after {
                Some(after) => (!after.is_zero()).then_some(after),
                None => usual.ping.map(|after| after.min(idle / 3)),
            },
            silence: idle,
            backlog: Bounds {
                bytes: or(self.backlog, usual.backlog.bytes),
                pushes: or(self.backlog_messages, usual.backlog.pushes),
                policy: self.slow.unwrap_or_default(),
                ..usual.backlog
            },
        })
    }

    fn tls(&self) -> anyhow::Result<Option<Arc<ServerConfig>>> {
        let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let none = |path: &Path, what: &str| format!("{} holds no {what} in PEM", path.display());
        let certs = CertificateDer::pem_slice_iter(&read(cert)?)
            .collect::<Result<Vec<_>, _>>()
            .with_context(|| none(cert, "certificate"))?;
        if certs.is_empty() {
            bail!(none(cert, "certificate"));
        }
        let private =
            PrivateKeyDer::from_pem_slice(&read(key)?).with_context(|| none(key, "private key"))?;
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(certs, private)
            .with_context(|| {
                format!("{} and {} do not belong together", cert.display(), key.display())
            })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Some(Arc::new(config)))
    }

    fn access(&self) -> anyhow::Result<HubAccess> {
        if let Some(path) = &self.token_file {
            let text = String::from_utf8(read(path)?);
            let text =
                text.with_context(|| format!("the token in {} is no text", path.display()))?;
            let token = text.trim();
            if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                bail!(
                    "{} holds no token: expected one word of printable ASCII characters",
                    path.display()
                );
            }
            return Ok(HubAccess::Token(token.into()));
        }
        let (Some(path), Some(signed)) = (&self.jwt_key, self.jwt_algorithm) else {
            return Ok(HubAccess::Open);
        };
        let key = read(path)?;
        let wrong =
            || format!("{} holds no public key in PEM for {}", path.display(), signed.name());
        let jwt = match signed {
            Signed::Hs256 if secret(&key).len() < 32 => {
                bail!(
                    "{} is too short a secret for HS256: expected 32 bytes at least (RFC 7518, 3.2)",
                    path.display()
                )
            }
            Signed::Hs256 => Jwt::hs256(secret(&key)),
            Signed::Rs256 => Jwt::rs256(&key).with_context(wrong)?,
            Signed::EdDsa => Jwt::eddsa(&key).with_context(wrong)?,
        };
        Ok(HubAccess::Jwt(Box::new(jwt)))
    }
}

/// The secret in a file, without the line end that an editor or `echo` appends.
fn secret(file: &[u8]) -> &[u8] {
    let Some(line) = file.strip_suffix(b"\n") else { return file };
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
