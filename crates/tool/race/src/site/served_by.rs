//! Which processes serve a contender's ports, and on which CPUs.

use regatta_host::{Confined, Ownership, Roles};

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
