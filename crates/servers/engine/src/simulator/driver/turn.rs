//! A turn of a core's loop: the parts common to both kinds of driver.

use crate::simulator::{
    Fault, Scenario, Visit,
    line::{Phase, sooner},
    station::Sockets,
    world::{Working, World, note},
};
use crate::{Conn, Engine, Job, Side, Task};

/// Maximum number of readability checks per due timer in one tick. More mean that a timer spins.
const LOOKS: u32 = 4;

impl<S: Scenario> World<S> {
    /// Runs a turn of a core's loop.
    pub fn turn(&mut self, index: usize) {
        let now = self.now();
        let station = &mut self.stations[index];
        station.wake_at = None;
        station.core.turn(now);
        // Events are reported in random order.
        let first = self.random.below(4);
        if self.random.chance(500) && std::mem::take(&mut self.stations[index].stops) {
            self.stop(index);
        }
        for part in 0..4 {
            match (first + part) % 4 {
                0 => self.accept(index),
                1 => self.events(index),
                2 => self.hear(index),
                _ => self.take_done(index),
            }
        }
        if std::mem::take(&mut self.stations[index].stops) {
            self.stop(index);
        }
        self.end_of_turn(index);
    }

    fn accept(&mut self, index: usize) {
        while let Some(who) = self.stations[index].accepts.pop() {
            let now = self.now();
            let station = &mut self.stations[index];
            let conn = station.core.accept();
            station.insert(conn, who);
            self.lines[who].conn = Some(conn);
            note!(self, "{who}: accepted");
            self.opened(who);
            debug_assert_eq!(now, self.now());
            if self.stations[index].ring {
                self.ring_accepted(who);
            } else {
                let ready = &mut self.lines[who].ready;
                (ready.readable, ready.writable) = (true, true);
                self.serve_ready(who);
            }
        }
    }

    pub fn opened(&mut self, who: usize) {
        let now = self.now();
        self.lines[who].watch.heard = Some(now.instant);
        self.scenario.opened(who, self.lines[who].station, now, &mut self.expected[..self.used]);
        self.observe(who);
    }

    /// Handles the events of most connections. Some are delayed to the next turn.
    fn events(&mut self, index: usize) {
        let first = self.random.below(self.used);
        for place in 0..self.used {
            let who = (first + place) % self.used;
            if self.lines[who].station == index && self.lines[who].conn.is_some() {
                if self.random.chance(100) {
                    self.wake(index);
                } else if self.stations[index].ring {
                    self.ring_events(who);
                } else {
                    self.ready_events(who);
                }
            }
        }
    }

    fn hear(&mut self, index: usize) {
        let now = self.now();
        let mut letters = std::mem::take(&mut self.stations[index].inbox);
        let was_full = letters.len() > self.room;
        let slice = if self.room < usize::MAX { 1 + self.slices.below(4) } else { usize::MAX };
        let rest = letters.split_off(slice.min(letters.len()));
        let same = |place: &usize| letters[*place].0 == letters[place - 1].0;
        if let Some(place) = (1..letters.len()).find(same)
            && self.strikes(Fault::SwappedLetters)
        {
            letters.swap(place - 1, place);
        }
        // Between processes each pair of cores has its own channel, so letters of one core may
        // arrive later.
        let late = !letters.is_empty() && self.random.chance(200);
        let late = late.then(|| self.random.below(self.stations.len()));
        for (from, letter) in letters {
            if late == Some(from) {
                self.stations[index].inbox.push((from, letter));
                self.wake(index);
                continue;
            }
            note!(self, "core {index}: a letter");
            self.events += 1;
            self.coverage.visit(Visit::Letter);
            self.scenario.heard(index, &letter, now, &mut self.expected[..self.used]);
            self.stations[index].core.heard(letter);
            self.observe_all(index);
        }
        if !rest.is_empty() {
            self.wake(index);
        }
        let inbox = &mut self.stations[index].inbox;
        inbox.extend(rest);
        if was_full && inbox.len() <= self.room {
            self.read_again(index);
        }
    }

    /// Whether the clients of a core are not read, because the box of another one is full.
    pub fn is_held(&self, index: usize) -> bool {
        let mut boxes = self.stations.iter().enumerate();
        boxes.any(|(other, station)| other != index && station.inbox.len() > self.room)
    }

    /// The box of a core has room again: the clients of the others are read.
    fn read_again(&mut self, index: usize) {
        for who in 0..self.used {
            let line = &mut self.lines[who];
            if line.station != index {
                (line.ready.again, line.ring.changed) = (true, true);
            }
        }
        (0..self.stations.len()).filter(|other| *other != index).for_each(|o| self.wake(o));
    }

    fn take_done(&mut self, index: usize) {
        let mut place = 0;
        while place < self.jobs.len() {
            let working = &self.jobs[place];
            if working.station != index || working.at > self.time {
                place += 1;
                continue;
            }
            let task = self.jobs.swap_remove(place).task;
            let wanted = task.wanted.strong_count() > 0;
            if wanted || self.random.chance(500) {
                let conn = task.conn;
                self.finish_job(index, task);
                if let Some(who) = self.who(index, conn) {
                    self.serve(who);
                }
            } else {
                self.coverage.visit(Visit::JobLate);
            }
        }
    }

    fn finish_job(&mut self, index: usize, task: Task<<S::Engine as Engine>::Job>) {
        let now = self.now();
        let Task { conn, id, job, .. } = task;
        let who = self.who(index, conn);
        let mut done = false;
        let World { stations, scenario, .. } = self;
        stations[index].core.done(conn, id, |reply| {
            done = true;
            scenario.work(job, now, reply)
        });
        self.events += 1;
        self.coverage.visit(if done { Visit::JobDone } else { Visit::JobLate });
        note!(self, "core {index}: a job for {who:?} is done, wanted: {done}");
        if let Some(who) = who {
            self.lines[who].watch.jobs -= 1;
            self.lines[who].watch.done_at = Some(now.instant);
            self.observe(who);
        }
    }

    /// Runs or queues the jobs that replies need.
    pub fn take_on_jobs(&mut self, index: usize, serving: usize) {
        if !<S::Engine as Engine>::Job::EVER {
            return;
        }
        while let Some(task) = self.stations[index].core.next_job() {
            let who = self.who(index, task.conn);
            if let Some(who) = who {
                self.lines[who].watch.jobs += 1;
            }
            if !self.stations[index].ring && self.scenario.is_short(&task.job) {
                let conn = task.conn;
                self.finish_job(index, task);
                if who != Some(serving) {
                    self.stations[index].core.change(conn);
                }
                continue;
            }
            // Some take longer than the idle timeout.
            let long = 3 * self.limits.idle.as_micros() as u64;
            let longest = self.random.pick(&[self.lag, 10_000, 300_000, long.min(3_000_000)]);
            let at = self.time + self.random.between(0, longest);
            note!(self, "core {index}: a job for {who:?}, until {at}");
            self.jobs.push(Working { at, station: index, task });
            sooner(&mut self.stations[index].wake_at, at);
        }
    }

    /// Accepts no more clients, and starts to drain those that are connected.
    fn stop(&mut self, index: usize) {
        note!(self, "core {index}: stops");
        for who in std::mem::take(&mut self.stations[index].accepts) {
            (self.lines[who].phase, self.lines[who].peer.done) = (Phase::Unused, true);
        }
        if self.drain.is_zero() {
            self.end_input(index);
        } else {
            self.stations[index].core.drain(self.drain, self.time);
        }
    }

    /// Shuts down the input of all clients.
    fn end_input(&mut self, index: usize) {
        note!(self, "core {index}: shuts down the input");
        self.stations[index].core.stop(self.grace);
        let drained: Vec<Conn> = self.stations[index].core.to_drain().collect();
        for conn in drained {
            let Some(who) = self.who(index, conn) else { continue };
            self.lines[who].watch.due_at_stop = Some(self.lines[who].wire.arrived);
            if !self.lines[who].wire.inbox.is_empty() && self.strikes(Fault::LostInputAtStop) {
                self.lines[who].wire.inbox.clear();
            }
            self.lines[who].wire.read_shut = true;
            self.arrived(who);
        }
    }

    fn end_of_turn(&mut self, index: usize) {
        let now = self.now();
        let station = &mut self.stations[index];
        if station.core.due().is_some_and(|due| due <= now.instant) {
            self.tick(index);
        }
        self.flush(index);
        let next = self.jobs.iter().filter(|job| job.station == index).map(|job| job.at).min();
        if let Some(at) = next {
            sooner(&mut self.stations[index].wake_at, at);
        }
        if self.wrong.is_none()
            && let Err(wrong) = self.scenario.turned(index, now, &mut self.expected[..self.used])
        {
            self.fail(wrong);
        }
        for who in 0..self.used {
            if self.lines[who].station == index && self.lines[who].is_up() {
                self.observe(who);
                self.check_turn(who);
            }
        }
    }

    fn tick(&mut self, index: usize) {
        if self.strikes(Fault::MissedTimer) {
            self.stations[index].core.miss_timer();
            return;
        }
        let now = self.now();
        let station = &mut self.stations[index];
        let mut due = 0;
        for timer in station.core.timers_due() {
            self.coverage.visit(timer);
            due += 1;
        }
        if station.core.engine().due().is_some_and(|due| due <= now.instant) {
            self.coverage.visit(Visit::TimerEngine);
        }
        if station.core.grace_is_over() {
            self.coverage.visit(Visit::TimerGrace);
        }
        let retiring: Vec<Conn> = station.core.retiring().collect();
        let sockets = Sockets::new(&self.lines, &station.table);
        station.core.tick(&sockets);
        let asked = sockets.asked();
        self.events += 1;
        note!(self, "core {index}: {due} timers");
        if asked > due * LOOKS {
            self.fail(format!("a tick with {due} timers checked {asked} sockets for input"));
        }
        for conn in retiring {
            let link = self.stations[index].core.link(conn);
            // Otherwise it has timed out.
            if let Some(who) = self.who(index, conn)
                && link.is_some_and(|link| link.why().is_none())
            {
                note!(self, "{who}: retired");
                self.coverage.visit(Visit::Retired);
                self.scenario.retired(who, now, &mut self.expected[..self.used]);
            }
        }
        self.observe_all(index);
        self.scenario.ticked(index, now, &mut self.expected[..self.used]);
        if self.stations[index].core.is_drained() {
            self.end_input(index);
        }
    }

    /// Serves the connections that have changed, or a slice of them if the engine posts. Serving
    /// may read and post, so letters are sent last.
    fn flush(&mut self, index: usize) {
        let mut slice = self.stations[index].core.slice();
        if S::Engine::POSTS && self.random.chance(200) {
            // A scenario has fewer connections than a slice.
            slice = self.random.below(4);
        }
        loop {
            if self.stations[index].ring {
                self.ring_changed(index);
            }
            let core = &mut self.stations[index].core;
            if slice == 0 && core.has_changed() {
                self.wake(index);
                break;
            }
            let Some(conn) = core.next_changed() else {
                if S::Engine::CONNECTS && self.connect(index) {
                    continue;
                }
                break;
            };
            slice = slice.saturating_sub(1);
            let Some(who) = self.who(index, conn) else { continue };
            if !self.strikes(Fault::LostChange) {
                self.serve(who);
            }
        }
        if S::Engine::POSTS {
            self.post(index);
        }
    }

    fn post(&mut self, index: usize) {
        let letters: Vec<_> = self.stations[index].core.letters().collect();
        for other in (0..self.stations.len()).filter(|other| *other != index) {
            for letter in &letters {
                if !self.strikes(Fault::LostLetter) {
                    let letter = self.scenario.carried(letter.clone());
                    self.stations[other].inbox.push((index, letter));
                    self.wake(other);
                }
            }
        }
    }

    /// Opens the connections that the engine requested. Returns whether there were any.
    fn connect(&mut self, index: usize) -> bool {
        let before = self.used;
        while let Some((conn, to)) = self.stations[index].core.next_connect() {
            let at = self.time + self.random.pick(&[0, self.lag, 100_000, 30_000_000]);
            let who = self.add_line(Side::Upstream, index, Phase::Connecting(at, true));
            self.lines[who].conn = Some(conn);
            self.stations[index].insert(conn, who);
            let takes = self.scenario.connects(who, index, to);
            self.lines[who].phase = Phase::Connecting(at, takes);
            sooner(&mut self.stations[index].wake_at, at);
            if !takes && self.random.chance(200) {
                // The connection is refused at once.
                self.stations[index].core.failed(conn);
                self.lines[who].wire.reset = true;
            }
            self.observe(who);
            self.serve(who);
        }
        self.used > before
    }

    /// Carries out what the core requests for a connection.
    pub fn serve(&mut self, who: usize) {
        if self.stations[self.lines[who].station].ring {
            self.serve_ring(who);
        } else {
            self.serve_ready(who);
        }
    }

    /// Completes an outgoing connection attempt when its answer is due: it is connected or refused.
    /// Returns whether it was completed.
    pub fn connected(&mut self, who: usize) -> bool {
        let Some(takes) = self.answers(who) else { return false };
        let Some(conn) = self.conn(who) else { return false };
        let line = &mut self.lines[who];
        line.phase = Phase::Up;
        let station = line.station;
        if takes {
            line.peer.send_at = Some(self.time);
            line.peer.read_at = Some(self.time);
            line.ready.writable = true;
            note!(self, "{who}: connected");
            // The engine may have closed it meanwhile.
            let core = &mut self.stations[station].core;
            let waits = core.link(conn).is_some_and(|link| link.why().is_none());
            core.connected(conn);
            if waits {
                self.opened(who);
            }
        } else {
            line.wire.reset = true;
            line.peer.done = true;
            note!(self, "{who}: refused");
            self.stations[station].core.failed(conn);
            self.observe(who);
        }
        true
    }

    // ---- the socket calls of a driver ----

    /// Writes to a socket. Returns the number of bytes accepted; `None` if the connection is gone.
    pub fn write(&mut self, who: usize, from: usize, bytes: &[u8]) -> Option<usize> {
        let lost = !bytes.is_empty() && self.strikes(Fault::LostByte);
        let doubled = !bytes.is_empty() && self.strikes(Fault::DoubledByte);
        let wire = &mut self.lines[who].wire;
        if wire.finished || wire.closed {
            self.fail(format!("{who}: {} bytes are written after the end", bytes.len()));
            return None;
        }
        let written = wire.write(&bytes[from..])?;
        if written > 0 && (lost || doubled) {
            wire.sending.unpush(written);
            let cut = &bytes[from..from + written];
            wire.sending.push(if lost { &cut[1..] } else { cut });
            if doubled {
                wire.sending.push(&cut[..1]);
            }
        }
        if written > 0 {
            self.departed(who);
        }
        self.events += 1;
        note!(self, "{who}: writes {written} of {}", bytes.len() - from);
        Some(written)
    }

    /// Shuts down the sending side of a socket. Returns whether that succeeded.
    pub fn shutdown_write(&mut self, who: usize) -> bool {
        if self.strikes(Fault::ReplyAfterTheEnd) {
            self.lines[who].wire.sending.push(b"late\n");
        }
        let now = self.now().instant;
        let line = &mut self.lines[who];
        line.wire.finished = true;
        line.watch.finished_at = Some(now);
        let done = !line.wire.reset;
        self.events += 1;
        note!(self, "{who}: our sending side is shut down");
        self.departed(who);
        done
    }
}
