//! Servers, and the Sentinels that manage them: what happens to them, and what must never happen.
//!
//! - A server carries out a request only if it is a master, and its connection has begun with ROLE.
//! - The proxy uses a server only once a majority of the Sentinels has known it as the master, and goes back to one before
//!   only if a majority gives it in one round.

use super::{Fault, Seen};
use crate::driver::Received;
use rand::{Rng, rngs::SmallRng};
use regatta_proto::resp::write_bulk;
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    time::{Duration, Instant},
};

pub const SENTINELS: usize = 3;
const MAJORITY: usize = 2;

/// The longest round of questions of the proxy.
const LONGEST_ROUND: Duration = Duration::from_secs(3);

/// The servers of the first node, the only server of the second one, and the Sentinels.
pub const SERVERS: usize = 4;
const CALM_SERVER: usize = 3;

/// The address of a server.
pub fn address(server: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 7000 + server as u16))
}

/// The address of a Sentinel.
pub fn sentinel_address(sentinel: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 26_000 + sentinel as u16))
}

#[derive(Clone, Default)]
pub struct Server {
    pub keys: BTreeMap<Vec<u8>, Vec<u8>>,
    pub is_master: bool,
    pub is_up: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Well,
    /// It does not reply.
    Silent,
    Refusing,
    /// It learns nothing.
    CutOff,
}

#[derive(Clone, Copy, Default)]
pub struct Sentinel {
    /// The number of the failover that it has learned of last.
    knows: usize,
    /// What it knew when it was last asked, and when that was.
    gave: Option<(usize, Instant)>,
    pub state: State,
}

impl Sentinel {
    /// What it knew when it was asked in a round that is not over.
    fn gave_in_round(&self, now: Instant) -> Option<usize> {
        let (knew, at) = self.gave?;
        (at + LONGEST_ROUND >= now).then_some(knew)
    }
}

pub struct Park {
    pub servers: Vec<Server>,
    pub sentinels: Vec<Sentinel>,
    /// The master of the first node after each failover.
    pub elected: Vec<usize>,
    /// The last failover that a majority of the Sentinels has known.
    pub committed: usize,
    /// The last one whose master a majority has given. Some may have given it because of an earlier failover.
    given: usize,
    pub fault: Option<Fault>,
    pub now: Instant,
    /// Sentinels that have learned of a failover and announce it.
    pub announces: Vec<usize>,
    /// Servers whose connections end.
    pub kicks: Vec<usize>,
}

/// A connection from the side of a server or a Sentinel.
#[derive(Default)]
pub struct Session {
    pub received: Received,
    /// It was a master when it was asked for its role.
    has_role: bool,
    pub is_subscribed: bool,
    /// A reply that is sent after the next one.
    delayed: Option<Vec<u8>>,
}

impl Park {
    pub fn new(fault: Option<Fault>, now: Instant) -> Self {
        let mut servers = vec![Server { is_up: true, ..Server::default() }; SERVERS];
        (servers[0].is_master, servers[CALM_SERVER].is_master) = (true, true);
        Park {
            servers,
            sentinels: vec![Sentinel::default(); SENTINELS],
            elected: vec![0],
            committed: 0,
            given: 0,
            fault,
            now,
            announces: Vec::new(),
            kicks: Vec::new(),
        }
    }

    fn master(&self) -> usize {
        *self.elected.last().expect("one")
    }

    /// Something happens.
    pub fn change(&mut self, random: &mut SmallRng, seen: &mut Seen) {
        let (failover, master) = (self.elected.len() - 1, self.master());
        let sentinel = random.random_range(0..SENTINELS);
        let other = random.random_range(0..CALM_SERVER);
        match random.random_range(0..20) {
            0..8 => self.learn(sentinel, failover),
            8..10 if self.committed == failover && other != master && self.servers[other].is_up => {
                self.fail_over(master, other, random, seen);
            }
            10 | 11 if !self.servers[other].is_up => {
                // It is still what it was.
                self.servers[other].is_up = true;
                seen.back += u64::from(self.servers[other].is_master);
            }
            12 | 13 if other != master => self.demote(other, seen),
            14 => self.trouble(sentinel, random, seen),
            15 | 16 => self.sentinels[sentinel].state = State::Well,
            // A replica dies.
            17 if other != master => self.kill(other),
            _ => {}
        }
    }

    fn fail_over(&mut self, from: usize, to: usize, random: &mut SmallRng, seen: &mut Seen) {
        seen.failovers += 1;
        // Some of the last writes may be lost.
        let is_lost = random.random_bool(0.3);
        let keys = self.servers[from].keys.clone();
        if !is_lost {
            self.servers[to].keys = keys;
        }
        self.servers[to].is_master = true;
        if random.random_bool(0.6) {
            self.kill(from);
            seen.dead += 1;
        } else {
            seen.isolated += 1;
        }
        self.elected.push(to);
        let leader = random.random_range(0..SENTINELS);
        self.sentinels[leader].state = State::Well;
        self.learn(leader, self.elected.len() - 1);
    }

    fn kill(&mut self, server: usize) {
        self.servers[server].is_up = false;
        self.kicks.push(server);
    }

    /// A Sentinel makes an old master a replica, which closes its connections, as Redis Sentinel does.
    fn demote(&mut self, server: usize, seen: &mut Seen) {
        let keys = self.servers[self.master()].keys.clone();
        let one = &mut self.servers[server];
        if one.is_up && one.is_master {
            (one.is_master, one.keys) = (false, keys);
            // Its connections may outlive that a little.
            if server.is_multiple_of(2) {
                self.kicks.push(server);
            }
            seen.demoted += 1;
        }
    }

    fn learn(&mut self, sentinel: usize, failover: usize) {
        let one = &mut self.sentinels[sentinel];
        if one.state != State::CutOff && one.knows < failover {
            one.knows = failover;
            self.announces.push(sentinel);
        }
        let know = self.sentinels.iter().filter(|one| one.knows >= failover).count();
        if know >= MAJORITY {
            self.committed = self.committed.max(failover);
        }
        self.give(failover, |one| Some(one.knows));
    }

    /// Notes whether a majority gives the master of this failover.
    fn give(&mut self, failover: usize, gives: impl Fn(&Sentinel) -> Option<usize>) {
        if self.is_given(self.elected[failover], gives) {
            self.given = self.given.max(failover);
        }
    }

    fn is_given(&self, server: usize, gives: impl Fn(&Sentinel) -> Option<usize>) -> bool {
        let is_its = |one: &&Sentinel| gives(one).is_some_and(|knew| self.elected[knew] == server);
        self.sentinels.iter().filter(is_its).count() >= MAJORITY
    }

    /// A Sentinel is asked for the master that fails over. The answers of one round are not of one moment: a server that
    /// was elected twice may be given by one Sentinel because of the first time and by another because of the second.
    fn note_answer(&mut self, sentinel: usize) {
        let now = self.now;
        self.sentinels[sentinel].gave = Some((self.sentinels[sentinel].knows, now));
        let gave = |one: &Sentinel| one.gave_in_round(now);
        for failover in self.sentinels.clone().iter().filter_map(gave) {
            self.give(failover, gave);
        }
    }

    fn trouble(&mut self, sentinel: usize, random: &mut SmallRng, seen: &mut Seen) {
        let cut_off = self.sentinels.iter().filter(|one| one.state == State::CutOff).count();
        let (state, count) = match random.random_range(0..3) {
            0 => (State::Silent, &mut seen.silent),
            1 => (State::Refusing, &mut seen.refusing),
            _ if cut_off > 0 => return,
            _ => (State::CutOff, &mut seen.cut_off),
        };
        *count += 1;
        self.sentinels[sentinel].state = state;
    }

    /// Everything works again, and all know everything.
    pub fn settle(&mut self, seen: &mut Seen) {
        for sentinel in 0..SENTINELS {
            self.sentinels[sentinel].state = State::Well;
            self.learn(sentinel, self.elected.len() - 1);
        }
        for server in 0..CALM_SERVER {
            self.servers[server].is_up = true;
            if server != self.master() {
                self.demote(server, seen);
            }
        }
    }

    /// The failover whose master is this server, among those from this one on, or among all if a majority has given it in
    /// one round. `None`: no majority has given it.
    pub fn failover_of(&self, server: usize, from: usize) -> Option<usize> {
        let is_its = |failover: &usize| self.elected[*failover] == server;
        let is_given = || self.is_given(server, |one| one.gave_in_round(self.now));
        (from..=self.given)
            .find(is_its)
            .or_else(|| is_given().then(|| (0..=from).rfind(is_its)).flatten())
    }

    /// Answers the next command of a session of a Sentinel. Returns whether there was one.
    pub fn ask_sentinel(
        &mut self,
        (sentinel, session): (usize, &mut Session),
        out: &mut Vec<u8>,
        seen: &mut Seen,
        random: &mut SmallRng,
    ) -> bool {
        if self.sentinels[sentinel].state == State::Silent {
            return false;
        }
        let Some(args) = session.received.next() else { return false };
        match &args[0].to_ascii_uppercase()[..] {
            b"SUBSCRIBE" => {
                session.is_subscribed = true;
                out.extend_from_slice(b"*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n");
            }
            b"PING" => out.extend_from_slice(b"*2\r\n$4\r\npong\r\n$0\r\n\r\n"),
            _ => {
                seen.questions += 1;
                if args[2] == b"one" {
                    self.note_answer(sentinel);
                }
                let knows = match self.fault {
                    Some(Fault::Minority) => self.sentinels[0].knows,
                    Some(Fault::OldAnswers) if random.random_bool(0.5) => 0,
                    _ => self.sentinels[sentinel].knows,
                };
                let server = if args[2] == b"one" { self.elected[knows] } else { CALM_SERVER };
                let at = address(server);
                out.extend_from_slice(b"*2\r\n");
                write_bulk(at.ip().to_string().as_bytes(), out);
                write_bulk(at.port().to_string().as_bytes(), out);
            }
        }
        true
    }

    /// The announcement of a failover.
    pub fn announcement(&self) -> Vec<u8> {
        let text = format!("one 127.0.0.1 1 127.0.0.1 {}", address(self.master()).port());
        let mut out = b"*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n".to_vec();
        write_bulk(text.as_bytes(), &mut out);
        out
    }

    /// Carries out the next command of a session of a server. Returns whether there was one.
    pub fn ask_server(
        &mut self,
        (server, session): (usize, &mut Session),
        out: &mut Vec<u8>,
        seen: &mut Seen,
        random: &mut SmallRng,
    ) -> Result<bool, String> {
        let Some(args) = session.received.next() else { return Ok(false) };
        let one = &mut self.servers[server];
        match &args[0].to_ascii_lowercase()[..] {
            b"role" => {
                let says = one.is_master || self.fault == Some(Fault::NoRole);
                session.has_role = one.is_master;
                seen.replicas += u64::from(!says);
                let role = if says { "master" } else { "slave" };
                out.extend(format!("*2\r\n${}\r\n{role}\r\n:0\r\n", role.len()).into_bytes());
            }
            b"info" => write_bulk(b"redis_version:7.0.15\r\n", out),
            b"ping" => out.extend_from_slice(b"+PONG\r\n"),
            _ if !session.has_role => return Err("a request to a server that was no master".into()),
            b"set" if !one.is_master => {
                out.extend_from_slice(
                    b"-READONLY You can't write against a read only replica.\r\n",
                );
            }
            name => {
                let mut reply = Vec::new();
                match (name, one.keys.get(&args[1])) {
                    (b"get", Some(value)) => write_bulk(value, &mut reply),
                    (b"get", None) => reply.extend_from_slice(b"$-1\r\n"),
                    _ => {
                        one.keys.insert(args[1].clone(), args[2].clone());
                        reply.extend_from_slice(b"+OK\r\n");
                    }
                }
                if self.fault == Some(Fault::Crossed)
                    && random.random_bool(0.1)
                    && session.delayed.is_none()
                {
                    session.delayed = Some(reply);
                    return Ok(true);
                }
                out.extend(reply);
                out.extend(session.delayed.take().unwrap_or_default());
            }
        }
        Ok(true)
    }
}
