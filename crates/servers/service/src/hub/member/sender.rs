//! A message of a member: whether it may be sent, and what it causes.

use crate::hub::{
    broadcast::Broadcast,
    bucket::Bucket,
    census::{Census, Presence},
    message::{Message, write_echo, write_error},
    results::Results,
    settings::Settings,
};
use regatta_engine::Post;
use std::time::Instant;

/// What a message of a member depends on, and changes.
pub(super) struct Sender<'a> {
    pub out: &'a mut Vec<u8>,
    pub posts: &'a mut Vec<Post<Broadcast>>,
    pub settings: &'a Settings,
    pub census: &'a Census,
    /// `None` if it may not send to its room.
    pub presence: Option<&'a Presence>,
    pub inflates: bool,
    pub messages: &'a mut Bucket,
    pub results: &'a mut Results,
    pub next_ticket: &'a mut u64,
}

impl Sender<'_> {
    /// Handles a text message, which came `now`.
    pub(super) fn message(&mut self, text: &str, now: Instant) {
        let limits = &self.settings.limits;
        if limits.messages_of_member.is_some_and(|rate| !self.messages.take(rate, now)) {
            return write_error("too many messages in a second", self.out);
        }
        match Message::read(text) {
            Ok(Message::Echo(payload)) => {
                self.census.echoes.add(1);
                write_echo(payload, self.out);
            }
            Ok(Message::Broadcast(payload)) => match self.presence {
                None => {
                    write_error("the token does not allow messages to this room", self.out);
                }
                Some(presence) if !presence.may_broadcast(limits, now) => {
                    write_error("too many messages of this room in a second", self.out);
                }
                Some(_) => self.broadcast(payload),
            },
            Err(malformed) => {
                self.census.malformed.add(1);
                malformed.write(self.out);
            }
        }
    }

    fn broadcast(&mut self, payload: &str) {
        self.census.broadcasts.add(1);
        let Settings { deflate, backlog, .. } = self.settings;
        let push = Broadcast::new(payload, *deflate, &backlog.memory);
        self.out.extend_from_slice(push.frame(self.inflates));
        self.results.add(*self.next_ticket, payload);
        self.posts.push(Post::Counted(push, *self.next_ticket));
        *self.next_ticket += 1;
    }
}
