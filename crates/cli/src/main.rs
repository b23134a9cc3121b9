//! `regatta`: one binary with a subcommand for each job. `commands` has a module for each subcommand, and
//! `options` what several share.

// Texts of `--help` are doc comments.
#![allow(rustdoc::bare_urls)]
// These macros panic when stdout or stderr is closed or full. `output` has functions that do not.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod args;
mod commands;
mod drain;
mod exit;
mod help;
mod interrupt;
mod live;
mod operator_page;
mod options;
mod output;
mod own_session;
mod program_name;
mod reload;
mod screen;
mod service_manager;

use anyhow::{Context, anyhow};
use args::{Args, Command};
use clap::FromArgMatches;
use options::{
    config_file::{self, ConfigFile, with_options_of_file},
    rooms,
};
use reload::Options;
use std::{env, process::ExitCode};

fn main() -> ExitCode {
    let program = help::command();
    let (arguments, file) = match with_options_of_file(env::args_os().collect(), &program) {
        Ok(read) => read,
        Err(what) => return exit::code(Err(anyhow!(what))),
    };
    let parsed = program.clone().try_get_matches_from(arguments).and_then(|matches| {
        let checked = config_file::checked(&program, &matches, file.as_ref());
        Ok((Args::from_arg_matches(&matches)?, checked))
    });
    let (args, checked) = match parsed {
        Ok(parsed) => parsed,
        Err(shown) => {
            return match file.as_ref().and_then(|file| file.explained(&shown)) {
                Some(what) => exit::code(Err(anyhow!(what))),
                None => exit::code(output::usage(&shown)),
            };
        }
    };
    let outcome = match args.command {
        Command::Race(args) => commands::race::run(*args),
        Command::Load(args) => commands::load::run(*args),
        Command::Capacity(args) => commands::capacity::run(*args),
        Command::Report(args) => commands::report::run(args),
        Command::Diff(args) => commands::diff::run(args),
        Command::Peers(args) => commands::peers::run(args),
        Command::Import(args) => commands::import::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
        Command::Serve(args) => commands::serve::run(*args),
        Command::Hub(args) => {
            let again = again(file.as_ref());
            commands::hub::run(*args, &file.map(|file| file.rooms).unwrap_or_default(), again)
        }
        Command::Shard(args) => commands::shard::run(*args, again(file.as_ref())),
        Command::Models => commands::serve::models(),
        Command::Services => commands::serve::services(),
        Command::Completions { shell } => commands::manual::completions(shell, help::command()),
        Command::Man { dir } => commands::manual::man(&dir, help::command()),
        Command::OwnSession { parent, arguments } => own_session::run(parent, &arguments),
        Command::Supervise => return regatta_host::supervise(),
        Command::LoadProcess => return regatta_load::load_process(),
        Command::Agent(args) => return commands::agent::run(args),
        Command::Agents(args) => commands::fleet::agents(args),
        Command::Fleet(args) => commands::fleet::run(args),
        Command::FleetRelay { file, agent } => return regatta_fleet::nats::relay(&file, &agent),
    };
    let printed = |outcome| checked.map_or(Ok(()), |text| output::print(&text)).map(|()| outcome);
    exit::code(outcome.and_then(printed))
}

/// How the options of a service are read again. A pipe cannot be read twice.
fn again(file: Option<&ConfigFile>) -> Option<reload::Again> {
    file.is_some_and(|file| file.path.is_file()).then_some(arguments_again as reload::Again)
}

/// Reads the configuration file and the command line again. Returns the options of the subcommand.
fn arguments_again() -> anyhow::Result<Options> {
    let program = help::command();
    let (arguments, file) =
        with_options_of_file(env::args_os().collect(), &program).map_err(|what| anyhow!(what))?;
    let matches = program.clone().try_get_matches_from(arguments).map_err(|error| {
        if let Some(what) = file.as_ref().and_then(|file| file.explained(&error)) {
            return anyhow!(what);
        }
        let text = error.render().to_string();
        anyhow!(text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned())
    })?;
    let (name, matches) = matches.subcommand().context("there is no subcommand")?;
    let command = program.find_subcommand(name).context("the subcommand is unknown")?;
    let rooms = file.map(|file| file.rooms).unwrap_or_default();
    let mut values = config_file::values(command, matches);
    values.insert(rooms::KEY.to_owned(), vec![rooms.to_toml("").into()]);
    Ok(Options { matches: matches.clone(), values, rooms })
}
