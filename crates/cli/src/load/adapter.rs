//! The flag that says in which protocol a hub is spoken to.

use crate::values::one_of;
use anyhow::Context;
use regatta_script::{Workload, dialects::adapters};

/// In which protocol a hub is spoken to.
#[derive(Debug, clap::Args)]
pub struct AdapterArgs {
    /// The protocol that a hub speaks on top of WebSocket, if it is another server's own: phoenix (members
    /// join room:lobby and push broadcast, with the payload under body), actioncable (HubChannel and its
    /// action broadcast, which streams {"payload": …}), centrifuge (as Centrifugo speaks it; channel hub) or
    /// nats (subject hub)
    #[arg(long, value_name = "NAME",
          value_parser = |text: &str| one_of(text, &adapters().collect::<Vec<_>>(), |name| name))]
    adapter: Option<&'static str>,
}

impl AdapterArgs {
    /// Whether one was chosen.
    pub fn is_given(&self) -> bool {
        self.adapter.is_some()
    }

    /// The workload in the protocol that was chosen.
    pub fn applied(&self, workload: Workload) -> anyhow::Result<Workload> {
        let Some(adapter) = self.adapter else { return Ok(workload) };
        workload.adapted(adapter).with_context(|| {
            let name = workload.name();
            format!("--adapter applies to the workload hub; this load runs {name}")
        })
    }

    /// The workload's name, and the protocol that was chosen.
    pub fn told(&self, workload: &str) -> String {
        match self.adapter {
            Some(adapter) => format!("{workload} through {adapter}"),
            None => workload.to_owned(),
        }
    }
}
