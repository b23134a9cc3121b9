//! One request of a workload file, and what must come back.

use super::{ask::AskTemplate, expect::TextTemplate, raw::Request};
use crate::workload::conversation::Raw;

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

impl Raw for Request {
    type Step = Step;
    const KEYS: &str = "other keys of a request";
    const EXAMPLE: &str = "{ path = \"/\" }, { path = \"/items\" }";

    fn is_empty(&self) -> bool {
        let Request { weight: _, steps: _, method, path, headers, body, body_file, .. } = self;
        let texts = [method, path, body, body_file, &self.exact, &self.prefix, &self.regex];
        texts.iter().all(|text| text.is_none())
            && self.status.is_none()
            && [&self.expect_headers, &self.json].iter().all(|pairs| pairs.is_empty())
            && headers.is_empty()
    }
}
