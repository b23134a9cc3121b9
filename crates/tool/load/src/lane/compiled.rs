//! The requests and expected replies of a plan, compiled once and shared by lanes, so that the memory and
//! caches of the load are the same for every contender.

use crate::{Error, Plan};
use regatta_record::Operation;
use regatta_script::{self as script, Dialect, Visitor};
use std::sync::Arc;

/// The compiled requests of a plan. Cloning it is cheap, and clones share the memory.
#[derive(Clone, Debug)]
pub struct Compiled {
    exchanges: Arc<script::Compiled>,
    of: Of,
}

/// What the requests depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Of {
    /// The workload with all that it consists of: variants of a workload, e.g. for a null server, have one
    /// name.
    workload: String,
    seed: u64,
    pipeline: usize,
    host: String,
    path: Option<String>,
    churns: bool,
}

impl Of {
    fn plan(plan: &Plan) -> Self {
        Of {
            workload: format!("{:?}", plan.workload),
            seed: plan.seed,
            pipeline: plan.pipeline,
            host: plan.host.clone(),
            path: plan.path.clone(),
            churns: plan.drive.churns(),
        }
    }
}

impl Compiled {
    /// Compiles the requests of a plan.
    ///
    /// # Errors
    /// [`Error::Plan`] if the requests are too long for the pipeline.
    pub fn of(plan: &Plan) -> Result<Compiled, Error> {
        Ok(Compiled { exchanges: Arc::new(plan.compile(None)?), of: Of::plan(plan) })
    }

    /// Whether these are the requests of a plan.
    pub fn serves(&self, plan: &Plan) -> bool {
        self.of == Of::plan(plan)
    }

    /// The exchanges for a lane with this plan. They are those of `self`, unless the dialect serves only
    /// one run, as on a hub, where it knows which member is owed which message.
    pub(super) fn for_lane(&self, plan: &Plan) -> Result<Arc<script::Compiled>, Error> {
        if !self.serves(plan) {
            return Err(Error::Plan(
                "the requests of a lane were compiled for another plan: workload, seed, pipeline, \
                 host, path and drive must be equal"
                    .into(),
            ));
        }
        match self.exchanges.visit(ServesOneRun) {
            true => Ok(Arc::new(plan.compile(None)?)),
            false => Ok(self.exchanges.clone()),
        }
    }

    /// The kinds of operations, requests first.
    pub(super) fn kinds(&self) -> &'static [Operation] {
        self.exchanges.visit(Kinds)
    }
}

struct ServesOneRun;

impl Visitor for ServesOneRun {
    type Out = bool;

    fn visit<D: Dialect>(self, dialect: &D) -> bool {
        dialect.serves_one_run()
    }
}

struct Kinds;

impl Visitor for Kinds {
    type Out = &'static [Operation];

    fn visit<D: Dialect>(self, dialect: &D) -> Self::Out {
        dialect.operations()
    }
}
