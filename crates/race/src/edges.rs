//! What is read of a contender at the edges of a load's window.

use crate::warm::Seeing;
use regatta_host::{Confined, Ownership, Roles, Watched};
use regatta_load::{Edges, SoFar};

/// Lets a load tell the host when to read.
pub(crate) struct AtEdges<'a> {
    pub watched: Watched,
    pub served: Served,
    /// Where it is to be seen how the contender warms up.
    pub seeing: Option<Seeing<'a>>,
}

impl Edges for AtEdges<'_> {
    fn is_warm(&mut self, so_far: &SoFar) -> bool {
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

/// Who serves the ports of a contender and on which CPUs, looked at several times outside the window.
pub(crate) struct Served {
    name: String,
    ownership: Ownership,
    confined: Confined,
    /// Who else did, in a sentence; the first that was seen.
    pub by_others: Option<String>,
    /// Which thread might run elsewhere, likewise.
    pub elsewhere: Option<String>,
}

impl Served {
    /// Of the contender called `name`. Looks for the first time.
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

    /// Looks again for what was not found before.
    pub fn look(&mut self) {
        if self.by_others.is_none() {
            self.by_others = self.stranger();
        }
        if self.elsewhere.is_none() {
            self.elsewhere = self.confined.loose().map(|loose| {
                format!(
                    "{loose}; start {} so that it keeps to the CPUs that it is given",
                    self.name
                )
            });
        }
    }

    fn stranger(&self) -> Option<String> {
        let name = &self.name;
        match self.ownership.stranger() {
            Ok(None) => None,
            Ok(Some(stranger)) => Some(format!(
                "{stranger}, which is not among {name}'s; start that process from {name}'s own, in \
                 the foreground, so that its work is seen"
            )),
            Err(error) => Some(format!("who serves {name}'s port cannot be told: {error}")),
        }
    }
}
