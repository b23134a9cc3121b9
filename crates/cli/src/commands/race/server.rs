//! `regatta race --server`: the contenders run on another machine, which is reached over SSH.

use crate::options::machines::Machines;
use anyhow::{Context, bail};
use regatta_fleet::{Build, RemoteSite, Settings};
use regatta_race::Server;
use regatta_record::{Asked, ServerMachine};
use std::{
    net::IpAddr,
    sync::{Arc, atomic::AtomicBool},
};

/// The machine of the contenders.
#[derive(Debug, Default, clap::Args)]
pub struct ServerArgs {
    /// Run the contenders on this machine, over SSH, and the load on this one. HOST is a destination of ssh,
    /// or a name in machines.toml; REGATTA_SSH is used in place of ssh. Commands start in the home folder there and listen on {host}
    #[arg(long, value_name = "HOST", conflicts_with = "resume")]
    server: Option<String>,
    /// The address at which the load reaches the contenders, an IPv4 address of HOST, and {host} in their commands.
    /// Default: that in machines.toml, or that by which ssh reached it
    #[arg(long, value_name = "ADDRESS", conflicts_with = "resume")]
    server_address: Option<IpAddr>,
    /// Copy this program to ~/.cache/regatta/ on HOST before the race, once for each build
    #[arg(long)]
    deploy: bool,
}

impl ServerArgs {
    /// Connects to the machine of a new race, and describes it; `None` without --server.
    pub fn connect(
        &self,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<Option<(Server, ServerMachine)>> {
        let Some(host) = &self.server else {
            if self.server_address.is_some() || self.deploy {
                bail!(
                    "--server-address and --deploy need --server HOST, the machine of the contenders"
                );
            }
            return Ok(None);
        };
        self.describe(host, self.server_address, stop).map(Some)
    }

    /// Connects to the machine of a stored race, and describes it as it is now; `None` if it has none.
    pub fn connect_again(
        &self,
        asked: &Asked,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<Option<(Server, ServerMachine)>> {
        let Some(then) = &asked.server else { return Ok(None) };
        let (server, now) = self.describe(&then.name, Some(then.address), stop)?;
        let fingerprint = Some(server.enter(asked)?);
        Ok(Some((server, ServerMachine { fingerprint, ..now })))
    }

    fn describe(
        &self,
        host: &str,
        address: Option<IpAddr>,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<(Server, ServerMachine)> {
        if host.trim().is_empty() || host.starts_with('-') {
            bail!("expected a destination of ssh after --server, e.g. bench@sut; got {host:?}");
        }
        let machines = Machines::read()?;
        let ssh = machines.ssh()?;
        let build = Build::running(env!("REGATTA_VERSION")).context("cannot read this program")?;
        let machine = match self.deploy {
            true => ssh.deploy(host, &build, stop)?,
            false => ssh.machine(host),
        };
        let site = RemoteSite::connect(&machine, &build, Settings::default(), stop)?;
        let server = Server::new(site);
        let described = server.describe(address.or_else(|| machines.address(host)))?;
        Ok((server, described))
    }
}

/// Prepares the machine for a race. Returns the race with what is there: the fingerprint, and the versions of the
/// contenders.
pub fn entered(server: Option<&Server>, asked: Asked) -> anyhow::Result<Asked> {
    let (Some(server), Some(machine)) = (server, &asked.server) else { return Ok(asked) };
    let fingerprint = server.enter(&asked)?;
    let mut entries = asked.entries.clone();
    for entry in &mut entries {
        entry.version = fingerprint.versions.get(&entry.name).cloned();
    }
    let machine = ServerMachine { fingerprint: Some(fingerprint), ..machine.clone() };
    Ok(Asked { server: Some(machine), entries, ..asked })
}
