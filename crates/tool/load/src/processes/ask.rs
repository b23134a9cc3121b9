//! The first message to a load process: the whole load, and the part of it that the process runs.

use crate::{Error, Plan, WarmUp};
use regatta_record::{FORMAT, Part};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The first message to a load process, one line of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
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
    pub fn new(plan: &Plan, part: Part, shared: Option<String>) -> Ask {
        Ask { format: FORMAT, part, plan: plan.clone(), shared }
    }

    /// The plan of the process. The leader decides on warm-up and patience.
    pub fn plan(&self) -> Result<Plan, Error> {
        let refuse = |what: String| Error::Plan(what);
        if self.format != FORMAT {
            return Err(refuse(format!(
                "the leader sent format {}, but this program reads format {FORMAT}",
                self.format
            )));
        }
        let Part { process, processes, threads } = self.part;
        if processes == 0 || process >= processes || threads < processes {
            return Err(refuse(format!(
                "the leader sent an invalid part of a load: {:?}",
                self.part
            )));
        }
        let plan = Plan {
            threads: threads as usize,
            patience: Plan::PATIENCE,
            warm_up: WarmUp::Fixed(Duration::ZERO),
            ..self.plan.clone()
        };
        plan.check()?;
        Ok(plan)
    }
}
