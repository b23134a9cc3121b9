//! `regatta import`: makes contenders, workload files and races from another project's entries.

mod arena;
mod files;

use crate::exit::Outcome;
use arena::ArenaArgs;

/// Make contenders and races from the entries of another benchmark
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta import httparena ../HttpArena --only actix,nginx
  regatta import httparena ../HttpArena --profiles baseline,json")]
pub struct ImportArgs {
    #[command(subcommand)]
    from: From,
}

#[derive(Debug, clap::Subcommand)]
enum From {
    /// Make contenders in containers from a checkout of HttpArena
    Httparena(ArenaArgs),
}

/// Imports.
pub fn run(args: ImportArgs) -> anyhow::Result<Outcome> {
    match args.from {
        From::Httparena(args) => arena::run(&args),
    }
}
