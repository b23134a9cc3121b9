//! Distributes the conversations of a workload file over the exchanges of a run.

use super::{
    conversation::Conversation,
    draw::{Drawer, Value},
};
use crate::script::{BYTES, Conversations, Script};

/// Fills a script with whole conversations, chosen by weight, until the next one does not fit into
/// `most` exchanges, or the script has more than [`BYTES`]. `push` appends the exchange of a step; it
/// receives what the conversation has captured so far.
pub(crate) fn converse<S>(
    conversations: &[Conversation<S>],
    most: usize,
    script: &mut Script,
    drawer: &mut Drawer<'_>,
    mut push: impl FnMut(&S, &mut Script, &mut Vec<Value>, &mut Drawer<'_>),
) {
    let weights = conversations.iter().scan(0, |sum, conversation| {
        *sum += u64::from(conversation.weight);
        Some(*sum)
    });
    let weights: Vec<u64> = weights.collect();
    let all = weights.last().copied().unwrap_or(0);
    loop {
        let chosen = drawer.below(all);
        let chosen = weights.partition_point(|up_to| *up_to <= chosen);
        let conversation = &conversations[chosen];
        let is_full = script.pushed() + conversation.steps.len() > most;
        if is_full || script.bytes() > BYTES {
            return;
        }
        script.begin_conversation();
        let mut captures = Vec::new();
        for step in &conversation.steps {
            push(step, script, &mut captures, drawer);
        }
    }
}

/// Returns where conversations start.
pub(crate) fn lengths<S>(conversations: &[Conversation<S>]) -> Conversations {
    let mut lengths = conversations.iter().map(|one| one.steps.len() as u32);
    let first = lengths.next().unwrap_or(1);
    match lengths.all(|other| other == first) {
        true => Conversations::Each(first),
        false => Conversations::At(Vec::new()),
    }
}
