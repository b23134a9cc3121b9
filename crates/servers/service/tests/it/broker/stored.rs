//! What the broker stores for histories, as the scripts of hubs do it, and how it loses some of it.

use std::collections::BTreeMap;

/// The process of a server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Process {
    /// Which one it is.
    pub run: u64,
    /// Which server it was a replica of; 0: of none, or it has forgotten that.
    pub before: u64,
    /// What time it is, in milliseconds.
    pub now: u64,
    /// It refuses all that is written.
    pub refuses: bool,
    /// It is a replica.
    pub is_replica: bool,
    /// A mistake: it goes on with its reign although a hub comes from another server.
    pub ignores_moves: bool,
}

#[derive(Clone, Debug)]
struct Reign {
    name: String,
    run: u64,
    before: u64,
    began: u64,
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
#[derive(Debug)]
pub enum Answer {
    Refused(&'static str),
    /// This text is published in the channel.
    Published(Vec<u8>),
    /// Which reign it is, the run of the server, and why it refuses to write.
    Reign([String; 3]),
    /// The epoch, the newest message, whether there are no more messages, and messages.
    Seen(String, u64, bool, Vec<(u64, Vec<u8>)>),
}

/// The run of another server, and how long ago something was heard there (ms).
pub type Left<'a> = (&'a str, u64);

const REFUSED: Answer = Answer::Refused("MISCONF it cannot save");
/// Fewer than a script looks at, so that there are several fetches.
const MOST_SEEN: usize = 3;

impl Stored {
    pub fn has_reign(&self) -> bool {
        self.reign.is_some()
    }

    /// Of how many rooms it knows something.
    pub fn rooms(&self) -> usize {
        self.rooms.len()
    }

    /// Whether the present reign began with this process.
    pub fn knows(&self, process: &Process) -> bool {
        let is_of = |one: &Reign| (one.run, one.before) == (process.run, process.before);
        self.reign.as_ref().is_some_and(is_of)
    }

    /// It has dropped something because it had no memory.
    pub fn evicts(&mut self, what: usize, room: &str) {
        match what {
            0 => self.reign = None,
            1 => drop(self.rooms.remove(room)),
            _ => {
                if let Some(kept) = self.rooms.get_mut(room) {
                    kept.messages.clear();
                }
            }
        }
    }

    /// The part that all scripts have in common. `left`: the run of the server at which a hub has heard messages before, and
    /// how long ago (ms). `None`: the server refuses to write.
    fn reign(&mut self, process: &Process, next: &str, left: Option<Left<'_>>) -> Option<String> {
        let Process { run, before, now, .. } = *process;
        let (its_run, age) = left.unwrap_or_default();
        let is_here = left.is_none() || its_run == run.to_string() || process.ignores_moves;
        if let Some(one) = &self.reign {
            let is_same = one.run == run && (one.before == before || before == 0);
            let is_younger = one.began <= now && one.began + age > now;
            if is_same && (is_here || is_younger) {
                return Some(one.name.clone());
            }
        }
        if process.refuses || process.is_replica {
            return None;
        }
        self.reign = Some(Reign { name: next.to_owned(), run, before, began: now });
        Some(next.to_owned())
    }

    pub fn beats(&mut self, process: &Process, next: &str, left: Option<Left<'_>>) -> Answer {
        let name = self.reign(process, next, left).unwrap_or_default();
        let refuses = process.refuses || process.is_replica;
        let refusal = if refuses { "MISCONF it cannot save" } else { "" };
        Answer::Reign([name, process.run.to_string(), refusal.to_owned()])
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
                return Answer::Published([b"\x020 0000000000000000 0 0 ", message].concat());
            }
            (0, Some(known)) => known,
            (messages, _) => (messages, ttl),
        };
        let Some(name) = self.reign(process, next, None) else { return REFUSED };
        if process.refuses || process.is_replica {
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
        let header = format!("\x02{} {} {} {} ", kept.top, kept.epoch, limits.0, limits.1);
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
            if process.refuses || process.is_replica {
                return REFUSED;
            }
            let kept = self.rooms.entry(room.to_owned()).or_default();
            (kept.epoch, kept.reign) = (next.to_owned(), name);
            if kept.limits.0 == 0 {
                kept.limits = limits;
            }
        }
        let kept = &self.rooms[room];
        let number = |text: &str| text.parse::<u64>().unwrap();
        let mut found: Vec<(u64, Vec<u8>)> = match span {
            ("", ..) => Vec::new(),
            ("+", first, _) => of(kept.messages.range(number(first)..)),
            (_, first, last) => of(kept.messages.range(number(last)..=number(first)).rev()),
        };
        let is_all = found.len() <= MOST_SEEN;
        found.truncate(MOST_SEEN);
        Answer::Seen(kept.epoch.clone(), kept.top, is_all, found)
    }
}

fn of<'a>(messages: impl Iterator<Item = (&'a u64, &'a Vec<u8>)>) -> Vec<(u64, Vec<u8>)> {
    messages.map(|(offset, message)| (*offset, message.clone())).collect()
}
