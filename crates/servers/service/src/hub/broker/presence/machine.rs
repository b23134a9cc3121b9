//! The presence of a hub at a broker, as a state machine without sockets and clocks. What it does is in three parts: this
//! one has the members of this node, `hearing` those of the others, and `living` which nodes live.

use super::{
    note::{Changed, Note},
    room::{Notice, Room},
    state::State,
};
use regatta_engine::{RoomName, Ticket};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    mem,
    time::{Duration, Instant},
};

/// How often changes are looked for. So a room is written at most 10 times in a second.
pub const COALESCED: Duration = Duration::from_millis(100);
/// How long a new member waits for its list, if the members of other nodes are not known.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a backend waits until they are known.
const ANSWERS: Duration = Duration::from_secs(2);
/// How often all rooms are written again, so that they do not expire.
const ROUND: Duration = Duration::from_secs(300);
/// How soon it is tried again what the broker has refused. After each further time the pause is twice as long, up to 48 s.
const RETRY: Duration = Duration::from_secs(6);
/// After how long without a refusal in a room the pause is short again.
const STEADY: Duration = Duration::from_secs(60);
/// How often it is tried to remove what is stored of a room without members. Then another life begins.
const MOST_REFUSALS: u32 = 8;
/// Maximum number of reads that are not answered, and about how many bytes they may be: the broker closes connections
/// for which too much waits (`client-output-buffer-limit`). At first one is sent.
const MOST_READS: usize = 16;
const READ_BYTES: usize = 4 << 20;
/// Maximum number of questions of backends that wait.
const MOST_ASKERS: usize = 10_000;
/// Maximum number of rooms with a deadline in the past that are handled in a tick.
const MOST_DUE: usize = 1_000;

/// A planted mistake.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Nodes whose liveness key is gone are taken for living ones.
    KeepsDead,
    /// A note that comes again is applied again.
    AppliesTwice,
    /// A change is not sent if the one before it was sent within 100 ms.
    LosesLast,
    /// After a connection the rooms are not sent anew.
    NotAnew,
    /// What was read replaces what is newer.
    StaleRead,
}

/// What the broker is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Makes the liveness key of this life of the node.
    Begin { life: u64 },
    /// Prolongs it, if it is there.
    Keep { life: u64 },
    /// Which of these lives of nodes last. The time is for the answer.
    Check(Vec<(u64, u64)>, Instant),
    /// Stores the members of this node.
    Write(Box<Write>),
    /// For all nodes.
    Publish(String),
    /// The members of all nodes in a room. The stamp is for the answer.
    Read { room: RoomName, stamp: u64 },
    /// Those of one node.
    ReadOf { room: RoomName, node: u64, life: u64, stamp: u64 },
    /// Removes what a life of a node that has ended has stored.
    Remove { room: RoomName, node: u64, life: u64 },
}

/// The members of this node in a room, for the other ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub room: RoomName,
    pub life: u64,
    /// For the answer: the number of the note.
    pub number: u64,
    /// What is stored, and expires; `None`: nothing is.
    pub value: Option<String>,
    /// Is published after that.
    pub note: String,
}

/// Whether this node lives for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    /// Nobody knows, or the answer has not come.
    Asked,
    Lives,
    /// The broker has refused it.
    Refused,
}

/// Another node.
#[derive(Debug)]
pub(super) struct Peer {
    /// Its newest life.
    pub life: u64,
    /// The number of its newest note; `None` before the first one.
    pub number: Option<u64>,
    /// It is known to live.
    pub lives: bool,
    /// When this life was found, and when it was last heard.
    pub since: Instant,
    pub heard: Instant,
    /// When this life has ended. It never begins again.
    pub ended_at: Option<Instant>,
}

impl Peer {
    /// Whether this life may last.
    pub fn may_last(&self, life: u64) -> bool {
        self.life == life && self.ended_at.is_none()
    }
}

/// The presence of a hub at a broker.
#[derive(Debug)]
pub struct Machine {
    /// A number that no other node has.
    pub(super) node: u64,
    /// How often this node has begun to live for the others.
    pub(super) life: u64,
    pub(super) own: Own,
    /// The number of the last note.
    pub(super) notes: u64,
    pub(super) rooms: BTreeMap<RoomName, Room>,
    pub(super) peers: BTreeMap<u64, Peer>,
    /// The connection is up since then.
    pub(super) up_at: Option<Instant>,
    /// Orders what is sent and heard.
    pub(super) clock: u64,
    pub(super) urgent: VecDeque<Command>,
    writes: VecDeque<RoomName>,
    /// Rooms that were written less than 100 ms ago, and when they may be written again.
    young: BTreeSet<(Instant, RoomName)>,
    pub(super) removals: VecDeque<Command>,
    /// Of all nodes, or of one.
    pub(super) reads: BTreeSet<(RoomName, Option<u64>)>,
    /// Those of them for which somebody waits.
    awaited: BTreeSet<RoomName>,
    /// How many are not answered, and how many may be, by the length of the last answer.
    reading: usize,
    most_reads: usize,
    /// When the patience of members or backends ends, or something is tried again, and in which room.
    pub(super) deadlines: BTreeSet<(Instant, RoomName)>,
    /// How many backends wait.
    asking: usize,
    /// Nodes whose members were not found, but may be soon.
    pub(super) suspects: BTreeSet<(RoomName, u64)>,
    notices: Vec<(RoomName, Notice)>,
    answered: Vec<(Ticket, Option<RoomName>)>,
    ticks_at: Instant,
    pub(super) refreshes_at: Instant,
    pub(super) checks_at: Instant,
    round_at: Instant,
    /// How often in a row the broker has refused to let this node live, and when the next life begins.
    pub(super) refusals: u32,
    pub(super) begins_at: Instant,
    /// When this life has begun.
    pub(super) begun_at: Instant,
    /// When the last life has ended, in the order of what was sent and heard.
    pub(super) ended: u64,
    /// When notes of others were last found to be missing, in this order, and when rooms are read because of that.
    pub(super) missed: u64,
    pub(super) rereads_at: Option<Instant>,
    /// How often the waiting of a room was looked at.
    #[cfg(test)]
    pub(super) looks: usize,
    /// What no hub has sent, and what came again.
    pub(super) ignored: usize,
    pub(super) repeated: usize,
    #[cfg(test)]
    pub(super) fault: Fault,
}

impl Machine {
    /// A node without members and without a connection.
    pub fn new(node: u64, now: Instant) -> Machine {
        Machine {
            node,
            life: 0,
            own: Own::Asked,
            notes: 0,
            rooms: BTreeMap::new(),
            peers: BTreeMap::new(),
            up_at: None,
            clock: 0,
            urgent: VecDeque::new(),
            writes: VecDeque::new(),
            young: BTreeSet::new(),
            removals: VecDeque::new(),
            reads: BTreeSet::new(),
            awaited: BTreeSet::new(),
            reading: 0,
            most_reads: 1,
            deadlines: BTreeSet::new(),
            asking: 0,
            suspects: BTreeSet::new(),
            notices: Vec::new(),
            answered: Vec::new(),
            ticks_at: now,
            refreshes_at: now,
            checks_at: now,
            round_at: now,
            refusals: 0,
            begins_at: now,
            begun_at: now,
            ended: 0,
            missed: 0,
            rereads_at: None,
            #[cfg(test)]
            looks: 0,
            ignored: 0,
            repeated: 0,
            #[cfg(test)]
            fault: Fault::None,
        }
    }

    // ---- what comes out ----

    /// What members get, in this order.
    pub fn take_notices(&mut self) -> Vec<(RoomName, Notice)> {
        mem::take(&mut self.notices)
    }

    /// Backends that have waited, and the room whose members are known on all nodes; `None`: they are not.
    pub fn take_answered(&mut self) -> Vec<(Ticket, Option<RoomName>)> {
        mem::take(&mut self.answered)
    }

    /// How much was ignored, and how much came again, since the last call.
    pub fn take_counts(&mut self) -> [usize; 2] {
        [mem::take(&mut self.ignored), mem::take(&mut self.repeated)]
    }

    /// When [`Machine::tick`] must be called.
    pub fn due(&self) -> Instant {
        self.ticks_at
    }

    /// Whether [`Machine::next_command`] may return one before the next tick.
    pub fn has_commands(&self) -> bool {
        let is_old_soon = self.young.first().is_some_and(|(at, _)| *at < self.ticks_at);
        let may_write = !self.writes.is_empty() || !self.removals.is_empty() || is_old_soon;
        !self.urgent.is_empty() || self.may_read() || may_write && self.own == Own::Lives
    }

    /// The next command for the broker.
    pub fn next_command(&mut self, now: Instant) -> Option<Command> {
        self.up_at?;
        if let Some(command) = self.urgent.pop_front() {
            return Some(command);
        }
        if self.own == Own::Lives
            && let Some(command) = self.next_write(now).or_else(|| self.removals.pop_front())
        {
            return Some(command);
        }
        self.next_read()
    }

    fn next_write(&mut self, now: Instant) -> Option<Command> {
        while self.young.first().is_some_and(|(at, _)| *at <= now) {
            self.writes.extend(self.young.pop_first().map(|(_, name)| name));
        }
        while let Some(name) = self.writes.pop_front() {
            let Some(room) = self.rooms.get_mut(&name) else { continue };
            if let Some(at) = room.written_at.filter(|at| now < *at + COALESCED) {
                #[cfg(test)]
                if self.fault == Fault::LosesLast {
                    room.is_queued = false;
                    continue;
                }
                self.young.insert((at + COALESCED, name));
                continue;
            }
            room.is_queued = false;
            let write = self.write(&name, now);
            self.forget_if_idle(&name);
            if write.is_some() {
                return write;
            }
        }
        None
    }

    /// Rooms for which somebody waits are read first.
    fn take_read(&mut self) -> Option<(RoomName, Option<u64>)> {
        while let Some(room) = self.awaited.pop_first() {
            if let Some(read) = self.reads.take(&(room, None)) {
                return Some(read);
            }
        }
        self.reads.pop_first()
    }

    fn write(&mut self, name: &RoomName, now: Instant) -> Option<Command> {
        let Machine { node, life, notes, rooms, .. } = self;
        let room = rooms.get_mut(name)?;
        let is_anew = mem::take(&mut room.is_anew);
        let has_members = room.local.count > 0;
        if !(room.is_changed || is_anew) || !(has_members || room.is_stored) {
            return None;
        }
        *notes += 1;
        let change = if mem::take(&mut room.is_changed) {
            room.local.version = *notes;
            Changed::new(name.as_str(), &room.announced, &room.local)
        } else {
            Changed::unread(name.as_str(), &room.local)
        };
        let (node, life, number) = (*node, *life, *notes);
        let note = Note { node, life, number, change: Some(change) }.to_json();
        (room.is_stored, room.wrote, room.written_at) = (true, number, Some(now));
        room.announced = room.local.clone();
        let value = has_members.then(|| room.local.to_json());
        let room = name.clone();
        Some(Command::Write(Box::new(Write { room, life, number, value, note })))
    }

    /// Rooms are read only after the life has begun: then what earlier ones have stored is found, too.
    fn may_read(&self) -> bool {
        !self.reads.is_empty() && self.reading < self.most_reads && self.own != Own::Asked
    }

    fn next_read(&mut self) -> Option<Command> {
        while self.may_read() {
            let (room, of) = self.take_read()?;
            let Some(here) = self.rooms.get_mut(&room).filter(|here| here.has_interest()) else {
                continue;
            };
            self.clock += 1;
            let stamp = self.clock;
            let command = match of {
                None => {
                    here.awaits = stamp;
                    let of_one = (room.clone(), Some(0))..=(room.clone(), Some(u64::MAX));
                    while let Some(one) = self.reads.range(of_one.clone()).next().cloned() {
                        self.reads.remove(&one);
                    }
                    Command::Read { room, stamp }
                }
                Some(node) => match self.peers.get(&node) {
                    Some(Peer { life, ended_at: None, .. }) => {
                        Command::ReadOf { room, node, life: *life, stamp }
                    }
                    _ => continue,
                },
            };
            self.reading += 1;
            return Some(command);
        }
        None
    }

    /// A read was answered with so many bytes, or refused.
    pub(super) fn has_read(&mut self, bytes: usize) {
        self.reading = self.reading.saturating_sub(1);
        self.most_reads = (READ_BYTES / bytes.max(1)).clamp(1, MOST_READS);
    }

    // ---- the connection ----

    /// The connection is up. A new life begins, because the server may lack what was sent before.
    pub fn is_up(&mut self, now: Instant) {
        self.up_at = Some(now);
        self.begins();
    }

    /// The connection is lost, with all that is not answered.
    pub fn lose(&mut self) {
        self.up_at = None;
        self.own = Own::Asked;
        for (name, room) in &mut self.rooms {
            let askers = mem::take(&mut room.askers);
            self.answered.extend(askers.into_iter().map(|(asker, _)| (asker, None)));
            if room.list_until.take().is_some() {
                self.notices.push((name.clone(), room.list(true)));
            }
            (room.read, room.awaits, room.refusals, room.retries_at) = (None, 0, 0, None);
            // Another life begins with the next connection.
            (room.is_stored, room.is_queued) = (false, false);
        }
        self.rooms.retain(|_, room| !room.is_idle());
        self.urgent.clear();
        self.writes.clear();
        self.young.clear();
        self.removals.clear();
        self.reads.clear();
        self.awaited.clear();
        self.suspects.clear();
        self.deadlines.clear();
        (self.reading, self.most_reads) = (0, 1);
        (self.asking, self.refusals, self.rereads_at) = (0, 0, None);
    }

    /// All rooms are sent again.
    pub(super) fn writes_anew(&mut self, now: Instant) {
        self.round_at = now + ROUND;
        #[cfg(test)]
        if self.fault == Fault::NotAnew {
            return;
        }
        for (name, room) in &mut self.rooms {
            room.is_anew = true;
            if !mem::replace(&mut room.is_queued, true) {
                self.writes.push_back(name.clone());
            }
        }
    }

    /// The room is sent soon. Otherwise all rooms are, once this node lives.
    fn queues(&mut self, name: &RoomName) {
        if self.own == Own::Lives
            && let Some(room) = self.rooms.get_mut(name)
            && !mem::replace(&mut room.is_queued, true)
        {
            self.writes.push_back(name.clone());
        }
    }

    /// Reads all rooms that were not read since so much was sent and heard.
    pub(super) fn reads_before(&mut self, stamp: u64) {
        let is_due = |room: &Room| room.has_interest() && room.is_older_than(stamp);
        let rooms = self.rooms.iter().filter(|(_, room)| is_due(room));
        self.reads.extend(rooms.map(|(name, _)| (name.clone(), None)));
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Instant) {
        self.ticks_at = now + COALESCED;
        if self.up_at.is_some() && self.own == Own::Lives && self.round_at <= now {
            self.writes_anew(now);
        }
        self.looks_who_lives(now);
        if self.rereads_at.take_if(|at| *at <= now).is_some() {
            self.reads_before(self.missed);
        }
        let mut most = MOST_DUE;
        while most > 0
            && self.deadlines.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, name)) = self.deadlines.pop_first()
        {
            if self.rooms.get(&name).is_some_and(Room::has_deadline) {
                most -= 1;
                self.settles(&name, now);
                self.tries_again(&name, now);
            }
        }
    }

    // ---- the members of this node ----

    /// The members of this node in a room may have changed.
    pub fn changes(&mut self, name: &RoomName, mut state: State, now: Instant) {
        if state.count == 0 && !self.rooms.contains_key(name) {
            return;
        }
        let room = self.rooms.entry(name.clone()).or_default();
        let had_interest = room.has_interest();
        state.version = room.local.version;
        let before = mem::replace(&mut room.local, state);
        let notices = room.notices(self.node, &before, &room.local);
        let has_new = |room: &Room| {
            let local = &room.local;
            local.listed.range(before.next..).next().is_some() || local.count > local.listed.len()
        };
        if room.local.count > 0 && has_new(room) && room.list_until.is_none() {
            room.list_until = Some(now + PATIENCE);
        }
        room.is_changed = true;
        self.queues(name);
        self.notifies(name, notices);
        self.interest(name, had_interest);
        self.settles(name, now);
        if let Some(until) = self.rooms.get(name).and_then(|room| room.list_until) {
            self.deadlines.insert((until, name.clone()));
        }
        self.forget_if_idle(name);
    }

    /// The room has members or askers, or has none any longer.
    fn interest(&mut self, name: &RoomName, had_interest: bool) {
        let Some(room) = self.rooms.get_mut(name) else { return };
        match (had_interest, room.has_interest()) {
            (false, true) => {
                room.forgets_others();
                if self.up_at.is_some() {
                    self.reads.insert((name.clone(), None));
                    self.awaited.insert(name.clone());
                }
            }
            (true, false) => {
                room.forgets_others();
                room.list_until = None;
            }
            _ => {}
        }
    }

    fn forget_if_idle(&mut self, name: &RoomName) {
        if self.rooms.get(name).is_some_and(|room| room.is_idle() && !room.is_queued) {
            self.rooms.remove(name);
        }
    }

    // ---- lists and answers ----

    /// A backend asks for the members of a room on all nodes. The answer follows, see [`Machine::take_answered`].
    pub fn ask(&mut self, name: &RoomName, asker: Ticket, now: Instant) {
        let room = self.rooms.get(name);
        let is_unread = |room: &Room| room.read.is_none() && room.awaits == 0;
        let is_refused = room.is_some_and(|room| room.retries_at.is_some() && is_unread(room));
        if self.up_at.is_none() || is_refused || self.asking >= MOST_ASKERS {
            return self.answered.push((asker, None));
        }
        self.asking += 1;
        let room = self.rooms.entry(name.clone()).or_default();
        let had_interest = room.has_interest();
        room.askers.push_back((asker, now + ANSWERS));
        self.interest(name, had_interest);
        self.settles(name, now);
        if self.rooms.get(name).is_some_and(|room| !room.askers.is_empty()) {
            self.deadlines.insert((now + ANSWERS, name.clone()));
            if self.reads.contains(&(name.clone(), None)) {
                self.awaited.insert(name.clone());
            }
        }
    }

    /// Those who wait for the members of all nodes in a room get what they wait for, if these are known, or if they have
    /// waited for too long.
    pub(super) fn settles(&mut self, name: &RoomName, now: Instant) {
        #[cfg(test)]
        {
            self.looks += 1;
        }
        let Some(room) = self.rooms.get_mut(name) else { return };
        let is_settled = room.is_settled();
        let is_over = |until: Instant| is_settled || until <= now;
        if room.list_until.take_if(|until| is_over(*until) || self.up_at.is_none()).is_some() {
            self.notices.push((name.clone(), room.list(true)));
        }
        while let Some((asker, _)) = room.askers.pop_front_if(|(_, until)| is_over(*until)) {
            self.asking -= 1;
            self.answered.push((asker, is_settled.then(|| name.clone())));
        }
        if !is_settled {
            self.forget_if_idle(name);
        }
    }

    /// After answers were taken: forgets rooms that were only asked for.
    pub fn tidy(&mut self, name: &RoomName) {
        self.forget_if_idle(name);
    }

    /// Whether members of this room are notified, until it has none.
    pub fn knows(&self, name: &RoomName) -> bool {
        self.rooms.get(name).is_some_and(|room| room.local.count > 0)
    }

    /// The places of those members of this node in a room of whom members are notified are below this one, and whether all of
    /// them are listed.
    pub fn known(&self, name: &RoomName) -> (usize, bool) {
        let local = self.rooms.get(name).map(|room| &room.local);
        local.map_or((0, true), |local| (local.next, local.listed.len() == local.count))
    }

    /// The members of the other nodes in a room.
    pub fn others(&self, name: &RoomName) -> impl Iterator<Item = (u64, &State)> {
        self.rooms.get(name).into_iter().flat_map(Room::shown)
    }

    pub(super) fn notifies(&mut self, name: &RoomName, notices: Vec<Notice>) {
        self.notices.extend(notices.into_iter().map(|notice| (name.clone(), notice)));
    }

    // ---- what the broker has done, or refuses ----

    /// The members of this node in a room are stored, or removed, by the write with this number.
    pub fn has_written(&mut self, name: &RoomName, number: u64) {
        let Some(room) = self.rooms.get_mut(name) else { return };
        if room.wrote == number && room.announced.count == 0 {
            room.is_stored = false;
            self.forget_if_idle(name);
        }
    }

    /// The broker has refused something in a room. That is tried again later, in this room alone.
    pub fn is_refused(&mut self, name: &RoomName, now: Instant) {
        let Some(room) = self.rooms.get_mut(name) else { return };
        if room.tried_at.is_none_or(|at| at + STEADY < now) {
            room.refusals = 0;
        }
        if room.refusals >= MOST_REFUSALS && !room.has_interest() {
            // Rooms that cannot be removed would be more and more. What an ended life has stored counts no longer.
            return self.life_is_refused(self.life, now);
        }
        if room.retries_at.is_none() {
            let at = now + pause(&mut room.refusals);
            (room.retries_at, room.tried_at) = (Some(at), Some(at));
            self.deadlines.insert((at, name.clone()));
        }
    }

    /// The broker has refused the read of a room with this stamp: backends do not wait for it.
    pub fn read_is_refused(&mut self, name: &RoomName, stamp: u64, now: Instant) {
        let Some(room) = self.rooms.get_mut(name).filter(|room| room.has_interest()) else {
            return;
        };
        if room.awaits == stamp {
            room.awaits = 0;
        }
        let askers = mem::take(&mut room.askers);
        self.asking -= askers.len();
        self.answered.extend(askers.into_iter().map(|(asker, _)| (asker, None)));
        self.forget_if_idle(name);
        self.is_refused(name, now);
    }

    /// Tries again what was refused in a room, if it is time.
    fn tries_again(&mut self, name: &RoomName, now: Instant) {
        let Some(room) = self.rooms.get_mut(name) else { return };
        if room.retries_at.take_if(|at| *at <= now).is_some() {
            room.is_changed = true;
            self.reads.insert((name.clone(), None));
            self.queues(name);
        }
    }
}

/// The pause after one more refusal.
pub(super) fn pause(refusals: &mut u32) -> Duration {
    let pause = RETRY * (1 << (*refusals).min(3));
    *refusals += 1;
    pause
}
