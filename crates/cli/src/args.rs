//! The command line, as clap reads it.

use crate::{race::RaceArgs, serve::ServeArgs};
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
    /// Run one of the built-in servers
    Serve(ServeArgs),
    /// List the I/O models
    Models,
    /// List the services
    Services,
    /// Start and end one contender, for `race`
    #[command(hide = true)]
    Supervise,
}

/// A value of a type that has a fixed list of names.
pub fn one_of<T: Copy>(
    text: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, String> {
    all.iter().copied().find(|value| name(*value) == text).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|value| name(*value)).collect();
        format!("expected one of: {}", names.join(", "))
    })
}

/// A duration with its unit: `250ms`, `10s`, `2m`.
pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error}; write it as 250ms or 10s"))
}
