//! The option that selects the protocol of a hub.

use crate::options::values::one_of;
use anyhow::Context;
use regatta_script::{Workload, dialects::adapters};

/// The protocol of a hub.
#[derive(Debug, clap::Args)]
pub struct AdapterArgs {
    /// The protocol of the hub on top of WebSocket, if the hub is a third-party server: phoenix
    /// (members join room:lobby and push broadcast, with the payload under body), actioncable
    /// (HubChannel and its action broadcast, which streams {"payload": …}), centrifuge (the protocol of
    /// Centrifugo; channel hub) or nats (subject hub)
    #[arg(long, value_name = "NAME",
          value_parser = |text: &str| one_of(text, &adapters().collect::<Vec<_>>(), |name| name))]
    adapter: Option<&'static str>,
}

impl AdapterArgs {
    /// Whether an adapter was chosen.
    pub fn is_given(&self) -> bool {
        self.adapter.is_some()
    }

    /// The workload in the chosen protocol.
    pub fn applied(&self, workload: Workload) -> anyhow::Result<Workload> {
        let Some(adapter) = self.adapter else { return Ok(workload) };
        workload.adapted(adapter).with_context(|| {
            let name = workload.name();
            format!("--adapter applies only to the workload hub; this load runs {name}")
        })
    }

    /// The workload's name and the chosen protocol.
    pub fn label(&self, workload: &str) -> String {
        match self.adapter {
            Some(adapter) => format!("{workload} through {adapter}"),
            None => workload.to_owned(),
        }
    }
}
