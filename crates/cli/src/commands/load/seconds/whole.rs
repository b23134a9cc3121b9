//! Latencies that are known only for the whole window: those of operations that follow from requests, e.g. the
//! deliveries of a hub, and those of deliveries between machines.

use regatta_record::{LoadOperation, LoadResult};

/// The latencies of one kind over the whole window.
pub struct Whole<'a> {
    /// What they are of.
    pub name: &'a str,
    /// Their histogram, as in the result.
    pub histogram: &'a str,
    /// Why they are void, if they are.
    pub void: Option<String>,
}

impl<'a> Whole<'a> {
    /// Those of a result.
    pub fn all(result: &'a LoadResult) -> Vec<Whole<'a>> {
        let operation = |one: &'a LoadOperation| {
            let LoadOperation { operation, histogram, .. } = one;
            Whole { name: &operation.name, histogram, void: None }
        };
        let across = result.agents.iter().flat_map(|on| &on.across);
        let across = across.map(|across| Whole {
            name: "across",
            histogram: &across.histogram,
            void: across.void(),
        });
        let timed = result.operations.iter().filter(|one| !one.is_only_counted());
        timed.map(operation).chain(across).collect()
    }

    /// Its tag in an HDR log, in which spaces and commas are not permitted.
    pub fn tag(&self) -> String {
        self.name.replace([' ', ',', '\r', '\n'], "-")
    }
}
