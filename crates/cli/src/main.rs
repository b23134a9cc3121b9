//! `regatta`: one binary with a subcommand for each job.

// These macros panic when stdout or stderr is closed or full. `output` has functions that do not.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod args;
mod called;
mod canned;
mod capacity;
mod diff;
mod doctor;
mod exit;
mod formats;
mod help;
mod hub;
mod interrupt;
mod live;
mod load;
mod manual;
mod output;
mod peers;
mod planted;
mod race;
mod report;
mod screen;
mod serve;
mod shard;
mod values;

use args::{Args, Command};
use clap::FromArgMatches;
use std::process::ExitCode;

fn main() -> ExitCode {
    let parsed = help::command().try_get_matches();
    let args = match parsed.and_then(|matches| Args::from_arg_matches(&matches)) {
        Ok(args) => args,
        Err(shown) => return exit::code(output::usage(&shown)),
    };
    let outcome = match args.command {
        Command::Race(args) => race::run(*args),
        Command::Load(args) => load::run(*args),
        Command::Capacity(args) => capacity::run(*args),
        Command::Report(args) => report::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Peers(args) => peers::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Serve(args) => serve::run(*args),
        Command::Shard(args) => shard::run(*args),
        Command::Models => serve::models(),
        Command::Services => serve::services(),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { dir } => manual::man(&dir),
        Command::Supervise => return regatta_host::supervise(),
        Command::LoadProcess => return regatta_load::load_process(),
    };
    exit::code(outcome)
}
