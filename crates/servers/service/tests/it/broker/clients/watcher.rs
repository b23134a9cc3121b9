//! A client in one room that keeps a list of its members: it asks once who is there, when it gets its own join, and follows the
//! pushes from then on.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub struct Watcher {
    channel: &'static str,
    last_id: u64,
    /// The numbers of its last commands to subscribe and to know who is there.
    subscribed: u64,
    asked: u64,
    /// What it is called.
    pub own: String,
    /// It has its own join. Who is there, once that is known.
    is_in: bool,
    there: Option<BTreeSet<String>>,
    /// Whether the last push about each member was a join.
    last: BTreeMap<String, bool>,
    /// All that it has heard since its own join, of members with a name.
    pub heard: Vec<(bool, String)>,
}

impl Watcher {
    /// A new connection for this room. Returns what it sends at once.
    pub fn opens(channel: &'static str) -> (Watcher, Vec<String>) {
        let mut watcher = Watcher { channel, ..Watcher::default() };
        let connect = watcher.command(json!({"connect": {}}));
        let subscribe = watcher.subscribes();
        (watcher, vec![connect, subscribe])
    }

    fn command(&mut self, mut command: Value) -> String {
        self.last_id += 1;
        command["id"] = json!(self.last_id);
        command.to_string()
    }

    fn subscribes(&mut self) -> String {
        (self.is_in, self.there) = (false, None);
        self.last.clear();
        self.heard.clear();
        self.subscribed = self.last_id + 1;
        self.command(json!({"subscribe": {"channel": self.channel, "join_leave": true}}))
    }

    fn asks(&mut self) -> String {
        self.asked = self.last_id + 1;
        self.command(json!({"presence": {"channel": self.channel}}))
    }

    /// Hears a line. Returns what it sends then.
    pub fn hears(&mut self, line: &str) -> Result<Vec<String>, String> {
        let line: Value = serde_json::from_str(line).map_err(|why| format!("{line}: {why}"))?;
        let push = &line["push"];
        if push["unsubscribe"]["code"] == 2500 {
            return Ok(vec![self.subscribes()]);
        }
        for (kind, joined) in [("join", true), ("leave", false)] {
            if push[kind]["info"].is_object() {
                return self.notified(joined, &push[kind]["info"]);
            }
        }
        if let Some(client) = line["connect"]["client"].as_str() {
            client.clone_into(&mut self.own);
        }
        let is_asked = line["id"] == self.asked;
        if let Some(there) = line["presence"]["presence"].as_object().filter(|_| is_asked) {
            self.there = Some(there.values().map(name).collect());
        }
        match line["error"]["code"].as_u64() {
            None => Ok(Vec::new()),
            // It tries again.
            Some(100) if line["id"] == self.subscribed => Ok(vec![self.subscribes()]),
            Some(100) if is_asked && self.is_in => Ok(vec![self.asks()]),
            Some(100) => Ok(Vec::new()),
            _ => Err(line.to_string()),
        }
    }

    fn notified(&mut self, joined: bool, info: &Value) -> Result<Vec<String>, String> {
        let name = name(info);
        if name == self.own {
            if !joined || std::mem::replace(&mut self.is_in, true) {
                return Err(format!("its own join comes twice, or it leaves: {info}"));
            }
            return Ok(vec![self.asks()]);
        }
        if !self.is_in {
            return Err(format!("before its own join: {info}"));
        }
        if self.last.insert(name.clone(), joined) == Some(joined) {
            return Err(format!("{name} comes or goes twice"));
        }
        if let Some(there) = &mut self.there {
            if joined {
                there.insert(name.clone())
            } else {
                there.remove(&name)
            };
        }
        if info["chan_info"]["name"].is_string() {
            self.heard.push((joined, name));
        }
        Ok(Vec::new())
    }

    /// Everything has arrived: these are there.
    pub fn ends(&self, truth: &BTreeSet<String>) -> Result<(), String> {
        let knows_all = self.is_in && self.there.as_ref() == Some(truth);
        if knows_all { Ok(()) } else { Err(format!("{self:?}, but {truth:?} are there")) }
    }
}

/// The name of a member, or what it is called.
fn name(info: &Value) -> String {
    let name = info["chan_info"]["name"].as_str().or(info["client"].as_str());
    name.unwrap_or_default().to_owned()
}
