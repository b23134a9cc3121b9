//! Three hubs of two cores each, and one broker.

use super::{
    cable::{Cable, Fate},
    judge::Judge,
    planted::{Fault, Planted},
    redis::Redis,
};
use crate::{history::simulation::frame, hub::OPENING};
use regatta_engine::{Conn, Core, Engine, Limits, Next, Now, Sessions, simulator::Random};
use regatta_proto::websocket::Frame;
use regatta_service::hub::{Broker, Hub, Place, Settings};
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
    cores: [Core<Joined>; 2],
    mail: [VecDeque<Letter>; 2],
    cable: Option<Cable>,
}

struct Member {
    judge: Judge,
    place: Option<(usize, usize, Conn)>,
    bytes: Vec<u8>,
    is_open: bool,
}

struct World {
    random: Random,
    now: Now,
    redis: Redis,
    is_down: bool,
    /// Connections that hubs have dropped, with what the broker has not read yet.
    late: Vec<(usize, Vec<u8>)>,
    nodes: Vec<Node>,
    members: Vec<Member>,
    fault: Fault,
    /// Of connections at the broker, and of messages.
    count: usize,
    /// What the members had seen that are gone.
    seen: [usize; 5],
}

/// The only server.
struct Simulated;

impl Place for Simulated {
    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 6379))])
    }
}

fn node(number: u64, fault: Fault, now: Now) -> Node {
    let broker = Broker {
        name: "simulated".to_owned(),
        place: Arc::new(Simulated),
        user: None,
        password: None,
        prefix: "x".to_owned(),
        node: number,
        secret: number ^ 0x5555_5555,
        health: Arc::default(),
    };
    let broker = Some(Arc::new(broker));
    let hub = Hub::new(Settings { ping: None, broker, ..Settings::default() });
    let hour = Duration::from_secs(3_600);
    let limits = Limits { idle: 99 * hour, request: 99 * hour };
    let cores = [0, 1].map(|own| {
        let link = hub.broker_link().map(|link| Planted { link, fault, is_up: false });
        let mut core = Core::new(Sessions::with_uplink(hub.clone(), link), limits, now);
        core.set_core(own, 2);
        core
    });
    Node { cores, mail: Default::default(), cable: None }
}

impl World {
    fn new(seed: u64, fault: Fault) -> World {
        let mut random = Random::new(seed);
        let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
        let redis = Redis::new(random.chance(500));
        let member =
            |_| Member { judge: Judge::default(), place: None, bytes: Vec::new(), is_open: false };
        World {
            nodes: (0..HUBS as u64)
                .map(|number| node(seed * 99 + number + 1, fault, now))
                .collect(),
            members: (0..MEMBERS).map(member).collect(),
            is_down: false,
            late: Vec::new(),
            count: 1000,
            seen: [0; 5],
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
        let Node { cores, mail, cable } = &mut nodes[at];
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
        match self.random.weighted(&[5, 4, 6, 3, 2, 2]) {
            0 => self.cuts(at),
            1 => self.becomes(at, Fate::Stalled),
            2 => self.becomes(at, Fate::Works),
            3 => self.becomes(at, Fate::HalfOpen),
            4 => {
                self.is_down = !self.is_down;
                if self.is_down {
                    (0..HUBS).for_each(|at| self.cuts(at));
                    self.reads_late(false);
                }
            }
            _ => self.dies(at),
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
        self.nodes[at] = node(self.count as u64 * 1_000_003, self.fault, self.now);
        for who in 0..MEMBERS {
            if self.members[who].place.is_some_and(|(node, ..)| node == at) {
                self.members[who].place = None;
            }
        }
    }

    // ---- members ----

    fn joins(&mut self, who: usize) {
        let (at, own) = (self.random.below(HUBS), self.random.below(2));
        let member = &mut self.members[who];
        let Judge { messages, gaps, outcomes, .. } = &member.judge;
        let seen = [*messages, *gaps, outcomes[0], outcomes[1], outcomes[2]];
        self.seen.iter_mut().zip(seen).for_each(|(sum, seen)| *sum += seen);
        let room = ROOMS[who % 2];
        member.judge = Judge::new(room);
        (member.bytes, member.is_open) = (Vec::new(), false);
        let core = &mut self.nodes[at].cores[own];
        let conn = core.accept();
        member.place = Some((at, own, conn));
        let path = if room.is_empty() { "/ws ".to_owned() } else { format!("/ws/{room} ") };
        let opening = String::from_utf8(OPENING.to_vec()).unwrap().replace("/ws ", &path);
        core.received(conn, &mut opening.into_bytes());
        self.members[who].judge.joins(&self.redis);
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
        let Member { judge, bytes, is_open, .. } = &mut self.members[who];
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
            judge
                .hears(text, self.now.instant, &self.redis)
                .map_err(|why| format!("member {who}: {why}"))?;
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
        self.reads_late(true);
        for at in 0..HUBS {
            (0..3).for_each(|_| self.turns(at, true));
        }
        (0..MEMBERS).try_for_each(|who| self.reads(who))
    }

    /// Nothing bad happens any longer, and everything arrives.
    fn settles(&mut self) -> Result<(), String> {
        self.is_down = false;
        self.reads_late(false);
        (0..HUBS).for_each(|at| self.becomes(at, Fate::Works));
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
fn play(seed: u64, fault: Fault) -> Result<[usize; 5], String> {
    let mut world = World::new(seed, fault);
    (0..STEPS).try_for_each(|_| world.step()).and_then(|()| world.settles())?;
    for who in 0..MEMBERS {
        world.joins(who);
    }
    Ok(world.seen)
}

#[test]
fn members_get_every_message_once_and_in_one_order_or_a_gap() {
    let one = env::var("SIMULATION_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let mut all = [0; 5];
    for seed in one.map_or(0..by_tier(200, 20_000), |one| one..one + 1) {
        match play(seed, Fault::None) {
            Ok(seen) => all.iter_mut().zip(seen).for_each(|(sum, seen)| *sum += seen),
            Err(why) => panic!("SIMULATION_SEED={seed}: {why}"),
        }
    }
    assert!(one.is_some() || all.iter().all(|seen| *seen > 20), "{all:?}");
}

#[test]
fn planted_faults_are_found() {
    for fault in
        [Fault::SilentGap, Fault::NoHeartbeat, Fault::TwoOrders, Fault::Doubled, Fault::Optimistic]
    {
        let found = (0..by_tier(300, 10_000)).find(|seed| play(*seed, fault).is_err());
        assert!(found.is_some(), "{fault:?} is not found");
    }
}
