//! One history: runs the next event until there is none.

use super::{
    Random, Scenario, Visit,
    fault::OPPORTUNITIES,
    line::Phase,
    peer::Reading,
    station::Station,
    world::{World, note},
};
use crate::{Core, Engine, Limits, Side};
use std::time::Duration;

/// Maximum number of events, and maximum simulated time. Beyond them a history is considered stuck.
const MOST_EVENTS: usize = 60_000;
const LONGEST: Duration = Duration::from_secs(100 * 3600);

impl<S: Scenario> World<S> {
    /// Runs a history.
    pub fn run(&mut self, seed: u64) -> Result<(), String> {
        let _reporter = PanicReporter(S::NAME, seed);
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
        // Of its own, so that the other choices of a history do not depend on it.
        self.slices = Random::new(!seed);
        let limited = S::Engine::POSTS && self.slices.chance(400);
        self.room = if limited { self.slices.magnitude(1, 16) as usize } else { usize::MAX };
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
        // Of its own, as the slices.
        let mut drains = Random::new(seed.rotate_left(32));
        let is_paced = S::DRAINS && drains.chance(500);
        self.drain = millis(if is_paced { drains.pick(&[1, 30, 500, 5000]) } else { 0 });
        let cores = self.scenario.begin(random);
        let now = self.now();
        self.stations.clear();
        for core in 0..cores {
            let engine = self.scenario.engine(core);
            let mut core = Core::new(engine, self.limits, now);
            core.set_core(self.stations.len() as u32, cores as u32);
            let mut station = Station::new(core, &mut self.random);
            // The models whose cores exchange letters are edge-triggered, or rings.
            station.edge |= limited;
            self.stations.push(station);
        }
        for _ in 0..self.random.between(2, 5) {
            let at = self.random.magnitude(1, 40_000);
            let station = self.random.below(cores);
            self.add_line(Side::Client, station, Phase::Coming(at));
        }
        note!(
            self,
            "{cores} cores, {} clients, {:?}, reads of {}, stop {:?} drain {:?} grace {:?}",
            self.used,
            self.limits,
            self.read,
            self.stop_at,
            self.drain,
            self.grace
        );
    }

    /// Runs the next event. Returns whether there was one.
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
            // The server no longer accepts it.
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

/// Prints the number of a history if it panics.
struct PanicReporter(&'static str, u64);

impl Drop for PanicReporter {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let PanicReporter(name, seed) = self;
            println!(
                "history {seed} of `{name}` panicked; SIMULATION_SEED={seed} runs only this one"
            );
        }
    }
}
