//! A load thread: its state, its life (the loop and the phases), when it asks (`drives`), and what
//! happens on one connection (`talk`, `opening`, `ends`, `loss`, `unexpected`, `sealed`), and members that
//! come and go (`passing`).

mod driver;
mod drives;
mod ends;
mod heard;
mod holding;
mod life;
mod loss;
mod opening;
mod passing;
mod sealed;
mod state;
mod talk;
mod unexpected;

use crate::{
    Error, Plan,
    leads::Leads,
    schedule::Part,
    shared::{Gauge, Shared},
    tally::Count,
};
use driver::Driver;
pub(crate) use drives::GRACE;
use drives::{Bounded, Burst, Churn, Closed, Open};
use regatta_record::Drive;
use regatta_script::Dialect;
use state::Worker;
use std::os::fd::OwnedFd;

/// What a load thread leaves behind.
pub(crate) struct Done {
    pub count: Count,
    /// Connections that are open still. They are closed when no thread of the load reads any more: a hub tells
    /// the members that are left of one that goes, and counts it no longer.
    pub open: Vec<OwnedFd>,
}

/// What a load thread works with.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a, D> {
    pub plan: &'a Plan,
    pub dialect: &'a D,
    pub shared: &'a Shared,
    /// Where the thread tells of itself.
    pub gauge: &'a Gauge,
    /// Which thread of how many, counted over all processes.
    pub part: Part,
}

impl<D: Dialect> Work<'_, D> {
    /// Does this thread's share of the plan, by its drive, until the run is over. The first thread of
    /// a process brings who leads it.
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
        Ok(Worker::<D, V>::new(plan, dialect, shared, gauge, part)?.run(leader))
    }
}
