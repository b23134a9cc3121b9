//! Readings of a contender at the edges of a load's window.

use crate::warm::WarmUpObserver;
use regatta_host::{Confined, Ownership, Roles, Watched};
use regatta_load::{Edges, WarmUpProgress};

/// Passes the edges of a load's window on to the host, which reads usage there.
pub(crate) struct AtEdges<'a> {
    pub watched: Watched,
    pub served: Served,
    /// Set if this start observes how the contender warms up.
    pub seeing: Option<WarmUpObserver<'a>>,
}

impl Edges for AtEdges<'_> {
    fn is_warm(&mut self, so_far: &WarmUpProgress) -> bool {
        self.seeing.as_mut().is_none_or(|seeing| seeing.is_warm(so_far))
    }

    fn connected(&mut self) {
        self.watched.connected();
    }

    fn before_window(&mut self) {
        self.watched.before_window();
    }

    fn window_opens(&mut self) {
        self.watched.window_opens();
    }

    fn window_closes(&mut self) {
        self.watched.window_closes();
    }

    fn load_over(&mut self) {
        self.watched.load_over();
    }

    fn connections_open(&mut self) {
        self.watched.connections_open();
        self.served.look();
    }
}

/// Checks, several times outside the window, which processes serve a contender's ports and on which
/// CPUs.
pub(crate) struct Served {
    name: String,
    ownership: Ownership,
    confined: Confined,
    /// The first foreign process seen serving a port, or why that could not be determined, as a
    /// sentence.
    pub by_others: Option<String>,
    /// The first thread seen that may run on other CPUs, as a sentence.
    pub elsewhere: Option<String>,
}

impl Served {
    /// Starts checking the contender called `name`, with a first check.
    pub fn new(name: &str, roles: &Roles) -> Served {
        let mut served = Served {
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
