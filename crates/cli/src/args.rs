//! The command line, as clap parses it.

use crate::commands::fleet::{AgentsArgs, FleetArgs};
use crate::commands::{
    agent::AgentArgs, capacity::CapacityArgs, diff::DiffArgs, doctor::DoctorArgs,
    hub::HubCommandArgs, import::ImportArgs, load::LoadArgs, peers::PeersArgs, race::RaceArgs,
    report::ReportArgs, serve::ServeArgs, shard::ShardArgs,
};
use clap::{Parser, Subcommand};

/// Races network servers under a load that checks every reply.
#[derive(Debug, Parser)]
#[command(name = "regatta", version = env!("REGATTA_VERSION"), about, max_term_width = 100)]
pub struct Args {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Race servers and judge the results
    Race(Box<RaceArgs>),
    /// Load one server and check every reply
    Load(Box<LoadArgs>),
    /// Find how many clients or requests per second a server sustains within a latency limit
    Capacity(Box<CapacityArgs>),
    /// Show the results in a result directory
    Report(ReportArgs),
    /// Compare two result directories: did anything become more expensive?
    Diff(DiffArgs),
    /// List or install the peers
    Peers(PeersArgs),
    /// Make contenders and races from the entries of another benchmark
    Import(ImportArgs),
    /// Check this machine for problems that would make results wrong
    Doctor(DoctorArgs),
    /// Run a built-in server
    Serve(Box<ServeArgs>),
    /// Send every message of a member to all members of its room, over WebSocket
    Hub(Box<HubCommandArgs>),
    /// Put several Redis nodes behind one port
    Shard(Box<ShardArgs>),
    /// Run load processes for a leader on another machine
    Agent(AgentArgs),
    /// List the agents of a standing fleet
    Agents(AgentsArgs),
    /// Make the files of a standing fleet
    Fleet(FleetArgs),
    /// List the I/O models
    Models,
    /// List the services
    Services,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    Man {
        /// The directory to write to
        dir: std::path::PathBuf,
    },
    /// Run a command in a session of its own, for `race`
    #[command(hide = true)]
    OwnSession {
        /// The process that the session ends with
        parent: i32,
        /// The command
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    /// Start and stop one contender, for `race` and `capacity`
    #[command(hide = true)]
    Supervise,
    /// Run one process of a load, for `load`, `race` and `capacity`
    #[command(hide = true)]
    LoadProcess,
    /// The leader's side of a session with an agent of a standing fleet, for `load --fleet`
    #[command(hide = true)]
    FleetRelay {
        /// The leader's file
        file: std::path::PathBuf,
        /// The agent
        agent: String,
    },
}
