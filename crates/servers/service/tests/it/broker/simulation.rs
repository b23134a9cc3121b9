//! Three hubs of two cores each, and two servers, of which one is the broker at a time.

use super::{
    broker,
    cable::{Cable, Fate},
    clients::dialect::Dialect,
    judge::{Heard, Judge, Judging, Published, Servers},
    planted::{Fault, Planted},
    recovery::Recovering,
    redis::Redis,
};
use crate::{history::simulation::frame, hub::OPENING};
use regatta_engine::{Conn, Core, Engine, Limits, Next, Now, Sessions, simulator::Random};
use regatta_proto::websocket::Frame;
use regatta_service::hub::{HistoryLimits, Hub, Place, Settings};
use regatta_testkit::{
    by_tier,
    histories::{self, Counts},
};
use std::{
    collections::{BTreeMap, VecDeque},
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
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
    place: Arc<Simulated>,
    cores: [Core<Joined>; 2],
    mail: [VecDeque<Letter>; 2],
    cable: Option<Cable>,
}

struct Member<J> {
    judge: J,
    place: Option<(usize, usize, Conn)>,
    bytes: Vec<u8>,
    is_open: bool,
    /// It is a client of Centrifugo's protocol.
    client: Option<Dialect>,
    /// It does not read until then.
    sleeps_until: Option<Instant>,
    /// The next message is the first one behind a position that it has named.
    is_recovered: bool,
}

struct World<J> {
    random: Random,
    now: Now,
    servers: Servers,
    /// Which one is the broker. The other one may not know it.
    master: usize,
    is_down: [bool; 2],
    /// Connections that hubs have dropped: their server, their number there, and what it has not read yet.
    late: Vec<(usize, usize, Vec<u8>)>,
    published: Vec<Published>,
    nodes: Vec<Node>,
    members: Vec<Member<J>>,
    fault: Fault,
    is_mixed: bool,
    is_in_cluster: bool,
    /// Some members are clients of Centrifugo's protocol: see [`is_client`].
    has_clients: bool,
    /// Members join the first ones.
    open_hubs: usize,
    /// Of connections at the broker, and of messages.
    count: usize,
    /// Bad things may also happen to what the broker stores.
    loses: bool,
}

/// The server that a hub knows as the broker.
#[derive(Default)]
struct Simulated(AtomicUsize);

/// The ports of the servers follow this one.
const PORT: u16 = 6379;

impl Place for Simulated {
    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let port = PORT + self.0.load(Relaxed) as u16;
        Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))])
    }

    fn has_left(&self, address: SocketAddr) -> Option<String> {
        let is_other = usize::from(address.port() - PORT) != self.0.load(Relaxed);
        is_other.then(|| "there is another master".to_owned())
    }
}

/// `at`: the number of the master, and whether it is in a cluster.
fn node(number: u64, at: (usize, bool), keeps: usize, fault: Fault, now: Now) -> Node {
    let (master, is_in_cluster) = at;
    let place = Arc::new(Simulated(master.into()));
    let secret = number ^ 0x5555_5555;
    let broker = broker("simulated", Arc::clone(&place) as _, is_in_cluster, number, secret);
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
    Node { hub, place, cores, mail: Default::default(), cable: None }
}

fn settings(keeps: usize) -> Settings {
    let mut settings = Settings { ping: None, centrifuge: true, ..Settings::default() };
    settings.limits.history = HistoryLimits { messages: keeps, ..HistoryLimits::NONE };
    settings
}

impl<J> Member<J> {
    /// Whether this is its hub.
    fn is_at(&self, hub: usize) -> bool {
        self.place.is_some_and(|(at, ..)| at == hub)
    }
}

impl<J: Judging> World<J> {
    fn new(seed: u64, fault: Fault, loses: bool, has_clients: bool) -> World<J> {
        let mut random = Random::new(seed);
        let now = Now { instant: Instant::now(), unix_s: 1_000_000_000 };
        let pushes_first = random.chance(500);
        // In some simulations one hub keeps no history.
        let is_mixed = fault == Fault::HoleIgnored || loses && seed % 4 == 1;
        // In others the servers are in a cluster. There a hub without a copy drops what was overtaken.
        let is_in_cluster = J::KEEPS > 0 && !is_mixed && seed % 3 == 2;
        let servers = [1, 2].map(|number| {
            let mut redis =
                if is_in_cluster { Redis::in_cluster() } else { Redis::new(pushes_first) };
            redis.process.run = if fault == Fault::EpochKept { 1 } else { number };
            redis.process.now = 1_000_000;
            redis.process.is_replica = number == 2;
            redis.is_blind = fault == Fault::EpochKept;
            redis.process.ignores_moves = fault == Fault::MoveIgnored;
            redis.hides_holes = fault == Fault::HoleIgnored;
            if redis.hides_holes {
                // The hub without histories may not ask whether others have some.
                redis.refused.insert("EXISTS", "NOPERM no");
            }
            redis
        });
        let keeps = |number| if is_mixed && number == 2 { 0 } else { J::KEEPS };
        let member = |_| Member {
            judge: J::default(),
            place: None,
            bytes: Vec::new(),
            is_open: false,
            client: None,
            sleeps_until: None,
            is_recovered: false,
        };
        World {
            nodes: (0..HUBS as u64)
                .map(|number| {
                    let at = (0, is_in_cluster);
                    node(seed * 99 + number + 1, at, keeps(number), fault, now)
                })
                .collect(),
            members: (0..MEMBERS).map(member).collect(),
            master: 0,
            is_down: [false; 2],
            late: Vec::new(),
            published: Vec::new(),
            count: 1000,
            loses,
            is_mixed,
            is_in_cluster,
            has_clients,
            open_hubs: HUBS,
            random,
            now,
            servers,
            fault,
        }
    }

    // ---- hubs ----

    /// The loops of a hub run: letters, timers, and its connection to the broker. Returns whether anything happened.
    fn turns(&mut self, at: usize, all: bool) -> bool {
        let mut has_run = false;
        let World { nodes, members, servers, random, now, is_down, count, late, .. } = self;
        servers.iter_mut().for_each(|redis| redis.now = Some(now.instant));
        let Node { cores, mail, cable, .. } = &mut nodes[at];
        for own in 0..2 {
            let core = &mut cores[own];
            core.turn(*now);
            for _ in 0..if all { mail[own].len() } else { random.below(4) } {
                let Some(letter) = mail[own].pop_front() else { break };
                core.heard(letter);
                has_run = true;
            }
            if core.due().is_some_and(|due| due <= now.instant) {
                core.tick(&());
                has_run = true;
            }
        }
        let core = &mut cores[0];
        while let Some((conn, to)) = core.next_connect() {
            has_run = true;
            let server = usize::from(to.port() - PORT);
            if is_down[server] {
                lose(core, conn);
            } else {
                *count += 1;
                let (number, to_broker) = (*count, Vec::new());
                let (fate, is_open) = (Fate::Works, false);
                *cable = Some(Cable { server, number, conn, fate, is_open, to_broker });
            }
        }
        if let Some(one) = cable {
            let redis = &mut servers[one.server];
            if !one.is_open && one.fate != Fate::Stalled {
                one.is_open = true;
                redis.accepts(one.number);
                core.connected(one.conn);
                has_run = true;
            }
            has_run |= !one.to_broker.is_empty();
            let mut bytes = one.passes(redis, random, all);
            if !bytes.is_empty() {
                core.received(one.conn, &mut bytes);
                has_run = true;
                let at_it = members.iter_mut().filter(|one| one.is_at(at));
                at_it.for_each(|member| member.judge.hub_hears(one.number, now.instant));
            }
            loop {
                match core.next(one.conn, &()) {
                    Next::Write { .. } => {
                        has_run = true;
                        let output = core.output(one.conn);
                        let length = output.len();
                        one.to_broker.extend_from_slice(output);
                        core.wrote(one.conn, length);
                    }
                    Next::Wait if core.has(one.conn) => break,
                    _ => {
                        core.closed(one.conn);
                        late.push((one.server, one.number, std::mem::take(&mut one.to_broker)));
                        *cable = None;
                        has_run = true;
                        break;
                    }
                }
            }
        }
        for own in 0..2 {
            mail[1 - own].extend(cores[own].letters());
        }
        has_run | mail.iter().any(|mail| !mail.is_empty())
    }

    /// The connection of a hub to the broker is lost, on both sides.
    fn cuts(&mut self, at: usize) {
        let Node { cores, cable, .. } = &mut self.nodes[at];
        if let Some(cable) = cable.take() {
            self.late.push((cable.server, cable.number, cable.to_broker));
            lose(&mut cores[0], cable.conn);
        }
        self.turns(at, false);
    }

    /// The broker reads what was on its way on connections that are gone, or loses it.
    fn reads_late(&mut self, may_wait: bool) {
        for (server, number, bytes) in std::mem::take(&mut self.late) {
            if may_wait && self.random.chance(700) {
                self.late.push((server, number, bytes));
                continue;
            }
            if !self.is_down[server] && self.random.chance(500) {
                self.servers[server].receives_late(number, &bytes);
            }
            self.servers[server].closes(number);
        }
    }

    fn suffers(&mut self) {
        let at = self.random.below(HUBS);
        let fails_over = usize::from(self.loses || J::KEEPS == 0);
        let [fails, follows, learns] = [3, 6, 2].map(|weight| weight * fails_over);
        let loses = if self.loses { 8 } else { 0 };
        match self.random.weighted(&[5, 4, 6, 3, 2, 2, fails, follows, learns, loses]) {
            0 => self.cuts(at),
            1 => self.becomes(at, Fate::Stalled),
            2 => self.becomes(at, Fate::Works),
            3 => self.becomes(at, Fate::HalfOpen),
            4 => self.crashes(),
            5 => self.dies(at),
            6 => self.fails_over(),
            7 => self.nodes[at].place.0.store(self.master, Relaxed),
            8 => self.learns(),
            _ => self.loses(),
        }
    }

    /// A server that works crashes, or one that has crashed works again.
    fn crashes(&mut self) {
        let server = self.random.below(2);
        self.is_down[server] = !self.is_down[server];
        if self.is_down[server] {
            let is_at = |node: &Node| node.cable.as_ref().is_some_and(|one| one.server == server);
            let all: Vec<usize> = (0..HUBS).filter(|at| is_at(&self.nodes[*at])).collect();
            all.into_iter().for_each(|at| self.cuts(at));
            self.reads_late(false);
        } else if self.loses {
            self.count += 1;
            let has_all = self.random.chance(500);
            self.servers[server].restarts(self.count as u64, has_all);
        }
    }

    /// Something happens to what the broker stores.
    fn loses(&mut self) {
        let room = self.random.pick(&ROOMS);
        let what = self.random.below(3);
        let other = 1 - self.master;
        let redis = &mut self.servers[self.master];
        match self.random.below(8) {
            0 | 1 => redis.saved = redis.stored.clone(),
            2 => redis.process.refuses = !redis.process.refuses,
            3 => redis.forgets(),
            4 => redis.stored.evicts(what, room),
            5 => {
                let stored = redis.stored.clone();
                if self.servers[other].process.is_replica {
                    self.servers[other].stored = stored;
                }
            }
            // Options change.
            _ => {
                let (at, keeps) = (self.random.below(2), self.random.below(2) * J::KEEPS);
                let keeps = if self.is_in_cluster { J::KEEPS } else { keeps };
                self.nodes[at].hub.reload(settings(keeps));
            }
        }
    }

    /// The other server becomes the master. The old one does not know it yet, nor do the hubs.
    fn fails_over(&mut self) {
        self.master = 1 - self.master;
        self.count += 1;
        self.servers[self.master].is_promoted(self.count as u64);
    }

    /// The old master learns that it is none. If it reaches the new one, it has what that has.
    fn learns(&mut self) {
        let stored = self.servers[self.master].stored.clone();
        let reaches = self.random.chance(700);
        let redis = &mut self.servers[1 - self.master];
        redis.process.is_replica = true;
        if reaches {
            redis.stored = stored;
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
            self.late.push((cable.server, cable.number, cable.to_broker));
        }
        self.count += 1;
        let keeps = if self.is_mixed && at == 2 { 0 } else { J::KEEPS };
        let (number, place) = (self.count as u64 * 1_000_003, (self.master, self.is_in_cluster));
        self.nodes[at] = node(number, place, keeps, self.fault, self.now);
        // It might have been the last one at an old master, and cannot announce that it was there.
        self.published.retain(|one| one.hub != at);
        for who in 0..MEMBERS {
            if self.members[who].is_at(at) {
                self.members[who].place = None;
            }
        }
    }

    // ---- members ----

    fn joins(&mut self, who: usize) {
        let (at, own) = (self.random.below(self.open_hubs), self.random.below(2));
        let member = &mut self.members[who];
        let room = ROOMS[who % 2];
        let query = member.judge.joins(room);
        (member.bytes, member.is_open, member.sleeps_until) = (Vec::new(), false, None);
        let core = &mut self.nodes[at].cores[own];
        let conn = core.accept();
        member.place = Some((at, own, conn));
        let mut path = if room.is_empty() { "/ws".to_owned() } else { format!("/ws/{room}") };
        path.push_str(&query);
        let mut commands = Vec::new();
        if self.has_clients && is_client(who) {
            self.count += 1;
            let (client, first) = Dialect::opens(room, &query, self.count as u64);
            (member.client, commands) = (Some(client), first);
            path = "/connection/websocket".to_owned();
        }
        let opening = String::from_utf8(OPENING.to_vec()).unwrap();
        let mut opening = opening.replace("/ws ", &format!("{path} ")).into_bytes();
        commands.iter().for_each(|text| opening.extend(masked(text)));
        core.received(conn, &mut opening);
        self.members[who].judge.joined(&self.servers, self.now.instant);
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
        let Member { judge, is_open, client, .. } = &mut self.members[who];
        let is_out = client.as_ref().is_some_and(|client| !client.is_in());
        if !core.wants_read(conn) || !*is_open || is_out && !self.random.chance(300) {
            return;
        }
        self.count += 1;
        let mut payload = format!("[{who},{}]", self.count);
        if self.has_clients && self.random.chance(200) {
            // Some of these fill the output of a client that does not read.
            payload = format!("[{who},{},\"{}\"]", self.count, "x".repeat(30_000));
        }
        let mut lines = match client {
            None => vec![format!(r#"{{"type":"broadcast","payload":{payload}}}"#)],
            Some(client) => vec![client.says(&payload)],
        };
        judge.says(payload, self.now.instant);
        if let Some(client) = client {
            if client.is_out() {
                // Behind its message.
                lines.push(client.subscribes());
                if client.is_new() {
                    judge.joined(&self.servers, self.now.instant);
                }
            }
            if self.random.chance(300) {
                lines.push(client.asks_for_history());
            }
            if self.random.chance(500) {
                lines.push(client.says_there(self.count as u64));
            }
            if self.random.chance(300) {
                // In one frame.
                lines = vec![lines.join("\n")];
            }
        }
        for line in lines {
            core.received(conn, &mut masked(&line));
        }
        self.turns(at, false);
    }

    /// A client whose subscription has ended, or was refused, subscribes again.
    fn subscribes(&mut self, who: usize) {
        let Some((at, own, conn)) = self.members[who].place else { return };
        let core = &mut self.nodes[at].cores[own];
        let Member { judge, client: Some(client), .. } = &mut self.members[who] else { return };
        let mut lines = Vec::new();
        if client.is_out_there() && core.wants_read(conn) {
            lines.push(client.subscribes_there());
        }
        if client.is_out() && core.wants_read(conn) {
            lines.push(client.subscribes());
            if client.is_new() {
                // It was refused until now, so nothing was promised before.
                judge.joined(&self.servers, self.now.instant);
            }
        }
        if !lines.is_empty() {
            core.received(conn, &mut masked(&lines.join("\n")));
            self.turns(at, false);
        }
    }

    /// A client leaves its room, or does not read for a while.
    fn tires(&mut self, who: usize) {
        let Some((at, own, conn)) = self.members[who].place else { return };
        if !self.has_clients || !is_client(who) || !self.members[who].is_open {
            return;
        }
        if self.random.chance(100) {
            // Without losses nobody is too slow for the history.
            let most = if self.loses { 9_000 } else { 900 };
            let pause = Duration::from_millis(self.random.magnitude(1, most));
            self.members[who].sleeps_until = Some(self.now.instant + pause);
        }
        let core = &mut self.nodes[at].cores[own];
        if self.random.chance(60)
            && core.wants_read(conn)
            && let Some(client) = &mut self.members[who].client
            && client.may_leave()
        {
            core.received(conn, &mut masked(&client.unsubscribes()));
            self.turns(at, false);
        }
    }

    fn reads(&mut self, who: usize) -> Result<(), String> {
        let Some((hub, own, conn)) = self.members[who].place else { return Ok(()) };
        match self.members[who].sleeps_until {
            Some(until) if self.now.instant < until => return Ok(()),
            Some(_) => {
                self.members[who].sleeps_until = None;
                self.members[who].judge.wakes(self.now.instant);
            }
            None => {}
        }
        let core = &mut self.nodes[hub].cores[own];
        let Member { judge, bytes, is_open, client, is_recovered, .. } = &mut self.members[who];
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
        let (mut at, mut lines) = (0, Vec::new());
        while let Some((text, length)) = frame(&bytes[at..]) {
            at += length;
            lines.push(text.to_owned());
        }
        bytes.drain(..at);
        let why = |why| format!("member {who}: {why}");
        let is_opening =
            |client: &Option<Dialect>| client.as_ref().is_some_and(Dialect::is_opening);
        if client.is_some() {
            self.fault.rewrites(&mut lines);
        }
        if is_opening(client) {
            judge.opens(false, self.now.instant).map_err(why)?;
        }
        for text in lines {
            let texts = match client {
                None => vec![serde_json::from_str(&text).unwrap()],
                Some(client) => client.hears(&text, &self.servers).map_err(why)?,
            };
            for heard in texts.into_iter().map(Heard::new) {
                for _ in 0..self.fault.times(&heard, is_recovered) {
                    judge.hears(&heard, self.now.instant, &self.servers).map_err(why)?;
                }
            }
        }
        if !is_opening(client) {
            judge.opens(true, self.now.instant).map_err(why)?;
        }
        let room = judge.room().to_owned();
        let published = judge.take_published().into_iter();
        let published = published.map(|payload| Published { room: room.clone(), payload, hub });
        self.published.extend(published);
        if self.has_clients && self.random.chance(500) {
            self.subscribes(who);
        }
        Ok(())
    }

    // ---- history ----

    fn step(&mut self) -> Result<(), String> {
        let (who, at) = (self.random.below(MEMBERS), self.random.below(HUBS));
        match self.random.weighted(&[40, 8, 60, 30, 30, 8]) {
            0 => self.says(who),
            1 if self.members[who].place.is_none() => self.joins(who),
            1 if self.random.chance(100) => self.leaves(who),
            2 => {
                self.turns(at, false);
            }
            3 => {
                self.tires(who);
                self.reads(who)?;
            }
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
        self.servers.iter_mut().for_each(|redis| redis.process.now += millis);
        self.reads_late(true);
        for at in 0..HUBS {
            // Once nothing happens, nothing would in further turns.
            let _ = (0..3).all(|_| self.turns(at, true));
        }
        (0..MEMBERS).for_each(|who| self.subscribes(who));
        (0..MEMBERS).try_for_each(|who| self.reads(who))
    }

    /// Nothing bad happens any longer, and everything arrives.
    fn settles(&mut self) -> Result<(), String> {
        self.is_down = [false; 2];
        self.servers.iter_mut().for_each(|redis| redis.process.refuses = false);
        for at in 0..HUBS {
            self.nodes[at].place.0.store(self.master, Relaxed);
            let keeps = if self.is_mixed && at == 2 { 0 } else { J::KEEPS };
            self.nodes[at].hub.reload(settings(keeps));
        }
        self.reads_late(false);
        (0..HUBS).for_each(|at| self.becomes(at, Fate::Works));
        if self.is_mixed && self.servers[0].hides_holes {
            // Every message of the hub without a history is a gap.
            self.open_hubs = 2;
            for who in 0..MEMBERS {
                if self.members[who].is_at(2) {
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
        for (who, Member { judge, client, .. }) in self.members.iter().enumerate() {
            let of_client = client.as_ref().map_or(Ok(()), Dialect::ends);
            of_client
                .and_then(|()| judge.ends(&self.servers, self.master, &self.published))
                .map_err(|why| format!("member {who}: {why}"))?;
        }
        self.agree()
    }

    /// No position has two messages.
    fn agree(&self) -> Result<(), String> {
        let mut all = BTreeMap::new();
        for Member { judge, .. } in &self.members {
            for (at, payload) in judge.positions().into_iter().flatten() {
                let other =
                    all.insert((judge.room(), at), payload).filter(|other| *other != payload);
                if let Some(other) = other {
                    return Err(format!("{payload} and {other} are at {at:?}"));
                }
            }
        }
        Ok(())
    }
}

/// A connection is lost.
fn lose(core: &mut Core<Joined>, conn: Conn) {
    core.failed(conn);
    while core.has(conn) && core.next(conn, &()) != Next::Close {}
    core.closed(conn);
}

/// Whether this member is a client of Centrifugo's protocol, if there are some: two of those in the room with a name.
fn is_client(who: usize) -> bool {
    [3, 5].contains(&who)
}

/// The frame of a text of a client.
fn masked(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    Frame::text(text.as_bytes()).write_masked([1, 2, 3, 4], &mut bytes);
    bytes
}

/// Plays a history. Counts messages, gaps and outcomes: of clients, if there are some.
fn play<J: Judging>(
    seed: u64,
    fault: Fault,
    (loses, has_clients): (bool, bool),
    all: &mut [usize; 5],
) -> Result<(), String> {
    let mut world = World::<J>::new(seed, fault, loses, has_clients);
    (0..STEPS).try_for_each(|_| world.step()).and_then(|()| world.settles())?;
    for (who, member) in world.members.iter().enumerate() {
        if !has_clients || is_client(who) {
            all.add(&member.judge.seen());
        }
    }
    Ok(())
}

/// Plays many histories, or one, if `SIMULATION_SEED` says which. Returns how many messages, gaps and outcomes there were,
/// unless it was one.
fn play_all<J: Judging>(loses: bool, has_clients: bool) -> Option<[usize; 5]> {
    let history =
        |seed, all: &mut [usize; 5]| play::<J>(seed, Fault::None, (loses, has_clients), all);
    let all = histories::check("SIMULATION_SEED", by_tier(200, 100_000), history)?;
    assert!(all[0] > 20 && all[2..].iter().all(|seen| *seen > 20), "{all:?}");
    Some(all)
}

fn is_found<J: Judging>(fault: Fault, loses: bool) {
    histories::find(fault, by_tier(300, 10_000), |seed, all: &mut [usize; 5]| {
        play::<J>(seed, fault, (loses, false), all)
    });
}

#[test]
fn members_get_every_message_once_and_in_one_order_or_a_gap() {
    assert!(play_all::<Judge>(false, false).is_none_or(|all| all[1] > 20));
}

#[test]
fn members_of_rooms_with_a_history_recover_at_any_hub_or_get_a_gap() {
    assert!(play_all::<Recovering>(true, false).is_none_or(|all| all[1] > 20));
}

#[test]
fn while_the_broker_lives_lost_connections_cause_no_gap_that_the_history_can_fill() {
    if let Some(all) = play_all::<Recovering>(false, false) {
        assert!(all[1] * 50 < all[0], "{all:?}");
    }
}

#[test]
fn clients_get_every_message_once_and_in_one_order_or_their_subscription_ends() {
    assert!(play_all::<Judge>(false, true).is_none_or(|all| all[1] > 20));
}

#[test]
fn clients_of_rooms_with_a_history_recover_at_any_hub_or_learn_that_they_have_not() {
    assert!(play_all::<Recovering>(true, true).is_none_or(|all| all[1] > 20));
}

#[test]
fn while_the_broker_lives_clients_recover_everything() {
    if let Some(all) = play_all::<Recovering>(false, true) {
        assert!(all[1] * 50 < all[0], "{all:?}");
    }
}

/// The fault is found by what a client gets. Most members are none, and epochs are random, so it may take longer.
fn is_found_by_clients<J: Judging>(fault: Fault, loses: bool) {
    let is_of_client = |why: &String| {
        (0..MEMBERS).any(|who| is_client(who) && why.starts_with(&format!("member {who}:")))
    };
    histories::find(fault, by_tier(2_000, 10_000), |seed, all: &mut [usize; 5]| {
        let found = play::<J>(seed, fault, (loses, true), all).err();
        found.filter(is_of_client).map_or(Ok(()), Err)
    });
}

#[test]
fn planted_faults_are_found_by_clients() {
    for fault in
        [Fault::SilentGap, Fault::NoHeartbeat, Fault::TwoOrders, Fault::Doubled, Fault::Optimistic]
    {
        is_found_by_clients::<Judge>(fault, false);
    }
    for fault in [Fault::HiddenGap, Fault::NotMerged, Fault::RecoveredTwice, Fault::EpochKept] {
        is_found_by_clients::<Recovering>(fault, true);
    }
    for fault in [Fault::EmptyPage, Fault::BegunAtTop, Fault::OpeningHeard, Fault::ReplyFirst] {
        is_found_by_clients::<Recovering>(fault, false);
    }
}

#[test]
fn planted_faults_are_found() {
    for fault in [
        Fault::SilentGap,
        Fault::SilentMove,
        Fault::NoHeartbeat,
        Fault::TwoOrders,
        Fault::Doubled,
        Fault::Optimistic,
    ] {
        is_found::<Judge>(fault, false);
    }
}

#[test]
fn planted_faults_of_histories_are_found() {
    for fault in [
        Fault::NoHeartbeat,
        Fault::HiddenGap,
        Fault::NotMerged,
        Fault::RecoveredTwice,
        Fault::EpochKept,
        Fault::MoveIgnored,
        Fault::HoleIgnored,
    ] {
        is_found::<Recovering>(fault, true);
    }
}
