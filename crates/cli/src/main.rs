//! `regatta`: one binary, a command for each job.

mod args;
mod exit;
mod serve;

use args::{Args, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Serve(args) => serve::run(args),
        Command::Models => serve::models(),
        Command::Services => serve::services(),
    };
    exit::code(done)
}
