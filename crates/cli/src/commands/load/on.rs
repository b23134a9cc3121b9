//! The machines of `--on`: how to reach them, over SSH or by a standing fleet.

use crate::options::{machines::Machines, values::host};
use anyhow::{Context, bail};
use regatta_fleet::{Build, Fleet, Machine, Settings};
use std::{collections::BTreeSet, env, path::PathBuf, sync::atomic::AtomicBool};

/// Most machines.
const MOST: usize = 64;

/// The machines of --on, and how to reach them.
#[derive(Clone, Debug, clap::Args)]
pub struct OnArgs {
    /// Load from these machines instead of this one. Each is a destination of ssh, e.g. gen1 or
    /// bench@10.0.0.7, or a name in machines.toml, that asks for no password, and needs the same build of
    /// regatta. It runs a load thread per core, with its share of connections and requests. If one is lost,
    /// there is no result. The command in the environment variable REGATTA_SSH is used in place of ssh
    #[arg(id = "on", long = "on", value_parser = host, value_delimiter = ',', value_name = "HOST,…")]
    pub hosts: Vec<String>,
    /// The machines of --on are agents of a standing fleet, which have dialled out to its broker. The file is
    /// leader.toml, which `regatta fleet init` has written
    #[arg(long, value_name = "leader.toml", requires = "on", conflicts_with = "deploy")]
    fleet: Option<PathBuf>,
    /// Copy this program to ~/.cache/regatta on the machines of --on, unless it is there
    #[arg(long, requires = "on")]
    deploy: bool,
}

/// Connects to the machines of --on, unless `stop` is set meanwhile; `None` without --on.
pub fn connect(on: &OnArgs, stop: &AtomicBool) -> anyhow::Result<Option<Fleet>> {
    if on.hosts.is_empty() {
        return Ok(None);
    }
    let distinct: BTreeSet<&String> = on.hosts.iter().collect();
    if distinct.len() < on.hosts.len() || on.hosts.len() > MOST {
        bail!("--on takes up to {MOST} different machines, each once");
    }
    let build = Build::running(env!("REGATTA_VERSION")).context("cannot read this program")?;
    let machines = machines(on, &build, stop)?;
    Ok(Some(Fleet::connect(&machines, &build, Settings::default(), stop)?))
}

fn machines(on: &OnArgs, build: &Build, stop: &AtomicBool) -> anyhow::Result<Vec<Machine>> {
    if let Some(file) = &on.fleet {
        let program = env::current_exe().context("cannot find the path of this program")?;
        let relay = [program.into(), "fleet-relay".into()];
        return Ok(regatta_fleet::nats::agents(file, &on.hosts, &relay)?);
    }
    let ssh = Machines::read()?.ssh()?;
    let machines = on.hosts.iter().map(|host| match on.deploy {
        true => ssh.deploy(host, build, stop),
        false => Ok(ssh.machine(host)),
    });
    Ok(machines.collect::<Result<Vec<_>, _>>()?)
}
