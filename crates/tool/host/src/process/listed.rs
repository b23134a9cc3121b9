//! A list of processes for messages: the first by name, the others only counted. It must fit in a pipe
//! that is not being read, and in a sentence.

use crate::process::tree::Process;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A list of processes: the first of them, and the number of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The first processes, at most [`Listed::KEPT`].
    pub first: Vec<Process>,
    /// Number of further processes.
    pub more: usize,
}

impl Listed {
    /// Maximum number of processes kept by name.
    pub const KEPT: usize = 32;
    /// Maximum number of processes named in a sentence.
    const SHOWN: usize = 5;

    /// Returns the number of processes.
    pub fn len(&self) -> usize {
        self.first.len() + self.more
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Vec<Process>> for Listed {
    fn from(mut processes: Vec<Process>) -> Listed {
        let more = processes.len().saturating_sub(Listed::KEPT);
        processes.truncate(Listed::KEPT);
        Listed { first: processes, more }
    }
}

impl fmt::Display for Listed {
    /// Writes e.g. `sh (17), sleep (18), and 3 more`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, process) in self.first.iter().take(Listed::SHOWN).enumerate() {
            write!(f, "{}{process}", if nth == 0 { "" } else { ", " })?;
        }
        match self.len().saturating_sub(Listed::SHOWN) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processes(count: u32) -> Listed {
        let named = |pid| Process { pid, name: "fifteen-letters".into() };
        (1_000_000..1_000_000 + count).map(named).collect::<Vec<_>>().into()
    }

    #[test]
    fn a_list_of_thirty_thousand_processes_fits_in_a_pipe() {
        let many = processes(30_000);
        assert_eq!((many.len(), many.first.len()), (30_000, Listed::KEPT));
        assert!(serde_json::to_string(&many).unwrap().len() < 4_096);
        assert!(many.to_string().ends_with(", and 29995 more"), "{many}");
    }

    #[test]
    fn a_few_processes_are_all_named() {
        assert_eq!(processes(0).to_string(), "");
        assert!(processes(0).is_empty());
        let two = "fifteen-letters (1000000), fifteen-letters (1000001)";
        assert_eq!(processes(2).to_string(), two);
    }
}
