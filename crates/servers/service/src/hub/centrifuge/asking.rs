//! Commands that ask for something: who is there, and what is kept.

use super::{
    client::{Client, Turn},
    codes::{Failure, Refusal},
    commands::room,
    pending::{Waiter, What},
    reply::Answer,
    request::History,
};
use crate::hub::{
    access::Rights,
    api::{Everybody, Publication},
    broadcast::Broadcast,
    census::client_info,
    history::{Asked, Asker, Page, Position, RoomHistory},
    rooms::RoomTerms,
};
use regatta_engine::{Now, RemoteOutcome, RoomName};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Maximum number of members in a reply.
const MOST_PRESENT: usize = 1_000;
/// Maximum number of messages of a history in a reply, and bytes of them from which on no more follow.
const LONGEST_PAGE: (usize, usize) = (1_000, 256 * 1024);

/// Why there is no answer.
const MEMBERS_UNKNOWN: &str =
    "the clients at other hubs are not known: the broker does not answer now";
const NO_HISTORY: &str = "the broker does not answer for the history of the room now";

impl Client {
    /// Who is in a room, or how many; `what` says which of these.
    pub(super) fn presence(
        &mut self,
        turn: &mut Turn<'_>,
        id: u32,
        channel: &str,
        what: What,
    ) -> Result<Option<Answer>, Refusal> {
        let room = room(channel)?;
        let terms = self.allowed(&room, |rights| rights.sees)?;
        if !terms.presence {
            return Err(Failure::NOT_AVAILABLE.into());
        }
        if self.has_broker() {
            self.asks(turn, Waiter { id, room, what }, Broadcast::ask_for_members());
            return Ok(None);
        }
        let everybody = |most| Everybody::here(&self.census, &room, most);
        match what {
            What::PresenceStats => Ok(Some(stats(&everybody(usize::MAX)))),
            _ => Ok(Some(people_of(&everybody(MOST_PRESENT + 1))?)),
        }
    }

    /// The broker has answered for the members of a room.
    pub(super) fn people_of_all(
        &self,
        room: &RoomName,
        outcome: RemoteOutcome,
    ) -> Result<Answer, Failure> {
        people_of(&self.everybody(room, MOST_PRESENT + 1, outcome)?)
    }

    /// The same, only their numbers.
    pub(super) fn stats_of_all(
        &self,
        room: &RoomName,
        outcome: RemoteOutcome,
    ) -> Result<Answer, Failure> {
        self.everybody(room, usize::MAX, outcome).map(|everybody| stats(&everybody))
    }

    /// With at most so many of this hub.
    fn everybody(
        &self,
        room: &RoomName,
        most: usize,
        outcome: RemoteOutcome,
    ) -> Result<Everybody, Failure> {
        Everybody::at_all_hubs(&self.census, room, most)
            .filter(|_| outcome == RemoteOutcome::Sent)
            .ok_or(Failure::of_broker(MEMBERS_UNKNOWN, true))
    }

    pub(super) fn history(
        &mut self,
        turn: &mut Turn<'_>,
        id: u32,
        request: &History<'_>,
    ) -> Result<Option<Answer>, Refusal> {
        let room = room(&request.channel)?;
        let limits = self.allowed(&room, |rights| rights.reads)?.history;
        let (most, bytes) = LONGEST_PAGE;
        let page = Page {
            since: request.since.as_ref().map(|since| since.offset),
            messages: usize::try_from(request.limit).map_or(most, |limit| limit.min(most)),
            bytes,
            is_reverse: request.reverse,
        };
        let since = request.since.as_ref().filter(|since| !since.epoch.is_empty());
        let behind = since.map(|since| Asked::of(&since.epoch, since.offset));
        if self.has_broker() {
            if !self.census.asks_history(&room, limits, turn.now.instant) {
                return Err(Failure::NOT_AVAILABLE.into());
            }
            let question = Broadcast::question(page.wanted(behind), Asker::Backend);
            self.asks(turn, Waiter { id, room, what: What::History(page, behind) }, question);
            return Ok(None);
        }
        let Some(history) = self.census.history(&room) else {
            if !limits.are_kept() {
                return Err(Failure::NOT_AVAILABLE.into());
            }
            // Nothing was sent there. Only a member or a message makes a history, so none has an epoch.
            let (publications, epoch) = (Vec::new(), String::new());
            return Ok(Some(Answer::History { publications, offset: 0, epoch }));
        };
        Ok(Some(read(&history, (page, behind), None, turn.now)?))
    }

    /// The broker has answered for a history, of which the client reads this page.
    pub(super) fn page(
        &self,
        room: &RoomName,
        (page, behind): (Page, Option<Asked>),
        now: Now,
        outcome: RemoteOutcome,
    ) -> Result<Answer, Failure> {
        let known = Position::kept(outcome).zip(self.census.history(room));
        let (kept, history) = known.ok_or(Failure::of_broker(NO_HISTORY, true))?;
        read(&history, (page, behind), Some(kept), now)
    }

    /// What holds in a room about which the client may ask: as its subscription there or its token allows.
    fn allowed(
        &self,
        room: &RoomName,
        may: impl Fn(Rights) -> bool,
    ) -> Result<&RoomTerms, Failure> {
        let subscription = self.rooms.get(room);
        let of_token = || self.identity.as_ref()?.scope.rights(room.as_str());
        let rights = subscription.map(|one| one.rights).or_else(of_token);
        if !rights.is_some_and(may) {
            return Err(Failure::PERMISSION_DENIED);
        }
        Ok(subscription.map_or(self.settings.terms(room.as_str()), |one| &one.terms))
    }
}

/// Reads a page of a history. `behind`: its position, if the client has named an epoch. `kept`: that of the newest message when
/// the broker has answered. If a copy has begun again since then, nothing is known of its messages.
fn read(
    history: &RoomHistory,
    (page, behind): (Page, Option<Asked>),
    kept: Option<Position>,
    now: Now,
) -> Result<Answer, Failure> {
    let (position, messages) = history.page(page, now.instant);
    if kept.is_some_and(|kept| !position.continues(kept)) {
        return Err(Failure::of_broker(NO_HISTORY, true));
    }
    let is_of_another = behind.is_some_and(|behind| behind.epoch != Some(position.epoch));
    let messages = messages.filter(|_| !is_of_another).ok_or(Failure::UNRECOVERABLE)?;
    let publications = messages.iter().filter_map(Publication::of).collect();
    let epoch = position.epoch.to_string();
    Ok(Answer::History { publications, offset: position.offset, epoch })
}

/// The reply with the members of a room.
fn people_of(everybody: &Everybody) -> Result<Answer, Failure> {
    let full =
        |message: &'static str| Failure { message: message.into(), ..Failure::LIMIT_EXCEEDED };
    if everybody.count > MOST_PRESENT {
        return Err(full("there are more than 1,000 clients; use presence_stats"));
    }
    if everybody.are_some_unknown() {
        return Err(full("a hub does not name all of its clients; use presence_stats"));
    }
    let mut presence = BTreeMap::new();
    for (client, person) in everybody.named() {
        if let Ok(info) = RawValue::from_string(client_info(&client, person)) {
            presence.insert(client, info);
        }
    }
    Ok(Answer::Presence { presence })
}

/// The reply with how many members and users there are.
fn stats(everybody: &Everybody) -> Answer {
    Answer::PresenceStats { num_clients: everybody.count, num_users: everybody.users() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::history::{Epoch, Histories, HistoryLimits};
    use std::{sync::Arc, time::Instant};

    #[test]
    fn a_copy_that_has_begun_again_since_the_answer_is_no_empty_history() {
        let limits = HistoryLimits { messages: 5, ..HistoryLimits::NONE };
        let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
        let histories = Histories::mirroring(Arc::default());
        let history = histories.open_asked(&RoomName::of("red"), limits, now.instant).unwrap();
        let page = Page { since: None, messages: 9, bytes: 999, is_reverse: true };
        let at = history.newest();
        let read = |kept, behind| read(&history, (page, behind), Some(kept), now);
        assert!(read(at, None).is_ok());
        for kept in [Position { epoch: Epoch(7), offset: 0 }, Position { offset: 3, ..at }] {
            for behind in [None, Some(kept.asked())] {
                let failure = read(kept, behind).unwrap_err();
                assert!(failure.code == 100 && failure.temporary, "{failure:?}");
            }
        }
    }
}
