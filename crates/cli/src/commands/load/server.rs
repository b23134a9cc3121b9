//! The observed server of a load.

use regatta_host::UsageWindow;
use regatta_load::{LoadObserver, Moment, WarmUpProgress};
use regatta_race::{WarmUpObserver, read_usage};

/// Reads the server's CPU at the edges of the window, and before and after it.
pub struct Server<'a> {
    /// Its CPU usage, if it is observed.
    pub window: Option<UsageWindow>,
    /// The number of CPUs that the server may use.
    pub cpus: u32,
    /// Whether the server may run on CPUs of the load.
    pub shares: bool,
    /// Observes the warm-up, with --settle.
    pub seeing: Option<WarmUpObserver<'a>>,
}

impl LoadObserver for Server<'_> {
    fn at(&mut self, moment: Moment) {
        read_usage(&mut self.window, moment);
    }

    fn is_warm(&mut self, so_far: &WarmUpProgress) -> bool {
        self.seeing.as_mut().is_none_or(|seeing| seeing.is_warm(so_far))
    }
}
