//! The observed server of a load.

use regatta_host::{Spent, UsageWindow};
use regatta_load::{LoadObserver, Moment, Plan, Tally, WarmUpProgress};
use regatta_race::{WarmUpObserver, judge_load, read_usage};
use regatta_record::Verdict;

/// Reads the server's CPU at the edges of the window, and before and after it.
pub struct Server<'a> {
    /// Its CPU usage, if it is observed.
    pub window: Option<UsageWindow>,
    /// The number of CPUs that the server may use.
    pub cpus: u32,
    /// Whether the server may run on CPUs of the load.
    pub shares: bool,
    /// Whether agents on other machines load it.
    pub by_agents: bool,
    /// Observes the warm-up, with --settle.
    pub seeing: Option<WarmUpObserver<'a>>,
}

impl Server<'_> {
    /// Judges a load, or a part of it in which the server used `spent`.
    pub fn judge(&self, plan: &Plan, tally: &Tally, spent: Option<&Spent>) -> Verdict {
        let used = spent.map(|spent| (spent, self.cpus, self.shares));
        judge_load(plan, tally, used, self.by_agents)
    }
}

impl LoadObserver for Server<'_> {
    fn at(&mut self, moment: Moment) {
        read_usage(&mut self.window, moment);
    }

    fn is_warm(&mut self, so_far: &WarmUpProgress) -> bool {
        self.seeing.as_mut().is_none_or(|seeing| seeing.is_warm(so_far))
    }
}
