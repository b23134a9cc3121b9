//! Planted faults: the link of a hub, with a mistake.

use super::judge::Heard;
use regatta_engine::{RoomName, Ticket, Uplink, UplinkAct, UplinkTurn};
use regatta_service::hub::{Broadcast, BrokerLink};
use serde_json::Value;
use std::time::Instant;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Members learn of no loss.
    SilentGap,
    /// Members do not learn that another hub comes from another server.
    SilentMove,
    /// Heartbeats are neither sent nor missed.
    NoHeartbeat,
    /// Of two messages that come together, the second is delivered first.
    TwoOrders,
    /// A message is delivered twice.
    Doubled,
    /// A message whose confirmation is lost counts as published.
    Optimistic,
    /// A member does not get its gaps.
    HiddenGap,
    /// The first message behind what was recovered is lost.
    NotMerged,
    /// It comes twice.
    RecoveredTwice,
    /// A server goes on with the reign of another process.
    EpochKept,
    /// A reign does not end when a hub comes from another server.
    MoveIgnored,
    /// Hubs ignore what a hub without histories publishes.
    HoleIgnored,
    /// A client gets empty pages of histories.
    EmptyPage,
    /// It begins at the newest message, although it has recovered.
    BegunAtTop,
    /// It gets a message before the reply that begins its subscription.
    OpeningHeard,
    /// It gets the replies to its messages before these.
    ReplyFirst,
}

impl Fault {
    /// How often a member gets a text. `is_recovered`: it has just recovered, and this is noted here.
    pub fn times(self, heard: &Heard, is_recovered: &mut bool) -> usize {
        let is_first = *is_recovered && heard.kind() == "broadcast";
        *is_recovered = heard.value["recovered"] == true || *is_recovered && !is_first;
        match self {
            Fault::HiddenGap if heard.kind() == "gap" => 0,
            Fault::NotMerged if is_first => 0,
            Fault::RecoveredTwice if is_first => 2,
            _ => 1,
        }
    }

    /// Changes what a client gets.
    pub fn rewrites(self, lines: &mut [String]) {
        let is_message = |line: &str| line.contains("\"pub\":{");
        let is_reply = |line: &str, command: &str| {
            line.starts_with("{\"id\"") && line.contains(&format!("\"{command}\":{{"))
        };
        match self {
            Fault::EmptyPage | Fault::BegunAtTop => {
                let command = if self == Fault::EmptyPage { "history" } else { "subscribe" };
                for line in lines.iter_mut().filter(|line| is_reply(line, command)) {
                    let mut reply: Value = serde_json::from_str(line).unwrap();
                    if let Some(publications) = reply[command].get_mut("publications") {
                        *publications = Value::Array(Vec::new());
                    }
                    *line = reply.to_string();
                }
            }
            Fault::OpeningHeard => {
                swaps(lines, |one, next| is_reply(one, "subscribe") && is_message(next))
            }
            Fault::ReplyFirst => {
                swaps(lines, |one, next| is_message(one) && is_reply(next, "publish"))
            }
            _ => {}
        }
    }
}

/// Swaps lines of which one follows the other.
fn swaps(lines: &mut [String], are_they: impl Fn(&str, &str) -> bool) {
    for at in 1..lines.len() {
        if are_they(&lines[at - 1], &lines[at]) {
            lines.swap(at - 1, at);
        }
    }
}

pub struct Planted {
    pub link: BrokerLink,
    pub fault: Fault,
    pub is_up: bool,
}

type Turn<'a> = UplinkTurn<'a, Broadcast>;

impl Planted {
    fn call(&mut self, turn: &mut Turn<'_>, what: impl FnOnce(&mut BrokerLink, &mut Turn<'_>)) {
        let (before, was_up) = (turn.acts.len(), self.is_up);
        what(&mut self.link, turn);
        for act in &turn.acts[before..] {
            match act {
                UplinkAct::PushAll(_) => self.is_up = true,
                UplinkAct::Disconnect => self.is_up = false,
                _ => {}
            }
        }
        let mut new = turn.acts.split_off(before);
        match self.fault {
            Fault::SilentMove if !was_up => {}
            Fault::SilentGap | Fault::SilentMove => {
                new.retain(|act| !matches!(act, UplinkAct::PushAll(_)))
            }
            Fault::TwoOrders => {
                let places: Vec<usize> = (0..new.len())
                    .filter(|place| matches!(new[*place], UplinkAct::Push(..)))
                    .collect();
                if let [one, other, ..] = places[..] {
                    new.swap(one, other);
                }
            }
            Fault::Doubled => {
                let again = new.iter().find(|act| matches!(act, UplinkAct::Push(..))).cloned();
                new.extend(again);
            }
            Fault::Optimistic => {
                for act in &mut new {
                    if let UplinkAct::Done(_, outcome) = act {
                        *outcome = regatta_engine::RemoteOutcome::Sent;
                    }
                }
            }
            // These are elsewhere.
            _ => {}
        }
        turn.acts.append(&mut new);
    }
}

impl Uplink<Broadcast> for Planted {
    fn opened(&mut self, turn: &mut Turn<'_>) {
        self.call(turn, |link, turn| link.opened(turn));
    }

    fn received(&mut self, bytes: &[u8], turn: &mut Turn<'_>) {
        self.call(turn, |link, turn| link.received(bytes, turn));
    }

    fn closed(&mut self, turn: &mut Turn<'_>) {
        self.call(turn, |link, turn| link.closed(turn));
    }

    fn send(&mut self, room: &RoomName, push: &Broadcast, ticket: Ticket, turn: &mut Turn<'_>) {
        self.call(turn, |link, turn| link.send(room, push, ticket, turn));
    }

    fn due(&self) -> Option<Instant> {
        let is_ignored = self.fault == Fault::NoHeartbeat && self.is_up;
        self.link.due().filter(|_| !is_ignored)
    }

    fn tick(&mut self, turn: &mut Turn<'_>) {
        self.call(turn, |link, turn| link.tick(turn));
    }
}
