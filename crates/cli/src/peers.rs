//! `regatta peers`: what is found here, what is missing and how to get it.

use crate::{exit::Done, race::known};
use anyhow::{Context, bail};
use regatta_race::{Contender, built_in};
use std::{
    io::{IsTerminal, Write, stdin, stdout},
    process::Command,
};

/// List the peers: found, or missing and how to get them. With `install`, build them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta peers
  regatta peers install go haskell-conduit")]
pub struct PeersArgs {
    /// What to do; a list, if absent
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Run the setup of peers, after showing it
    Install {
        /// Names of peers
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// Lists or installs.
pub fn run(args: PeersArgs) -> anyhow::Result<Done> {
    let built_in = built_in();
    let mut peers = known()?;
    peers.retain(|peer| !built_in.contains(peer));
    match args.action {
        None => list(&peers),
        Some(Action::Install { names, yes }) => install(&peers, &names, yes),
    }
}

fn list(peers: &[Contender]) -> anyhow::Result<Done> {
    if peers.is_empty() {
        eprintln!("no peers: there is no folder `peers` here; run this in a checkout of regatta");
    }
    let width = peers.iter().map(|peer| peer.manifest.name.len()).max().unwrap_or(0);
    for peer in peers {
        let manifest = &peer.manifest;
        let state = peer.missing().map_or("found".into(), |how| format!("missing: {how}"));
        println!(
            "{:width$}  {:8}  {}",
            manifest.name,
            manifest.workloads.join(","),
            manifest.about
        );
        println!("{:width$}  {:8}  {state}", "", "");
    }
    Ok(Done::Well)
}

fn install(peers: &[Contender], names: &[String], yes: bool) -> anyhow::Result<Done> {
    let mut done = Done::Well;
    for name in names {
        let Some(peer) = peers.iter().find(|peer| peer.manifest.name == *name) else {
            let all: Vec<_> = peers.iter().map(|peer| peer.manifest.name.as_str()).collect();
            bail!("there is no peer {name:?}; there are: {}", all.join(", "));
        };
        if !install_one(peer, yes)? {
            done = Done::Short;
        }
    }
    Ok(done)
}

/// True if the peer can be raced afterwards.
fn install_one(peer: &Contender, yes: bool) -> anyhow::Result<bool> {
    let manifest = &peer.manifest;
    let absent = peer.absent();
    if !absent.is_empty() {
        eprintln!("{}: not on PATH: {}; install it first", manifest.name, absent.join(", "));
        return Ok(false);
    }
    if !manifest.setup.is_empty() {
        eprintln!("{}: in {}:", manifest.name, peer.dir.display());
        manifest.setup.iter().for_each(|command| eprintln!("  {command}"));
        if !yes && !confirmed()? {
            return Ok(false);
        }
    }
    for command in &manifest.setup {
        let status = Command::new("sh")
            .args(["-c", command])
            .current_dir(&peer.dir)
            .status()
            .with_context(|| format!("cannot run {command:?}"))?;
        if !status.success() {
            eprintln!("{}: `{command}` failed: {status}", manifest.name);
            return Ok(false);
        }
    }
    match peer.missing() {
        None => eprintln!("{}: found", manifest.name),
        Some(how) => eprintln!("{}: still missing: {how}", manifest.name),
    }
    Ok(peer.missing().is_none())
}

fn confirmed() -> anyhow::Result<bool> {
    if !stdin().is_terminal() {
        bail!("there is no terminal to ask on; add --yes to run this");
    }
    print!("run this? [y/N] ");
    stdout().flush()?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
