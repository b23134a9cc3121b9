//! The command line, as clap reads it.

use crate::{
    capacity::CapacityArgs, diff::DiffArgs, doctor::DoctorArgs, load::LoadArgs, peers::PeersArgs,
    race::RaceArgs, report::ReportArgs, serve::ServeArgs, shard::ShardArgs,
};
use clap::{Parser, Subcommand};

/// Races network servers, honestly.
#[derive(Debug, Parser)]
#[command(name = "regatta", version, about, max_term_width = 100)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Race servers and judge them
    Race(Box<RaceArgs>),
    /// Load one server and check every reply
    Load(Box<LoadArgs>),
    /// Find how many clients or requests per second a server carries within a limit of latency
    Capacity(Box<CapacityArgs>),
    /// Show a result directory again
    Report(ReportArgs),
    /// Compare two result directories: did something become dearer?
    Diff(DiffArgs),
    /// List the peers, or install some
    Peers(PeersArgs),
    /// Say what here would make results wrong
    Doctor(DoctorArgs),
    /// Run one of the built-in servers
    Serve(Box<ServeArgs>),
    /// Put several Redis nodes behind one port
    Shard(Box<ShardArgs>),
    /// List the I/O models
    Models,
    /// List the services
    Services,
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    Man {
        /// Into this directory
        dir: std::path::PathBuf,
    },
    /// Start and end one contender, for `race`
    #[command(hide = true)]
    Supervise,
    /// Carry out a part of a load, for `load`, `race` and `capacity`
    #[command(hide = true)]
    LoadProcess,
}
