//! Three hubs of two cores each, and one broker.

use super::{
    cable::{Cable, Fate},
    judge::{Judge, Judging},
    planted::{Fault, Planted},
    recovery::Recovering,
    redis::Redis,
};
use crate::{history::simulation::frame, hub::OPENING};
use regatta_engine::{Conn, Core, Engine, Limits, Next, Now, Sessions, simulator::Random};
use regatta_proto::websocket::Frame;
use regatta_service::hub::{Broker, HistoryLimits, Hub, Settings};
use regatta_testkit::by_tier;
use std::{
    collections::VecDeque,
    env,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

type Joined = Sessions<Hub, Planted>;
type Letter = <Joined as Engine>::Letter;

const HUBS: usize = 3;
const MEMBERS: usize = 6;
const STEPS: usize = 160;
const ROOMS: [&str; 2] = ["", "blue"];

struct Node {
    hub: Hub,
    cores: [Core<Joined>; 2],
    mail: [VecDeque<Letter>; 2],
    cable: Option<Cable>,
}

struct Member<J> {
    judge: J,
    place: Option<(usize, usize, Conn)>,
    bytes: Vec<u8>,
    is_open: bool,
    /// The next message is the first one behind a position that it has named.
    is_recovered: bool,
}

struct World<J> {
    random: Random,
    now: Now,
    redis: Redis,
    is_down: bool,
    /// Connections that hubs have dropped, with what the broker has not read yet.
    late: Vec<(usize, Vec<u8>)>,
    nodes: Vec<Node>,
    members: Vec<Member<J>>,
    fault: Fault,
    is_mixed: bool,
    /// Members join the first ones.
    open_hubs: usize,
    /// Of connections at the broker, and of messages.
    count: usize,
    /// Bad things may also happen to what the broker stores.
    loses: bool,
}

fn node(number: u64, keeps: usize, fault: Fault, now: Now) -> Node {
    let broker = Broker {
        name: "simulated".to_owned(),
        address: Arc::new(|| Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 6379)))),
        user: None,
        password: None,
        prefix: "x".to_owned(),
        node: number,
        secret: number ^ 0x5555_5555,
        health: Arc::default(),
    };
    let broker = Some(Arc::new(broker));
    let hub = Hub::new(Settings { broker, ..settings(keeps) });
    let hour = Duration::from_secs(3_600);
    let limits = Limits { idle: 99 * hour, request: 99 * hour };
    let cores = [0, 1].map(|own| {
        let link = hub.broker_link().map(|link| Planted { link, fault, is_up: false });
        let mut core = Core::new(Sessions::with_uplink(hub.clone(), link), limits, now);
        core.set_core(own, 2);
        core
    });
    Node { hub, cores, mail: Default::default(), cable: None }
}

fn settings(keeps: usize) -> Settings {
    let mut settings = Settings { ping: None, ..Settings::default() };
    settings.limits.history = HistoryLimits { messages: keeps, ..HistoryLimits::NONE };
    settings
}

impl<J: Judging> World<J> {
    fn new(seed: u64, fault: Fault, loses: bool) -> World<J> {
        let mut random = Random::new(seed);
        let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
        let mut redis = Redis::new(random.chance(500));
        redis.process.now = 1_000_000;
        redis.keeps_reign = fault == Fault::EpochKept;
        redis.hides_holes = fault == Fault::HoleIgnored;
        redis.hides_reign = fault == Fault::HoleIgnored || random.chance(500);
        // In some simulations one hub keeps no history.
        let is_mixed = fault == Fault::HoleIgnored || loses && seed % 4 == 1;
        let keeps = |number| if is_mixed && number == 2 { 0 } else { J::KEEPS };
        let member = |_| Member {
            judge: J::default(),
            place: None,
            bytes: Vec::new(),
            is_open: false,
            is_recovered: false,
        };
        World {
            nodes: (0..HUBS as u64)
                .map(|number| node(seed * 99 + number + 1, keeps(number), fault, now))
                .collect(),
            members: (0..MEMBERS).map(member).collect(),
            is_down: false,
            late: Vec::new(),
            count: 1000,
            loses,
            is_mixed,
            open_hubs: HUBS,
            random,
            now,
            redis,
            fault,
        }
    }

    // ---- hubs ----

    /// The loops of a hub run: letters, timers, and its connection to the broker.
    fn turns(&mut self, at: usize, all: bool) {
        let World { nodes, redis, random, now, is_down, count, late, .. } = self;
        let Node { cores, mail, cable, .. } = &mut nodes[at];
        for own in 0..2 {
            let core = &mut cores[own];
            core.turn(*now);
            for _ in 0..if all { mail[own].len() } else { random.below(4) } {
                mail[own].pop_front().into_iter().for_each(|letter| core.heard(letter));
            }
            if core.due().is_some_and(|due| due <= now.instant) {
                core.tick(&());
            }
        }
        let core = &mut cores[0];
        while let Some((conn, _)) = core.next_connect() {
            if *is_down {
                lose(core, conn);
            } else {
                *count += 1;
                let (number, to_broker) = (*count, Vec::new());
                *cable = Some(Cable { number, conn, fate: Fate::Works, is_open: false, to_broker });
            }
        }
        if let Some(one) = cable {
            if !one.is_open && one.fate != Fate::Stalled {
                one.is_open = true;
                redis.accepts(one.number);
                core.connected(one.conn);
            }
            let mut bytes = one.passes(redis, random, all);
            if !bytes.is_empty() {
                core.received(one.conn, &mut bytes);
            }
            loop {
                match core.next(one.conn, &()) {
                    Next::Write { .. } => {
                        let output = core.output(one.conn);
                        let length = output.len();
                        one.to_broker.extend_from_slice(output);
                        core.wrote(one.conn, length);
                    }
                    Next::Wait if core.has(one.conn) => break,
                    _ => {
                        core.closed(one.conn);
                        late.push((one.number, std::mem::take(&mut one.to_broker)));
                        *cable = None;
                        break;
                    }
                }
            }
        }
        for own in 0..2 {
            mail[1 - own].extend(cores[own].letters());
        }
    }

    /// The connection of a hub to the broker is lost, on both sides.
    fn cuts(&mut self, at: usize) {
        let Node { cores, cable, .. } = &mut self.nodes[at];
        if let Some(cable) = cable.take() {
            self.late.push((cable.number, cable.to_broker));
            lose(&mut cores[0], cable.conn);
        }
        self.turns(at, false);
    }

    /// The broker reads what was on its way on connections that are gone, or loses it.
    fn reads_late(&mut self, may_wait: bool) {
        for (number, bytes) in std::mem::take(&mut self.late) {
            if may_wait && self.random.chance(700) {
                self.late.push((number, bytes));
                continue;
            }
            if !self.is_down && self.random.chance(500) {
                self.redis.receives(number, &bytes);
            }
            self.redis.closes(number);
        }
    }

    fn suffers(&mut self) {
        let at = self.random.below(HUBS);
        match self.random.weighted(&[5, 4, 6, 3, 2, 2, 8]) {
            0 => self.cuts(at),
            1 => self.becomes(at, Fate::Stalled),
            2 => self.becomes(at, Fate::Works),
            3 => self.becomes(at, Fate::HalfOpen),
            4 => {
                self.is_down = !self.is_down;
                if self.is_down {
                    self.stops();
                }
            }
            5 => self.dies(at),
            _ if self.loses => self.loses(),
            _ => {}
        }
    }

    /// The server ends.
    fn stops(&mut self) {
        (0..HUBS).for_each(|at| self.cuts(at));
        self.reads_late(false);
    }

    /// Something happens to what the broker stores.
    fn loses(&mut self) {
        match self.random.below(8) {
            0 | 1 => self.redis.saved = self.redis.stored.clone(),
            2 => self.redis.process.refuses = !self.redis.process.refuses,
            // A first replica is attached.
            3 => {
                self.redis.process.replid += 1;
                self.redis.process.was_promoted = false;
            }
            // Options change.
            4 | 5 => {
                let (at, keeps) = (self.random.below(2), self.random.below(2) * J::KEEPS);
                self.nodes[at].hub.reload(settings(keeps));
            }
            what => {
                self.stops();
                let has_all = self.random.chance(500);
                self.redis.restarts(has_all, what == 7);
            }
        }
    }

    fn becomes(&mut self, at: usize, fate: Fate) {
        if let Some(cable) = &mut self.nodes[at].cable
            && cable.fate != Fate::HalfOpen
        {
            cable.fate = fate;
        }
    }

    /// A hub dies, and another one takes its place.
    fn dies(&mut self, at: usize) {
        if let Some(cable) = self.nodes[at].cable.take() {
            self.late.push((cable.number, cable.to_broker));
        }
        self.count += 1;
        let keeps = if self.is_mixed && at == 2 { 0 } else { J::KEEPS };
        self.nodes[at] = node(self.count as u64 * 1_000_003, keeps, self.fault, self.now);
        for who in 0..MEMBERS {
            if self.members[who].place.is_some_and(|(node, ..)| node == at) {
                self.members[who].place = None;
            }
        }
    }

    // ---- members ----

    fn joins(&mut self, who: usize) {
        let (at, own) = (self.random.below(self.open_hubs), self.random.below(2));
        let member = &mut self.members[who];
        let room = ROOMS[who % 2];
        let query = member.judge.joins(room, &self.redis);
        (member.bytes, member.is_open) = (Vec::new(), false);
        let core = &mut self.nodes[at].cores[own];
        let conn = core.accept();
        member.place = Some((at, own, conn));
        let path = if room.is_empty() { "/ws".to_owned() } else { format!("/ws/{room}") };
        let path = format!("{path}{query} ");
        let opening = String::from_utf8(OPENING.to_vec()).unwrap().replace("/ws ", &path);
        core.received(conn, &mut opening.into_bytes());
        self.turns(at, false);
    }

    fn leaves(&mut self, who: usize) {
        let Some((at, own, conn)) = self.members[who].place.take() else { return };
        lose(&mut self.nodes[at].cores[own], conn);
        self.turns(at, false);
    }

    fn says(&mut self, who: usize) {
        let Some((at, own, conn)) = self.members[who].place else { return };
        let core = &mut self.nodes[at].cores[own];
        if !core.wants_read(conn) || !self.members[who].is_open {
            return;
        }
        self.count += 1;
        let payload = format!("[{who},{}]", self.count);
        let text = format!(r#"{{"type":"broadcast","payload":{payload}}}"#);
        self.members[who].judge.says(payload, self.now.instant);
        let mut bytes = Vec::new();
        Frame::text(text.as_bytes()).write_masked([1, 2, 3, 4], &mut bytes);
        core.received(conn, &mut bytes);
        self.turns(at, false);
    }

    fn reads(&mut self, who: usize) -> Result<(), String> {
        let Some((at, own, conn)) = self.members[who].place else { return Ok(()) };
        let core = &mut self.nodes[at].cores[own];
        let Member { judge, bytes, is_open, is_recovered, .. } = &mut self.members[who];
        loop {
            match core.next(conn, &()) {
                Next::Write { .. } => {
                    let length = core.output(conn).len();
                    bytes.extend_from_slice(core.output(conn));
                    core.wrote(conn, length);
                }
                Next::Wait => break,
                closed => return Err(format!("member {who} is closed: {closed:?}")),
            }
        }
        if !*is_open {
            let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
                return Ok(());
            };
            bytes.drain(..head + 4);
            *is_open = true;
        }
        let mut at = 0;
        while let Some((text, length)) = frame(&bytes[at..]) {
            at += length;
            for _ in 0..self.fault.times(text, is_recovered) {
                judge
                    .hears(text, self.now.instant, &mut self.redis)
                    .map_err(|why| format!("member {who}: {why}"))?;
            }
        }
        bytes.drain(..at);
        Ok(())
    }

    // ---- history ----

    fn step(&mut self) -> Result<(), String> {
        let (who, at) = (self.random.below(MEMBERS), self.random.below(HUBS));
        match self.random.weighted(&[40, 8, 60, 30, 30, 8]) {
            0 => self.says(who),
            1 if self.members[who].place.is_none() => self.joins(who),
            1 if self.random.chance(100) => self.leaves(who),
            2 => self.turns(at, false),
            3 => self.reads(who)?,
            4 => {
                let millis = self.random.magnitude(1, 700);
                self.passes(millis)?;
            }
            5 => self.suffers(),
            _ => {}
        }
        Ok(())
    }

    /// Time passes. All who have something to hear hear it: it is late only if the world is.
    fn passes(&mut self, millis: u64) -> Result<(), String> {
        self.now.instant += Duration::from_millis(millis);
        self.redis.process.now += millis;
        self.reads_late(true);
        for at in 0..HUBS {
            (0..3).for_each(|_| self.turns(at, true));
        }
        (0..MEMBERS).try_for_each(|who| self.reads(who))
    }

    /// Nothing bad happens any longer, and everything arrives.
    fn settles(&mut self) -> Result<(), String> {
        self.is_down = false;
        self.redis.process.refuses = false;
        for at in 0..HUBS {
            let keeps = if self.is_mixed && at == 2 { 0 } else { J::KEEPS };
            self.nodes[at].hub.reload(settings(keeps));
        }
        self.reads_late(false);
        (0..HUBS).for_each(|at| self.becomes(at, Fate::Works));
        if self.is_mixed && self.redis.hides_reign {
            // Every message of the hub without a history is a gap.
            self.open_hubs = 2;
            for who in 0..MEMBERS {
                if self.members[who].place.is_some_and(|(at, ..)| at == 2) {
                    self.leaves(who);
                }
            }
        }
        for round in [100, 3] {
            for _ in 0..round {
                self.passes(100)?;
            }
            for who in 0..MEMBERS {
                if self.members[who].place.is_none() {
                    self.joins(who);
                    self.reads(who)?;
                }
                self.says(who);
            }
            for _ in 0..8 {
                self.passes(10)?;
            }
        }
        self.members.iter().try_for_each(|member| member.judge.ends(&self.redis))
    }
}

/// A connection is lost.
fn lose(core: &mut Core<Joined>, conn: Conn) {
    core.failed(conn);
    while core.has(conn) && core.next(conn, &()) != Next::Close {}
    core.closed(conn);
}

/// Plays a history. Returns how many messages, gaps and outcomes there were.
fn play<J: Judging>(seed: u64, fault: Fault, loses: bool) -> Result<[usize; 5], String> {
    let mut world = World::<J>::new(seed, fault, loses);
    (0..STEPS).try_for_each(|_| world.step()).and_then(|()| world.settles())?;
    let mut all = [0; 5];
    for member in &world.members {
        all.iter_mut().zip(member.judge.seen()).for_each(|(sum, seen)| *sum += seen);
    }
    Ok(all)
}

/// Plays many.
fn play_all<J: Judging>(loses: bool) -> [usize; 5] {
    let one = env::var("SIMULATION_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let mut all = [0; 5];
    for seed in one.map_or(0..by_tier(200, 20_000), |one| one..one + 1) {
        match play::<J>(seed, Fault::None, loses) {
            Ok(seen) => all.iter_mut().zip(seen).for_each(|(sum, seen)| *sum += seen),
            Err(why) => panic!("SIMULATION_SEED={seed}: {why}"),
        }
    }
    assert!(one.is_some() || all[0] > 20 && all[2..].iter().all(|seen| *seen > 20), "{all:?}");
    all
}

fn is_found<J: Judging>(fault: Fault, loses: bool) {
    let found = (0..by_tier(300, 10_000)).find(|seed| play::<J>(*seed, fault, loses).is_err());
    assert!(found.is_some(), "{fault:?} is not found");
}

#[test]
fn members_get_every_message_once_and_in_one_order_or_a_gap() {
    assert!(play_all::<Judge>(false)[1] > 20);
}

#[test]
fn members_of_rooms_with_a_history_recover_at_any_hub_or_get_a_gap() {
    play_all::<Recovering>(true);
}

#[test]
fn while_the_broker_lives_lost_connections_cause_no_gap_that_the_history_can_fill() {
    let all = play_all::<Recovering>(false);
    assert!(all[1] * 50 < all[0], "{all:?}");
}

#[test]
fn planted_faults_are_found() {
    for fault in
        [Fault::SilentGap, Fault::NoHeartbeat, Fault::TwoOrders, Fault::Doubled, Fault::Optimistic]
    {
        is_found::<Judge>(fault, false);
    }
}

#[test]
fn planted_faults_of_histories_are_found() {
    for fault in [
        Fault::HiddenGap,
        Fault::NotMerged,
        Fault::RecoveredTwice,
        Fault::EpochKept,
        Fault::HoleIgnored,
    ] {
        is_found::<Recovering>(fault, true);
    }
}
