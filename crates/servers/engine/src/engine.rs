//! The [`Engine`] trait, and the effects of an engine on its connections.

use crate::{
    Conn, Flow, Job, JobId, Never, Now, OutputState, Side, Task,
    connection::link::{ConnInterest, End, Link},
};
use slab::Slab;
use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    sync::Weak,
    time::{Duration, Instant},
};

/// Maximum number of output buffers kept for reuse, and maximum size of each in bytes.
const SPARE: usize = 64;
const SPARE_BYTES: usize = 128 * 1024;

/// What an engine posts to the engines of the other cores.
pub trait Posted: Clone + Send + 'static {
    /// The core that it is for; `None` if it is for all.
    fn to(&self) -> Option<u32> {
        None
    }

    /// The memory that it needs, in bytes, for the bound of a letterbox.
    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

impl Posted for Never {}

impl Posted for () {}

/// The application logic of one core: bytes and events of its connections in, effects out.
///
/// The driver calls it for one connection at a time. A reactor writes output to that connection at
/// once, the ring at the end of the turn. Output to other connections is written at the end of the
/// turn, in one write per connection, or earlier if it is much. If
/// [many connections](crate::Core::slice) have output, some are written in a later turn.
pub trait Engine: Sized {
    /// The jobs that its replies may need; [`Never`] if none.
    type Job: Job;

    /// The messages that it posts to the engines of the other cores; [`Never`] if
    /// none.
    type Letter: Posted;

    /// Whether it posts letters to other cores.
    const POSTS: bool = false;

    /// Whether it opens connections to other servers.
    const CONNECTS: bool = false;

    /// Called when a client has connected, or when a connection to another server is open.
    fn opened(&mut self, conn: Conn, effects: &mut Effects<Self>);

    /// Called when bytes have arrived. The engine takes all of them, and may change them in place.
    /// It limits how much it buffers through [`ConnInterest::reads`]; some bytes may still arrive after
    /// that is false.
    fn received(&mut self, conn: Conn, bytes: &mut [u8], effects: &mut Effects<Self>);

    /// Called when all output of a connection has been written, if [`ConnInterest::wants_drained`] is set, and
    /// when it is set while no output is pending.
    fn room(&mut self, conn: Conn, effects: &mut Effects<Self>);

    /// Called when the peer has closed its sending side, or a stop has shut down the input. The
    /// peer may still read. The engine closes the connection once it has no more output for it.
    fn ended(&mut self, conn: Conn, effects: &mut Effects<Self>);

    /// Called when the connection is closed, or could not be opened. `conn` is invalid from now on.
    fn closed(&mut self, conn: Conn, effects: &mut Effects<Self>);

    /// Called before [`Engine::closed`] if it is known why a connection could not be opened, e.g.
    /// because no descriptor is free. An error of the kind [`io::ErrorKind::InvalidData`] is about
    /// the other server: TLS with it has failed. Then the connection may have been reported as open,
    /// but the server has taken nothing that was sent.
    fn not_opened(&mut self, _conn: Conn, _why: &io::Error) {}

    /// Called when the alarm of [`ConnInterest::alarm`] is due.
    fn alarm(&mut self, _conn: Conn, _effects: &mut Effects<Self>) {}

    /// Called when a paced drain begins, which lasts `over`: no more clients come, and
    /// [`Engine::retire`] follows for each.
    fn drain_begins(&mut self, _over: Duration, _effects: &mut Effects<Self>) {}

    /// Called once for each client during a paced drain, when the client is due to leave. The engine
    /// closes the connection when that disturbs the client least. What is still open at the end of the
    /// drain is stopped. `random`: a random number, e.g. to spread what clients do next.
    fn retire(&mut self, _conn: Conn, _random: u32, _effects: &mut Effects<Self>) {}

    /// Called when a job is done. `finish` appends its reply and returns what the connection does
    /// next.
    fn done(
        &mut self,
        _conn: Conn,
        _job: JobId,
        _finish: impl FnOnce(&mut Vec<u8>) -> Flow,
        _effects: &mut Effects<Self>,
    ) {
    }

    /// Latest time at which [`Engine::tick`] must be called.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// Called when the deadline of [`Engine::due`] has passed.
    fn tick(&mut self, _effects: &mut Effects<Self>) {}

    /// Sets the index of this engine's core, from 0, and the number of cores. Called at most once,
    /// before any other method. A driver need not call it if there is one core, or if the engine
    /// does not [post](Engine::POSTS).
    fn set_core(&mut self, _core: u32, _cores: u32) {}

    /// Called when the engine of another core has posted a letter.
    fn heard(&mut self, _letter: Self::Letter, _effects: &mut Effects<Self>) {}
}

/// The connections of a core, as its engine sees and changes them. Effects on a closed connection
/// are ignored.
pub struct Effects<E: Engine> {
    pub(crate) now: Now,
    pub(crate) links: Slab<Link>,
    generation: u32,
    /// The connection of the current call. The driver serves it next anyway, so the call does not
    /// mark it dirty.
    pub(crate) current: Option<Conn>,
    /// Other connections that have changed, in the order of the changes.
    pub(crate) dirty: VecDeque<Conn>,
    pub(crate) connects: VecDeque<(Conn, SocketAddr)>,
    pub(crate) jobs: VecDeque<Task<E::Job>>,
    pub(crate) letters: Vec<E::Letter>,
    /// Some connection has so much pending output that it is written before the end of the turn.
    pub(crate) crowded: bool,
    /// Pushes since the last call of [`Core::slice`](crate::Core::slice).
    pub(crate) pushes: usize,
    spare: Vec<Vec<u8>>,
}

impl<E: Engine> Effects<E> {
    pub(crate) fn new(now: Now) -> Self {
        Effects {
            now,
            links: Slab::new(),
            generation: 0,
            current: None,
            dirty: VecDeque::new(),
            connects: VecDeque::new(),
            jobs: VecDeque::new(),
            letters: Vec::new(),
            crowded: false,
            pushes: 0,
            spare: Vec::new(),
        }
    }

    pub(crate) fn insert(&mut self, side: Side) -> Conn {
        self.generation = self.generation.wrapping_add(1);
        let link = Link::new(self.generation, side, self.now.instant);
        Conn::new(self.links.insert(link), self.generation)
    }

    #[inline]
    pub(crate) fn get(&mut self, conn: Conn) -> Option<&mut Link> {
        self.links.get_mut(conn.index()).filter(|link| link.generation == conn.generation())
    }

    #[inline]
    pub(crate) fn look(&self, conn: Conn) -> Option<&Link> {
        self.links.get(conn.index()).filter(|link| link.generation == conn.generation())
    }

    /// Returns a connection to be changed, and marks it dirty: the driver serves it before it
    /// waits.
    #[inline]
    fn change(&mut self, conn: Conn) -> Option<&mut Link> {
        let Effects { links, dirty, current, .. } = self;
        let link = links.get_mut(conn.index()).filter(|l| l.generation == conn.generation())?;
        if *current != Some(conn) && !link.in_dirty {
            link.in_dirty = true;
            dirty.push_back(conn);
        }
        Some(link)
    }

    pub(crate) fn mark(&mut self, conn: Conn) {
        self.change(conn);
    }

    /// Keeps an unneeded output buffer for reuse, if there are few and it is small.
    pub(crate) fn keep(&mut self, mut bytes: Vec<u8>) {
        if self.spare.len() < SPARE && bytes.capacity() <= SPARE_BYTES {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    /// The time at which this turn of the loop began.
    #[inline]
    pub fn now(&self) -> Now {
        self.now
    }

    /// Returns the output buffer of a connection, to append to. Output to a connection that is
    /// still being opened is written once it is open, or discarded if it cannot be opened.
    ///
    /// Returns `None` if the connection is gone, has failed or is closing. A failed connection may
    /// not have been reported to [`Engine::closed`] yet.
    #[inline]
    pub fn out(&mut self, conn: Conn) -> Option<&mut Vec<u8>> {
        let Effects { links, dirty, current, spare, .. } = self;
        let link = links.get_mut(conn.index()).filter(|l| l.generation == conn.generation())?;
        if !link.takes_output() {
            return None;
        }
        if *current != Some(conn) && !link.in_dirty {
            link.in_dirty = true;
            dirty.push_back(conn);
        }
        let out = link.out();
        if out.capacity() == 0
            && let Some(memory) = spare.pop()
        {
            *out = memory;
        }
        Some(out)
    }

    /// Returns the bytes of output that the kernel has not accepted; 0 for a connection that is
    /// gone.
    #[inline]
    pub fn pending(&self, conn: Conn) -> usize {
        self.look(conn).map_or(0, Link::pending)
    }

    /// Returns when input of a connection was last read; `None` if the connection is gone.
    pub fn last_read(&self, conn: Conn) -> Option<Instant> {
        self.look(conn).map(Link::last_read)
    }

    /// Returns how much of the output of a connection is written.
    pub(crate) fn output(&self, conn: Conn) -> OutputState {
        self.look(conn).map(Link::output_state).unwrap_or_default()
    }

    /// Notes that output was appended because of another connection's event. If it is much, the
    /// driver writes it before it reports the next event.
    pub(crate) fn pushed(&mut self, conn: Conn) {
        self.pushes += 1;
        self.crowded |= self.look(conn).is_some_and(Link::is_crowded);
    }

    /// Closes a connection once its output is written, in the way that `flow` selects. The attempt
    /// to open one that is still connecting is abandoned, and its output is discarded.
    pub fn close(&mut self, conn: Conn, flow: Flow) {
        let now = self.now.instant;
        if let Some(link) = self.change(conn) {
            link.close(now, flow);
        }
    }

    /// Closes a connection at once. Its pending output is lost.
    pub fn abort(&mut self, conn: Conn) {
        if let Some(link) = self.change(conn) {
            link.end(End::Aborted);
        }
    }

    /// Sets which events the engine wants for a connection from now on.
    #[inline]
    pub fn set(&mut self, conn: Conn, status: ConnInterest) {
        let now = self.now.instant;
        if let Some(link) = self.change(conn) {
            link.set_status(now, status);
        }
    }

    /// Starts to open a connection to another server. [`Engine::opened`] or [`Engine::closed`]
    /// follows.
    pub fn connect(&mut self, to: SocketAddr) -> Conn {
        let conn = self.insert(Side::Upstream);
        self.connects.push_back((conn, to));
        self.change(conn);
        conn
    }

    /// Queues a job for a connection. [`Engine::done`] follows, unless by then the connection is no
    /// longer open, or `wanted` can no longer be upgraded.
    pub fn defer(&mut self, conn: Conn, id: JobId, job: E::Job, wanted: Weak<()>) {
        self.jobs.push_back(Task { conn, id, job, wanted });
    }

    /// Posts a letter to the engine of each other core.
    pub fn post(&mut self, letter: E::Letter) {
        self.letters.push(letter);
    }
}
