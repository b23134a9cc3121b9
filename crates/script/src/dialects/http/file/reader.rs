//! One `[[request]]` of an HTTP workload file at a time, with everything that can be wrong.

use super::{ask::AskTemplate, context::Context, expect, raw::Request, step::Step};
use crate::{
    dialects::http::expected::Expected,
    workload::{
        conversation::{Captures, Conversation},
        lists::NamedLists,
        template::Side,
    },
};

/// Most bytes of a conversation: offsets into a script are 32 bits wide.
const LONGEST_CONVERSATION: usize = 256 << 20;

/// What is read while the requests are.
pub(super) struct Reader {
    pub lists: NamedLists,
    /// Of each step so far: what its reply is to be like.
    pub kinds: Vec<Expected>,
}

impl Reader {
    /// For a file.
    pub fn new(lists: NamedLists) -> Self {
        Reader { lists, kinds: Vec::new() }
    }

    /// Reads a `[[request]]`. What is wrong begins with its place: `: …` or `, step 2: …`.
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
                ": all of it together can become {longest} bytes long; at most \
                 {LONGEST_CONVERSATION} are permitted"
            ));
        }
        Ok(conversation)
    }

    fn step(&mut self, raw: &Request, captures: &mut Captures) -> Result<Step, String> {
        if raw.weight.is_some() || raw.steps.is_some() {
            return Err(
                "a step has neither `weight` nor `steps`; they belong to [[request]]".into()
            );
        }
        let Ok(kind) = u16::try_from(self.kinds.len()) else {
            return Err("it is one too many: a file has at most 65,536 requests and steps".into());
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
