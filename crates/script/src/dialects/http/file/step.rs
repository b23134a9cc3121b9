//! One request of a workload file, and what must come back.

use super::{ask::AskTemplate, expect::TextTemplate};

/// A request, and what must come back.
#[derive(Debug)]
pub(super) struct Step {
    pub ask: AskTemplate,
    /// Which of the kinds its reply is to be like.
    pub kind: u16,
    /// What must come back and is another for each exchange.
    pub text: TextTemplate,
    /// Most bytes of the request and of that text.
    pub longest: usize,
    /// The last of its conversation: where each has a connection, it says that the connection ends.
    pub is_last: bool,
}

impl Step {
    /// Whether requests or replies differ.
    pub fn is_drawn(&self) -> bool {
        self.ask.is_drawn() || self.text.is_drawn()
    }
}
