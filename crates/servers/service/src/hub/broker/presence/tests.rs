//! Nodes at one broker, without sockets: seeded histories in which connections are cut and stall, nodes die, the broker
//! loses everything or its last seconds, and notes are lost, come twice or come late. After 15 s without faults each node
//! must know who is where, and so must each member. Planted mistakes show that the checker finds them.

use super::{
    living::LIVES,
    machine::{Command, Fault, Machine},
    room::Notice,
    state::State,
};
use crate::hub::census::Person;
use regatta_engine::{RoomName, Ticket, simulator::Random};
use regatta_testkit::{by_tier, histories};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    iter,
    sync::Arc,
    time::{Duration, Instant},
};

const NODES: usize = 3;
const ROOMS: [&str; 3] = ["", "red", "blue"];
const STEPS: usize = 300;
/// After so long without faults everything is right.
const QUIET: Duration = Duration::from_secs(15);
/// How much longer it may take after the clock of the broker was set.
const UNHEARD: Duration = Duration::from_secs(3);
const HOUR: Duration = Duration::from_secs(3_600);
/// How much longer it takes after the broker has refused something.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long a backend may wait: 2 s, and until the next step.
const PATIENCE: Duration = Duration::from_millis(2_900);

/// What a member knows.
#[derive(Clone, Debug, Default)]
struct Member {
    name: String,
    awaits_list: bool,
    count: usize,
    names: BTreeMap<String, i64>,
}

/// What is on its way to a node.
enum Answer {
    Begun(u64),
    Kept(u64, bool),
    Checked(Vec<(u64, u64)>, Instant, Vec<bool>),
    Read(RoomName, u64, Vec<(u64, u64, String)>),
    ReadOf(RoomName, u64, (u64, u64), Option<String>),
    Written(RoomName, u64),
    Refused(Command),
    Note(String),
}

struct Node {
    number: u64,
    machine: Machine,
    rooms: BTreeMap<RoomName, BTreeMap<usize, Member>>,
    changed: BTreeSet<RoomName>,
    next: usize,
    is_up: bool,
    is_stalled: bool,
    /// Its process is stopped until then.
    stopped_until: Instant,
    sent: VecDeque<Command>,
    /// When its rooms were written.
    written: BTreeMap<RoomName, Vec<Instant>>,
    /// How many commands of each kind it has sent.
    commands: BTreeMap<&'static str, usize>,
    /// The newest versions that it has had of others.
    versions: BTreeMap<(RoomName, u64), u64>,
    coming: VecDeque<Answer>,
    /// When backends have asked, and how many members they were answered.
    asked: BTreeMap<u64, Instant>,
    answers: BTreeMap<u64, Option<usize>>,
}

/// What the broker keeps.
#[derive(Clone, Default)]
struct Broker {
    lives: BTreeMap<(u64, u64), Instant>,
    rooms: BTreeMap<RoomName, Hash>,
}

/// The members of a room, as the broker keeps them.
#[derive(Clone, Default)]
struct Hash {
    fields: BTreeMap<(u64, u64), String>,
    expires: bool,
}

struct World {
    random: Random,
    now: Instant,
    nodes: Vec<Node>,
    broker: Broker,
    /// It some time ago.
    replica: Broker,
    /// How far its clock is ahead. It may be set.
    ahead: Duration,
    was_set: bool,
    /// The newest notes.
    notes: VecDeque<String>,
    count: usize,
    /// The broker refuses some commands, and has done so.
    refuses: bool,
    has_refused: bool,
    fault: Fault,
}

impl Node {
    fn new(number: u64, fault: Fault, now: Instant) -> Node {
        let mut machine = Machine::new(number, now);
        machine.fault = fault;
        Node {
            number,
            machine,
            rooms: BTreeMap::new(),
            changed: BTreeSet::new(),
            next: 0,
            is_up: false,
            is_stalled: false,
            stopped_until: now,
            sent: VecDeque::new(),
            written: BTreeMap::new(),
            commands: BTreeMap::new(),
            versions: BTreeMap::new(),
            coming: VecDeque::new(),
            asked: BTreeMap::new(),
            answers: BTreeMap::new(),
        }
    }

    /// A backend asks for the members of a room.
    fn asks(&mut self, room: &RoomName, count: u64, now: Instant) {
        self.asked.insert(count, now);
        self.machine.ask(room, Ticket { core: 0, count }, now);
        self.notifies();
    }

    /// Members and backends get what they must get.
    fn notifies(&mut self) {
        let answered = self.machine.take_answered();
        for (Ticket { count, .. }, room) in &answered {
            assert!(self.asked.remove(count).is_some(), "it is answered once");
            let others = room.as_ref().map(|room| {
                let own = self.rooms.get(room).map_or(0, BTreeMap::len);
                own + self.machine.others(room).map(|(_, state)| state.count).sum::<usize>()
            });
            self.answers.insert(*count, others);
        }
        answered
            .iter()
            .filter_map(|(_, room)| room.as_ref())
            .for_each(|room| self.machine.tidy(room));
        for (room, notice) in self.machine.take_notices() {
            let Some(members) = self.rooms.get_mut(&room) else { continue };
            members.iter_mut().for_each(|(number, member)| member.hears(*number, &notice));
        }
    }

    fn ticks(&mut self, now: Instant) {
        if self.machine.due() <= now {
            for room in std::mem::take(&mut self.changed) {
                let members = self.rooms.get(&room).cloned().unwrap_or_default();
                let person = |(number, member): (&usize, &Member)| {
                    let name = Some((*member.name).into());
                    (*number, Arc::new(Person { name, ..Person::default() }))
                };
                let state =
                    State::of(members.len(), self.next, members.iter().map(person).collect());
                self.machine.changes(&room, state, now);
            }
            self.machine.tick(now);
        }
        self.notifies();
    }
}

impl Member {
    fn hears(&mut self, number: usize, notice: &Notice) {
        match notice {
            Notice::List { below, names, count } => {
                let is_for_it =
                    below.map_or(!self.awaits_list, |below| self.awaits_list && number < below);
                if is_for_it {
                    (self.awaits_list, self.count) = (false, *count);
                    self.names.clear();
                    names
                        .iter()
                        .for_each(|name| *self.names.entry(name.to_string()).or_default() += 1);
                }
            }
            Notice::Event { event, count, .. } if !self.awaits_list => {
                self.count = *count;
                if let Some(name) = event.name() {
                    *self.names.entry(name.to_string()).or_default() += event.change.step();
                }
            }
            Notice::Event { .. } | Notice::Events { .. } => {}
        }
    }
}

impl World {
    fn new(seed: u64, fault: Fault) -> World {
        let now = Instant::now();
        World {
            random: Random::new(seed),
            now,
            nodes: (0..NODES as u64).map(|number| Node::new(number + 1, fault, now)).collect(),
            broker: Broker::default(),
            replica: Broker::default(),
            ahead: HOUR,
            was_set: false,
            notes: VecDeque::new(),
            count: 10,
            refuses: false,
            has_refused: false,
            fault,
        }
    }

    // ---- the broker ----

    fn carries_out(&mut self, at: Option<usize>, command: Command) {
        let now = self.now + self.ahead;
        let number = at.map(|at| self.nodes[at].number);
        self.broker.lives.retain(|_, until| now < *until);
        if self.refuses && self.random.chance(300) {
            self.has_refused = true;
            return match (command, at) {
                (command, Some(at))
                    if self.random.chance(500) || !matches!(command, Command::Write(_)) =>
                {
                    self.nodes[at].coming.push_back(Answer::Refused(command));
                }
                // Only its first part is.
                (Command::Write(write), Some(at)) => {
                    self.publishes(write.note.clone());
                    self.nodes[at].coming.push_back(Answer::Refused(Command::Write(write)));
                }
                _ => {}
            };
        }
        let Broker { lives, rooms } = &mut self.broker;
        let answer = match command {
            Command::Begin { life } => {
                lives.extend(number.map(|node| ((node, life), now + LIVES)));
                Answer::Begun(life)
            }
            Command::Keep { life } => {
                let key = number.and_then(|node| lives.get_mut(&(node, life)));
                let is_there = key.map(|until| *until = now + LIVES).is_some();
                Answer::Kept(life, is_there)
            }
            Command::Check(of, asked) => {
                let lasts = of.iter().map(|one| lives.contains_key(one)).collect();
                Answer::Checked(of, asked, lasts)
            }
            Command::Write(write) => {
                let node = number.unwrap_or_default();
                let key = (node, write.life);
                let room = rooms.entry(write.room.clone()).or_default();
                match write.value {
                    Some(value) => {
                        room.fields.insert(key, value);
                        room.expires = true;
                    }
                    None => drop(room.fields.remove(&key)),
                }
                rooms.retain(|_, room| !room.fields.is_empty());
                if let Some(at) = at {
                    self.nodes[at].coming.push_back(Answer::Written(write.room, write.number));
                }
                return self.publishes(write.note);
            }
            Command::Publish(note) => return self.publishes(note),
            Command::Read { room, stamp } => {
                let all = rooms.get(&room).into_iter().flat_map(|room| &room.fields);
                let all = all.map(|((node, life), value)| (*node, *life, value.clone()));
                Answer::Read(room.clone(), stamp, all.collect())
            }
            Command::ReadOf { room, node, life, stamp } => {
                let fields = rooms.get(&room).map(|room| &room.fields);
                let value = fields.and_then(|fields| fields.get(&(node, life)).cloned());
                Answer::ReadOf(room, stamp, (node, life), value)
            }
            Command::Remove { room, node, life } => {
                rooms.entry(room).or_default().fields.remove(&(node, life));
                rooms.retain(|_, room| !room.fields.is_empty());
                return;
            }
        };
        if let Some(at) = at {
            self.nodes[at].coming.push_back(answer);
        }
    }

    fn publishes(&mut self, note: String) {
        for node in self.nodes.iter_mut().filter(|node| node.is_up) {
            node.coming.push_back(Answer::Note(note.clone()));
        }
        self.notes.push_back(note);
        if self.notes.len() > 30 {
            self.notes.pop_front();
        }
    }

    // ---- nodes ----

    fn turns(&mut self, at: usize, all: bool) {
        if self.now < self.nodes[at].stopped_until {
            return;
        }
        self.nodes[at].ticks(self.now);
        let (now, most) = (self.now, if all { usize::MAX } else { self.random.below(6) });
        let node = &mut self.nodes[at];
        while node.is_up
            && node.sent.len() < most.min(40)
            && let Some(command) = node.machine.next_command(now)
        {
            *node.commands.entry(kind(&command)).or_default() += 1;
            if let Command::Write(write) = &command {
                node.written.entry(write.room.clone()).or_default().push(now);
            }
            node.sent.push_back(command);
        }
        if node.is_stalled || !node.is_up {
            return;
        }
        for _ in 0..most.min(node.sent.len()) {
            let command = self.nodes[at].sent.pop_front().unwrap();
            self.carries_out(Some(at), command);
        }
        for _ in 0..most.min(self.nodes[at].coming.len()) {
            let answer = self.nodes[at].coming.pop_front().unwrap();
            self.nodes[at].takes(answer, now);
        }
    }

    fn connects(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if !node.is_up {
            (node.is_up, node.is_stalled) = (true, false);
            node.machine.is_up(self.now);
        }
    }

    /// The connection of a node is lost. The broker has read some of what was on its way.
    fn cuts(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if !std::mem::take(&mut node.is_up) {
            return;
        }
        node.coming.clear();
        let sent = std::mem::take(&mut node.sent);
        node.machine.lose();
        let most = self.random.below(sent.len() + 1);
        sent.into_iter().take(most).for_each(|command| {
            self.carries_out(Some(at), command);
        });
        self.nodes[at].coming.clear();
        self.nodes[at].notifies();
    }

    fn cuts_all(&mut self) {
        (0..self.nodes.len()).for_each(|at| self.cuts(at));
    }

    fn dies(&mut self, at: usize) {
        self.cuts(at);
        self.count += 1;
        self.nodes[at] = Node::new(self.count as u64, self.fault, self.now);
    }

    // ---- members ----

    fn joins(&mut self, at: usize) {
        let room = RoomName::of(ROOMS[self.random.below(ROOMS.len())]);
        self.enters(at, room);
    }

    fn enters(&mut self, at: usize, room: RoomName) {
        self.count += 1;
        let node = &mut self.nodes[at];
        let name = format!("n{}", self.count);
        let member = Member { name, awaits_list: true, ..Member::default() };
        node.rooms.entry(room.clone()).or_default().insert(node.next, member);
        node.next += 1;
        node.changed.insert(room);
    }

    fn leaves(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let all = node
            .rooms
            .iter()
            .flat_map(|(room, all)| all.keys().map(|number| (room.clone(), *number)));
        let all: Vec<_> = all.collect();
        if all.is_empty() {
            return;
        }
        let (room, number) = all[self.random.below(all.len())].clone();
        node.rooms.get_mut(&room).unwrap().remove(&number);
        node.rooms.retain(|_, members| !members.is_empty());
        node.changed.insert(room);
    }

    // ---- history ----

    fn suffers(&mut self) {
        let at = self.random.below(NODES);
        match self.random.weighted(&[6, 4, 3, 3, 2, 2, 4, 3, 1, 2, 1]) {
            0 => self.cuts(at),
            1 => self.nodes[at].is_stalled = true,
            2 => self.dies(at),
            3 => self.replica = self.broker.clone(),
            4 => {
                self.cuts_all();
                self.broker = std::mem::take(&mut self.replica);
            }
            5 => {
                self.cuts_all();
                (self.broker, self.replica) = Default::default();
            }
            6 if !self.notes.is_empty() => {
                // A note comes again, and late.
                let note = self.notes[self.random.below(self.notes.len())].clone();
                self.nodes[at].coming.push_back(Answer::Note(note));
            }
            7 => {
                let notes = |one: &Answer| matches!(one, Answer::Note(_));
                let coming = &mut self.nodes[at].coming;
                if let Some(lost) = coming.iter().position(notes) {
                    coming.remove(lost);
                }
            }
            9 => {
                let stopped = Duration::from_millis(self.random.magnitude(1, 20_000));
                self.nodes[at].stopped_until = self.now + stopped;
            }
            10 => {
                let by = Duration::from_millis(self.random.magnitude(1, 600_000));
                self.ahead = if self.random.chance(500) { self.ahead + by } else { HOUR - by };
                self.was_set = true;
            }
            8 => self.refuses = self.fault == Fault::None && !self.refuses,
            _ => {}
        }
    }

    fn step(&mut self) -> Result<(), String> {
        let at = self.random.below(NODES);
        match self.random.weighted(&[20, 18, 40, 10, 8, 5, 5]) {
            0 => self.joins(at),
            1 => self.leaves(at),
            2 => {
                self.now += Duration::from_millis(self.random.magnitude(1, 400));
                (0..NODES).for_each(|at| self.turns(at, false));
            }
            3 if self.nodes[at].is_stalled => self.cuts(at),
            3 => self.connects(at),
            4 => self.suffers(),
            5 => {
                self.count += 1;
                let room = RoomName::of(ROOMS[self.random.below(ROOMS.len())]);
                self.nodes[at].asks(&room, self.count as u64, self.now);
            }
            _ => (0..NODES).for_each(|at| self.turns(at, true)),
        }
        let is_late = |node: &&Node| {
            let late = |at: &Instant| *at.max(&node.stopped_until) + PATIENCE < self.now;
            node.asked.values().any(late)
        };
        if let Some(node) = self.nodes.iter().find(is_late) {
            return Err(format!("a backend waits for an answer of {}", node.number));
        }
        self.nodes.iter_mut().try_for_each(Node::goes_forward)
    }

    /// Nothing bad happens for so long, and nodes connect once they may.
    fn runs(&mut self, time: Duration, may_connect: impl Fn((usize, Instant)) -> bool) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_millis(20);
            for at in 0..self.nodes.len() {
                if may_connect((at, self.now)) {
                    self.connects(at);
                }
                self.turns(at, true);
            }
        }
    }

    /// Nothing bad happens any longer.
    fn settles(&mut self) -> Result<(), String> {
        self.refuses = false;
        let quiet = if self.was_set { QUIET + UNHEARD } else { QUIET };
        let is_late = self.has_refused || self.nodes.iter().any(|node| node.machine.refusals > 0);
        let end = self.now + if is_late { quiet + LONGEST_PAUSE } else { quiet };
        for at in 0..self.nodes.len() {
            self.nodes[at].stopped_until = self.now;
            if self.nodes[at].is_stalled {
                self.cuts(at);
            }
        }
        let mut back: Vec<Instant> = Vec::new();
        (0..self.nodes.len()).for_each(|_| {
            back.push(self.now + Duration::from_millis(self.random.magnitude(1, 2_000)))
        });
        self.runs(end - self.now, |(at, now)| back[at] <= now);
        self.agrees()?;
        self.backends_agree()
    }

    /// Whether all backends are answered the truth.
    fn backends_agree(&mut self) -> Result<(), String> {
        for (room, name) in ROOMS.map(RoomName::of).iter().zip(ROOMS) {
            let here = |node: &Node| node.rooms.get(room).map_or(0, BTreeMap::len);
            let truth: usize = self.nodes.iter().map(here).sum();
            self.count += 2;
            // Two at once.
            let counts = [self.count as u64 - 1, self.count as u64];
            for node in &mut self.nodes {
                counts.iter().for_each(|count| node.asks(room, *count, self.now));
            }
            for _ in 0..5 {
                (0..self.nodes.len()).for_each(|at| self.turns(at, true));
            }
            for node in &self.nodes {
                let answer = counts.map(|count| node.answers.get(&count).copied().flatten());
                if answer != [Some(truth); 2] {
                    return Err(format!(
                        "{} answers {answer:?} for {truth} in {name}",
                        node.number
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether everybody knows the truth.
    fn agrees(&self) -> Result<(), String> {
        for room in ROOMS.map(RoomName::of) {
            let all = self
                .nodes
                .iter()
                .filter_map(|node| node.rooms.get(&room))
                .flat_map(BTreeMap::values);
            let truth: BTreeSet<&str> = all.map(|member| &*member.name).collect();
            for node in &self.nodes {
                let own = node.rooms.get(&room);
                let others: usize = node.machine.others(&room).map(|(_, state)| state.count).sum();
                let (number, here) = (node.number, own.map_or(0, BTreeMap::len));
                if here > 0 && here + others != truth.len() {
                    let truth = truth.len();
                    return Err(format!("{number} knows {here} + {others} of {truth} in {room:?}"));
                }
                for member in own.into_iter().flat_map(BTreeMap::values) {
                    let known = member.names.iter().filter(|(_, times)| **times != 0);
                    let is_once = known.clone().all(|(_, times)| *times == 1);
                    let known: BTreeSet<&str> = known.map(|(name, _)| &**name).collect();
                    if member.awaits_list
                        || member.count != truth.len()
                        || known != truth
                        || !is_once
                    {
                        return Err(format!("{number}: {member:?}, but {truth:?} are in {room:?}"));
                    }
                }
            }
        }
        // The hash of a room that is left must not stay for ever.
        if let Some((room, _)) = self.broker.rooms.iter().find(|(_, room)| !room.expires) {
            return Err(format!("{room:?} does not expire"));
        }
        self.writes_are_few()
    }

    fn writes_are_few(&self) -> Result<(), String> {
        for (of, times) in self.nodes.iter().flat_map(|node| &node.written) {
            // A room that was left and is entered again may be written once more.
            if times.windows(12).any(|all| all[11] - all[0] < Duration::from_secs(1)) {
                return Err(format!("{of:?} is written more than 11 times in a second"));
            }
        }
        Ok(())
    }
}

impl Node {
    /// What it knows of another node is never older than what it knew before.
    fn goes_forward(&mut self) -> Result<(), String> {
        let mut versions = BTreeMap::new();
        for room in ROOMS.map(RoomName::of) {
            for (node, state) in self.machine.others(&room) {
                versions.insert((room.clone(), node), state.version);
            }
        }
        for (of, version) in &versions {
            if self.versions.get(of).is_some_and(|before| before > version) {
                return Err(format!("{} goes back to {version} of {of:?}", self.number));
            }
        }
        self.versions = versions;
        Ok(())
    }

    fn takes(&mut self, answer: Answer, now: Instant) {
        let machine = &mut self.machine;
        match answer {
            Answer::Begun(life) => machine.has_begun(life, now),
            Answer::Kept(life, is_there) => {
                machine.is_kept(life, is_there, now);
            }
            Answer::Written(room, number) => machine.has_written(&room, number),
            Answer::Refused(Command::Begin { life } | Command::Keep { life }) => {
                machine.life_is_refused(life, now);
            }
            Answer::Refused(
                Command::Read { room, stamp } | Command::ReadOf { room, stamp, .. },
            ) => {
                machine.has_read(0);
                machine.read_is_refused(&room, stamp, now);
            }
            Answer::Refused(Command::Write(write)) => machine.is_refused(&write.room, now),
            Answer::Refused(_) => {}
            Answer::Checked(of, asked, lasts) => machine.has_checked((&of, asked), &lasts, now),
            Answer::Read(room, stamp, all) => {
                machine.has_read(0);
                let all: Vec<_> = all
                    .iter()
                    .map(|(node, life, value)| (*node, *life, value.as_bytes()))
                    .collect();
                machine.has_read_all(&room, stamp, &all, now);
            }
            Answer::ReadOf(room, stamp, of, value) => {
                machine.has_read(0);
                let value = value.as_deref().map(str::as_bytes);
                machine.has_read_of((&room, stamp), of, value, now);
            }
            Answer::Note(note) => machine.hears(note.as_bytes(), now),
        }
        self.notifies();
    }
}

fn kind(command: &Command) -> &'static str {
    match command {
        Command::Begin { .. } => "begin",
        Command::Keep { .. } => "keep",
        Command::Check(..) => "check",
        Command::Write(_) => "write",
        Command::Publish(_) => "publish",
        Command::Read { .. } => "read",
        Command::ReadOf { .. } => "read of",
        Command::Remove { .. } => "remove",
    }
}

fn play(fault: Fault) -> impl Fn(u64, &mut ()) -> Result<(), String> {
    move |seed, ()| {
        let mut world = World::new(seed, fault);
        (0..STEPS).try_for_each(|_| world.step()).and_then(|()| world.settles())
    }
}

#[test]
fn after_15_seconds_all_nodes_and_members_know_who_is_where() {
    histories::check("SIMULATION_SEED", by_tier(300, 100_000), play(Fault::None));
}

#[test]
fn planted_mistakes_are_found() {
    use Fault::{AppliesTwice, KeepsDead, LosesLast, NotAnew, StaleRead};
    for fault in [KeepsDead, AppliesTwice, LosesLast, NotAnew, StaleRead] {
        histories::find(fault, by_tier(300, 10_000), play(fault));
    }
}

#[test]
fn a_backend_waits_until_the_members_of_all_nodes_are_known() {
    let mut world = World::new(1, Fault::None);
    let now = world.now;
    world.nodes[0].asks(&RoomName::LOBBY, 1, now);
    assert_eq!(world.nodes[0].answers[&1], None, "not connected");
    (0..NODES).for_each(|at| world.connects(at));
    for at in [1, 1, 2] {
        world.joins(at);
    }
    let rooms: Vec<RoomName> = world.nodes[1].rooms.keys().cloned().collect();
    world.runs(Duration::from_millis(400), |_| true);
    world.nodes[0].asks(&rooms[0], 2, world.now);
    assert!(!world.nodes[0].answers.contains_key(&2), "nothing is known yet");
    for _ in 0..2 {
        (0..NODES).for_each(|at| world.turns(at, true));
    }
    let here = |at: usize| world.nodes[at].rooms.get(&rooms[0]).map_or(0, BTreeMap::len);
    assert_eq!(world.nodes[0].answers[&2], Some(here(1) + here(2)));
    world.nodes[0].asks(&rooms[0], 3, world.now);
    world.cuts(0);
    assert_eq!(world.nodes[0].answers[&3], None);
}

/// All nodes have members in all rooms, and lose the broker, which forgets everything. They come back one after the other.
#[test]
fn after_a_reconnect_each_room_is_written_once_and_read_at_most_twice() {
    const ALL: usize = 6;
    const MANY: usize = 200;
    let mut world = World::new(1, Fault::None);
    let now = world.now;
    world.nodes = (1..=ALL as u64).map(|number| Node::new(number, Fault::None, now)).collect();
    let rooms: Vec<RoomName> = (0..MANY).map(|n| RoomName::of(&format!("r{n}"))).collect();
    for (at, room) in (0..ALL).flat_map(|at| rooms.iter().map(move |room| (at, room))) {
        world.enters(at, room.clone());
    }
    world.runs(Duration::from_secs(15), |_| true);
    // Changes that nobody hears of.
    for (at, room) in (0..ALL).flat_map(|at| rooms[..9].iter().map(move |room| (at, room))) {
        world.enters(at, room.clone());
    }
    world.now += Duration::from_millis(100);
    for at in 0..ALL {
        world.nodes[at].ticks(world.now);
        while world.nodes[at].machine.next_command(world.now).is_some() {}
    }
    world.cuts_all();
    world.broker = Broker::default();
    world.nodes.iter_mut().for_each(|node| node.commands.clear());
    let start = world.now;
    world.runs(QUIET, |(at, now)| now >= start + Duration::from_millis(400) * at as u32);
    for node in &world.nodes {
        let count = |kind: &str| node.commands.get(kind).copied().unwrap_or(0);
        let all = format!("{}: {:?}", node.number, node.commands);
        assert_eq!((count("begin"), count("write"), count("remove")), (1, MANY, 0), "{all}");
        assert!((MANY..=2 * MANY).contains(&count("read")) && count("read of") <= MANY, "{all}");
        for (at, room) in rooms.iter().enumerate() {
            let others: usize = node.machine.others(room).map(|(_, state)| state.count).sum();
            assert_eq!(others, (ALL - 1) * if at < 9 { 2 } else { 1 }, "{all}");
        }
    }
}

#[test]
fn what_no_hub_has_sent_is_ignored_and_counted() {
    let now = Instant::now();
    let mut machine = Machine::new(1, now);
    machine.is_up(now);
    machine.has_begun(1, now);
    machine.hears(b"?", now);
    machine.changes(&RoomName::LOBBY, State::of(1, 1, Vec::new()), now);
    let mut commands = iter::from_fn(|| machine.next_command(now));
    let stamp = commands.find_map(|one| match one {
        Command::Read { stamp, .. } => Some(stamp),
        _ => None,
    });
    machine.has_read_all(&RoomName::LOBBY, stamp.unwrap(), &[(2, 1, b"?")], now);
    assert_eq!(machine.take_counts(), [2, 0]);
    assert_eq!(machine.others(&RoomName::LOBBY).count(), 0);
}
