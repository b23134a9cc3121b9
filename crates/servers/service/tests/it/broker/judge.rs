//! What a member of a hub with a broker was promised.

use super::redis::Redis;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

/// How long a sender waits for an outcome while nothing comes from the broker, and how long at most.
const PATIENCE: Duration = Duration::from_secs(2);
const LONG_PATIENCE: Duration = Duration::from_secs(10);
/// How long a client waits for its subscription while nothing comes from the broker: up to a heartbeat, and until the
/// connection counts as lost because that does not come back.
const OPENING: Duration = Duration::from_secs(1 + 3);
/// Time passes in steps, so each core is served and each time is noticed so much later, at most.
const STEP: Duration = Duration::from_millis(700);

/// The servers, of which one is the broker at a time.
pub type Servers = [Redis; 2];

/// The place of a message: its server, and its number in the order of its room there.
type Place = (usize, usize);

/// A message that counts as published.
pub struct Published {
    pub room: String,
    pub payload: String,
    /// The hub of its sender.
    pub hub: usize,
}

/// A text of a hub.
pub struct Heard {
    pub value: Value,
    /// Its payload, as text.
    pub payload: String,
}

impl Heard {
    pub fn new(value: Value) -> Heard {
        let payload = &value["payload"];
        // A long one: its text contains nothing to be escaped, and looking for that would take most of the time.
        let payload = match payload[2].as_str() {
            Some(text) => format!("[{},{},\"{text}\"]", payload[0], payload[1]),
            None => payload.to_string(),
        };
        Heard { value, payload }
    }

    pub fn kind(&self) -> &str {
        self.value["type"].as_str().unwrap()
    }
}

/// A member of a simulation, with what it was promised.
pub trait Judging: Default {
    /// How many messages its hub keeps.
    const KEEPS: usize;

    fn room(&self) -> &str;

    /// It joins this room. Returns the query of its request.
    fn joins(&mut self, room: &str) -> String;

    /// Its hub has its request.
    fn joined(&mut self, servers: &Servers, now: Instant);

    fn says(&mut self, payload: String, now: Instant);

    /// It has not read for a while, so outcomes may come late.
    fn wakes(&mut self, now: Instant);

    /// Its hub has received something from the broker over this connection.
    fn hub_hears(&mut self, cable: usize, now: Instant);

    /// It is a client. `is_open`: its subscription has begun.
    ///
    /// # Errors
    /// It has begun too late.
    fn opens(&mut self, is_open: bool, now: Instant) -> Result<(), String>;

    /// Hears a text of its hub.
    fn hears(&mut self, heard: &Heard, now: Instant, servers: &Servers) -> Result<(), String>;

    /// Takes those of its own messages that count as published.
    fn take_published(&mut self) -> Vec<String>;

    /// The messages at all positions that it has ever had, if its room has some.
    fn positions(&self) -> Option<&BTreeMap<(String, u64), String>> {
        None
    }

    /// Everything has arrived, and this is what counts as published. The broker is this server.
    fn ends(&self, servers: &Servers, at: usize, all: &[Published]) -> Result<(), String>;

    /// Messages, gaps and outcomes so far: published, not published, unknown.
    fn seen(&self) -> [usize; 5];
}

/// Something that is waited for.
struct Waiting {
    since: Instant,
    /// The connection of the hub to the broker, and when the hub last received something over it. When it is lost, all
    /// that wait are answered, so nobody may wait longer because of another connection.
    heard: Option<(usize, Instant)>,
}

impl Waiting {
    fn new(since: Instant) -> Waiting {
        Waiting { since, heard: None }
    }

    fn hears(&mut self, cable: usize, now: Instant) {
        let (of, at) = self.heard.get_or_insert((cable, now));
        if *of == cable {
            *at = now;
        }
    }

    /// When it has waited for so long since it began, or since something came.
    fn end(&self, patience: Duration) -> Instant {
        self.heard.map_or(self.since, |(_, at)| at.max(self.since)) + patience
    }
}

/// A member, and what it has heard.
#[derive(Default)]
pub struct Judge {
    room: String,
    /// How much was published in its room at each server when it had joined, and when that was, once it has.
    joined_at: Option<([usize; 2], Instant)>,
    /// The place of the last message since it joined or had a gap.
    last: Option<Place>,
    /// It had a gap after the last message.
    had_gap: bool,
    /// When it had its last gap.
    gap_at: Option<Instant>,
    /// The last number that it has ever heard of each server.
    highest: [Option<usize>; 2],
    heard: BTreeSet<String>,
    /// Messages of its own that count as published, until they are taken.
    published: Vec<String>,
    /// Messages whose outcome it does not know.
    waiting: BTreeMap<String, Waiting>,
    /// The subscription of a client that has not begun. The replies to messages wait for that, too, because they follow
    /// their copies.
    opening: Option<Waiting>,
    /// The last time at which its subscription had not begun.
    opens_at: Option<Instant>,
    /// See [`Judging::seen`].
    seen: [usize; 5],
}

impl Judging for Judge {
    const KEEPS: usize = 0;

    fn room(&self) -> &str {
        &self.room
    }

    fn joins(&mut self, room: &str) -> String {
        *self = Judge { room: room.to_owned(), seen: self.seen, ..Judge::default() };
        String::new()
    }

    fn joined(&mut self, servers: &Servers, now: Instant) {
        let count = |redis: &Redis| redis.log.get(&self.room).map_or(0, Vec::len);
        self.joined_at = Some((servers.each_ref().map(count), now));
    }

    fn says(&mut self, payload: String, now: Instant) {
        self.waiting.insert(payload, Waiting::new(now));
    }

    fn wakes(&mut self, now: Instant) {
        self.all_waiting().for_each(|one| one.since = now);
    }

    fn hub_hears(&mut self, cable: usize, now: Instant) {
        self.all_waiting().for_each(|one| one.hears(cable, now));
    }

    fn opens(&mut self, is_open: bool, now: Instant) -> Result<(), String> {
        if !is_open {
            self.opening.get_or_insert(Waiting::new(now));
            self.opens_at = Some(now);
            return Ok(());
        }
        let late = self.opening.take().filter(|one| now > one.end(OPENING) + 3 * STEP);
        late.map_or(Ok(()), |one| {
            Err(format!("its subscription began after {:?}", now - one.since))
        })
    }

    fn hears(&mut self, heard: &Heard, now: Instant, servers: &Servers) -> Result<(), String> {
        match heard.kind() {
            "broadcast" => self.message(&heard.payload, servers),
            "gap" => {
                (self.had_gap, self.gap_at) = (true, Some(now));
                self.seen[1] += 1;
                Ok(())
            }
            kind => {
                let payload = &heard.payload;
                let waiting = self.waiting.remove(payload);
                let waiting = waiting.ok_or_else(|| format!("an outcome of {payload}"))?;
                let end = waiting.end(PATIENCE).min(waiting.since + LONG_PATIENCE);
                // What the broker has not confirmed does not wait for the subscription.
                let opens_at = self.opens_at.filter(|_| kind == "broadcastResult");
                if now > opens_at.map_or(end, |at| end.max(at)) + 2 * STEP {
                    let time = now - waiting.since;
                    return Err(format!("the outcome of {payload} came after {time:?}"));
                }
                self.outcome(kind, heard, servers)
            }
        }
    }

    fn take_published(&mut self) -> Vec<String> {
        std::mem::take(&mut self.published)
    }

    fn ends(&self, servers: &Servers, at: usize, all: &[Published]) -> Result<(), String> {
        let log = servers[at].log.get(&self.room).map_or(0, Vec::len);
        if !self.waiting.is_empty() {
            return Err(format!("no outcome: {:?}", self.waiting.keys()));
        }
        if self.had_gap || self.last.is_none_or(|(of, last)| (of, last + 1) != (at, log)) {
            return Err(format!("ends at {:?} of {log}, gap: {}", self.last, self.had_gap));
        }
        let (_, joined) = self.joined_at.ok_or("it has not joined")?;
        for Published { payload, .. } in all.iter().filter(|one| one.room == self.room) {
            let time = servers.iter().find_map(|redis| redis.times.get(payload));
            let time = *time.ok_or_else(|| format!("{payload} is nowhere"))?;
            let is_known =
                self.heard.contains(payload) || self.gap_at.is_some_and(|gap| gap >= time);
            if time > joined && !is_known {
                return Err(format!("misses {payload} silently"));
            }
        }
        Ok(())
    }

    fn seen(&self) -> [usize; 5] {
        self.seen
    }
}

impl Judge {
    fn all_waiting(&mut self) -> impl Iterator<Item = &mut Waiting> {
        self.waiting.values_mut().chain(&mut self.opening)
    }

    /// It joins again, and recovers.
    pub fn comes_back(&mut self) {
        self.waiting.clear();
        self.opening = None;
    }

    /// Messages may come again.
    pub fn forgets(&mut self) {
        self.highest = [None; 2];
    }

    fn outcome(&mut self, kind: &str, heard: &Heard, servers: &Servers) -> Result<(), String> {
        let Heard { value: heard, payload } = heard;
        let times = places(&self.room, payload, servers).count();
        let is = match (kind, heard["error"].as_str().unwrap_or_default()) {
            ("broadcastResult", "") if heard["listenerCount"].is_null() => 0,
            ("error", why) if why.starts_with("not published: ") => 1,
            ("error", why) if why.starts_with("unknown whether published: ") => 2,
            _ => return Err(format!("unexpected: {heard}")),
        };
        self.seen[2 + is] += 1;
        if is == 0 {
            self.published.push(payload.clone());
        }
        match is {
            0 if times != 1 => Err(format!("{heard} is not published")),
            1 if times != 0 => Err(format!("{heard} is published")),
            _ => Ok(()),
        }
    }

    fn message(&mut self, payload: &str, servers: &Servers) -> Result<(), String> {
        let place = places(&self.room, payload, servers).next();
        let place = place.ok_or_else(|| format!("{payload} was never published"))?;
        let (server, number) = place;
        if self.highest[server].is_some_and(|highest| number <= highest) {
            return Err(format!("{payload} comes twice, or too late: after {:?}", self.highest));
        }
        let (joined_at, _) = self.joined_at.ok_or("a message before the join")?;
        // The gap for messages without a place may come after this one, also for a member that has heard none before.
        let Redis { log, unplaced, .. } = &servers[server];
        let lacks_none =
            |first: usize| log[&self.room][first..number].iter().all(|one| unplaced.contains(one));
        let is_next = match self.last {
            _ if self.had_gap => true,
            Some((of, last)) => of == server && last < number && lacks_none(last + 1),
            None => lacks_none(joined_at[server].min(number)),
        };
        if !is_next {
            return Err(format!("{payload} is at {place:?}, after {:?} without a gap", self.last));
        }
        (self.last, self.highest[server]) = (Some(place), Some(number));
        (self.had_gap, self.seen[0]) = (false, self.seen[0] + 1);
        self.heard.insert(payload.to_owned());
        Ok(())
    }
}

/// Where a message is.
fn places(room: &str, payload: &str, servers: &Servers) -> impl Iterator<Item = Place> {
    servers.iter().enumerate().flat_map(move |(server, redis)| {
        let log = redis.log.get(room).map_or(&[][..], Vec::as_slice);
        let is_it = log.iter().enumerate().filter(move |(_, one)| **one == payload);
        is_it.map(move |(number, _)| (server, number))
    })
}
