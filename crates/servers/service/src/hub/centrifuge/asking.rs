//! Commands that ask for something: who is there, and what is kept.

use super::{
    client::{Client, Turn},
    codes::{Failure, Refusal},
    commands::room,
    reply::Answer,
    request::History,
    subscription::Subscription,
};
use crate::hub::{
    access::Rights,
    api::Publication,
    census::{Person, client_info},
    history::Page,
};
use regatta_engine::RoomName;
use serde_json::value::RawValue;
use std::{collections::BTreeMap, sync::Arc};

/// Maximum number of members in a reply.
const MOST_PRESENT: usize = 1_000;
/// Maximum number of messages of a history in a reply, and bytes of them from which on no more follow.
const LONGEST_PAGE: (usize, usize) = (1_000, 256 * 1024);

impl Client {
    pub(super) fn presence(&mut self, channel: &str) -> Result<Answer, Refusal> {
        let people = self.people(channel)?;
        if people.len() > MOST_PRESENT {
            let message = "there are more than 1,000 clients; use presence_stats".into();
            return Err(Failure { message, ..Failure::LIMIT_EXCEEDED }.into());
        }
        let mut presence = BTreeMap::new();
        for (number, person) in &people {
            if let Ok(info) = RawValue::from_string(client_info(*number, person)) {
                presence.insert(number.to_string(), info);
            }
        }
        Ok(Answer::Presence { presence })
    }

    pub(super) fn presence_stats(&mut self, channel: &str) -> Result<Answer, Refusal> {
        let people = self.people(channel)?;
        let mut users: Vec<&str> = people.iter().map(|(_, person)| person.user()).collect();
        users.sort_unstable();
        users.dedup();
        Ok(Answer::PresenceStats { num_clients: people.len(), num_users: users.len() })
    }

    fn people(&self, channel: &str) -> Result<Vec<(usize, Arc<Person>)>, Refusal> {
        let room = room(channel)?;
        let subscription = self.subscribed(&room, |rights| rights.sees)?;
        if !subscription.terms.presence {
            return Err(Failure::NOT_AVAILABLE.into());
        }
        Ok(self.census.people(&room))
    }

    pub(super) fn history(
        &mut self,
        turn: &mut Turn<'_>,
        request: &History<'_>,
    ) -> Result<Answer, Refusal> {
        let room = room(&request.channel)?;
        let subscription = self.subscribed(&room, |rights| rights.reads)?;
        let Some(history) = subscription.presence.history() else {
            return Err(Failure::NOT_AVAILABLE.into());
        };
        let (most, bytes) = LONGEST_PAGE;
        let page = Page {
            since: request.since.as_ref().map(|since| since.offset),
            messages: usize::try_from(request.limit).map_or(most, |limit| limit.min(most)),
            bytes,
            is_reverse: request.reverse,
        };
        let (position, messages) = history.page(page, turn.now.instant);
        let epoch = position.epoch.to_string();
        let asked = request.since.as_ref().map_or("", |since| &since.epoch);
        let is_of_another = !asked.is_empty() && asked != epoch;
        let messages = messages.filter(|_| !is_of_another).ok_or(Failure::UNRECOVERABLE)?;
        let publications = messages.iter().filter_map(Publication::of).collect();
        Ok(Answer::History { publications, offset: position.offset, epoch })
    }

    /// The subscription of a room in which the client may ask.
    fn subscribed(
        &self,
        room: &RoomName,
        may: impl Fn(Rights) -> bool,
    ) -> Result<&Subscription, Failure> {
        let subscription = self.rooms.get(room).filter(|one| may(one.rights));
        subscription.ok_or(Failure::PERMISSION_DENIED)
    }
}
