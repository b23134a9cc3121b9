//! The messages to a load process: first the whole load, and the part of it that the process runs; then
//! orders.

use crate::{Error, Plan, WarmUp};
use regatta_record::{FORMAT, LeaderCommand, Machines, Part};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The first message to a load process, one line of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// Format version, [`regatta_record::FORMAT`].
    pub format: u32,
    /// The part of the load that this process runs. All other fields are the same for all processes.
    pub part: Part,
    /// The whole load. Its numbers are over all processes.
    pub plan: Plan,
    /// The path of memory shared by all processes of this load, on one machine, if their
    /// connections must know about each other. `None`: not needed.
    pub shared: Option<String>,
}

impl Ask {
    /// The message to the process that runs `part`.
    pub fn new(plan: &Plan, part: Part) -> Ask {
        Ask { format: FORMAT, part, plan: plan.clone(), shared: None }
    }

    /// The plan of the process. The leader decides on warm-up and patience.
    pub(super) fn plan(&self) -> Result<Plan, Error> {
        let refuse = |what: String| Error::Plan(what);
        if self.format != FORMAT {
            return Err(refuse(format!(
                "the leader sent format {}, but this program reads format {FORMAT}",
                self.format
            )));
        }
        if !self.part.is_possible() {
            return Err(refuse(format!(
                "the leader sent an invalid part of a load: {:?}",
                self.part
            )));
        }
        let own = |machines: &Machines| {
            let own = machines.of_thread.get(self.part.first as usize).copied().unwrap_or(u32::MAX);
            Machines { own, ..machines.clone() }
        };
        let plan = Plan {
            threads: self.part.threads as usize,
            machines: self.plan.machines.as_ref().map(own),
            patience: Plan::PATIENCE,
            warm_up: WarmUp::Fixed(Duration::ZERO),
            ..self.plan.clone()
        };
        plan.check()?;
        Ok(plan)
    }
}

/// A further message to a load process, one line of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// What to do.
    pub order: LeaderCommand,
    /// When to do it, in nanoseconds of `CLOCK_MONOTONIC` of the process's machine. Only for
    /// [`LeaderCommand::OpenWindow`]. `None`, or a time that is past: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ns: Option<u64>,
}
