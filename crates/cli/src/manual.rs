//! `regatta completions` and `regatta man`, generated from the definition of the command line.

use crate::{args::Args, exit::Done};
use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;
use std::path::Path;

/// Prints a completion script.
pub fn completions(shell: Shell) -> anyhow::Result<Done> {
    clap_complete::generate(shell, &mut Args::command(), "regatta", &mut std::io::stdout());
    Ok(Done::Well)
}

/// Writes a manual page for each command.
pub fn man(dir: &Path) -> anyhow::Result<Done> {
    let write = || {
        std::fs::create_dir_all(dir)?;
        clap_mangen::generate_to(Args::command(), dir)
    };
    write().with_context(|| format!("cannot write manual pages to {}", dir.display()))?;
    Ok(Done::Well)
}
