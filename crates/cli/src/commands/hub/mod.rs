//! `regatta hub`: the WebSocket hub.

mod reload;
mod siblings;
mod status;

use crate::{
    drain::DrainReport,
    exit::Outcome,
    options::{
        hub::HubArgs,
        rooms::RoomTables,
        values::{duration, limit, one_of},
    },
    reload::{Again, Reloads},
    service_manager,
};
use clap::FromArgMatches;
use regatta_serve::{Host, Hub, Model, Started, Stop};
use regatta_service::Limits;
use reload::ReloadedHub;
use siblings::Siblings;
use std::{
    io, net::SocketAddr, num::NonZeroUsize, os::fd::OwnedFd, path::PathBuf, sync::Arc,
    thread::available_parallelism, time::Duration,
};

/// Send every message of a member to all members of its room, over WebSocket. The hub prints `listening
/// on ADDR` when it is ready, and notifies systemd. On SIGTERM or SIGINT every member receives the messages queued for it, then
/// close code 1001. `regatta serve hub` is the same hub, with the defaults of races.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
#[command(after_help = "Examples:
  regatta hub --listen 127.0.0.1:8080 --page
  regatta hub status 127.0.0.1:9090
  regatta hub --config hub.toml --check
  regatta hub --config hub.toml --listen 127.0.0.1:8081

Each option is a key of the configuration file: `--max-members 1000` is `max_members = 1000`. Tables [[room]] there
give some rooms options of their own. On SIGHUP the hub reads the file again.")]
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
    /// How long the hub still admits new members after SIGTERM or SIGINT, while /ready of --metrics already
    /// answers with 503, so that a load balancer sends them elsewhere
    #[arg(long, default_value = "0s", value_parser = duration, value_name = "TIME")]
    drain_delay: Duration,
    /// After that, close the members one after the other, spread evenly over this time. 0s: all at once. Not
    /// on threads, green and async
    #[arg(long, default_value = "0s", value_parser = duration, value_name = "TIME")]
    drain: Duration,
    /// How long members may then take to read what is queued for them
    #[arg(long, default_value = "5s", value_parser = duration, value_name = "TIME")]
    grace: Duration,
    #[command(flatten)]
    hub: HubArgs,
    /// What to do instead of serving
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print the state of a running hub
    Status(status::StatusArgs),
}

impl HubCommandArgs {
    /// The address and the limits.
    fn host(&self, inherited: Option<Arc<OwnedFd>>, stop: Stop) -> io::Result<Host> {
        Ok(Host {
            inherited,
            cores: self.cores.map_or_else(available_parallelism, Ok)?,
            limits: Limits { idle: self.idle_timeout, request: self.request_timeout },
            connections: self.max_connections.map_or(usize::MAX, NonZeroUsize::get),
            drain: self.drain,
            grace: self.grace,
            on_ready: service_manager::ready,
            ..Host::new(self.listen, stop)
        })
    }
}

/// Runs the hub until SIGTERM or SIGINT, or prints the state of one. `rooms`: the tables of its configuration file.
///
/// `again`: reads the options again, if they are in a file: on SIGHUP.
pub fn run(
    args: HubCommandArgs,
    rooms: &RoomTables,
    again: Option<Again>,
) -> anyhow::Result<Outcome> {
    if let Some(Action::Status(status)) = &args.action {
        return status::run(status);
    }
    regatta_serve::raise_open_files();
    let stop = Stop::new()?;
    let host = args.host(service_manager::listener(args.model)?, stop)?;
    if args.check {
        args.hub.check(rooms, args.model, &host)?;
        return Ok(Outcome::Success);
    }
    let reloads = reloads(&args, &host.stop, again)?;
    let processes = if args.model == Model::Cluster { host.cores.get() } else { 0 };
    let siblings = Siblings::new(processes)?;
    let reloaded = |hub: &Hub| ReloadedHub {
        hub: hub.clone(),
        model: args.model,
        host: Host { inherited: None, ..host.clone() },
        check: |options, stop| {
            let args = HubCommandArgs::from_arg_matches(&options.matches)?;
            args.hub.check(&options.rooms, args.model, &args.host(None, stop)?)
        },
    };
    let mut report = None;
    let started = Started {
        whole: Box::new(|hub: &Hub| {
            report = Some(report_drain(hub, &host)?);
            let Some(reloads) = reloads else { return Ok(()) };
            let siblings = siblings.clone();
            reloads.follow(reloaded(hub), move |options| siblings.notify(options))
        }),
        process: &|number, hub| {
            again.map_or(Ok(()), |again| siblings.follow(number, again, reloaded(hub)))
        },
    };
    let served = args.hub.serve(rooms, args.model, &host, started);
    if let Some(report) = report {
        report.end();
    }
    served.map(|()| Outcome::Success)
}

/// Prints when the drain of this hub begins and ends.
fn report_drain(hub: &Hub, host: &Host) -> io::Result<DrainReport> {
    let (hub, over) = (hub.clone(), host.drain);
    let grace = humantime::format_duration(host.grace);
    let begins = move || {
        if over.is_zero() {
            // Some members may have been closed already.
            return format!("grace=\"{grace}\"");
        }
        let (members, over) = (hub.members(), humantime::format_duration(over));
        format!("members={members} drain=\"{over}\" grace=\"{grace}\"")
    };
    let ended = |after: Duration| format!("after={:.1}s", after.as_secs_f64());
    DrainReport::follow(&host.stop, None, begins, ended)
}

/// Handles signals from now on. Returns what reloads need, if there are any.
fn reloads(
    args: &HubCommandArgs,
    stop: &Stop,
    again: Option<Again>,
) -> anyhow::Result<Option<Reloads>> {
    let delay = args.drain_delay;
    let Some(again) = again else { return Ok(stop.on_signals(delay).map(|()| None)?) };
    let signals = stop.on_signals_but_hangups(delay)?;
    Ok(Some(Reloads { signals, again, values: again()?.values, stop: stop.clone() }))
}
