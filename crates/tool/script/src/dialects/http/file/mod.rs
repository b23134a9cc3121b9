//! A workload file with `protocol = "http"`: its requests, its expected replies, and how both are laid
//! out in a script. `reader` reads its requests.

mod ask;
mod context;
mod expect;
mod json;
mod raw;
mod reader;
mod step;

use super::reply::{
    expected::{Content, Expected},
    receive::Http,
    seen,
};
use crate::{
    protocol::{CompileOptions, Destination, Sample},
    script::{Script, TooLarge},
    workload::{
        compose::{converse, lengths},
        conversation::Conversation,
        draw::{Drawer, Value},
        file::{FileText, Kept, WorkloadFile, conversations},
    },
};
use rand::{SeedableRng, rngs::StdRng};
use raw::RawFile;
use reader::Reader;
use step::Step;

/// A workload file over HTTP.
#[derive(Debug)]
pub struct HttpFile {
    kept: Kept,
    conversations: Vec<Conversation<Step>>,
    /// The expected reply of each step.
    kinds: Vec<Expected>,
}

/// Maximum number of exchanges in a script: fewer than for lines, because each is longer, and the server
/// needs memory and caches.
const DRAWN: usize = 1 << 16;
/// Maximum number of exchanges if nothing is random: few, but enough to choose requests by weight
/// accurately.
const UNDRAWN: usize = 1 << 14;

impl WorkloadFile for HttpFile {
    fn read(file: FileText<'_>) -> Result<HttpFile, String> {
        let raw: RawFile = file.parse()?;
        if raw.longest_reply.is_some() {
            return Err(
                "`longest_reply` applies only to lines; checked content over HTTP may have up to \
                        16 MiB; remove it"
                    .into(),
            );
        }
        let mut reader = Reader::new(file.lists(raw.lines, raw.files));
        let conversations =
            conversations(raw.request, "path = \"/\"", |request| reader.conversation(request))?;
        let Reader { lists, kinds, .. } = reader;
        Ok(HttpFile { kept: file.keep(raw.name, lists)?, conversations, kinds })
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }
}

impl HttpFile {
    /// Whether it has conversations of several steps.
    pub fn has_steps(&self) -> bool {
        self.conversations.iter().any(|conversation| conversation.steps.len() > 1)
    }

    /// Compiles its exchanges and expected replies.
    pub fn compile(&self, order: &CompileOptions<'_>) -> Result<Http, TooLarge> {
        let mut of = Vec::new();
        let mut text = Vec::new();
        let mut script = self.compose(
            order.seed,
            order.place,
            |step, script, request, content, captures, drawer| {
                text.clear();
                step.text.fill(&mut text, content, captures, drawer);
                script.push(request, &text);
                of.push(step.kind);
            },
        );
        script.close(order.pipeline)?;
        Ok(Http::new(script, self.kinds.clone(), &of))
    }

    /// Its first request, if that is a GET and no content of a reply is checked.
    pub fn sample(&self, place: Destination<'_>) -> Option<Sample> {
        let is_unchecked = |kind: &Expected| matches!(kind.content, Content::Any);
        let asks = self.compose_echo(0, place).request(0).to_vec();
        let is_sampled = self.kinds.iter().all(is_unchecked) && asks.starts_with(b"GET ");
        let mut steps = self.conversations.iter().flat_map(|conversation| &conversation.steps);
        let is_only = steps.next().is_some_and(|step| !step.is_drawn()) && steps.next().is_none();
        is_sampled.then_some(Sample { asks, seen: seen::reply_with_content, is_only })
    }

    /// Composes its exchanges with each request as its own reply. Not closed.
    pub fn compose_echo(&self, seed: u64, place: Destination<'_>) -> Script {
        self.compose(seed, place, |_, script, request, _, _, _| script.push(request, request))
    }

    /// Composes seeded exchanges in whole conversations. `push` appends one; it receives the step, the
    /// request and its content.
    fn compose(
        &self,
        seed: u64,
        place: Destination<'_>,
        mut push: impl FnMut(&Step, &mut Script, &[u8], &[u8], &mut Vec<Value>, &mut Drawer<'_>),
    ) -> Script {
        let mut drawer = Drawer::new(StdRng::seed_from_u64(seed), &self.kept.lists);
        let mut script = Script::new(lengths(&self.conversations));
        let mut steps = self.conversations.iter().flat_map(|conversation| &conversation.steps);
        let most = if steps.any(Step::is_drawn) { DRAWN } else { UNDRAWN };
        let mut request = Vec::new();
        converse(
            &self.conversations,
            most,
            &mut script,
            &mut drawer,
            |step, script, captures, drawer| {
                request.clear();
                let place = Destination { closes: place.closes && step.is_last, ..place };
                let content = step.ask.fill(&mut request, place, captures, drawer);
                push(step, script, &request, &content, captures, drawer);
            },
        );
        script
    }
}

#[cfg(test)]
mod tests;
