//! What is read of a contender at the edges of a load's window.

use regatta_host::{Ownership, Watched};
use regatta_load::Edges;

/// Lets a load tell the host when to read.
pub(crate) struct AtEdges {
    pub watched: Watched,
    pub served: Served,
}

impl Edges for AtEdges {
    fn window_opens(&mut self) {
        self.watched.window_opens();
    }

    fn window_closes(&mut self) {
        self.watched.window_closes();
    }

    fn connections_open(&mut self) {
        self.watched.connections_open();
        self.served.look();
    }
}

/// Who serves the ports of a contender, looked at several times outside the window.
pub(crate) struct Served {
    name: String,
    ownership: Ownership,
    /// Who else did, in a sentence; the first that was seen.
    pub by_others: Option<String>,
}

impl Served {
    /// Of the contender called `name`. Looks for the first time.
    pub fn new(name: &str, ownership: Ownership) -> Served {
        let mut served = Served { name: name.to_owned(), ownership, by_others: None };
        served.look();
        served
    }

    /// Looks again, unless somebody was found before.
    pub fn look(&mut self) {
        if self.by_others.is_some() {
            return;
        }
        let name = &self.name;
        self.by_others = match self.ownership.stranger() {
            Ok(None) => None,
            Ok(Some(stranger)) => Some(format!(
                "{stranger}, which is not among {name}'s; start that process from {name}'s own, in \
                 the foreground, so that its work is seen"
            )),
            Err(error) => Some(format!("who serves {name}'s port cannot be told: {error}")),
        };
    }
}
