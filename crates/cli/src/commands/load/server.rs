//! The observed server of a load.

use regatta_host::{Spent, UsageWindow, spent_together};
use regatta_load::{LoadObserver, Moment, Plan, Tally, WarmUpProgress};
use regatta_race::{WarmUpObserver, judge_load, read_usage};
use regatta_record::Verdict;

/// Reads the server's CPU at the edges of the window, and before and after it.
pub struct Server<'a> {
    /// The CPU usage of each of its processes that is observed, with the descendants.
    pub windows: Vec<UsageWindow>,
    /// The number of CPUs that the server may use, all its processes together.
    pub cpus: u32,
    /// Whether the server may run on CPUs of the load.
    pub shares: bool,
    /// Whether agents on other machines load it.
    pub by_agents: bool,
    /// Observes the warm-up, with --settle.
    pub seeing: Option<WarmUpObserver<'a>>,
}

impl Server<'_> {
    /// What it used inside the window, all its processes together. `None`: it is not observed, or not all of them
    /// could be read.
    pub fn spent(&self) -> Option<Spent> {
        spent_together(self.windows.iter().map(UsageWindow::spent))
    }

    /// The same in a stage of the window.
    pub fn spent_in_stage(&self, number: usize) -> Option<Spent> {
        let each = self.windows.iter();
        spent_together(each.map(|window| window.spent_in_laps().get(number)?.as_ref()))
    }

    /// Judges a load, or a part of it in which the server used `spent`.
    pub fn judge(&self, plan: &Plan, tally: &Tally, spent: Option<&Spent>) -> Verdict {
        let used = spent.map(|spent| (spent, self.cpus, self.shares));
        judge_load(plan, tally, used, self.by_agents)
    }
}

impl LoadObserver for Server<'_> {
    fn at(&mut self, moment: Moment) {
        read_usage(&mut self.windows, moment);
    }

    fn is_warm(&mut self, so_far: &WarmUpProgress) -> bool {
        self.seeing.as_mut().is_none_or(|seeing| seeing.is_warm(so_far))
    }
}
