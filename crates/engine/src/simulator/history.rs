//! One history: what happens next, until nothing does.

use super::{
    Coverage, Expected, Fault, Random, Scenario, Visit,
    fault::OPPORTUNITIES,
    line::{Line, Phase, sooner},
    peer::{Reading, Then},
    station::Station,
};
use crate::{Core, Engine, Limits, Now, Side, Task};
use std::time::{Duration, Instant};

/// Events, and simulated time, after which a history is not over but stuck.
const MOST_EVENTS: usize = 60_000;
const LONGEST: Duration = Duration::from_secs(100 * 3600);

/// The unix time at which histories begin.
const BEGIN_UNIX_S: u64 = 1_700_000_000;

/// Prints what happens, in a history that is replayed.
macro_rules! note {
    ($world:expr, $($what:tt)*) => {
        if $world.prints {
            println!("{:>12} us  {}", $world.time, format_args!($($what)*));
        }
    };
}
pub(super) use note;

/// A job that is being done.
pub(super) struct Working<J> {
    pub at: u64,
    pub station: usize,
    pub task: Task<J>,
}

/// The state of a history. Reused for the next one.
pub(super) struct World<S: Scenario> {
    pub scenario: S,
    pub random: Random,
    /// Microseconds since the history began.
    pub time: u64,
    base: Instant,
    pub stations: Vec<Station<S::Engine>>,
    /// Of which the first `used` belong to this history.
    pub lines: Vec<Line>,
    pub used: usize,
    pub expected: Vec<Expected>,
    pub jobs: Vec<Working<<S::Engine as Engine>::Job>>,
    pub limits: Limits,
    /// Bytes of one read.
    pub read: usize,
    pub buffer: Vec<u8>,
    /// The longest delay of anything that is not a peer's decision, in microseconds.
    pub lag: u64,
    pub stop_at: Option<u64>,
    pub stopped: Option<u64>,
    pub grace: Duration,
    pub coverage: Coverage,
    pub events: usize,
    pub prints: bool,
    pub fault: Option<Fault>,
    opportunities: usize,
    pub struck: bool,
    /// A connection that a fault keeps open.
    pub held: Option<usize>,
    /// What went wrong first.
    pub wrong: Option<String>,
}

impl<S: Scenario> World<S> {
    pub fn new(scenario: S, fault: Option<Fault>, prints: bool) -> Self {
        World {
            scenario,
            random: Random::new(0),
            time: 0,
            base: Instant::now(),
            stations: Vec::new(),
            lines: Vec::new(),
            used: 0,
            expected: Vec::new(),
            jobs: Vec::new(),
            limits: Limits::default(),
            read: 0,
            buffer: Vec::new(),
            lag: 0,
            stop_at: None,
            stopped: None,
            grace: Duration::ZERO,
            coverage: Coverage::default(),
            events: 0,
            prints,
            fault,
            opportunities: 0,
            struck: false,
            held: None,
            wrong: None,
        }
    }

    /// Runs a history.
    pub fn run(&mut self, seed: u64) -> Result<(), String> {
        let _tells = Tells(S::NAME, seed);
        self.begin(seed);
        while self.wrong.is_none() && self.step() {}
        if self.wrong.is_none() {
            self.check_the_end();
        }
        let clients = self.lines[..self.used].iter().filter(|l| l.side == Some(Side::Client));
        self.coverage.history(clients.count(), self.events);
        self.jobs.clear();
        self.wrong.take().map_or(Ok(()), Err)
    }

    fn begin(&mut self, seed: u64) {
        self.random = Random::new(seed);
        let random = &mut self.random;
        (self.time, self.events, self.used, self.held) = (0, 0, 0, None);
        (self.struck, self.opportunities) = (false, random.below(OPPORTUNITIES));
        let idle = random.pick(&[200, 1000, 8000, 60_000]);
        let request = idle * random.pick(&[1, 2, 3, 6]) / 4;
        let millis = Duration::from_millis;
        self.limits = Limits { idle: millis(idle), request: millis(request) };
        self.read = random.pick(&[1 << 16, 1 << 14, 1 << 10, 50]);
        self.buffer.resize(self.read, 0);
        self.lag = random.pick(&[0, 50, 1000, 4000]);
        let ends = 1000 * random.magnitude(1, idle);
        self.stop_at = random.chance(300).then(|| random.between(0, ends));
        self.stopped = None;
        self.grace = millis(random.pick(&[20, 200, 1000]));
        let cores = self.scenario.begin(random);
        let now = self.now();
        self.stations.clear();
        for core in 0..cores {
            let engine = self.scenario.engine(core);
            let core = Core::new(engine, self.limits, now);
            self.stations.push(Station::new(core, &mut self.random));
        }
        for _ in 0..self.random.between(2, 5) {
            let at = self.random.magnitude(1, 40_000);
            let station = self.random.below(cores);
            self.add_line(Side::Client, station, Phase::Coming(at));
        }
        note!(
            self,
            "{cores} cores, {} clients, {:?}, reads of {}, stop {:?} grace {:?}",
            self.used,
            self.limits,
            self.read,
            self.stop_at,
            self.grace
        );
    }

    /// Adds a connection. Returns its number.
    pub fn add_line(&mut self, side: Side, station: usize, phase: Phase) -> usize {
        let who = self.used;
        self.used += 1;
        if self.lines.len() < self.used {
            self.lines.push(Line::default());
            self.expected.push(Expected::default());
        }
        self.expected[who].clear();
        let (line, random) = (&mut self.lines[who], &mut self.random);
        line.clear();
        (line.side, line.station, line.phase) = (Some(side), station, phase);
        self.scenario.script(who, random, &mut line.peer.input);
        line.peer.plan(random, self.limits.idle);
        if self.read < 1 << 14 {
            line.peer.then = line.peer.then.but_little();
        }
        // Much input through small buffers takes too many events.
        let least = match side {
            Side::Client => line.peer.input.len() / 24,
            Side::Upstream => 300,
        };
        if side == Side::Upstream {
            // What it answers is not known yet.
            line.peer.piece = random.magnitude(100, 1 << 12) as usize;
            line.peer.pause = random.pick(&[0, 300, 20_000]);
            line.peer.lulls = random.pick(&[0, 1, 5, usize::MAX]);
            if let Reading::Slow { bytes, pause } = &mut line.peer.reading {
                (*bytes, *pause) = ((*bytes).max(200), (*pause).min(100_000));
            }
        }
        let size = |random: &mut Random| match random.chance(500) {
            true => 1 << 18,
            false => least.max(random.magnitude(16, 1 << 14) as usize),
        };
        line.wire.inbox_capacity = match line.peer.then {
            Then::Flood(bytes) if bytes > 1 << 16 => 1 << 18,
            _ => size(random),
        };
        line.wire.send_capacity = size(random);
        line.wire.delivered_capacity = size(random);
        let peer = &self.lines[who].peer;
        note!(
            self,
            "{who}: {side:?} of core {station} {phase:?}, {} bytes in pieces of {} every {} us, {:?}, \
             {:?}, then {:?}; buffers {} {} {}",
            peer.input.len(),
            peer.piece,
            peer.pause,
            peer.reading,
            peer.ending,
            peer.then,
            self.lines[who].wire.inbox_capacity,
            self.lines[who].wire.send_capacity,
            self.lines[who].wire.delivered_capacity,
        );
        who
    }

    // ---- time ----

    /// The time of this event.
    pub fn now(&self) -> Now {
        let instant = self.base + Duration::from_micros(self.time);
        Now { instant, unix_s: BEGIN_UNIX_S + self.time / 1_000_000 }
    }

    /// The first microsecond at or after an instant.
    fn micros(&self, instant: Instant) -> u64 {
        instant.saturating_duration_since(self.base).as_nanos().div_ceil(1000) as u64
    }

    /// A moment from now that is not of a peer's choosing.
    pub fn soon(&mut self) -> u64 {
        self.time + self.random.between(0, self.lag)
    }

    pub fn wake(&mut self, station: usize) {
        let at = self.soon();
        sooner(&mut self.stations[station].wake_at, at);
    }

    // ---- what happens ----

    /// Whether a fault strikes now.
    pub fn strikes(&mut self, fault: Fault) -> bool {
        if self.fault != Some(fault) || self.struck {
            return false;
        }
        self.struck = self.opportunities == 0;
        self.opportunities = self.opportunities.saturating_sub(1);
        if self.struck {
            note!(self, "the fault strikes: {fault:?}");
        }
        self.struck
    }

    #[cold]
    pub fn fail(&mut self, what: String) {
        note!(self, "WRONG: {what}");
        self.wrong.get_or_insert(what);
    }

    /// The next event. Returns whether there was one.
    fn step(&mut self) -> bool {
        #[derive(Clone, Copy)]
        enum What {
            Comes(usize),
            Sends(usize),
            Reads(usize),
            Delivers(usize),
            Turns(usize),
            Stops,
        }
        let mut next: Option<(u64, What)> = None;
        let mut see = |at: Option<u64>, what: What| {
            if let Some(at) = at
                && next.is_none_or(|(first, _)| at < first)
            {
                next = Some((at, what));
            }
        };
        let mut alive = false;
        let mut clients = false;
        for (who, line) in self.lines[..self.used].iter().enumerate() {
            match line.phase {
                Phase::Coming(at) => see(Some(at), What::Comes(who)),
                Phase::Unused | Phase::Down(_) if line.peer.done => continue,
                _ => {}
            }
            alive |=
                !matches!(line.phase, Phase::Down(_) | Phase::Unused) && !self.expected[who].stays;
            clients |= line.side == Some(Side::Client) && !matches!(line.phase, Phase::Down(_));
            see(line.peer.send_at, What::Sends(who));
            see(line.peer.read_at, What::Reads(who));
            see(line.net_at, What::Delivers(who));
        }
        alive &= clients || self.stopped.is_none();
        for (index, station) in self.stations.iter().enumerate() {
            see(station.wake_at, What::Turns(index));
            if alive && let Some(due) = station.core.due() {
                see(Some(self.micros(due).max(self.time)), What::Turns(index));
            }
        }
        if alive {
            see(self.stop_at, What::Stops);
        }
        let Some((at, what)) = next else { return false };
        self.time = self.time.max(at);
        self.events += 1;
        if self.events > MOST_EVENTS || self.time > LONGEST.as_micros() as u64 {
            let phases: Vec<_> = self.lines[..self.used].iter().map(|line| line.phase).collect();
            self.fail(format!("the history does not end: {phases:?}"));
            return false;
        }
        match what {
            What::Comes(who) => self.comes(who),
            What::Sends(who) => self.peer_sends(who),
            What::Reads(who) => self.peer_reads(who),
            What::Delivers(who) => self.deliver(who),
            What::Turns(station) => self.turn(station),
            What::Stops => {
                self.stop_at = None;
                self.stopped = Some(self.time);
                self.coverage.visit(Visit::Stop);
                for station in 0..self.stations.len() {
                    self.stations[station].stops = true;
                    self.wake(station);
                }
            }
        }
        true
    }

    /// A client connects.
    fn comes(&mut self, who: usize) {
        let line = &mut self.lines[who];
        if self.stopped.is_some() {
            // Nobody accepts it.
            (line.phase, line.peer.done) = (Phase::Unused, true);
            return;
        }
        line.phase = Phase::Up;
        line.peer.send_at = Some(self.time);
        if line.peer.reading != Reading::Until(0) {
            line.peer.read_at = Some(self.time);
        }
        let station = line.station;
        self.stations[station].accepts.push(who);
        self.wake(station);
    }
}

/// Prints the number of a history that panics.
struct Tells(&'static str, u64);

impl Drop for Tells {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Tells(name, seed) = self;
            println!("history {seed} of `{name}` panics; SIMULATION_SEED={seed} runs it alone");
        }
    }
}
