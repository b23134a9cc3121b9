//! An engine and the life of its connections, as a driver runs them.

use crate::{
    Conn, Effects, Engine, Flow, JobId, Limits, Now, Side, Socket, Task,
    link::{End, Link, Step},
    timers::Timers,
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// Timers that are served in a turn: a storm of them does not hold up everything else.
const TIMERS: usize = 256;

/// The fewest connections that [`Core::slice`] permits.
const SLICE: usize = 64;
/// Pushes that take about as long as a write.
const PUSHES: usize = 32;

/// What a driver does with a connection next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Write [`Core::output`], and report [`Core::wrote`]; or take it, and report
    /// [`Core::completed`].
    Write {
        /// These are the last bytes before [`Next::FinishWriting`]: the kernel may hold them back, to
        /// send them and the end in one packet.
        last: bool,
    },
    /// End our direction, and report [`Core::finished`].
    FinishWriting,
    /// Close the socket, and report [`Core::closed`].
    Close,
    /// Wait for what [`Core::wants_read`] says, and for room if not all could be written.
    Wait,
}

/// An engine and its connections. Every method that takes a name ignores one that names nothing.
pub struct Core<E: Engine> {
    engine: E,
    effects: Effects<E>,
    limits: Limits,
    timers: Timers,
    clients: usize,
    /// When the turn before this one began.
    turn_before: Instant,
    /// The deadline of a drain: the remaining connections are cut then.
    cut_at: Option<Instant>,
}

impl<E: Engine> Core<E> {
    /// A core without connections.
    pub fn new(engine: E, limits: Limits, now: Now) -> Self {
        Core {
            engine,
            effects: Effects::new(now),
            limits,
            timers: Timers::default(),
            clients: 0,
            turn_before: now.instant,
            cut_at: None,
        }
    }

    /// The engine.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// A turn of the loop begins.
    #[inline]
    pub fn turn(&mut self, now: Now) {
        self.turn_before = self.effects.now.instant;
        self.effects.now = now;
    }

    /// The time of this turn.
    #[inline]
    pub fn now(&self) -> Now {
        self.effects.now
    }

    // ---- what happened ----

    /// A client has connected.
    pub fn accept(&mut self) -> Conn {
        let conn = self.effects.insert(Side::Client);
        self.clients += 1;
        self.call(conn, |engine, effects| engine.opened(conn, effects));
        conn
    }

    /// A connection that the engine asked for is open.
    pub fn connected(&mut self, conn: Conn) {
        let now = self.now().instant;
        if self.effects.get(conn).is_some_and(|link| link.connected(now)) {
            self.call(conn, |engine, effects| engine.opened(conn, effects));
        }
    }

    /// Bytes were read.
    #[inline]
    pub fn received(&mut self, conn: Conn, bytes: &mut [u8]) {
        let now = self.now().instant;
        let Some(link) = self.effects.get(conn) else { return };
        if !link.received(now, bytes.len()) {
            return;
        }
        // One that could have rung in the turn before waited for room, which the replies may fill again: where
        // a peer asks faster than it reads, it would wait for ever.
        let waited = link.is_due(self.turn_before);
        self.call(conn, |engine, effects| engine.received(conn, bytes, effects));
        if waited && self.effects.get(conn).is_some_and(|link| link.rings_late(self.turn_before)) {
            self.call(conn, |engine, effects| engine.alarm(conn, effects));
        }
    }

    /// The end of input was read.
    pub fn ended(&mut self, conn: Conn) {
        if self.effects.get(conn).is_some_and(|link| link.ended()) {
            self.call(conn, |engine, effects| engine.ended(conn, effects));
        }
    }

    /// Reading or writing failed: the connection is gone.
    pub fn failed(&mut self, conn: Conn) {
        if let Some(link) = self.effects.get(conn) {
            link.end(End::Failed);
        }
    }

    /// So many bytes of [`Core::output`] were written.
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

    /// Takes the output, for a driver whose writes complete later: [`Core::completed`].
    pub fn take_output(&mut self, conn: Conn) -> Vec<u8> {
        let now = self.now().instant;
        self.effects.get(conn).map(|link| link.take(now)).unwrap_or_default()
    }

    /// So many bytes of what was taken were written. Once it was all, `memory` is given back.
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
        if self.effects.look(conn).is_some_and(Link::wants_room) {
            self.call(conn, |engine, effects| engine.room(conn, effects));
        }
    }

    /// Our direction was ended; or not, because the connection is gone.
    pub fn finished(&mut self, conn: Conn, done: bool) {
        let now = self.now().instant;
        if let Some(link) = self.effects.get(conn) {
            link.finished(now, done);
        }
    }

    /// The socket is closed.
    pub fn closed(&mut self, conn: Conn) {
        if self.effects.get(conn).is_none() {
            return;
        }
        let mut link = self.effects.links.remove(conn.index());
        self.clients -= usize::from(link.side == Side::Client);
        self.effects.keep(std::mem::take(link.out()));
        self.call(conn, |engine, effects| engine.closed(conn, effects));
    }

    /// A job is done: `finish` appends its reply.
    pub fn done(&mut self, conn: Conn, id: JobId, finish: impl FnOnce(&mut Vec<u8>) -> Flow) {
        if self.effects.get(conn).is_some_and(|link| link.is_open()) {
            self.call(conn, |engine, effects| engine.done(conn, id, finish, effects));
        }
    }

    /// Which core this is, from 0, of how many. Said once, where the engine posts.
    pub fn seated(&mut self, core: u32, cores: u32) {
        self.engine.seated(core, cores);
    }

    /// The engine of another core has posted a letter.
    pub fn heard(&mut self, letter: E::Letter) {
        self.engine.heard(letter, &mut self.effects);
    }

    #[inline]
    fn call(&mut self, conn: Conn, what: impl FnOnce(&mut E, &mut Effects<E>)) {
        self.effects.current = Some(conn);
        what(&mut self.engine, &mut self.effects);
        self.effects.current = None;
    }

    // ---- what to do ----

    /// What is to be done with a connection next. Asked again after each answer that was carried out,
    /// until it says [`Next::Wait`] or [`Next::Close`].
    #[inline]
    pub fn next(&mut self, conn: Conn, socket: &impl Socket) -> Next {
        let draining = self.cut_at.is_some();
        let Some(link) = self.effects.get(conn) else { return Next::Wait };
        match link.step(draining, conn, socket) {
            Step::Write { last } => Next::Write { last },
            Step::FinishWriting => Next::FinishWriting,
            Step::Close => Next::Close,
            Step::Wait => Next::Wait,
        }
    }

    /// Nothing more can be done with a connection for now: its deadline is kept, and memory that it
    /// does not use goes to others.
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

    /// The driver has changed something of a connection that it is not serving now: it is among
    /// [`Core::next_changed`].
    pub fn change(&mut self, conn: Conn) {
        self.effects.mark(conn);
    }

    /// The output that is not written yet.
    #[inline]
    pub fn output(&self, conn: Conn) -> &[u8] {
        self.effects.look(conn).map_or(&[], |link| link.output())
    }

    /// Whether input is to be read.
    #[inline]
    pub fn wants_read(&self, conn: Conn) -> bool {
        self.effects.look(conn).is_some_and(|link| link.wants_read())
    }

    /// Whether input is all that a connection waits for.
    #[inline]
    pub fn is_at_rest(&self, conn: Conn) -> bool {
        self.effects.look(conn).is_some_and(Link::is_at_rest)
    }

    /// Whether a connection is open, in whatever state.
    #[inline]
    pub fn has(&self, conn: Conn) -> bool {
        self.effects.look(conn).is_some()
    }

    /// The next connection that the engine has changed while it was called for another one, in the order of
    /// these changes. At the end of a turn the driver asks [`Core::next`] for [so many](Core::slice) of them.
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

    /// How many of [`Core::next_changed`] a driver serves at the end of this turn. All of them, unless the engine
    /// [posts](Engine::POSTS): then a push to thousands of connections is written in slices, and input is read
    /// between them. So nobody waits for the whole sweep before it is read, and a connection that comes late in
    /// the sweep gets all that was pushed meanwhile in one write. A slice takes at least as long as this turn's
    /// pushes did, so that the sweep comes to its end however much is pushed.
    pub fn slice(&mut self) -> usize {
        let pushes = std::mem::take(&mut self.effects.pushes);
        if E::POSTS { SLICE.max(pushes / PUSHES) } else { usize::MAX }
    }

    /// Whether some of [`Core::next_changed`] are left.
    #[inline]
    pub fn has_changed(&self) -> bool {
        !self.effects.dirty.is_empty()
    }

    /// Whether some of [`Core::next_changed`] have so much output that it is written now, before the
    /// end of the turn: events of many connections may push to the same one. Says so once.
    #[inline]
    pub fn is_crowded(&mut self) -> bool {
        std::mem::take(&mut self.effects.crowded)
    }

    /// The next connection to be opened.
    pub fn next_connect(&mut self) -> Option<(Conn, SocketAddr)> {
        let Effects { connects, links, .. } = &mut self.effects;
        while let Some((conn, to)) = connects.pop_front() {
            // The engine may have given it up since.
            let link = links.get(conn.index()).filter(|l| l.generation == conn.generation());
            if link.is_some_and(Link::is_connecting) {
                return Some((conn, to));
            }
        }
        None
    }

    /// Returns the number of connections to be opened, at most. In one turn a driver opens only those
    /// that it found, so an engine that retries a failed attempt at once does not hold up the others.
    #[inline]
    pub fn connects(&self) -> usize {
        self.effects.connects.len()
    }

    /// Whether there are letters for the other cores.
    #[inline]
    pub fn has_letters(&self) -> bool {
        !self.effects.letters.is_empty()
    }

    /// The next job to be done.
    #[inline]
    pub fn next_job(&mut self) -> Option<Task<E::Job>> {
        self.effects.jobs.pop_front()
    }

    /// Takes the letters for the other cores.
    pub fn letters(&mut self) -> std::vec::Drain<'_, E::Letter> {
        self.effects.letters.drain(..)
    }

    // ---- time ----

    /// When [`Core::tick`] has something to do, at the earliest.
    #[inline]
    pub fn due(&self) -> Option<Instant> {
        let engine = self.engine.due();
        self.timers.next().into_iter().chain(self.cut_at).chain(engine).min()
    }

    /// Serves the timers that are due. Connections that change are among
    /// [`Core::next_changed`].
    pub fn tick(&mut self, socket: &impl Socket) {
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
        if self.cut_at.is_some_and(|at| now >= at) {
            self.cut();
        }
    }

    /// The server stops: no client is accepted any more, and the driver ends the input of all of
    /// them, so that [`Core::ended`] follows what has arrived. Connections that remain after `grace` are cut.
    pub fn stop(&mut self, grace: Duration) {
        self.cut_at = Some(self.now().instant + grace);
    }

    /// Whether a stop is under way.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.cut_at.is_some()
    }

    /// The clients whose input a stop ends. One that lingers has ended its direction already.
    pub fn to_drain(&self) -> impl Iterator<Item = Conn> {
        let drains = |link: &Link| {
            link.side == Side::Client
                && !matches!(link.state(), crate::link::State::Lingering { .. })
        };
        let links = self.effects.links.iter();
        links.filter(move |(_, link)| drains(link)).map(|(i, link)| Conn::new(i, link.generation))
    }

    /// How many clients are connected.
    pub fn clients(&self) -> usize {
        self.clients
    }

    fn cut(&mut self) {
        for (place, link) in &mut self.effects.links {
            link.end(End::Cut);
            if !std::mem::replace(&mut link.in_dirty, true) {
                self.effects.dirty.push_back(Conn::new(place, link.generation));
            }
        }
        // All are closed from now on.
        self.cut_at = Some(self.now().instant + Duration::from_secs(3600));
    }
}

/// What the simulator sees of a core, and does to it.
#[cfg(feature = "simulator")]
impl<E: Engine> Core<E> {
    pub(crate) fn link(&self, conn: Conn) -> Option<&Link> {
        self.effects.look(conn)
    }

    /// What the next [`Core::tick`] is for.
    pub(crate) fn timers_due(&self) -> impl Iterator<Item = crate::link::Timer> {
        let now = self.now().instant;
        let links = self.effects.links.iter();
        let deadlines = links.filter_map(|(_, link)| link.deadline(&self.limits));
        deadlines.filter(move |(due, _)| *due <= now).map(|(_, timer)| timer)
    }

    pub(crate) fn grace_is_over(&self) -> bool {
        self.cut_at.is_some_and(|at| at <= self.now().instant)
    }

    /// Forgets a timer that is due: a planted fault.
    pub(crate) fn miss_timer(&mut self) {
        self.timers.pop(self.now().instant);
    }
}
