//! The observed server of a load.

use regatta_host::UsageWindow;
use regatta_load::{Edges, WarmUpProgress};
use regatta_race::WarmUpObserver;

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

impl Edges for Server<'_> {
    fn is_warm(&mut self, so_far: &WarmUpProgress) -> bool {
        self.seeing.as_mut().is_none_or(|seeing| seeing.is_warm(so_far))
    }

    fn before_window(&mut self) {
        self.window.iter_mut().for_each(UsageWindow::before);
    }

    fn window_opens(&mut self) {
        self.window.iter_mut().for_each(UsageWindow::opens);
    }

    fn stage_ends(&mut self) {
        self.window.iter_mut().for_each(UsageWindow::lap);
    }

    fn window_closes(&mut self) {
        self.window.iter_mut().for_each(UsageWindow::closes);
    }

    fn load_over(&mut self) {
        self.window.iter_mut().for_each(UsageWindow::after);
    }

    fn connections_open(&mut self) {}
}
