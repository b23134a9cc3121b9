//! `regatta agent`: runs load processes for a leader, over stdin and stdout or as a part of a standing fleet.

use super::load::load_processes_here;
use crate::{
    exit::{self, Outcome},
    options::values::{connections, limit, rate},
    output,
};
use anyhow::Context;
use regatta_fleet::{
    NewSite,
    nats::{AgentCommand, Policy, Targets, standing},
};
use std::{
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

/// Run load processes for a leader on another machine. With --fleet the agent dials out to the broker of the
/// fleet, waits there for a leader (`regatta load --fleet`), and serves one at a time. It carries out nothing
/// but loads, and only within these limits.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta agent --fleet gen1.toml --targets 10.0.0.0/24:8000-8999
  regatta agent --fleet gen1.toml --targets 10.0.0.5:8080 \\
      --max-rate 500k/s --max-connections 10000 --max-session 1h

Prints a line when a session of a leader begins and ends, and when it refuses a load. Runs until it is
killed. If the broker cannot be reached, it tries again every second.

Exit status: 2 wrong usage, or a wrong file.")]
pub struct AgentArgs {
    /// Take requests from stdin, and answer on stdout, for `load --on`
    #[arg(long, hide = true)]
    stdio: bool,
    /// Run nothing but load processes, whatever a leader asks for
    #[arg(long, hide = true, requires = "stdio")]
    loads_only: bool,
    /// The agent's file, which `regatta fleet init` has written, with its key beside it
    #[arg(
        long,
        value_name = "NAME.toml",
        required_unless_present = "stdio",
        conflicts_with = "stdio"
    )]
    fleet: Option<PathBuf>,
    /// What it may load: networks or addresses, with a port or a range of ports, e.g.
    /// 10.0.0.0/24:8000-8999, 10.0.0.5:8080 or [fd00::/64]:80. Public addresses only singly
    #[arg(
        long,
        value_name = "NETWORK:PORTS,…",
        value_delimiter = ',',
        required_unless_present = "stdio",
        conflicts_with = "stdio"
    )]
    targets: Vec<Targets>,
    /// Maximum requests per second of its share of a load. A load without a rate is refused then, and one with
    /// more connections than that. A session whose load sends more ends
    #[arg(long, value_name = "R", value_parser = rate, conflicts_with = "stdio")]
    max_rate: Option<NonZeroU32>,
    /// Maximum connections of its share of a load
    #[arg(long, value_name = "N", value_parser = connections, conflicts_with = "stdio")]
    max_connections: Option<NonZeroUsize>,
    /// Maximum length of a session of a leader. It ends then, with its load. A load that takes longer is
    /// refused
    #[arg(long, value_name = "TIME", value_parser = limit, conflicts_with = "stdio")]
    max_session: Option<Duration>,
}

/// Runs an agent.
pub fn run(args: AgentArgs) -> ExitCode {
    if args.stdio {
        return match load_processes_here(1) {
            Ok(how) => {
                regatta_serve::raise_open_files();
                let site = (!args.loads_only).then_some(super::race::site as NewSite);
                regatta_fleet::agent(&how, env!("REGATTA_VERSION"), site)
            }
            Err(error) => exit::code(Err(error)),
        };
    }
    exit::code(stand(args))
}

fn stand(args: AgentArgs) -> anyhow::Result<Outcome> {
    let AgentArgs { fleet, targets, max_rate, max_connections, max_session, .. } = args;
    let fleet = fleet.context("expected the agent's file: --fleet NAME.toml")?;
    let arguments = ["agent", "--stdio", "--loads-only"].map(Into::into).to_vec();
    // Not a program that has replaced it: this one enforces the policy, and a leader of another build is refused.
    let how = AgentCommand { program: regatta_fleet::PROGRAM.into(), arguments };
    let max_connections = max_connections.map(|most| most.get() as u64);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let max_lease = regatta_fleet::LEASE;
    let policy = Policy { targets, cores, max_rate, max_connections, max_lease, max_session };
    match standing(&fleet, policy, how, env!("REGATTA_VERSION"), output::log)? {}
}
