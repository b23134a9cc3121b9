//! A call whose reply waits for the broker: the call is made twice. The first time it sends its messages, and the second
//! time, when it is known what became of each, it answers.

use regatta_engine::RemoteOutcome;
use regatta_proto::http1::Terms;

/// A call that waits for the broker.
#[derive(Debug, Default)]
pub(in super::super) struct Awaited {
    pub(super) method: String,
    pub(super) body: Vec<u8>,
    pub(super) terms: Option<Terms>,
    /// What became of each message, in the order in which they were sent: its index is its ticket.
    pub(super) outcomes: Vec<Option<RemoteOutcome>>,
    /// How many are known.
    known: usize,
    /// How many the second call has used; `None`: this is the first call.
    pub(super) used: Option<usize>,
    /// The client has closed its side.
    pub(super) is_last: bool,
}

impl Awaited {
    /// The first call was made.
    pub(super) fn begins(&mut self, method: &str, body: Vec<u8>, terms: Terms) {
        (self.method, self.body, self.terms) = (method.to_owned(), body, Some(terms));
    }

    /// How many messages the present call has sent, or has used the outcomes of.
    pub(super) fn sent(&self) -> usize {
        self.used.unwrap_or(self.outcomes.len())
    }

    /// The second call is made.
    pub(super) fn again(self) -> Awaited {
        Awaited { used: Some(0), ..self }
    }

    /// The memory that it uses, in bytes.
    pub(in super::super) fn footprint(&self) -> usize {
        size_of::<Awaited>() + self.body.len() + self.outcomes.len() * size_of::<RemoteOutcome>()
    }

    /// No request follows.
    pub(in super::super) fn is_last(&mut self) {
        self.is_last = true;
    }

    /// It is known what became of a message. Returns whether it is known of all.
    pub(in super::super) fn learns(&mut self, ticket: u64, outcome: RemoteOutcome) -> bool {
        let one = usize::try_from(ticket).ok().and_then(|at| self.outcomes.get_mut(at));
        if let Some(unknown @ None) = one {
            (*unknown, self.known) = (Some(outcome), self.known + 1);
        }
        self.known == self.outcomes.len()
    }
}
