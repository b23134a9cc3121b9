//! A second room of a client, in which it also publishes: so two subscriptions interleave on one connection.

use super::tally::Replies;
use crate::broker::judge::Servers;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// An epoch and an offset.
pub type Position = (String, u64);

/// Its name.
pub const CHANNEL: &str = "green";

/// A client in that room.
#[derive(Debug, Default)]
pub struct Seat {
    position: Option<Position>,
    pub is_in: bool,
    /// It has asked, and named this position.
    pub asks: Option<Option<Position>>,
    /// The number of this client, and those of the last messages of all that it has got.
    key: u64,
    last: BTreeMap<u64, u64>,
    /// Messages that it has got, and that the broker had read late.
    late: BTreeSet<(u64, u64)>,
    /// How often it has asked to be in the room, or was out of it.
    pub subscriptions: usize,
    pub replies: Replies,
}

impl Seat {
    pub fn new(key: u64) -> Seat {
        Seat { key, ..Seat::default() }
    }

    pub fn is_out(&self) -> bool {
        !self.is_in && self.asks.is_none()
    }

    pub fn subscribes(&mut self) -> Value {
        self.asks = Some(self.position.clone());
        self.begins_anew();
        let mut subscribe = json!({"channel": CHANNEL});
        if let Some((epoch, offset)) = &self.position {
            subscribe["recover"] = json!(true);
            subscribe["epoch"] = json!(epoch);
            subscribe["offset"] = json!(offset);
        }
        json!({"subscribe": subscribe})
    }

    /// The command with which it publishes a message with this number.
    pub fn says(&self, number: u64) -> Value {
        json!({"publish": {"channel": CHANNEL, "data": [self.key, number]}})
    }

    pub fn has_history(&self) -> bool {
        self.position.is_some()
    }

    fn begins_anew(&mut self) {
        self.subscriptions += 1;
        self.replies.begins_anew();
    }

    /// A message of its own with this number is published: it has got that, or a later one.
    pub fn is_replied_to(&mut self, number: u64) {
        let has_copy = self.last.get(&self.key).is_some_and(|last| *last >= number);
        self.replies.reply(json!([self.key, number]).to_string(), has_copy);
    }

    /// The answer to what it has asked.
    pub fn is_answered(&mut self, heard: &Value, servers: &Servers) -> Result<(), String> {
        let named = self.asks.take().ok_or(format!("it has not asked: {heard}"))?;
        if heard["error"]["code"] == 100 && heard["error"]["temporary"] == true {
            return Ok(());
        }
        let result = heard["subscribe"].as_object().ok_or(heard.to_string())?;
        let value = |key: &str| result.get(key).cloned().unwrap_or_default();
        self.is_in = true;
        let at = value("epoch").as_str().map(str::to_owned).zip(value("offset").as_u64());
        if value("recovered") != true {
            self.position = at;
            return Ok(());
        }
        self.position = named;
        for publication in value("publications").as_array().into_iter().flatten() {
            self.gets(publication, servers)?;
        }
        if self.position == at { Ok(()) } else { Err(format!("{:?}: {heard}", self.position)) }
    }

    pub fn pushed(&mut self, push: &Value, servers: &Servers) -> Result<(), String> {
        if !self.is_in {
            return Err(format!("not for this subscription: {push}"));
        }
        if push["unsubscribe"]["code"] == 2500 {
            self.is_in = false;
            self.begins_anew();
            return Ok(());
        }
        self.gets(&push["pub"], servers)
    }

    /// Messages of one client come in the order in which it has sent them. Those that the broker has read late have the
    /// outcome *unknown*: their place is not promised, so they may come behind messages that were sent later, but once.
    fn gets(&mut self, publication: &Value, servers: &Servers) -> Result<(), String> {
        let data = &publication["data"];
        let (key, number) = data[0].as_u64().zip(data[1].as_u64()).ok_or(data.to_string())?;
        self.replies.copy(&data.to_string());
        let is_late = servers.iter().any(|redis| redis.late.contains(&data.to_string()));
        let before = self.last.get(&key).copied();
        let is_next = before.is_none_or(|before| number > before);
        let is_in_place = if is_late { self.late.insert((key, number)) } else { is_next };
        if !is_in_place {
            return Err(format!("{number} of {key} after {before:?}"));
        }
        if is_next {
            self.last.insert(key, number);
        }
        let Some(offset) = publication["offset"].as_u64() else {
            self.position = None;
            return Ok(());
        };
        match &mut self.position {
            Some((_, last)) if *last + 1 == offset => *last = offset,
            position => return Err(format!("{offset} after {position:?} in {CHANNEL}")),
        }
        Ok(())
    }
}
