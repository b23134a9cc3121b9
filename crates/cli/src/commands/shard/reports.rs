//! Lines about nodes on stderr: each failure once, however many cores find it.

use crate::output;
use std::sync::{Mutex, PoisonError};

/// What was printed about nodes.
#[derive(Debug, Default)]
pub struct Reports {
    /// The last failure of each node that has one.
    failures: Mutex<Vec<(String, String)>>,
}

impl Reports {
    /// Prints that a node fails, unless this is known, or that it works again (`None`), if it has failed. `again`: what
    /// is printed then.
    pub fn report(&self, node: &str, failure: Option<&str>, again: &str) {
        if let Some(line) = self.line(node, failure, again) {
            output::log(&format!("regatta: node {node}: {line}"));
        }
    }

    fn line(&self, node: &str, failure: Option<&str>, again: &str) -> Option<String> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let known = failures.iter().position(|(of, _)| of == node);
        if let (Some(known), Some(why)) = (known, failure)
            && failures[known].1 == why
        {
            return None;
        }
        if let Some(known) = known {
            failures.swap_remove(known);
        }
        match failure {
            Some(why) => {
                failures.push((node.to_owned(), why.to_owned()));
                Some(why.to_owned())
            }
            None => known.map(|_| again.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_is_printed_once_and_so_is_its_end() {
        let reports = Reports::default();
        let line = |node, failure| reports.line(node, failure, "again");
        assert_eq!(line("a", None), None, "it has not failed");
        assert_eq!(line("a", Some("x")).as_deref(), Some("x"));
        assert_eq!(line("a", Some("x")), None, "another core found it, too");
        assert_eq!(line("b", Some("x")).as_deref(), Some("x"));
        assert_eq!(line("a", Some("y")).as_deref(), Some("y"));
        assert_eq!(line("a", None).as_deref(), Some("again"));
        assert_eq!((line("a", None), line("b", Some("x"))), (None, None));
    }
}
