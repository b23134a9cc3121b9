//! A load thread: its state, its life (the loop and the phases), when it sends requests (`drives`), what
//! happens on one connection (`talk`, `opening`, `ends`, `loss`, `unexpected`, `sealed`, `holding`),
//! replies in another order than their requests (`streams`), operations that servers push (`heard`), members that join and leave (`passing`), and how it rests between
//! the slices of a lane (`resting`).

mod driver;
mod drives;
mod ends;
mod heard;
mod holding;
mod life;
mod loss;
mod opening;
mod passing;
mod resting;
mod sealed;
mod state;
mod streams;
mod talk;
mod unexpected;

use crate::{
    Error, Plan,
    counts::tally::Count,
    open_loop::schedule::Part,
    running::{
        leads::Leads,
        shared::{Gauge, Shared},
    },
};
use driver::Driver;
pub(crate) use drives::GRACE;
use drives::{Bounded, Burst, Churn, Closed, Open};
use regatta_record::Drive;
use regatta_script::Dialect;
use state::Worker;
use std::os::fd::OwnedFd;

/// The result of a load thread.
pub(crate) struct Done {
    pub count: Count,
    /// Connections that are still open. They must stay open until all load threads have stopped reading:
    /// when a member leaves, a hub may notify the others, and no longer counts it.
    pub open: Vec<OwnedFd>,
}

/// The inputs of a load thread.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a, D> {
    pub plan: &'a Plan,
    pub dialect: &'a D,
    pub shared: &'a Shared,
    /// Where the thread publishes its counters.
    pub gauge: &'a Gauge,
    /// This thread's number, and the number of threads over all processes.
    pub part: Part,
}

impl<D: Dialect> Work<'_, D> {
    /// Runs this thread's share of the plan, with the plan's drive, until the run is over. `leader` is
    /// given to the first thread of a process only.
    pub fn run(self, leader: Option<&mut dyn Leads>) -> Result<Done, Error> {
        match self.plan.drive {
            Drive::Closed => self.by::<Closed>(leader),
            Drive::Bounded { .. } => self.by::<Bounded>(leader),
            Drive::Open { .. } => self.by::<Open>(leader),
            Drive::Churn => self.by::<Churn>(leader),
            Drive::Burst(_) => self.by::<Burst>(leader),
        }
    }

    fn by<V: Driver>(self, leader: Option<&mut dyn Leads>) -> Result<Done, Error> {
        let Work { plan, dialect, shared, gauge, part } = self;
        let worker = Worker::<D, V>::new(plan, dialect, shared, gauge, part)?;
        worker
            .can_be_woken()
            .map_err(|error| Error::Machine { what: "create the sockets that wake it", error })?;
        Ok(worker.run(leader))
    }
}
