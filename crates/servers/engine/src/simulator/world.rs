//! The state of a history: time, connections, cores, and the injected fault.

use super::{
    Coverage, Expected, Fault, Random, Scenario,
    line::{Line, Phase, sooner},
    peer::{Reading, Then},
    station::{Sockets, Station},
};
use crate::{Conn, Engine, Limits, Next, Now, Side, Task};
use std::time::{Duration, Instant};

/// The Unix time at which histories start.
const START_UNIX_S: u64 = 1_700_000_000;

/// Prints an event, if the history is replayed.
macro_rules! note {
    ($world:expr, $($what:tt)*) => {
        if $world.prints {
            println!("{:>12} us  {}", $world.time, format_args!($($what)*));
        }
    };
}
pub(super) use note;

/// A job in progress.
pub(super) struct Working<J> {
    pub at: u64,
    pub station: usize,
    pub task: Task<J>,
}

/// The state of a history. It is reused for the next one.
pub(super) struct World<S: Scenario> {
    pub scenario: S,
    pub random: Random,
    /// Selects how many letters a core receives in a turn.
    pub slices: Random,
    /// Number of letters in the box of a core above which the clients of the other cores are not
    /// read. If it is limited, a core also receives only a few letters per turn.
    pub room: usize,
    /// Microseconds since the start of the history.
    pub time: u64,
    base: Instant,
    pub stations: Vec<Station<S::Engine>>,
    /// The first `used` connections belong to this history.
    pub lines: Vec<Line>,
    pub used: usize,
    pub expected: Vec<Expected>,
    pub jobs: Vec<Working<<S::Engine as Engine>::Job>>,
    pub limits: Limits,
    /// Size of a read in bytes.
    pub read: usize,
    pub buffer: Vec<u8>,
    /// Maximum delay of the network, of wake-ups and of completions, in microseconds.
    pub lag: u64,
    pub stop_at: Option<u64>,
    pub stopped: Option<u64>,
    /// Over how much time a stop retires the clients, before its grace period.
    pub drain: Duration,
    pub grace: Duration,
    pub coverage: Coverage,
    pub events: usize,
    pub prints: bool,
    pub fault: Option<Fault>,
    pub opportunities: usize,
    pub struck: bool,
    /// A connection that a fault keeps open.
    pub held: Option<usize>,
    /// The first failure.
    pub wrong: Option<String>,
}

impl<S: Scenario> World<S> {
    pub fn new(scenario: S, fault: Option<Fault>, prints: bool) -> Self {
        World {
            scenario,
            random: Random::new(0),
            slices: Random::new(0),
            room: usize::MAX,
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
            drain: Duration::ZERO,
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
            line.peer.then = line.peer.then.with_small_flood();
        }
        // Much input through small buffers takes too many events.
        let least = match side {
            Side::Client => line.peer.input.len() / 24,
            Side::Upstream => 300,
        };
        if side == Side::Upstream {
            // Its answers are not known yet.
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

    /// The identifier of a connection, if it has one.
    pub fn conn(&self, who: usize) -> Option<Conn> {
        self.lines[who].conn
    }

    /// The connection with this identifier, if it is up.
    pub fn who(&self, station: usize, conn: Conn) -> Option<usize> {
        let who = *self.stations[station].table.get(conn.index())?;
        self.lines.get(who).filter(|line| line.conn == Some(conn) && line.is_up()).map(|_| who)
    }

    /// What the core of a connection requests next.
    pub fn next(&mut self, who: usize, conn: Conn) -> Next {
        let station = &mut self.stations[self.lines[who].station];
        station.core.next(conn, &Sockets::new(&self.lines, &station.table))
    }

    // ---- time ----

    /// The time of this event.
    pub fn now(&self) -> Now {
        let instant = self.base + Duration::from_micros(self.time);
        Now { instant, unix_s: START_UNIX_S + self.time / 1_000_000 }
    }

    /// The first microsecond at or after an instant.
    pub fn micros(&self, instant: Instant) -> u64 {
        instant.saturating_duration_since(self.base).as_nanos().div_ceil(1000) as u64
    }

    /// A random time within `lag` from now, for what no peer decides.
    pub fn soon(&mut self) -> u64 {
        self.time + self.random.between(0, self.lag)
    }

    pub fn wake(&mut self, station: usize) {
        let at = self.soon();
        sooner(&mut self.stations[station].wake_at, at);
    }

    // ---- faults ----

    /// Whether the injected fault occurs now.
    pub fn strikes(&mut self, fault: Fault) -> bool {
        if self.fault != Some(fault) || self.struck {
            return false;
        }
        self.struck = self.opportunities == 0;
        self.opportunities = self.opportunities.saturating_sub(1);
        if self.struck {
            note!(self, "injected fault: {fault:?}");
        }
        self.struck
    }

    #[cold]
    pub fn fail(&mut self, what: String) {
        note!(self, "WRONG: {what}");
        self.wrong.get_or_insert(what);
    }
}
