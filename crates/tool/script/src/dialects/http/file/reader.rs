//! Reads and validates the `[[request]]` entries of an HTTP workload file one by one.

use super::{ask::AskTemplate, context::Context, expect, raw::Request, step::Step};
use crate::{
    dialects::http::reply::expected::Expected,
    workload::{
        conversation::{Captures, Conversation},
        lists::NamedLists,
        template::Side,
    },
};

/// Maximum number of bytes of a conversation: offsets into a script are 32 bits wide.
const LONGEST_CONVERSATION: usize = 256 << 20;

/// State of reading the requests.
pub(super) struct Reader {
    pub lists: NamedLists,
    /// The expected reply of each step so far.
    pub kinds: Vec<Expected>,
}

impl Reader {
    /// Creates a reader for a file.
    pub fn new(lists: NamedLists) -> Self {
        Reader { lists, kinds: Vec::new() }
    }

    /// Reads a `[[request]]`. An error starts with its place: `: …` or `, step 2: …`.
    pub fn conversation(&mut self, mut request: Request) -> Result<Conversation<Step>, String> {
        let (weight, steps) = (request.weight.take(), request.steps.take());
        let mut conversation = Conversation::read(weight, steps, request, |request, captures| {
            self.step(&request, captures)
        })?;
        if let Some(last) = conversation.steps.last_mut() {
            last.is_last = true;
        }
        let longest: usize = conversation.steps.iter().map(|step| step.longest).sum();
        if longest > LONGEST_CONVERSATION {
            return Err(format!(
                ": the conversation can become {longest} bytes long; at most \
                 {LONGEST_CONVERSATION} are permitted"
            ));
        }
        Ok(conversation)
    }

    fn step(&mut self, raw: &Request, captures: &mut Captures) -> Result<Step, String> {
        if raw.weight.is_some() || raw.steps.is_some() {
            return Err("a step cannot have `weight` or `steps`; they belong to [[request]]".into());
        }
        let Ok(kind) = u16::try_from(self.kinds.len()) else {
            return Err(
                "the file has too many requests and steps; at most 65,536 are permitted".into()
            );
        };
        let lists = &mut self.lists;
        let mut context = Context { captures, lists };
        let (ask, content, longest_request) = AskTemplate::read(raw, &mut context)?;
        let side = Side::Expect { request: content };
        let (expected, text, longest_text) = expect::read(raw, ask.method, side, &mut context)?;
        self.kinds.push(expected);
        let longest = longest_request + longest_text;
        Ok(Step { ask, kind, text, longest, is_last: false })
    }
}
