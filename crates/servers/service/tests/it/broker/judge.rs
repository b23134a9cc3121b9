//! What a member of a hub with a broker was promised.

use super::redis::Redis;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// How long a sender waits for an outcome, with the time until each core was served.
pub const PATIENCE: Duration = Duration::from_millis(3_500);

/// A member of a simulation, with what it was promised.
pub trait Judging: Default {
    /// How many messages its hub keeps.
    const KEEPS: usize;

    /// It joins this room again. Returns the query of its request.
    fn joins(&mut self, room: &str, redis: &Redis) -> String;

    fn says(&mut self, payload: String, now: Instant);

    /// Hears a text of its hub.
    fn hears(&mut self, text: &str, now: Instant, redis: &mut Redis) -> Result<(), String>;

    /// Everything has arrived.
    fn ends(&self, redis: &Redis) -> Result<(), String>;

    /// Messages, gaps and outcomes so far: published, not published, unknown.
    fn seen(&self) -> [usize; 5];
}

/// Which outcome a text says of a message that was published so many times.
pub fn outcome(kind: &str, heard: &Value, times: usize) -> Result<usize, String> {
    let is = match (kind, heard["error"].as_str().unwrap_or_default()) {
        ("broadcastResult", "") if heard["listenerCount"].is_null() => 0,
        ("error", why) if why.starts_with("not published: ") => 1,
        ("error", why) if why.starts_with("unknown whether published: ") => 2,
        _ => return Err(format!("unexpected: {heard}")),
    };
    match is {
        0 if times != 1 => Err(format!("{heard} is not published")),
        1 if times != 0 => Err(format!("{heard} is published")),
        _ => Ok(is),
    }
}

/// A member, and what it has heard.
#[derive(Default)]
pub struct Judge {
    room: String,
    /// How much was published in its room when it had joined, once it has.
    joined_at: Option<usize>,
    /// The place in the room's order of the last message since it joined or had a gap.
    last: Option<usize>,
    /// It had a gap after the last message.
    had_gap: bool,
    /// The last place that it has ever heard.
    highest: Option<usize>,
    /// Messages whose outcome it does not know, with the time.
    waiting: BTreeMap<String, Instant>,
    /// See [`Judging::seen`].
    seen: [usize; 5],
}

impl Judging for Judge {
    const KEEPS: usize = 0;

    fn joins(&mut self, room: &str, redis: &Redis) -> String {
        let seen = self.seen;
        *self = Judge { room: room.to_owned(), seen, ..Judge::default() };
        self.joined_at = Some(redis.log.get(&self.room).map_or(0, Vec::len));
        String::new()
    }

    fn says(&mut self, payload: String, now: Instant) {
        self.waiting.insert(payload, now);
    }

    fn hears(&mut self, text: &str, now: Instant, redis: &mut Redis) -> Result<(), String> {
        let heard: Value = serde_json::from_str(text).unwrap();
        let payload = heard["payload"].to_string();
        let log = redis.log.get(&self.room).map_or(&[][..], Vec::as_slice);
        match heard["type"].as_str().unwrap() {
            "broadcast" => self.message(&payload, log),
            "gap" => {
                (self.had_gap, self.seen[1]) = (true, self.seen[1] + 1);
                Ok(())
            }
            kind => {
                let since =
                    self.waiting.remove(&payload).ok_or(format!("an outcome of {payload}"))?;
                if now - since > PATIENCE {
                    return Err(format!("the outcome of {payload} came after {:?}", now - since));
                }
                let times = log.iter().filter(|one| **one == payload).count();
                self.seen[2 + outcome(kind, &heard, times)?] += 1;
                Ok(())
            }
        }
    }

    fn ends(&self, redis: &Redis) -> Result<(), String> {
        let log = redis.log.get(&self.room).map_or(0, Vec::len);
        match (self.last, self.had_gap) {
            _ if !self.waiting.is_empty() => Err(format!("no outcome: {:?}", self.waiting.keys())),
            (Some(last), false) if last + 1 == log => Ok(()),
            (last, had_gap) => Err(format!("ends at {last:?} of {log}, gap: {had_gap}")),
        }
    }

    fn seen(&self) -> [usize; 5] {
        self.seen
    }
}

impl Judge {
    fn message(&mut self, payload: &str, log: &[String]) -> Result<(), String> {
        let place = log.iter().position(|one| one == payload);
        let place = place.ok_or_else(|| format!("{payload} was never published"))?;
        if self.highest.is_some_and(|highest| place <= highest) {
            return Err(format!("{payload} comes twice, or too late: after {:?}", self.highest));
        }
        let joined_at = self.joined_at.ok_or("a message before the join")?;
        let is_next = match self.last {
            _ if self.had_gap => true,
            Some(last) => place == last + 1,
            None => place <= joined_at,
        };
        if !is_next {
            return Err(format!("{payload} is at {place}, after {:?} without a gap", self.last));
        }
        (self.last, self.highest) = (Some(place), Some(place));
        (self.had_gap, self.seen[0]) = (false, self.seen[0] + 1);
        Ok(())
    }
}
