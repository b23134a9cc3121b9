//! `regatta completions` and `regatta man`, generated from the definition of the command line.

use crate::{args::Args, exit::Outcome, output};
use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;

/// Prints a completion script.
pub fn completions(shell: Shell) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "regatta", &mut script);
    output::print(&String::from_utf8(script).context("the completion script is not text")?)?;
    Ok(Outcome::Success)
}

/// Writes a manual page for each command.
pub fn man(dir: &Path) -> anyhow::Result<Outcome> {
    let write = || {
        std::fs::create_dir_all(dir)?;
        clap_mangen::generate_to(Args::command(), dir)
    };
    write().with_context(|| format!("cannot write manual pages to {}", dir.display()))?;
    Ok(Outcome::Success)
}
