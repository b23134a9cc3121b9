//! The machines of `--on`: how to reach them, over SSH or by a standing fleet.

use crate::options::machines::Machines;
use anyhow::{Context, bail};
use regatta_fleet::{Build, Fleet, Machine, Settings};
use std::{collections::BTreeSet, env, path::Path, sync::atomic::AtomicBool};

/// Most machines.
const MOST: usize = 64;

/// The machines of --on, and how to reach them.
#[derive(Clone, Copy, Debug)]
pub struct On<'a> {
    /// The machines.
    pub hosts: &'a [String],
    /// The file of --fleet.
    pub fleet: Option<&'a Path>,
    /// Whether to copy this program to them.
    pub deploy: bool,
}

/// Connects to the machines of --on, unless `stop` is set meanwhile; `None` without --on.
pub fn connect(on: On<'_>, stop: &AtomicBool) -> anyhow::Result<Option<Fleet>> {
    if on.hosts.is_empty() {
        return Ok(None);
    }
    check_hosts(on.hosts)?;
    let build = Build::running(env!("REGATTA_VERSION")).context("cannot read this program")?;
    let machines = machines(on, &build, stop)?;
    Ok(Some(Fleet::connect(&machines, &build, Settings::default(), stop)?))
}

/// Checks that the machines are not too many, and different.
pub fn check_hosts(hosts: &[String]) -> anyhow::Result<()> {
    let distinct: BTreeSet<&String> = hosts.iter().collect();
    if distinct.len() < hosts.len() || hosts.len() > MOST {
        bail!("--on takes up to {MOST} different machines, each once");
    }
    Ok(())
}

fn machines(on: On<'_>, build: &Build, stop: &AtomicBool) -> anyhow::Result<Vec<Machine>> {
    if let Some(file) = on.fleet {
        let program = env::current_exe().context("cannot find the path of this program")?;
        let relay = [program.into(), "fleet-relay".into()];
        return Ok(regatta_fleet::nats::agents(file, on.hosts, &relay)?);
    }
    let ssh = Machines::read()?.ssh()?;
    let machines = on.hosts.iter().map(|host| match on.deploy {
        true => ssh.deploy(host, build, stop),
        false => Ok(ssh.machine(host)),
    });
    Ok(machines.collect::<Result<Vec<_>, _>>()?)
}
