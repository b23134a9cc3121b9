//! A message of a member: whether it may be sent, and what it causes.

use crate::hub::{
    broadcast::Broadcast,
    bucket::Bucket,
    census::{Census, Presence},
    history::Follower,
    last_delivery::Unwritten,
    message::{Message, write_echo, write_error},
    results::Results,
    rooms::RoomTerms,
    settings::Settings,
};
use regatta_engine::{Now, Post};

/// What a message of a member depends on, and changes.
pub(super) struct Sender<'a> {
    pub out: &'a mut Vec<u8>,
    pub posts: &'a mut Vec<Post<Broadcast>>,
    pub settings: &'a Settings,
    pub census: &'a Census,
    /// What holds in its room.
    pub terms: &'a RoomTerms,
    /// `None` if its token does not allow it to send to its room.
    pub presence: Option<&'a Presence>,
    pub inflates: bool,
    pub messages: &'a mut Bucket,
    pub results: &'a mut Results,
    /// Sampled broadcasts in its output.
    pub unwritten: &'a mut Unwritten<Broadcast>,
    pub next_ticket: &'a mut u64,
    /// How far it is in the history of its room, if that is kept.
    pub follower: Option<&'a mut Follower>,
}

impl Sender<'_> {
    /// Handles a text message, which came `now`.
    pub(super) fn message(&mut self, text: &str, now: Now) {
        let rate = self.settings.limits.messages_of_member;
        if rate.is_some_and(|rate| !self.messages.take(rate, now.instant)) {
            return write_error("too many messages in a second", self.out);
        }
        match Message::read(text) {
            Ok(Message::Echo(payload)) => {
                self.census.echoes.add(1);
                write_echo(payload, self.out);
            }
            Ok(Message::Broadcast(_)) if !self.terms.members_publish => {
                write_error("only backends may send messages to this room", self.out);
            }
            Ok(Message::Broadcast(payload)) => match self.presence {
                None => {
                    write_error("the token does not allow messages to this room", self.out);
                }
                Some(presence) if !presence.may_broadcast(now.instant) => {
                    write_error("too many messages of this room in a second", self.out);
                }
                Some(_) => self.broadcast(payload, now),
            },
            Err(malformed) => {
                self.census.malformed.add(1);
                malformed.write(self.out);
            }
        }
    }

    fn broadcast(&mut self, payload: &str, now: Now) {
        let number = self.census.broadcasts.add(1);
        if self.settings.broker.is_some() {
            return self.send(payload);
        }
        let Settings { deflate, backlog, clock, .. } = self.settings;
        if let Some(follower) = &mut self.follower {
            // Its own copy comes in the order of the history.
            let frame = |at| Broadcast::kept(payload, at, false, *deflate, &backlog.memory);
            let push = follower.history().publish(now.instant, frame);
            follower.hears(&push);
            let ticket = push.position().map_or(0, |position| position.offset);
            self.results.add(ticket, payload);
            self.posts.push(Post::Counted(push, ticket));
            return;
        }
        let last = self.census.last.as_ref();
        let sample = last.and_then(|last| last.message(number, now, *clock));
        let push = Broadcast::new(payload, *deflate, &backlog.memory).sampled(sample);
        self.out.extend_from_slice(push.frame(self.inflates));
        if let Some(sample) = push.sample() {
            sample.is_received();
            self.unwritten.add(push.clone());
        }
        self.results.add(*self.next_ticket, payload);
        self.posts.push(Post::Counted(push, *self.next_ticket));
        *self.next_ticket += 1;
    }
}
