//! `regatta completions` and `regatta man`, generated from the definition of the command line.

use crate::{exit::Outcome, output};
use anyhow::Context;
use clap::Command;
use clap_complete::Shell;
use std::path::Path;

/// Prints a completion script.
pub fn completions(shell: Shell, mut command: Command) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "regatta", &mut script);
    output::print(&String::from_utf8(script).context("the completion script is not text")?)?;
    Ok(Outcome::Success)
}

/// Writes a manual page for each command, and prints where they are.
pub fn man(dir: &Path, command: Command) -> anyhow::Result<Outcome> {
    let shown = dir.display();
    let is_new = !dir.exists();
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(command, dir))
        .with_context(|| format!("cannot write manual pages to {shown}"))?;
    let created = if is_new { "created the folder and " } else { "" };
    let page = dir.join("regatta.1");
    output::print(&format!(
        "{created}wrote the manual pages to {shown}; to read one: man -l {}\n",
        page.display()
    ))?;
    Ok(Outcome::Success)
}
