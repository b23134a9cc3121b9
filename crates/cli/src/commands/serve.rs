//! `regatta serve`, `regatta models`, `regatta services`.

use crate::{
    commands::shard::{self, ShardOptions},
    exit::Outcome,
    options::{
        canned::CannedArgs,
        hub::{self, HubArgs},
        planted::Planted,
        values::{duration, limit, one_of},
    },
    output,
};
use anyhow::{Context, bail};
use regatta_report::grouped;
use regatta_script::hash_file;
use regatta_serve::{Host, Implementation, Model, Service, Stop, Traits, serve, serve_http2};
use regatta_service::Limits;
use std::{
    env,
    fs::File,
    net::SocketAddr,
    num::NonZeroUsize,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    thread::available_parallelism,
    time::Duration,
};

/// Run a built-in server. It prints `listening on ADDR` when it is ready, and drains its
/// connections on SIGTERM and SIGINT.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta serve double --model epoll --listen 127.0.0.1:4000
  regatta serve double --model green --cores 2 --idle-timeout 5s
  printf '21\\nend\\n' | nc 127.0.0.1 4000
  regatta serve hello --model uring --listen 127.0.0.1:8080
  curl -i http://127.0.0.1:8080/
  regatta serve hello --http2 --listen 127.0.0.1:8080
  curl -i --http2-prior-knowledge http://127.0.0.1:8080/
  regatta serve hash --offload 2 --listen 127.0.0.1:8080
  curl -i http://127.0.0.1:8080/hash?n=1000
  regatta serve hub --model percore --origin https://example.com
  regatta serve shard --model threads --nodes 127.0.0.1:6379,127.0.0.1:6380")]
pub struct ServeArgs {
    /// The service (see `regatta services`)
    #[arg(value_parser = |text: &str| one_of(text, &Service::ALL, Service::name))]
    service: Service,
    /// The I/O model (see `regatta models`)
    #[arg(long, default_value = "epoll",
          value_parser = |text: &str| one_of(text, &Model::ALL, Model::name))]
    model: Model,
    /// Run the hand-written program in the model's style instead of the shared service
    #[arg(long)]
    by_hand: bool,
    /// For `hello` and `hash`: speak HTTP/2 instead of HTTP/1.1, without TLS and without an upgrade:
    /// clients start with its preface (prior knowledge)
    #[arg(long)]
    http2: bool,
    /// For `hash`: the file to read for every request, at most 1 MiB. Default: the file named by the
    /// environment variable HASH_FILE; if that is unset, a file without a name that has the 64 KiB that
    /// `regatta load` expects. To measure `uring`, name a file: a ring opens the other one on a worker
    /// thread
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// For `hash`: run long hashes on this many extra threads, so that small requests do not wait for
    /// large ones. For models whose connections share a thread
    #[arg(long, value_name = "N")]
    offload: Option<NonZeroUsize>,
    /// The address to listen on; port 0 lets the system choose
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR")]
    listen: SocketAddr,
    /// Threads or processes of the models that have one per core. Default: all cores that this process
    /// may use
    #[arg(long, value_name = "N")]
    cores: Option<NonZeroUsize>,
    /// Close a connection that has been silent for this long
    #[arg(long, default_value = "60s", value_parser = limit, value_name = "TIME")]
    idle_timeout: Duration,
    /// Close a connection whose request takes longer than this to arrive; in `hub` also one whose
    /// WebSocket message or frame does. Not used by `shard`
    #[arg(long, default_value = "10s", value_parser = limit, value_name = "TIME")]
    request_timeout: Duration,
    /// Maximum number of open connections; more wait. Default: as many as the model supports
    /// (see `regatta models`)
    #[arg(long, value_name = "N")]
    max_connections: Option<NonZeroUsize>,
    /// How long connections may take to finish pending replies after SIGTERM or SIGINT
    #[arg(long, default_value = "5s", value_parser = duration, value_name = "TIME")]
    grace: Duration,
    #[command(flatten)]
    canned: CannedArgs,
    #[command(flatten)]
    hub: Option<HubArgs>,
    #[command(flatten, next_help_heading = "Options of `shard`")]
    shard: Option<ShardOptions>,
    #[command(flatten)]
    planted: Planted,
}

/// Serves until a signal.
pub fn run(args: ServeArgs) -> anyhow::Result<Outcome> {
    regatta_serve::raise_open_files();
    let stop = Stop::new()?;
    stop.on_signals(Duration::ZERO)?;
    let host = Host {
        cores: args.cores.map_or_else(available_parallelism, Ok)?,
        limits: Limits { idle: args.idle_timeout, request: args.request_timeout },
        connections: args.max_connections.map_or(usize::MAX, NonZeroUsize::get),
        offload: args.offload,
        grace: args.grace,
        on_ready: output::print_address,
        ..Host::new(args.listen, stop)
    };
    if args.file.is_some() && args.service != Service::Hash {
        bail!("--file applies only to `serve hash`; remove it");
    }
    if args.http2 && !matches!(args.service, Service::Hello | Service::Hash) {
        bail!("--http2 applies only to `serve hello` and `serve hash`; remove it");
    }
    if args.http2 && args.by_hand {
        bail!("nothing is written by hand over HTTP/2; remove --by-hand or --http2");
    }
    // With --by-hand, `serve` below refuses hub and shard.
    let by_hand = args.by_hand && matches!(args.service, Service::Hub | Service::Shard);
    if args.planted.serve(args.service, args.model, &host)?
        || args.canned.serve(args.service, args.model, &host)?
        || !by_hand && hub::serve(args.hub, args.service, args.model, &host)?
        || !by_hand && shard::serve(args.shard, args.service, args.model, &host)?
    {
        return Ok(Outcome::Success);
    }
    let written = if args.by_hand { Implementation::ByHand } else { Implementation::Shared };
    let file = match args.service {
        Service::Hash => {
            Some(args.file.map_or_else(HashFile::find, |path| Ok(HashFile::Named(path)))?)
        }
        _ => None,
    };
    let path = file.as_ref().map(HashFile::path);
    match args.http2 {
        true => serve_http2(args.service, args.model, path, &host)?,
        false => serve(args.service, written, args.model, path, &host)?,
    }
    Ok(Outcome::Success)
}

/// The file that `hash` reads.
enum HashFile {
    Named(PathBuf),
    /// A file without a name, which cannot be left behind, even by a server that is killed.
    Made {
        /// Keeps the file open, also in the children of a server with several processes.
        _file: File,
        path: PathBuf,
    },
}

impl HashFile {
    /// Finds or makes the file if the command line names none.
    fn find() -> anyhow::Result<Self> {
        if let Some(path) = env::var_os("HASH_FILE") {
            return Ok(HashFile::Named(path.into()));
        }
        HashFile::make().context("cannot create a file for `hash` to read; name one with --file")
    }

    fn make() -> std::io::Result<Self> {
        let file = tempfile::tempfile()?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        hash_file::write(&path)?;
        Ok(HashFile::Made { _file: file, path })
    }

    fn path(&self) -> &Path {
        match self {
            HashFile::Named(path) | HashFile::Made { path, .. } => path,
        }
    }
}

/// Lists the models and the traits by which I/O models are usually compared.
pub fn models() -> anyhow::Result<Outcome> {
    let row = |name: &str, runs: &str, waits: &str, blocks: &str, calls: &str, holds: &str| {
        let line = format!("{name:8} {runs:22} {waits:14} {blocks:8} {calls:9}  {holds}");
        format!("{}\n", line.trim_end())
    };
    let mut text = row("model", "runs on", "waits in", "blocking", "callbacks", "holds at most");
    for model in Model::ALL {
        let Traits { runs_on, waits_in, blocking, callbacks, limit } = model.traits();
        let mark = |yes| if yes { "yes" } else { "no" };
        let holds = limit.map(|n| format!("{} conn", grouped(n.into()))).unwrap_or_default();
        text += &row(model.name(), runs_on, waits_in, mark(blocking), mark(callbacks), &holds);
    }
    text += "\nblocking: the code of a connection is written with calls that block until they are done.\n\
             callbacks: the code of a connection is called for each event and keeps its own state.\n\
             If \"holds at most\" is empty, only memory and descriptors limit the connections.\n";
    for model in Model::ALL {
        if let Some(why) = model.refused() {
            text += &format!("\n{} does not run here: {why}\n", model.name());
        }
    }
    output::print(&text)?;
    Ok(Outcome::Success)
}

/// Lists the services.
pub fn services() -> anyhow::Result<Outcome> {
    let line = |service: Service| format!("{:14}  {}\n", service.name(), service.about());
    let examples = "\nTo try one: regatta serve hello --listen 127.0.0.1:8080, and then\n\
                    curl -i http://127.0.0.1:8080/\n";
    output::print(&(Service::ALL.map(line).concat() + examples))?;
    Ok(Outcome::Success)
}
