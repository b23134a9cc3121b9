//! `regatta peers`: lists which peers are found and which are missing, and installs them.

mod packages;

use crate::{commands::race::known, exit::Outcome, output};
use anyhow::{Context, bail};
use regatta_race::{Contender, Manifest, built_in};
use std::{
    io::{IsTerminal, Write, stderr, stdin},
    process::Command,
};

/// List the peers: which are found, which are missing, and how to get them. With `install`, build them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  regatta peers
  regatta peers install go haskell-conduit
  regatta peers install --all --yes")]
pub struct PeersArgs {
    /// The action. Default: list the peers
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show the packages and the setup that peers need, then install the packages (with apt-get) and run
    /// the setup
    Install {
        /// Names of peers
        #[arg(required_unless_present = "all", value_name = "NAME")]
        names: Vec<String>,
        /// Install all peers
        #[arg(long, conflicts_with = "names")]
        all: bool,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

/// Lists or installs.
pub fn run(args: PeersArgs) -> anyhow::Result<Outcome> {
    let built_in = built_in();
    let mut peers = known()?;
    peers.retain(|peer| !built_in.contains(peer));
    match args.action {
        None => list(&peers),
        Some(Action::Install { names, all, yes }) => {
            let every = || peers.iter().map(|peer| peer.manifest.name.clone()).collect();
            install(&peers, &if all { every() } else { names }, yes)
        }
    }
}

fn list(peers: &[Contender]) -> anyhow::Result<Outcome> {
    if peers.is_empty() {
        output::message(
            "no peers found: there is no folder `peers` here; run this in a checkout of regatta",
        );
    }
    for peer in peers {
        let Manifest { name, workloads, about, .. } = &peer.manifest;
        let state = peer.missing().map_or("found".into(), |how| format!("missing: {how}"));
        let workloads = workloads.join(", ");
        output::print(&format!("{name}  ({workloads})\n    {about}\n    {state}\n"))?;
    }
    Ok(Outcome::Success)
}

fn install(peers: &[Contender], names: &[String], yes: bool) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::Success;
    for name in names {
        let Some(peer) = peers.iter().find(|peer| peer.manifest.name == *name) else {
            let all: Vec<_> = peers.iter().map(|peer| peer.manifest.name.as_str()).collect();
            bail!("there is no peer {name:?}; expected one of: {}", all.join(", "));
        };
        if !install_one(peer, yes)? {
            outcome = Outcome::Failure;
        }
    }
    Ok(outcome)
}

/// Installs one peer. Returns whether it can be raced afterwards.
fn install_one(peer: &Contender, yes: bool) -> anyhow::Result<bool> {
    let Manifest { name, setup, .. } = &peer.manifest;
    let packages = packages::missing(&peer.manifest.packages);
    if !packages.is_empty() || !setup.is_empty() {
        output::message(&format!("{name}: commands to run in {}:", peer.dir.display()));
        if !packages.is_empty() {
            output::message(&format!("  {}", packages::shown(&packages)));
        }
        setup.iter().for_each(|command| output::message(&format!("  {command}")));
        if !yes && !confirmed()? {
            return Ok(false);
        }
    }
    if !packages.is_empty()
        && let Err(because) = packages::install(&packages)
    {
        output::message(&format!("{name}: {because}"));
        return Ok(false);
    }
    let absent = peer.absent();
    if !absent.is_empty() {
        output::message(&format!("{name}: not on PATH: {}; install it first", absent.join(", ")));
        return Ok(false);
    }
    for command in setup {
        let status = Command::new("sh")
            .args(["-c", command])
            .current_dir(&peer.dir)
            .status()
            .with_context(|| format!("cannot run {command:?}"))?;
        if !status.success() {
            output::message(&format!("{name}: `{command}` failed: {status}"));
            return Ok(false);
        }
    }
    match peer.missing() {
        None => output::message(&format!("{name}: found")),
        Some(how) => output::message(&format!("{name}: still missing: {how}")),
    }
    Ok(peer.missing().is_none())
}

fn confirmed() -> anyhow::Result<bool> {
    if !stdin().is_terminal() {
        bail!("cannot ask for confirmation without a terminal; add --yes to run this");
    }
    write!(stderr(), "run this? [y/N] ").context("cannot ask for confirmation on stderr")?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
