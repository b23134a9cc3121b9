//! Commands that ask for something: who is there, and what is kept.

use super::{
    client::{Client, Turn},
    codes::{Failure, Refusal},
    commands::room,
    reply::Answer,
    request::History,
};
use crate::hub::{
    access::Rights,
    api::Publication,
    census::{Person, client_info},
    history::Page,
    rooms::RoomTerms,
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
        let terms = self.allowed(&room, |rights| rights.sees)?;
        if !terms.presence {
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
        let is_kept = self.allowed(&room, |rights| rights.reads)?.history.are_kept();
        let Some(history) = self.census.history(&room) else {
            if !is_kept {
                return Err(Failure::NOT_AVAILABLE.into());
            }
            // Nothing was sent there. Only a member or a message makes a history, so none has an epoch.
            let (publications, epoch) = (Vec::new(), String::new());
            return Ok(Answer::History { publications, offset: 0, epoch });
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
