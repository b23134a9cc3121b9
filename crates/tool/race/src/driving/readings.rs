//! Readings of a contender at the moments of a load.

use crate::driving::warm::WarmUpObserver;
use regatta_host::{Confined, Ownership, Readings, Roles, UsageWindow};
use regatta_load::{LoadObserver, Moment, WarmUpProgress};

/// Passes the moments of a load on to the host, which reads usage then.
pub(crate) struct RoundObserver<'a> {
    pub readings: Readings,
    pub served: ServedBy,
    /// Set if this start observes how the contender warms up.
    pub seeing: Option<WarmUpObserver<'a>>,
}

impl LoadObserver for RoundObserver<'_> {
    fn at(&mut self, moment: Moment) {
        let readings = &mut self.readings;
        match moment {
            Moment::Connected => readings.memory_before_load(),
            Moment::BeforeWindow => readings.before_window(),
            Moment::WindowOpens => readings.window_opens(),
            Moment::StageEnds => {}
            Moment::WindowCloses => readings.window_closes(),
            Moment::LoadOver => readings.load_over(),
            Moment::ConnectionsOpen => {
                readings.memory_after_load();
                self.served.look();
            }
        }
    }

    fn is_warm(&mut self, so_far: &WarmUpProgress) -> bool {
        self.seeing.as_mut().is_none_or(|seeing| seeing.is_warm(so_far))
    }
}

/// Reads the usage that belongs to a moment of a load.
pub fn read_usage<'w>(windows: impl IntoIterator<Item = &'w mut UsageWindow>, moment: Moment) {
    let read = match moment {
        Moment::BeforeWindow => UsageWindow::before,
        Moment::WindowOpens => UsageWindow::opens,
        Moment::StageEnds => UsageWindow::lap,
        Moment::WindowCloses => UsageWindow::closes,
        Moment::LoadOver => UsageWindow::after,
        Moment::Connected | Moment::ConnectionsOpen => return,
    };
    windows.into_iter().for_each(read);
}

/// Checks, several times outside the window, which processes serve a contender's ports and on which
/// CPUs.
pub(crate) struct ServedBy {
    name: String,
    ownership: Ownership,
    confined: Confined,
    /// The first foreign process seen serving a port, or why that could not be determined, as a
    /// sentence.
    pub by_others: Option<String>,
    /// The first thread seen that may run on other CPUs, as a sentence.
    pub elsewhere: Option<String>,
}

impl ServedBy {
    /// Starts checking the contender called `name`, with a first check.
    pub fn new(name: &str, roles: &Roles) -> ServedBy {
        let mut served = ServedBy {
            name: name.to_owned(),
            ownership: Ownership::of(roles),
            confined: Confined::of(roles),
            by_others: None,
            elsewhere: None,
        };
        served.look();
        served
    }

    /// Checks again for whatever has not been found yet.
    pub fn look(&mut self) {
        if self.by_others.is_none() {
            self.by_others = self.foreign_process();
        }
        if self.elsewhere.is_none() {
            self.elsewhere = self.confined.stray().map(|thread| {
                format!("{thread}; start {} so that all of its threads stay on its CPUs", self.name)
            });
        }
    }

    fn foreign_process(&self) -> Option<String> {
        let name = &self.name;
        match self.ownership.foreign_process() {
            Ok(None) => None,
            Ok(Some(process)) => Some(format!(
                "{process}, which is not one of {name}'s processes; have {name} start that \
                 process in the foreground, so that its work is measured"
            )),
            Err(error) => {
                Some(format!("cannot determine which process serves {name}'s port: {error}"))
            }
        }
    }
}
