//! `regatta`: one binary, a command for each job.

mod args;
mod exit;
mod interrupt;
mod output;
mod race;
mod serve;

use args::{Args, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Race(args) => race::run(*args),
        Command::Serve(args) => serve::run(args),
        Command::Models => serve::models(),
        Command::Services => serve::services(),
        Command::Supervise => return regatta_race::supervise(),
    };
    exit::code(done)
}
