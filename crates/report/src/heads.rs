//! What a heading says of the heads of the requests.

use regatta_record::{Asked, Heads};

/// Behind the name of the workload: nothing, unless all heads are identical.
pub(crate) fn heads_in_words(asked: &Asked) -> &'static str {
    match asked.heads {
        Some(Heads::Identical) => ", with identical heads",
        Some(Heads::Varied) | None => "",
    }
}
