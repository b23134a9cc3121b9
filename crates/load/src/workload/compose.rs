//! From a workload file to the exchanges of a run.

use super::{
    draw::Drawer,
    file::{Conversation, Expect, WorkloadFile},
};
use crate::{
    patterns::{Due, Patterns},
    script::{BYTES, Conversations, EXCHANGES, Script},
};
use rand::{SeedableRng, rngs::StdRng};

impl WorkloadFile {
    /// Seeded exchanges, whole conversations of them: as many as fit into [`EXCHANGES`] and
    /// [`BYTES`], and at least one. `echoed`: the reply to each is to be the request. Not closed.
    pub(super) fn compose(&self, seed: u64, echoed: bool) -> Script {
        // Where every reply is known to the byte, checking them is one comparison of memory.
        let patterns = (!echoed && !self.conversations.iter().all(Conversation::is_exact))
            .then(|| Patterns::new(self.regexes.iter().cloned(), self.longest_reply));
        let mut script = Script::new(self.lengths(), patterns);
        let mut drawer = Drawer::new(StdRng::seed_from_u64(seed), &self.lists);
        let weights = self.conversations.iter().scan(0, |sum, conversation| {
            *sum += u64::from(conversation.weight);
            Some(*sum)
        });
        let weights: Vec<u64> = weights.collect();
        let all = weights.last().copied().unwrap_or(0);
        let (mut request, mut reply) = (Vec::new(), Vec::new());
        loop {
            let chosen = drawer.below(all);
            let chosen = weights.partition_point(|up_to| *up_to <= chosen);
            let conversation = &self.conversations[chosen];
            let is_full = script.pushed() + conversation.steps.len() > EXCHANGES;
            if is_full || script.bytes() > BYTES {
                return script;
            }
            script.begin_conversation();
            let mut captures = Vec::new();
            for step in &conversation.steps {
                request.clear();
                reply.clear();
                step.send.fill(&mut request, &[], &mut captures, &mut drawer);
                let due = match &step.expect {
                    Expect::Exact(template) => {
                        template.fill(&mut reply, &request, &mut captures, &mut drawer);
                        Due::Exact
                    }
                    Expect::Prefix(template) => {
                        template.fill(&mut reply, &request, &mut captures, &mut drawer);
                        Due::Prefix
                    }
                    Expect::Regex(n) => Due::Regex(*n),
                };
                request.push(b'\n');
                if echoed {
                    reply.clone_from(&request);
                } else if script.patterns().is_none() {
                    reply.push(b'\n');
                }
                script.push(&request, &reply, due);
            }
        }
    }

    fn lengths(&self) -> Conversations {
        let mut lengths = self.conversations.iter().map(|one| one.steps.len() as u32);
        let first = lengths.next().unwrap_or(1);
        match lengths.all(|other| other == first) {
            true => Conversations::Each(first),
            false => Conversations::At(Vec::new()),
        }
    }
}

impl Conversation {
    fn is_exact(&self) -> bool {
        self.steps.iter().all(|step| matches!(step.expect, Expect::Exact(_)))
    }
}
