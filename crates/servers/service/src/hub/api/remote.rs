//! The calls of a backend that publish at the broker.

use super::{
    awaited::Awaited,
    command::{Backend, Everybody, NotJson},
    reply::{Answer, Failure, Response},
};
use crate::{
    http::flow,
    hub::{
        broadcast::Broadcast,
        broker,
        census::Census,
        history::{Asker, Position, Wanted},
    },
};
use regatta_engine::{Flow, Post, RemoteOutcome, RoomName};
use regatta_proto::http1::{Date, Reply, Status};

/// Why the members of a room are not known.
const MEMBERS_UNKNOWN: &str =
    "the members at other hubs are not known: the broker does not answer, or refuses it";
/// Maximum number of messages of one request.
const MOST_SENT: usize = 10_000;

impl Everybody {
    /// The members of a room at all hubs, once the connection to the broker has answered for those of the others: at most so
    /// many of this hub.
    pub(in super::super) fn at_all_hubs(
        census: &Census,
        room: &RoomName,
        most: usize,
    ) -> Option<Everybody> {
        let (here, are_named, others) = census.everywhere(room, most)?;
        let count = here.len() + others.iter().map(|other| other.count).sum::<usize>();
        Some(Everybody { count, node: census.node, here, are_named, others })
    }
}

impl Backend<'_> {
    /// Sends a message to the broker for each of these rooms; or, in the second call, returns what became of them.
    ///
    /// # Errors
    /// The request would have more messages at the broker than [`MOST_SENT`]. Nothing is sent then.
    pub(super) fn send(
        &mut self,
        rooms: Vec<RoomName>,
        data: &str,
    ) -> Result<Vec<Response>, Failure> {
        let before = self.awaited.as_ref().map_or(0, Awaited::sent);
        if before + rooms.len() > MOST_SENT {
            return Err(Failure::bad(format!(
                "expected at most {MOST_SENT} messages in a request to a hub with a broker, and came to {}; send \
                 several requests",
                before + rooms.len()
            )));
        }
        // Nothing would be waited for.
        if rooms.is_empty() {
            return Ok(Vec::new());
        }
        let awaited = self.awaited.get_or_insert_default();
        if let Some(used) = &mut awaited.used {
            let outcomes = awaited.outcomes.get(*used..*used + rooms.len()).unwrap_or_default();
            *used += rooms.len();
            return Ok(outcomes.iter().map(|outcome| response(*outcome)).collect());
        }
        let push = Broadcast::outgoing(data, true, &self.settings.backlog.memory);
        let mut responses = Vec::new();
        for room in rooms {
            self.census.published.add(1);
            self.posts.push(Post::Remote(room, push.clone(), awaited.outcomes.len() as u64));
            awaited.outcomes.push(None);
            responses.push(response(None));
        }
        Ok(responses)
    }

    /// Asks the broker for the members of a room at all hubs; or, in the second call, returns them.
    ///
    /// # Errors
    /// The room has no presence, or the broker is away; or as [`Backend::send`].
    pub(super) fn at_all_hubs(&mut self, room: &RoomName) -> Result<Option<Everybody>, Failure> {
        let Backend { settings, census, .. } = *self;
        if !settings.terms(room.as_str()).presence {
            return Err(Failure::NOT_AVAILABLE);
        }
        let awaited = self.awaited.get_or_insert_default();
        let Some(used) = &mut awaited.used else {
            if awaited.outcomes.len() >= MOST_SENT {
                return Err(Failure::bad(format!("expected at most {MOST_SENT} methods")));
            }
            let (push, ticket) = (Broadcast::ask_for_members(), awaited.outcomes.len() as u64);
            self.posts.push(Post::Remote(room.clone(), push, ticket));
            awaited.outcomes.push(None);
            return Ok(None);
        };
        *used += 1;
        let is_known = awaited.outcomes.get(*used - 1) == Some(&Some(RemoteOutcome::Sent));
        let everybody = Everybody::at_all_hubs(census, room, usize::MAX).filter(|_| is_known);
        everybody.map(Some).ok_or(Failure::of_broker(MEMBERS_UNKNOWN))
    }

    /// Asks the broker for the history of a room; or, in the second call, returns the position of the newest message when it
    /// has answered.
    ///
    /// # Errors
    /// The room has no history, or the broker does not answer.
    pub(super) fn fetch(
        &mut self,
        room: &RoomName,
        wanted: Wanted,
    ) -> Result<Option<Position>, Failure> {
        let awaited = self.awaited.get_or_insert_default();
        if let Some(used) = &mut awaited.used {
            *used += 1;
            let outcome = awaited.outcomes.get(*used - 1).copied().flatten();
            return outcome.and_then(Position::kept).map(Some).ok_or(Failure::NO_HISTORY);
        }
        let question = Broadcast::question(wanted, Asker::Backend);
        self.posts.push(Post::Remote(room.clone(), question, awaited.outcomes.len() as u64));
        awaited.outcomes.push(None);
        Ok(None)
    }

    /// Makes the second call of `awaited`, and writes the reply.
    pub(in super::super) fn answer_awaited(&mut self, awaited: Awaited, out: &mut Vec<u8>) -> Flow {
        let Awaited { ref method, ref body, terms: Some(terms), is_last, .. } = awaited else {
            return Flow::Close;
        };
        let (method, body) = (method.clone(), body.clone());
        self.awaited = Some(awaited.again());
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
    let done = outcome.and_then(Position::kept).map_or(Answer::Done {}, Answer::published);
    Response(failure.map_or(Ok(done), |why| Err(Failure::of_broker(why))))
}
