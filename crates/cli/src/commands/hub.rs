//! `regatta hub`: the WebSocket hub.

use crate::{
    exit::Outcome,
    options::{
        hub::HubArgs,
        values::{duration, limit, one_of},
    },
    service_manager,
};
use regatta_serve::{Host, Model, Stop};
use regatta_service::Limits;
use std::{
    net::SocketAddr, num::NonZeroUsize, path::PathBuf, thread::available_parallelism,
    time::Duration,
};

/// Send every message of a member to all members of its room, over WebSocket. The hub prints `listening
/// on ADDR` when it is ready, and notifies systemd. On SIGTERM or SIGINT every member receives the messages queued for it, then
/// close code 1001. `regatta serve hub` is the same hub, with the defaults of races.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta hub --listen 127.0.0.1:8080 --page
  regatta hub --config hub.toml --check
  regatta hub --config hub.toml --listen 127.0.0.1:8081

Each option is a key of the configuration file: `--max-members 1000` is `max_members = 1000`.")]
pub struct HubCommandArgs {
    /// Read options from this TOML file. An option of the command line replaces that of the file
    // It is read before the command line is parsed.
    #[arg(long, value_name = "PATH")]
    config: Option<PathBuf>,
    /// Check the options, print them as a configuration file, and exit. Nothing listens
    #[arg(long)]
    check: bool,
    /// The I/O model: any but fork and prefork (see `regatta models`)
    #[arg(long, default_value = "percore",
          value_parser = |text: &str| one_of(text, &Model::ALL, Model::name))]
    model: Model,
    /// The address to listen on; port 0 lets the system choose. Not used if systemd passes a socket
    /// (LISTEN_FDS)
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR")]
    listen: SocketAddr,
    /// Threads or processes of the models that have one per core. Default: all cores that this process
    /// may use
    #[arg(long, value_name = "N")]
    cores: Option<NonZeroUsize>,
    /// Close a connection that has been silent for this long
    #[arg(long, default_value = "60s", value_parser = limit, value_name = "TIME")]
    idle_timeout: Duration,
    /// Close a connection whose request, WebSocket message or frame takes longer than this to arrive
    #[arg(long, default_value = "10s", value_parser = limit, value_name = "TIME")]
    request_timeout: Duration,
    /// Maximum number of open connections; more wait. Default: as many as the model supports (see
    /// `regatta models`)
    #[arg(long, value_name = "N")]
    max_connections: Option<NonZeroUsize>,
    /// How long members may take to read what is queued for them after SIGTERM or SIGINT
    #[arg(long, default_value = "5s", value_parser = duration, value_name = "TIME")]
    grace: Duration,
    #[command(flatten)]
    hub: HubArgs,
}

/// Runs the hub until SIGTERM or SIGINT.
pub fn run(args: HubCommandArgs) -> anyhow::Result<Outcome> {
    regatta_serve::raise_open_files();
    let stop = Stop::new()?;
    let host = Host {
        listen: args.listen,
        inherited: service_manager::listener(args.model)?,
        cores: args.cores.map_or_else(available_parallelism, Ok)?,
        limits: Limits { idle: args.idle_timeout, request: args.request_timeout },
        connections: args.max_connections.map_or(usize::MAX, NonZeroUsize::get),
        offload: None,
        grace: args.grace,
        on_ready: service_manager::ready,
        stop,
    };
    if args.check {
        args.hub.check(args.model, &host)?;
        return Ok(Outcome::Success);
    }
    host.stop.on_signals()?;
    args.hub.serve(args.model, &host)?;
    Ok(Outcome::Success)
}
