//! What a member of a hub with a broker was promised in a room with a history, over all of its connections.

use super::{
    judge::{Judging, PATIENCE},
    redis::Redis,
};
use serde_json::Value;
use std::{collections::BTreeMap, time::Instant};

/// A member, and what it has heard.
#[derive(Default)]
pub struct Recovering {
    room: String,
    /// Its position, as of the hub.
    position: Option<(String, u64)>,
    /// The position that it has named, until its hub answers.
    asked: Option<(String, u64)>,
    /// It has heard nothing since it joined.
    is_fresh: bool,
    /// How much was published in its room when it got a position without having named one.
    begun_at: Option<usize>,
    /// The place in the room's order of the last message since it had a gap.
    last: Option<usize>,
    had_gap: bool,
    /// The last place that it has ever heard.
    highest: Option<usize>,
    /// Messages that it has not got without a gap, because the server lost them: nobody may have them.
    skipped: Vec<String>,
    waiting: BTreeMap<String, Instant>,
    seen: [usize; 5],
    pub recovered: usize,
}

impl Judging for Recovering {
    const KEEPS: usize = 12;

    fn joins(&mut self, room: &str, _: &Redis) -> String {
        if self.room != room {
            *self = Recovering { room: room.to_owned(), ..Recovering::default() };
        }
        self.waiting.clear();
        self.is_fresh = true;
        self.asked = self.position.take();
        // It does not say what it has.
        self.had_gap |= self.asked.is_none();
        let query = self.asked.as_ref();
        query.map_or(String::new(), |(epoch, offset)| format!("?epoch={epoch}&offset={offset}"))
    }

    fn says(&mut self, payload: String, now: Instant) {
        self.waiting.insert(payload, now);
    }

    fn hears(&mut self, text: &str, now: Instant, redis: &mut Redis) -> Result<(), String> {
        let heard: Value = serde_json::from_str(text).unwrap();
        let payload = heard["payload"].to_string();
        let log = redis.log.get(&self.room).map_or(&[][..], Vec::as_slice);
        let at = heard["epoch"].as_str().map(str::to_owned).zip(heard["offset"].as_u64());
        match heard["type"].as_str().unwrap() {
            "broadcast" => {
                self.follows(heard["offset"].as_u64())?;
                self.message(&payload, log, redis)?;
                redis.heard.insert(payload);
                Ok(())
            }
            "gap" => {
                (self.had_gap, self.seen[1]) = (true, self.seen[1] + 1);
                (self.position, self.asked, self.is_fresh) = (at, None, false);
                Ok(())
            }
            "position" => self.begins(at, heard["recovered"] == true, log.len()),
            kind => {
                let Some(since) = self.waiting.remove(&payload) else {
                    return Err(format!("an outcome of {payload}"));
                };
                if now - since > PATIENCE {
                    return Err(format!("the outcome of {payload} came after {:?}", now - since));
                }
                let times = log.iter().filter(|one| **one == payload).count();
                let outcome = super::judge::outcome(kind, &heard, times)?;
                self.seen[2 + outcome] += 1;
                if outcome == 0 {
                    redis.heard.insert(payload);
                }
                Ok(())
            }
        }
    }

    fn ends(&self, redis: &Redis) -> Result<(), String> {
        let log = redis.log.get(&self.room).map_or(0, Vec::len);
        if let Some(skipped) = self.skipped.iter().find(|one| redis.heard.contains(*one)) {
            return Err(format!("{skipped} is missing without a gap, and somebody has it"));
        }
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

impl Recovering {
    fn begins(
        &mut self,
        at: Option<(String, u64)>,
        is_recovered: bool,
        published: usize,
    ) -> Result<(), String> {
        if !self.is_fresh || is_recovered != self.asked.is_some() {
            return Err(format!("a position {at:?}, asked for {:?}", self.asked));
        }
        if is_recovered && at != self.asked {
            return Err(format!("recovered from {at:?} instead of {:?}", self.asked));
        }
        if is_recovered {
            self.recovered += 1;
        } else {
            (self.begun_at, self.last, self.had_gap) = (Some(published), None, false);
        }
        (self.position, self.asked, self.is_fresh) = (at, None, false);
        Ok(())
    }

    /// Its offset is the last one plus 1. `None`: the hub keeps no history.
    fn follows(&mut self, offset: Option<u64>) -> Result<(), String> {
        let Some(offset) = offset else {
            self.position = None;
            return Ok(());
        };
        match &mut self.position {
            Some((_, last)) if *last + 1 == offset => *last = offset,
            position => return Err(format!("offset {offset} after {position:?}")),
        }
        Ok(())
    }

    fn message(&mut self, payload: &str, log: &[String], redis: &Redis) -> Result<(), String> {
        let place = log.iter().position(|one| one == payload);
        let place = place.ok_or_else(|| format!("{payload} was never published"))?;
        if self.highest.is_some_and(|highest| place <= highest) {
            return Err(format!("{payload} comes twice, or too late: after {:?}", self.highest));
        }
        let next = self.last.map_or(self.begun_at.unwrap_or(place), |last| last + 1);
        if !self.had_gap && place > next {
            let missing = &log[next..place];
            if let Some(one) = missing.iter().find(|one| !redis.lost.contains(*one)) {
                return Err(format!("{one} is missing before {payload} without a gap"));
            }
            self.skipped.extend_from_slice(missing);
        }
        (self.last, self.highest) = (Some(place), Some(place));
        (self.had_gap, self.seen[0]) = (false, self.seen[0] + 1);
        Ok(())
    }
}
