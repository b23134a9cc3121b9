//! A client of Centrifugo's protocol in one room, as a client library behaves: it subscribes again when its subscription
//! ends, with its position. What it gets is translated into the hub's own protocol, so that one judge is for both.

use super::{
    seat::{self, Position, Seat},
    tally::{Replies, Tally},
};
use crate::broker::judge::Servers;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What a command was for.
#[derive(Debug)]
enum Asked {
    Connect,
    /// With a position.
    Subscribe(Option<Position>),
    /// In which subscription.
    Publish(String, usize),
    Unsubscribe,
    History,
    /// In its second room.
    SubscribeThere,
    /// With its number, in which subscription.
    PublishThere(u64, usize),
}

/// A client with so much unread output, in bytes, reads slowly: its own copies wait behind that.
const MUCH: usize = 64 * 1024;

/// A client in one room.
#[derive(Debug, Default)]
pub struct Dialect {
    channel: String,
    last_id: u64,
    /// Commands that are not answered, by their numbers.
    asked: BTreeMap<u64, Asked>,
    position: Option<Position>,
    is_in: bool,
    subscribes: bool,
    /// It leaves the room, and what still comes is not for it.
    unsubscribes: bool,
    /// It was in the room before on this connection.
    was_in: bool,
    /// How often it has asked to be in the room, or was out of it. What it has published and got meanwhile.
    subscriptions: usize,
    own: BTreeSet<String>,
    /// Much had come when it read last.
    is_slow: bool,
    /// Replies to its messages.
    replies: Replies,
    /// Pages without messages of histories that have some.
    pages: Tally,
    seat: Seat,
}

impl Dialect {
    /// A new connection for this room. `query`: its position in the hub's own protocol. `key`: no other one has it. Returns what
    /// it sends at once.
    pub fn opens(channel: &str, query: &str, key: u64) -> (Dialect, Vec<String>) {
        let named = query.strip_prefix("?epoch=").and_then(|rest| rest.split_once("&offset="));
        let position = named.map(|(epoch, offset)| (epoch.to_owned(), offset.parse().unwrap()));
        let channel = channel.to_owned();
        let seat = Seat::new(key);
        let mut client = Dialect { channel, position, seat, ..Dialect::default() };
        let connect = client.command(Asked::Connect, json!({"connect": {}}));
        let there = client.subscribes_there();
        let subscribe = client.subscribes();
        (client, vec![connect, there, subscribe])
    }

    pub fn subscribes_there(&mut self) -> String {
        let subscribe = self.seat.subscribes();
        self.command(Asked::SubscribeThere, subscribe)
    }

    /// Whether it must ask again to be in its second room.
    pub fn is_out_there(&self) -> bool {
        self.seat.is_out()
    }

    pub fn says_there(&mut self, number: u64) -> String {
        let publish = self.seat.says(number);
        self.command(Asked::PublishThere(number, self.seat.subscriptions), publish)
    }

    fn command(&mut self, asked: Asked, mut command: Value) -> String {
        self.last_id += 1;
        command["id"] = json!(self.last_id);
        self.asked.insert(self.last_id, asked);
        command.to_string()
    }

    pub fn subscribes(&mut self) -> String {
        self.subscribes = true;
        self.begins_anew();
        let mut subscribe = json!({"channel": self.channel});
        if let Some((epoch, offset)) = &self.position {
            subscribe["recover"] = json!(true);
            subscribe["epoch"] = json!(epoch);
            subscribe["offset"] = json!(offset);
        }
        let asked = Asked::Subscribe(self.position.clone());
        self.command(asked, json!({"subscribe": subscribe}))
    }

    /// Whether it is in its room, or about to be.
    pub fn may_leave(&self) -> bool {
        self.is_in || self.subscribes && !self.unsubscribes
    }

    pub fn unsubscribes(&mut self) -> String {
        (self.is_in, self.unsubscribes) = (false, true);
        self.begins_anew();
        let unsubscribe = json!({"unsubscribe": {"channel": self.channel}});
        self.command(Asked::Unsubscribe, unsubscribe)
    }

    fn begins_anew(&mut self) {
        self.subscriptions += 1;
        self.own.clear();
        self.replies.begins_anew();
    }

    pub fn says(&mut self, payload: &str) -> String {
        let data: Value = serde_json::from_str(payload).unwrap();
        let publish = json!({"publish": {"channel": self.channel, "data": data}});
        self.command(Asked::Publish(payload.to_owned(), self.subscriptions), publish)
    }

    pub fn asks_for_history(&mut self) -> String {
        let history = json!({"history": {"channel": self.channel, "limit": 4, "reverse": true}});
        self.command(Asked::History, history)
    }

    pub fn is_in(&self) -> bool {
        self.is_in
    }

    /// Whether it was never in its room on this connection.
    pub fn is_new(&self) -> bool {
        !self.was_in
    }

    /// Whether it has asked to be in its room, and has no answer.
    pub fn is_opening(&self) -> bool {
        self.subscribes
    }

    /// Whether its subscription has ended, or was refused, and it has not asked again.
    pub fn is_out(&self) -> bool {
        !self.is_in && !self.subscribes && !self.unsubscribes
    }

    /// Everything has arrived.
    pub fn ends(&self) -> Result<(), String> {
        self.replies.check("replies are before the own copy")?;
        self.seat.replies.check("replies are before the own copy in the second room")?;
        self.pages.check(3, "pages lack the messages of the history")?;
        if self.asked.is_empty() && self.is_in && self.seat.is_in {
            Ok(())
        } else {
            Err(format!("at the end: {self:?}"))
        }
    }

    /// It reads so many bytes.
    pub fn reads(&mut self, length: usize) {
        self.is_slow = length >= MUCH;
    }

    /// Hears a line. Returns the same in the hub's own protocol.
    pub fn hears(&mut self, text: &str, servers: &Servers) -> Result<Vec<Value>, String> {
        let mut heard: Value =
            serde_json::from_str(text).map_err(|why| format!("{text}: {why}"))?;
        let Some(id) = heard["id"].as_u64() else {
            return self.pushed(heard["push"].take(), servers);
        };
        let asked = self.asked.remove(&id);
        match asked.ok_or_else(|| format!("an answer to nothing: {heard}"))? {
            Asked::Connect if heard["connect"]["client"].is_string() => Ok(Vec::new()),
            Asked::Subscribe(position) => self.is_answered(position, heard),
            Asked::Publish(payload, subscription) => {
                let has_history = self.is_in && self.position.is_some();
                if heard["publish"].is_object() && subscription == self.subscriptions && has_history
                {
                    let has_copy = self.own.contains(&payload);
                    self.replies.reply(payload.clone(), has_copy);
                }
                let payload: Value = serde_json::from_str(&payload).unwrap();
                let result = match heard["publish"].is_object() {
                    true => json!({"type": "broadcastResult", "payload": payload}),
                    false => {
                        let why = &heard["error"]["message"];
                        json!({"type": "error", "error": why, "payload": payload})
                    }
                };
                if !heard["error"].is_null() && heard["error"]["code"] != 100 {
                    return Err(heard.to_string());
                }
                Ok(vec![result])
            }
            Asked::History => self.has_history(&heard),
            Asked::SubscribeThere => self.seat.is_answered(&heard, servers).map(|()| Vec::new()),
            Asked::PublishThere(number, subscription) => {
                let is_published = heard["publish"].is_object();
                if !is_published && heard["error"]["code"] != 100 {
                    return Err(heard.to_string());
                }
                let is_in = self.seat.is_in && subscription == self.seat.subscriptions;
                // Only in a room without a history a copy waits and its reply does not.
                let may_overtake = self.is_slow && !self.seat.has_history();
                if is_published && is_in && !may_overtake {
                    self.seat.is_replied_to(number);
                }
                Ok(Vec::new())
            }
            Asked::Unsubscribe if heard["unsubscribe"].is_object() => {
                self.unsubscribes = false;
                Ok(Vec::new())
            }
            Asked::Connect | Asked::Unsubscribe => Err(heard.to_string()),
        }
    }

    /// The messages of a page have one offset after the other.
    fn has_history(&mut self, heard: &Value) -> Result<Vec<Value>, String> {
        if heard["error"]["code"] == 100 || heard["error"]["code"] == 108 {
            return Ok(Vec::new());
        }
        let page = &heard["history"];
        let all = page["publications"].as_array().ok_or(heard.to_string())?;
        let top = page["offset"].as_u64().ok_or(heard.to_string())?;
        let offsets: Vec<u64> = all.iter().filter_map(|one| one["offset"].as_u64()).collect();
        let expected: Vec<u64> = (0..=top).rev().take(all.len()).collect();
        if offsets != expected || all.len() > 4 || offsets.contains(&0) {
            return Err(heard.to_string());
        }
        if top > 0 {
            self.pages.adds(all.is_empty());
        }
        Ok(Vec::new())
    }

    fn is_answered(
        &mut self,
        named: Option<Position>,
        mut heard: Value,
    ) -> Result<Vec<Value>, String> {
        self.subscribes = false;
        if self.unsubscribes {
            // It may have begun before, and what came until it has left is missing.
            self.was_in = true;
            return Ok(Vec::new());
        }
        let error = &heard["error"];
        if error["code"] == 100 && error["temporary"] == true {
            // It tries again.
            return Ok(Vec::new());
        }
        let result = &heard["subscribe"];
        if !result.is_object()
            || result["was_recovering"].as_bool().unwrap_or_default() != named.is_some()
        {
            return Err(heard.to_string());
        }
        let again = std::mem::replace(&mut self.was_in, true);
        self.is_in = true;
        let at = result["epoch"].as_str().map(str::to_owned).zip(result["offset"].as_u64());
        let is_recovered = result["recovered"] == true;
        let publications = result["publications"].as_array().map_or(0, Vec::len);
        if !is_recovered && publications > 0 {
            return Err(format!("messages behind nothing: {heard}"));
        }
        let begins = |kind: &str, recovered: Option<bool>, at: &Option<Position>| {
            let mut text = json!({"type": kind});
            if let Some((epoch, offset)) = at {
                (text["epoch"], text["offset"]) = (json!(epoch), json!(offset));
            }
            if let Some(recovered) = recovered {
                text["recovered"] = json!(recovered);
            }
            text
        };
        let mut all = Vec::new();
        match (is_recovered, again, &named) {
            (true, false, Some(_)) => all.push(begins("position", Some(true), &named)),
            // Nothing is missing.
            (true, true, Some(_)) => {}
            (true, _, None) => return Err(format!("recovered from nothing: {heard}")),
            (false, false, None) if at.is_none() => {}
            (false, false, None) => all.push(begins("position", None, &at)),
            (false, ..) => all.push(begins("gap", Some(false), &at)),
        }
        let position = at.clone();
        self.position = if is_recovered { named } else { at };
        for at in 0..publications {
            all.push(self.gets(heard["subscribe"]["publications"][at].take()));
        }
        if self.position != position {
            return Err(format!("{:?} is not behind the messages: {all:?}", self.position));
        }
        Ok(all)
    }

    fn gets(&mut self, mut publication: Value) -> Value {
        let payload = publication["data"].to_string();
        self.replies.copy(&payload);
        self.own.insert(payload);
        let mut text = json!({"type": "broadcast"});
        text["payload"] = publication["data"].take();
        let offset = publication["offset"].as_u64();
        if let Some(offset) = offset {
            text["offset"] = json!(offset);
        }
        self.position =
            self.position.take().zip(offset).map(|((epoch, _), offset)| (epoch, offset));
        text
    }

    fn pushed(&mut self, mut push: Value, servers: &Servers) -> Result<Vec<Value>, String> {
        if push["channel"] == seat::CHANNEL {
            return self.seat.pushed(&push, servers).map(|()| Vec::new());
        }
        if self.unsubscribes {
            return Ok(Vec::new());
        }
        if push["channel"] != *self.channel || !self.is_in {
            return Err(format!("not for this subscription: {push}"));
        }
        if push["pub"].is_object() {
            return Ok(vec![self.gets(push["pub"].take())]);
        }
        if push["unsubscribe"]["code"] != 2500 {
            return Err(push.to_string());
        }
        self.is_in = false;
        self.begins_anew();
        // With a position, it is known only later whether something is missing.
        let is_missing = self.position.is_none();
        Ok(is_missing.then(|| json!({"type": "gap", "recovered": false})).into_iter().collect())
    }
}
