//! What the broker stores for histories, as the scripts of hubs do it, and how a server loses some of it.

use std::collections::BTreeMap;

/// The process of a server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Process {
    pub run: u64,
    pub replid: u64,
    /// It was a replica, and became the master.
    pub was_promoted: bool,
    /// When it was started, in milliseconds.
    pub started: u64,
    /// What time it is, in milliseconds.
    pub now: u64,
    /// It refuses all that is written.
    pub refuses: bool,
}

#[derive(Clone, Debug, Default)]
struct Reign {
    name: String,
    replid: u64,
    run: u64,
    clock: u64,
    start: u64,
    before: Option<u64>,
    seen: u64,
}

#[derive(Clone, Debug, Default)]
struct Kept {
    epoch: String,
    reign: String,
    top: u64,
    limits: (usize, u64),
    messages: BTreeMap<u64, Vec<u8>>,
}

/// All keys of a server.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    reign: Option<Reign>,
    rooms: BTreeMap<String, Kept>,
}

/// What the server answers to a script.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    Refused(&'static str),
    /// This text is published in the channel.
    Published(Vec<u8>),
    Texts(Vec<Vec<u8>>),
}

const REFUSED: Answer = Answer::Refused("MISCONF it cannot save");

/// What a hub has heard: the reign, the run, and the number of the last message.
pub type Claim<'a> = (&'a str, u64, u64);

impl Stored {
    pub fn has_reign(&self) -> bool {
        self.reign.is_some()
    }

    /// Whether a message with this payload is kept in a room. All of a simulation are different.
    pub fn holds(&self, room: &str, payload: &str) -> bool {
        let kept = self.rooms.get(room);
        let is = |one: &Vec<u8>| one.ends_with(payload.as_bytes());
        kept.is_some_and(|kept| kept.messages.values().any(is))
    }

    /// The part that all scripts have in common. `None`: the server refuses to write.
    fn reign(&mut self, process: &Process, next: &str, claim: Option<Claim<'_>>) -> Option<String> {
        let mut is_same = self.reign.is_some();
        let mut one = self.reign.clone().unwrap_or_default();
        let Process { run, replid, now, .. } = *process;
        let claim = claim.filter(|claim| claim.0 == one.name);
        let (clock, away) = (one.clock, (now - one.seen) / 1000);
        if is_same && run != one.run {
            let has_restarted = (now - process.started) / 1000 <= away + 1;
            is_same = has_restarted && claim.is_some_and(|(_, _, heard)| heard == clock);
            (one.start, one.before) = (clock, Some(one.run));
        } else if is_same && replid != one.replid {
            is_same = !process.was_promoted && away <= 10;
        }
        if is_same && let Some((_, its_run, heard)) = claim {
            is_same = its_run == run && heard <= clock
                || Some(its_run) == one.before && heard <= one.start;
        }
        if !is_same {
            one = Reign { name: next.to_owned(), ..Reign::default() };
        }
        (one.run, one.replid) = (run, replid);
        let is_changed = self.reign.as_ref().is_none_or(|before| {
            (&before.name, before.run, before.replid) != (&one.name, run, replid)
        });
        if is_changed {
            if process.refuses {
                return None;
            }
            one.seen = now;
            self.reign = Some(one.clone());
        }
        Some(one.name)
    }

    pub fn beats(&mut self, process: &Process, next: &str, claim: Claim<'_>) -> Answer {
        let Some(name) = self.reign(process, next, Some(claim)) else { return REFUSED };
        if process.refuses {
            return REFUSED;
        }
        let Some(reign) = &mut self.reign else { return REFUSED };
        reign.seen = process.now;
        let texts = [name, reign.run.to_string(), reign.clock.to_string()];
        Answer::Texts(texts.map(String::into_bytes).into())
    }

    pub fn publishes(
        &mut self,
        process: &Process,
        (room, message): (&str, &[u8]),
        (messages, ttl): (usize, u64),
        next: &str,
    ) -> Answer {
        let known = self.rooms.get(room).map(|kept| kept.limits);
        let limits = match (messages, known) {
            (0, None) => {
                return Answer::Published([b"\x020 0000000000000000 0 0 0 ", message].concat());
            }
            (0, Some(known)) => known,
            (messages, _) => (messages, ttl),
        };
        let Some(name) = self.reign(process, next, None) else { return REFUSED };
        if process.refuses {
            return REFUSED;
        }
        let kept = self.rooms.entry(room.to_owned()).or_default();
        if kept.reign != name {
            (kept.epoch, kept.reign) = (next.to_owned(), name);
        }
        kept.top += 1;
        kept.limits = limits;
        kept.messages.insert(kept.top, message.to_vec());
        while kept.messages.len() > limits.0 {
            kept.messages.pop_first();
        }
        let Some(reign) = &mut self.reign else { return REFUSED };
        reign.clock += 1;
        let Kept { top, epoch, .. } = kept;
        let header = format!("\x02{top} {epoch} {} {} {} ", limits.0, limits.1, reign.clock);
        Answer::Published([header.as_bytes(), message].concat())
    }

    /// `span`: the direction, the first message and the last one.
    pub fn looks(
        &mut self,
        process: &Process,
        (room, limits): (&str, (usize, u64)),
        next: &str,
        (breaks, span): (bool, (&str, &str, &str)),
    ) -> Answer {
        let Some(name) = self.reign(process, next, None) else { return REFUSED };
        let known = self.rooms.get(room);
        if breaks || known.is_none_or(|kept| kept.reign != name) {
            if process.refuses {
                return REFUSED;
            }
            let kept = self.rooms.entry(room.to_owned()).or_default();
            (kept.epoch, kept.reign) = (next.to_owned(), name);
            if kept.limits.0 == 0 {
                kept.limits = limits;
            }
        }
        let kept = &self.rooms[room];
        let mut is_all = true;
        let mut texts = vec![kept.epoch.clone().into_bytes(), kept.top.to_string().into_bytes()];
        let mut found: Vec<(&u64, &Vec<u8>)> = match span {
            ("", ..) => Vec::new(),
            ("+", first, _) => kept.messages.range(first.parse::<u64>().unwrap()..).collect(),
            (_, first, last) => {
                let range = last.parse::<u64>().unwrap()..=first.parse::<u64>().unwrap();
                kept.messages.range(range).rev().collect()
            }
        };
        // Fewer than the script has, so that there are several fetches.
        if found.len() > 3 {
            found.truncate(3);
            is_all = false;
        }
        texts.push(if is_all { b"1".to_vec() } else { b"0".to_vec() });
        for (offset, message) in found {
            texts.push(offset.to_string().into_bytes());
            texts.push(message.clone());
        }
        Answer::Texts(texts)
    }
}
