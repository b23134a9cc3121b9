//! A second room of a client, in which it also publishes: so two subscriptions interleave on one connection.

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
    /// Messages that it has got and that the broker had read late.
    late: BTreeSet<(u64, u64)>,
    /// How often it has asked to be in the room, or was out of it.
    pub subscriptions: usize,
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
        self.subscriptions += 1;
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

    /// Whether it has got this message of its own, or a later one.
    pub fn has(&self, number: u64) -> bool {
        self.last.get(&self.key).is_some_and(|last| *last >= number)
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
            self.subscriptions += 1;
            return Ok(());
        }
        self.gets(&push["pub"], servers)
    }

    fn gets(&mut self, publication: &Value, servers: &Servers) -> Result<(), String> {
        let data = &publication["data"];
        let (key, number) = data[0].as_u64().zip(data[1].as_u64()).ok_or(data.to_string())?;
        let before = self.last.get(&key).copied();
        // What is unknown to its sender may still be delivered, and then behind messages that the same sender has sent later.
        let payload = data.to_string();
        let is_new = if servers.iter().any(|redis| redis.late.contains(&payload)) {
            self.late.insert((key, number))
        } else {
            self.last.insert(key, number);
            before.is_none_or(|before| number > before)
        };
        if !is_new {
            return Err(format!("{number} of {key} after {before:?}"));
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
