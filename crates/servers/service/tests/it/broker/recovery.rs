//! What a member of a hub with a broker was promised in a room with a history, over all of its connections.

use super::judge::{Heard, Judge, Judging, Published, Servers};
use std::{collections::BTreeMap, time::Instant};

/// An epoch and an offset.
type Position = (String, u64);

/// A member, and what it has heard.
#[derive(Default)]
pub struct Recovering {
    judge: Judge,
    /// Its position, as of the hub.
    position: Option<Position>,
    /// The position that it has named, until its hub answers.
    asked: Option<Position>,
    /// It has heard nothing since it joined.
    is_fresh: bool,
    /// The messages at all positions that it has ever had.
    all: BTreeMap<Position, String>,
}

impl Judging for Recovering {
    const KEEPS: usize = 12;

    fn room(&self) -> &str {
        self.judge.room()
    }

    fn joins(&mut self, room: &str) -> String {
        self.is_fresh = true;
        self.asked = self.position.clone();
        let Some((epoch, offset)) = &self.asked else { return self.judge.joins(room) };
        self.judge.comes_back();
        format!("?epoch={epoch}&offset={offset}")
    }

    fn joined(&mut self, servers: &Servers, now: Instant) {
        if self.asked.is_none() {
            self.judge.joined(servers, now);
        }
    }

    fn says(&mut self, payload: String, now: Instant) {
        self.judge.says(payload, now);
    }

    fn wakes(&mut self, now: Instant) {
        self.judge.wakes(now);
    }

    fn hub_hears(&mut self, cable: usize, now: Instant) {
        self.judge.hub_hears(cable, now);
    }

    fn opens(&mut self, is_open: bool, now: Instant) -> Result<(), String> {
        self.judge.opens(is_open, now)
    }

    fn hears(&mut self, heard: &Heard, now: Instant, servers: &Servers) -> Result<(), String> {
        let value = &heard.value;
        let at = value["epoch"].as_str().map(str::to_owned).zip(value["offset"].as_u64());
        match heard.kind() {
            "broadcast" => self.follows(heard)?,
            "gap" => {
                if at.is_none() {
                    // This hub keeps no history, and may be behind the one before.
                    self.judge.forgets();
                }
                (self.position, self.asked, self.is_fresh) = (at, None, false);
            }
            "position" => return self.begins(at, value["recovered"] == true, servers, now),
            _ => {}
        }
        self.judge.hears(heard, now, servers)
    }

    fn take_published(&mut self) -> Vec<String> {
        self.judge.take_published()
    }

    fn positions(&self) -> Option<&BTreeMap<Position, String>> {
        Some(&self.all)
    }

    fn ends(&self, servers: &Servers, at: usize, all: &[Published]) -> Result<(), String> {
        self.judge.ends(servers, at, all)
    }

    fn seen(&self) -> [usize; 5] {
        self.judge.seen()
    }
}

impl Recovering {
    fn begins(
        &mut self,
        at: Option<Position>,
        is_recovered: bool,
        servers: &Servers,
        now: Instant,
    ) -> Result<(), String> {
        if !self.is_fresh || is_recovered != self.asked.is_some() {
            return Err(format!("a position {at:?}, asked for {:?}", self.asked));
        }
        if is_recovered && at != self.asked {
            return Err(format!("recovered from {at:?} instead of {:?}", self.asked));
        }
        if !is_recovered {
            self.judge.joined(servers, now);
        }
        (self.position, self.asked, self.is_fresh) = (at, None, false);
        Ok(())
    }

    /// Its offset is the last one plus 1. Without one, the hub keeps no history.
    fn follows(&mut self, heard: &Heard) -> Result<(), String> {
        let payload = &heard.payload;
        let Some(offset) = heard.value["offset"].as_u64() else {
            self.position = None;
            return Ok(());
        };
        match &mut self.position {
            Some((_, last)) if *last + 1 == offset => *last = offset,
            position => return Err(format!("offset {offset} after {position:?}")),
        }
        let before = self.all.insert(self.position.clone().unwrap(), payload.clone());
        match before.filter(|before| before != payload) {
            Some(before) => Err(format!("{payload} at the position of {before}")),
            None => Ok(()),
        }
    }
}
