//! Compiles a workload file of lines into the exchanges of a run.

use super::{
    file::{Expect, LineFile, Step},
    patterns::{Expectation, Patterns},
};
use crate::{
    script::{EXCHANGES, Script},
    workload::{
        compose::{converse, lengths},
        conversation::Conversation,
        draw::Drawer,
    },
};
use rand::{SeedableRng, rngs::StdRng};

impl LineFile {
    /// Returns seeded exchanges in whole conversations, at most [`EXCHANGES`]; see [`converse`]. Also
    /// returns the patterns of the replies if not all replies are known to the byte. If `echoed`, the
    /// reply to each request is the request. Not closed.
    pub(super) fn compose(&self, seed: u64, echoed: bool) -> (Script, Option<Patterns>) {
        let mut drawer = Drawer::new(StdRng::seed_from_u64(seed), &self.kept.lists);
        // If every reply is known to the byte, checking is one comparison of memory.
        let mut patterns = (!echoed && !self.conversations.iter().all(is_exact))
            .then(|| Patterns::new(self.regexes.iter().cloned(), self.longest_reply));
        let mut script = Script::new(lengths(&self.conversations));
        let (mut request, mut reply) = (Vec::new(), Vec::new());
        converse(
            &self.conversations,
            EXCHANGES,
            &mut script,
            &mut drawer,
            |step, script, captures, drawer| {
                request.clear();
                reply.clear();
                step.send.fill(&mut request, &[], captures, drawer);
                let due = match &step.expect {
                    Expect::Exact(template) => {
                        template.fill(&mut reply, &request, captures, drawer);
                        Expectation::Exact
                    }
                    Expect::Prefix(template) => {
                        template.fill(&mut reply, &request, captures, drawer);
                        Expectation::Prefix
                    }
                    Expect::Regex(n) => Expectation::Regex(*n),
                };
                request.push(b'\n');
                match &mut patterns {
                    _ if echoed => reply.clone_from(&request),
                    Some(patterns) => patterns.push(due),
                    None => reply.push(b'\n'),
                }
                script.push(&request, &reply);
            },
        );
        (script, patterns)
    }
}

fn is_exact(conversation: &Conversation<Step>) -> bool {
    conversation.steps.iter().all(|step| matches!(step.expect, Expect::Exact(_)))
}
