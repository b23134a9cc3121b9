//! An engine and the lifecycle of its connections, as a driver runs them.

use crate::{
    Conn, Effects, Engine, Flow, JobId, Limits, Now, Side, SocketProbe, Task,
    connection::{
        link::{ConnInterest, End, Link, Step},
        timers::Timers,
    },
    drain::Drain,
};
use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Maximum number of timers served per turn, so that many at once do not delay everything else.
const TIMERS: usize = 256;

/// Minimum number of connections that [`Core::slice`] permits.
const SLICE: usize = 64;
/// Number of pushes that take about as long as one write.
const PUSHES: usize = 32;
/// Number of pushes in a turn after which letters wait for the next turn. They take some 10 ms.
const HEARD: usize = 1 << 18;

/// What a driver does with a connection next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Write [`Core::output`], and report [`Core::wrote`]; or take it, and report
    /// [`Core::completed`].
    Write {
        /// These are the last bytes before [`Next::ShutdownWrite`] or [`Next::Close`]. The kernel
        /// may delay them, to send them and the FIN in one packet.
        last: bool,
    },
    /// Shut down our sending side, and report [`Core::shutdown_completed`].
    ShutdownWrite,
    /// Close the socket, and report [`Core::closed`].
    Close,
    /// Wait: for input if [`Core::wants_read`], and for writability if not all output could be
    /// written.
    Wait,
}

/// An engine and its connections. Every method that takes a [`Conn`] ignores one that is no longer
/// open.
pub struct Core<E: Engine> {
    engine: E,
    effects: Effects<E>,
    limits: Limits,
    timers: Timers,
    clients: usize,
    /// When the previous turn started.
    turn_before: Instant,
    /// A paced drain, which comes before the stop of all that remain.
    drain: Option<Drain>,
    /// The deadline of a stop, after which the remaining connections are cut.
    cut_at: Option<Instant>,
}

impl<E: Engine> Core<E> {
    /// Creates a core without connections.
    pub fn new(engine: E, limits: Limits, now: Now) -> Self {
        Core {
            engine,
            effects: Effects::new(now),
            limits,
            timers: Timers::default(),
            clients: 0,
            turn_before: now.instant,
            drain: None,
            cut_at: None,
        }
    }

    /// The engine.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// Starts a turn of the loop.
    #[inline]
    pub fn turn(&mut self, now: Now) {
        self.turn_before = self.effects.now.instant;
        self.effects.now = now;
    }

    /// The start time of this turn.
    #[inline]
    pub fn now(&self) -> Now {
        self.effects.now
    }

    // ---- events from the driver ----

    /// Reports that a client has connected.
    pub fn accept(&mut self) -> Conn {
        let conn = self.effects.insert(Side::Client);
        self.clients += 1;
        self.call(conn, |engine, effects| engine.opened(conn, effects));
        conn
    }

    /// Reports that a connection which the engine requested is open.
    pub fn connected(&mut self, conn: Conn) {
        let now = self.now().instant;
        if self.effects.get(conn).is_some_and(|link| link.connected(now)) {
            self.call(conn, |engine, effects| engine.opened(conn, effects));
        }
    }

    /// Reports bytes that were read.
    #[inline]
    pub fn received(&mut self, conn: Conn, bytes: &mut [u8]) {
        let now = self.now().instant;
        let Some(link) = self.effects.get(conn) else { return };
        if !link.received(now, bytes.len()) {
            return;
        }
        // An alarm that was due before this turn has waited for buffer space, and the replies may
        // fill it again. With a peer that sends requests faster than it reads replies, the alarm
        // would wait forever.
        let waited = link.is_due(self.turn_before);
        self.call(conn, |engine, effects| engine.received(conn, bytes, effects));
        if waited && self.effects.get(conn).is_some_and(|link| link.rings_late(self.turn_before)) {
            self.call(conn, |engine, effects| engine.alarm(conn, effects));
        }
    }

    /// Reports the end of input.
    pub fn ended(&mut self, conn: Conn) {
        if self.effects.get(conn).is_some_and(|link| link.ended()) {
            self.call(conn, |engine, effects| engine.ended(conn, effects));
        }
    }

    /// Reports that connecting, reading or writing failed: the connection is lost.
    pub fn failed(&mut self, conn: Conn) {
        if let Some(link) = self.effects.get(conn) {
            link.end(End::Failed);
        }
    }

    /// Reports that a connection could not be opened, for this reason: e.g. no descriptor is free, or
    /// the other server is not trusted.
    pub fn not_opened(&mut self, conn: Conn, why: &io::Error) {
        self.engine.not_opened(conn, why);
        self.failed(conn);
    }

    /// Reports how many bytes of [`Core::output`] were written.
    #[inline]
    pub fn wrote(&mut self, conn: Conn, bytes: usize) {
        let now = self.now().instant;
        let Some(link) = self.effects.get(conn) else { return };
        if link.wrote(now, bytes) {
            let memory = std::mem::take(link.out());
            self.effects.keep(memory);
            self.room(conn);
        }
    }

    /// Takes the output, for a driver whose writes complete later (reported by
    /// [`Core::completed`]).
    pub fn take_output(&mut self, conn: Conn) -> Vec<u8> {
        let now = self.now().instant;
        self.effects.get(conn).map(|link| link.take(now)).unwrap_or_default()
    }

    /// Reports how many bytes of the taken output were written. `memory` returns the buffer once
    /// no more of it will be written.
    pub fn completed(&mut self, conn: Conn, bytes: usize, memory: Option<Vec<u8>>) {
        if let Some(memory) = memory {
            self.effects.keep(memory);
        }
        if self.effects.get(conn).is_some_and(|link| link.completed(bytes)) {
            self.room(conn);
        }
    }

    #[inline]
    fn room(&mut self, conn: Conn) {
        if self.effects.look(conn).is_some_and(Link::wants_drained) {
            self.call(conn, |engine, effects| engine.room(conn, effects));
        }
    }

    /// Reports whether our sending side was shut down. It fails if the connection is lost.
    pub fn shutdown_completed(&mut self, conn: Conn, done: bool) {
        let now = self.now().instant;
        if let Some(link) = self.effects.get(conn) {
            link.shutdown_completed(now, done);
        }
    }

    /// Reports that the socket is closed.
    pub fn closed(&mut self, conn: Conn) {
        if self.effects.get(conn).is_none() {
            return;
        }
        let mut link = self.effects.links.remove(conn.index());
        self.clients -= usize::from(link.side == Side::Client);
        self.effects.keep(std::mem::take(link.out()));
        self.call(conn, |engine, effects| engine.closed(conn, effects));
    }

    /// Reports that a job is done. `finish` appends its reply.
    pub fn done(&mut self, conn: Conn, id: JobId, finish: impl FnOnce(&mut Vec<u8>) -> Flow) {
        if self.effects.get(conn).is_some_and(|link| link.is_open()) {
            self.call(conn, |engine, effects| engine.done(conn, id, finish, effects));
        }
    }

    /// Sets the index of this core, from 0, and the number of cores. Called at most once, before
    /// any event. Without the call there is one core.
    pub fn set_core(&mut self, core: u32, cores: u32) {
        self.engine.set_core(core, cores);
    }

    /// Delivers a letter from the engine of another core.
    pub fn heard(&mut self, letter: E::Letter) {
        self.engine.heard(letter, &mut self.effects);
    }

    /// Whether letters may be delivered in this turn. After many pushes, the others wait for the
    /// next turn, so that connections are read and timers are served in between.
    #[inline]
    pub fn may_hear(&self) -> bool {
        self.effects.pushes < HEARD
    }

    #[inline]
    fn call(&mut self, conn: Conn, what: impl FnOnce(&mut E, &mut Effects<E>)) {
        self.effects.current = Some(conn);
        what(&mut self.engine, &mut self.effects);
        self.effects.current = None;
    }

    // ---- work for the driver ----

    /// Returns what to do with a connection next. The driver carries it out and calls this again,
    /// until it returns [`Next::Wait`] or [`Next::Close`].
    #[inline]
    pub fn next(&mut self, conn: Conn, socket: &impl SocketProbe) -> Next {
        let draining = self.cut_at.is_some();
        let Some(mut link) = self.effects.get(conn) else { return Next::Wait };
        if link.wants_more() {
            self.room(conn);
            let Some(same) = self.effects.get(conn) else { return Next::Wait };
            link = same;
        }
        match link.step(draining, conn, socket) {
            Step::Write { last } => Next::Write { last },
            Step::ShutdownWrite => Next::ShutdownWrite,
            Step::Close => Next::Close,
            Step::Wait => Next::Wait,
        }
    }

    /// Called when nothing more can be done with a connection for now. Sets its timer, and gives
    /// unused buffers to other connections.
    #[inline]
    pub fn settle(&mut self, conn: Conn) {
        let Some(link) = self.effects.get(conn) else { return };
        if let Some(due) = link.sooner_due(&self.limits) {
            self.timers.ensure(conn.index(), due);
        }
        if let Some(memory) = link.take_unused() {
            self.effects.keep(memory);
        }
    }

    /// Adds a connection that the driver is not serving now to [`Core::next_changed`].
    pub fn change(&mut self, conn: Conn) {
        self.effects.mark(conn);
    }

    /// The output that has not been written yet.
    #[inline]
    pub fn output(&self, conn: Conn) -> &[u8] {
        self.effects.look(conn).map_or(&[], |link| link.output())
    }

    /// Whether input should be read.
    #[inline]
    pub fn wants_read(&self, conn: Conn) -> bool {
        self.effects.look(conn).is_some_and(|link| link.wants_read())
    }

    /// Whether a connection waits only for input.
    #[inline]
    pub fn is_at_rest(&self, conn: Conn) -> bool {
        self.effects.look(conn).is_some_and(Link::is_at_rest)
    }

    /// Whether a connection exists, in any state.
    #[inline]
    pub fn has(&self, conn: Conn) -> bool {
        self.effects.look(conn).is_some()
    }

    /// Returns the next connection that the engine has changed in a call that was not for it, or
    /// that [`Core::tick`] or [`Core::change`] has added; the oldest first. At the end of a turn the
    /// driver calls [`Core::next`] for [`Core::slice`] of them.
    #[inline]
    pub fn next_changed(&mut self) -> Option<Conn> {
        while let Some(conn) = self.effects.dirty.pop_front() {
            if let Some(link) = self.effects.get(conn) {
                link.in_dirty = false;
                return Some(conn);
            }
        }
        None
    }

    /// Returns how many of [`Core::next_changed`] a driver serves at the end of this turn: all of
    /// them, unless the engine [posts](Engine::POSTS). Then a push to thousands of connections is
    /// written in slices, and input is read between slices. So no input waits for the whole sweep,
    /// and a connection late in the sweep gets all pushes so far in one write. A slice takes at
    /// least as long as this turn's pushes did, so the sweep finishes at any rate of pushes.
    pub fn slice(&mut self) -> usize {
        let pushes = std::mem::take(&mut self.effects.pushes);
        if E::POSTS { SLICE.max(pushes / PUSHES) } else { usize::MAX }
    }

    /// Whether [`Core::next_changed`] may return a connection.
    #[inline]
    pub fn has_changed(&self) -> bool {
        !self.effects.dirty.is_empty()
    }

    /// Whether some of [`Core::next_changed`] have so much output that it must be written now,
    /// before the end of the turn: events of many connections may push to the same one. Resets the
    /// flag.
    #[inline]
    pub fn take_flush_request(&mut self) -> bool {
        std::mem::take(&mut self.effects.crowded)
    }

    /// Returns the next connection to open, and its address.
    pub fn next_connect(&mut self) -> Option<(Conn, SocketAddr)> {
        let Effects { connects, links, .. } = &mut self.effects;
        while let Some((conn, to)) = connects.pop_front() {
            // The engine may have abandoned it since.
            let link = links.get(conn.index()).filter(|l| l.generation == conn.generation());
            if link.is_some_and(Link::is_connecting) {
                return Some((conn, to));
            }
        }
        None
    }

    /// Returns an upper bound on the number of connections to open. A driver opens only this many
    /// per turn, so an engine that retries a failed attempt at once does not delay other work.
    #[inline]
    pub fn connects(&self) -> usize {
        self.effects.connects.len()
    }

    /// Whether there are letters for the other cores.
    #[inline]
    pub fn has_letters(&self) -> bool {
        !self.effects.letters.is_empty()
    }

    /// Returns the next job to run.
    #[inline]
    pub fn next_job(&mut self) -> Option<Task<E::Job>> {
        self.effects.jobs.pop_front()
    }

    /// Takes the letters for the other cores.
    pub fn letters(&mut self) -> std::vec::Drain<'_, E::Letter> {
        self.effects.letters.drain(..)
    }

    // ---- time ----

    /// Earliest time at which [`Core::tick`] has something to do.
    #[inline]
    pub fn due(&self) -> Option<Instant> {
        let engine = self.engine.due();
        let drain = self.drain.as_ref().map(Drain::due);
        self.timers.next().into_iter().chain(self.cut_at).chain(engine).chain(drain).min()
    }

    /// Serves timers that are due, at most 256 of them, the engine's own timer, a paced drain, and the
    /// end of a stop's grace period. Affected connections are added to [`Core::next_changed`].
    pub fn tick(&mut self, socket: &impl SocketProbe) {
        let now = self.now().instant;
        for _ in 0..TIMERS {
            let Some(place) = self.timers.pop(now) else { break };
            let Some(link) = self.effects.links.get_mut(place) else { continue };
            let conn = Conn::new(place, link.generation);
            link.timer_is_gone();
            if link.due(&self.limits).is_some_and(|due| due <= now) {
                let rings = link.rings(now);
                link.look(now, &self.limits, conn, socket);
                if rings && link.is_open() {
                    self.call(conn, |engine, effects| engine.alarm(conn, effects));
                }
            }
            let Some(link) = self.effects.links.get_mut(place) else { continue };
            if !link.in_dirty {
                link.in_dirty = true;
                self.effects.dirty.push_back(conn);
            }
            if let Some(due) = link.due(&self.limits) {
                self.timers.ensure(place, due);
            }
        }
        if self.engine.due().is_some_and(|due| due <= now) {
            self.engine.tick(&mut self.effects);
        }
        while let Some((conn, random)) = self.drain.as_mut().and_then(|drain| drain.next(now)) {
            self.retire(conn, random);
        }
        if self.cut_at.is_some_and(|at| now >= at) {
            self.cut();
        }
    }

    /// Starts a paced drain, which lasts `over`. The driver accepts no more clients. Each client is
    /// served as before until [`Engine::retire`] is called for it. These calls are spread evenly, in an
    /// order that `seed` determines. After [`Core::is_drained`], [`Core::stop`] closes those that
    /// remain.
    pub fn drain(&mut self, over: Duration, seed: u64) {
        let (clients, now) = (self.to_drain().collect(), self.now().instant);
        self.drain = Some(Drain::new(clients, now, over, seed));
        self.drain_begins(over);
    }

    /// Notifies the engine that a paced drain begins. An engine that runs another one in a core of its own
    /// passes this on, and [`Core::retire`].
    pub fn drain_begins(&mut self, over: Duration) {
        self.engine.drain_begins(over, &mut self.effects);
    }

    /// Notifies the engine that it is the turn of a client to leave. `random`: see [`Engine::retire`].
    pub fn retire(&mut self, conn: Conn, random: u32) {
        if self.effects.get(conn).is_some_and(|link| link.is_open()) {
            self.call(conn, |engine, effects| engine.retire(conn, random, effects));
            self.effects.mark(conn);
        }
    }

    /// Whether the time of a paced drain is over, and the stop has not started.
    pub fn is_drained(&self) -> bool {
        self.drain.as_ref().is_some_and(|drain| drain.is_over(self.now().instant))
    }

    /// Whether a paced drain is in progress.
    pub fn is_draining(&self) -> bool {
        self.drain.is_some()
    }

    /// Starts a graceful shutdown. The driver accepts no more clients and shuts down the input of
    /// each, so that [`Core::ended`] follows the bytes that have arrived. Connections that remain
    /// after `grace` are cut.
    pub fn stop(&mut self, grace: Duration) {
        self.drain = None;
        self.cut_at = Some(self.now().instant + grace);
    }

    /// Whether a drain or a graceful shutdown is in progress.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.cut_at.is_some() || self.drain.is_some()
    }

    /// The clients whose input is shut down by a stop: all except those that linger, whose sending
    /// side is already shut down.
    pub fn to_drain(&self) -> impl Iterator<Item = Conn> {
        let drains = |link: &Link| {
            link.side == Side::Client
                && !matches!(link.state(), crate::connection::link::State::Lingering { .. })
        };
        let links = self.effects.links.iter();
        links.filter(move |(_, link)| drains(link)).map(|(i, link)| Conn::new(i, link.generation))
    }

    /// How many clients are connected.
    pub fn clients(&self) -> usize {
        self.clients
    }

    // ---- for a driver that is an engine itself ----
    //
    // Its connections have the limits and timers, so it calls `free_unused` instead of `settle`.

    /// Gives an unused buffer of a connection to other connections.
    #[inline]
    pub fn free_unused(&mut self, conn: Conn) {
        if let Some(memory) = self.effects.get(conn).and_then(Link::take_unused) {
            self.effects.keep(memory);
        }
    }

    /// What the engine wants for a connection now. Its alarm is omitted while it waits until output
    /// is written. `None`: the connection is gone.
    #[inline]
    pub fn interest(&self, conn: Conn) -> Option<ConnInterest> {
        self.effects.look(conn).map(Link::interest)
    }

    /// Why a connection is over, if it is: after [`Next::Close`].
    pub fn end(&self, conn: Conn) -> Option<End> {
        self.effects.look(conn).and_then(Link::why)
    }

    /// Calls the engine if the alarm of a connection is due.
    pub fn ring(&mut self, conn: Conn) {
        let now = self.now().instant;
        if self.effects.get(conn).is_some_and(|link| link.rings_late(now)) {
            self.call(conn, |engine, effects| engine.alarm(conn, effects));
        }
    }

    fn cut(&mut self) {
        for (place, link) in &mut self.effects.links {
            link.end(End::Cut);
            if !std::mem::replace(&mut link.in_dirty, true) {
                self.effects.dirty.push_back(Conn::new(place, link.generation));
            }
        }
        // Everything is closed, so the deadline is moved out of the way.
        self.cut_at = Some(self.now().instant + Duration::from_secs(3600));
    }
}

/// Hooks for the simulator.
#[cfg(feature = "simulator")]
impl<E: Engine> Core<E> {
    pub(crate) fn link(&self, conn: Conn) -> Option<&Link> {
        self.effects.look(conn)
    }

    /// The timers that the next [`Core::tick`] serves.
    pub(crate) fn timers_due(&self) -> impl Iterator<Item = crate::connection::link::Timer> {
        let now = self.now().instant;
        let links = self.effects.links.iter();
        let deadlines = links.filter_map(|(_, link)| link.deadline(&self.limits));
        deadlines.filter(move |(due, _)| *due <= now).map(|(_, timer)| timer)
    }

    /// The clients that the next [`Core::tick`] retires, unless they time out.
    pub(crate) fn retiring(&self) -> impl Iterator<Item = Conn> {
        let now = self.now().instant;
        let due = self.drain.iter().flat_map(move |drain| drain.due_clients(now));
        due.filter(|conn| self.effects.look(*conn).is_some_and(Link::is_open))
    }

    pub(crate) fn grace_is_over(&self) -> bool {
        self.cut_at.is_some_and(|at| at <= self.now().instant)
    }

    /// Drops a timer that is due (an injected fault).
    pub(crate) fn miss_timer(&mut self) {
        self.timers.pop(self.now().instant);
    }
}
