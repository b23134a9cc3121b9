//! A client of Centrifugo's protocol in one room, as a client library behaves: it subscribes again when its subscription
//! ends, with its position. What it gets is translated into the hub's own protocol, so that one judge is for both.

use serde_json::{Value, json};
use std::collections::BTreeMap;

type Position = (String, u64);

/// What a command was for.
#[derive(Debug)]
enum Asked {
    Connect,
    /// With a position.
    Subscribe(Option<Position>),
    Publish(String),
    Unsubscribe,
    History,
}

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
}

impl Dialect {
    /// A new connection for this room. `query`: its position in the hub's own protocol. Returns what it sends at once.
    pub fn opens(channel: &str, query: &str) -> (Dialect, Vec<String>) {
        let named = query.strip_prefix("?epoch=").and_then(|rest| rest.split_once("&offset="));
        let position = named.map(|(epoch, offset)| (epoch.to_owned(), offset.parse().unwrap()));
        let channel = channel.to_owned();
        let mut client = Dialect { channel, position, ..Dialect::default() };
        let connect = client.command(Asked::Connect, json!({"connect": {}}));
        let subscribe = client.subscribes();
        (client, vec![connect, subscribe])
    }

    fn command(&mut self, asked: Asked, mut command: Value) -> String {
        self.last_id += 1;
        command["id"] = json!(self.last_id);
        self.asked.insert(self.last_id, asked);
        command.to_string()
    }

    pub fn subscribes(&mut self) -> String {
        self.subscribes = true;
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
        let unsubscribe = json!({"unsubscribe": {"channel": self.channel}});
        self.command(Asked::Unsubscribe, unsubscribe)
    }

    pub fn says(&mut self, payload: &str) -> String {
        let data: Value = serde_json::from_str(payload).unwrap();
        let publish = json!({"publish": {"channel": self.channel, "data": data}});
        self.command(Asked::Publish(payload.to_owned()), publish)
    }

    pub fn asks_for_history(&mut self) -> String {
        let history = json!({"history": {"channel": self.channel, "limit": 4, "reverse": true}});
        self.command(Asked::History, history)
    }

    pub fn is_in(&self) -> bool {
        self.is_in
    }

    /// Whether its subscription has ended, or was refused, and it has not asked again.
    pub fn is_out(&self) -> bool {
        !self.is_in && !self.subscribes && !self.unsubscribes
    }

    /// Everything has arrived.
    pub fn ends(&self) -> Result<(), String> {
        if self.asked.is_empty() && self.is_in {
            Ok(())
        } else {
            Err(format!("at the end: {self:?}"))
        }
    }

    /// Hears a line. Returns the same in the hub's own protocol.
    pub fn hears(&mut self, text: &str) -> Result<Vec<Value>, String> {
        let mut heard: Value =
            serde_json::from_str(text).map_err(|why| format!("{text}: {why}"))?;
        let Some(id) = heard["id"].as_u64() else { return self.pushed(heard["push"].take()) };
        let asked = self.asked.remove(&id);
        match asked.ok_or_else(|| format!("an answer to nothing: {heard}"))? {
            Asked::Connect if heard["connect"]["client"].is_string() => Ok(Vec::new()),
            Asked::Subscribe(position) => self.is_answered(position, heard),
            Asked::Publish(payload) => {
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
            Asked::Unsubscribe if heard["unsubscribe"].is_object() => {
                self.unsubscribes = false;
                Ok(Vec::new())
            }
            Asked::Connect | Asked::Unsubscribe => Err(heard.to_string()),
        }
    }

    /// The messages of a page have one offset after the other.
    fn has_history(&self, heard: &Value) -> Result<Vec<Value>, String> {
        let all = heard["history"]["publications"].as_array().map_or(&[][..], Vec::as_slice);
        let offsets: Vec<u64> = all.iter().filter_map(|one| one["offset"].as_u64()).collect();
        let top = heard["history"]["offset"].as_u64().unwrap_or_default();
        let are_right = offsets
            .iter()
            .rev()
            .eq((top + 1 - offsets.len() as u64..=top).collect::<Vec<_>>().iter());
        let error = &heard["error"]["code"];
        if are_right && offsets.len() <= 4 && (error.is_null() || *error == 100 || *error == 108) {
            Ok(Vec::new())
        } else {
            Err(heard.to_string())
        }
    }

    fn is_answered(
        &mut self,
        named: Option<Position>,
        mut heard: Value,
    ) -> Result<Vec<Value>, String> {
        self.subscribes = false;
        if self.unsubscribes {
            // It may have begun before.
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

    fn pushed(&mut self, mut push: Value) -> Result<Vec<Value>, String> {
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
        // With a position, it is known only later whether something is missing.
        let is_missing = self.position.is_none();
        Ok(is_missing.then(|| json!({"type": "gap", "recovered": false})).into_iter().collect())
    }
}
