//! A request of a workload file and its expected reply.

use super::{ask::AskTemplate, expect::TextTemplate, raw::Request};
use crate::workload::conversation::Raw;

/// A request and its expected reply.
#[derive(Debug)]
pub(super) struct Step {
    pub ask: AskTemplate,
    /// Index of the kind of its expected reply.
    pub kind: u16,
    /// The template of the expected text.
    pub text: TextTemplate,
    /// Maximum number of bytes of the path, fields and content of the request, and of that text.
    pub longest: usize,
    /// Whether it is the last step of its conversation. If each conversation has its own connection,
    /// this step sends `Connection: close`, unless it has a `Connection` of its own.
    pub is_last: bool,
}

impl Step {
    /// Whether requests or expected replies differ from each other.
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
        texts.iter().chain([&&self.json_equals]).all(|text| text.is_none())
            && self.status.is_none()
            && self.chunked.is_none()
            && [&self.expect_headers, &self.json].iter().all(|pairs| pairs.is_empty())
            && headers.is_empty()
    }
}
