//! A call whose reply waits for the broker: the call is made twice. The first time it sends its messages, and the second
//! time, when it is known what became of each, it answers.

use super::{
    command::{Backend, NotJson},
    reply::{Answer, Failure, Response},
};
use crate::http::flow;
use crate::hub::{broadcast::Broadcast, broker};
use regatta_engine::{Flow, Post, RemoteOutcome, RoomName};
use regatta_proto::http1::{Date, Reply, Status, Terms};

/// A call that waits for the broker.
#[derive(Debug, Default)]
pub(in super::super) struct Awaited {
    method: String,
    body: Vec<u8>,
    terms: Option<Terms>,
    /// What became of each message, in the order in which they were sent: its index is its ticket.
    outcomes: Vec<Option<RemoteOutcome>>,
    /// How many are known.
    known: usize,
    /// How many the second call has used; `None`: this is the first call.
    used: Option<usize>,
    /// The client has closed its side.
    is_last: bool,
}

impl Awaited {
    /// The first call was made.
    pub(super) fn begins(&mut self, method: &str, body: Vec<u8>, terms: Terms) {
        (self.method, self.body, self.terms) = (method.to_owned(), body, Some(terms));
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

impl Backend<'_> {
    /// Sends a message to the broker for each of these rooms; or, in the second call, returns what became of them.
    pub(super) fn send(&mut self, rooms: Vec<RoomName>, data: &str) -> Vec<Response> {
        let awaited = self.awaited.get_or_insert_default();
        if let Some(used) = &mut awaited.used {
            let outcomes = &awaited.outcomes[*used..*used + rooms.len()];
            *used += rooms.len();
            return outcomes.iter().map(|outcome| response(*outcome)).collect();
        }
        let push = Broadcast::outgoing(data, true, &self.settings.backlog.memory);
        let mut responses = Vec::new();
        for room in rooms {
            self.census.published.add(1);
            self.posts.push(Post::Remote(room, push.clone(), awaited.outcomes.len() as u64));
            awaited.outcomes.push(None);
            responses.push(Response(Ok(Answer::Done {})));
        }
        responses
    }

    /// Makes the second call of `awaited`, and writes the reply.
    pub(in super::super) fn answer_awaited(&mut self, awaited: Awaited, out: &mut Vec<u8>) -> Flow {
        let Awaited { ref method, ref body, terms: Some(terms), is_last, .. } = awaited else {
            return Flow::Close;
        };
        let (method, body) = (method.clone(), body.clone());
        self.awaited = Some(Awaited { used: Some(0), ..awaited });
        let date = Date::at(self.now.unix_s);
        let reply = self.call(&method, &body);
        let (status, content_type, text) = match &reply {
            Ok(json) => (Status::Ok, Some("application/json"), json),
            Err(NotJson(why)) => (Status::BadRequest, None, why),
        };
        let plain = Reply::text(status, text.as_bytes());
        let content_type = content_type.unwrap_or(plain.content_type);
        Reply { content_type, ..plain }.write(terms, &date, out);
        if is_last { Flow::Close } else { flow(terms) }
    }
}

fn response(outcome: Option<RemoteOutcome>) -> Response {
    let failure = outcome.and_then(broker::failure);
    Response(failure.map_or(Ok(Answer::Done {}), |why| Err(Failure::of_broker(why))))
}
