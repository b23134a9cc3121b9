//! The remark on request headers in the heading of a race.

use regatta_record::{Asked, Heads};

/// The text after the name of the workload: empty unless all request headers are identical.
pub(crate) fn heads_in_words(asked: &Asked) -> &'static str {
    match asked.heads {
        Some(Heads::Identical) => ", with identical headers",
        Some(Heads::Varied) | None => "",
    }
}
