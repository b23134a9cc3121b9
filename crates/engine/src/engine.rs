//! What one core serves, and what it does to its connections: an engine and its effects.

use crate::{
    Conn, Flow, Job, JobId, Now, Side, Task,
    link::{End, Link, Status},
};
use slab::Slab;
use std::{collections::VecDeque, net::SocketAddr, sync::Weak, time::Instant};

/// Memory for output that is kept for others: how many pieces, and the most bytes of one.
const SPARE: usize = 64;
const SPARE_BYTES: usize = 128 * 1024;

/// What one core serves: bytes and events of its connections in, effects out.
///
/// The driver calls it for one connection at a time. What it writes to that connection leaves at
/// once; what it writes to others leaves at the end of the turn, in one write for each of them, or in a
/// later turn if there are [many](crate::Core::slice).
pub trait Engine: Sized {
    /// What its replies may need; [`Never`](crate::Never) if nothing.
    type Job: Job;

    /// What it posts to the engines of the other cores; [`Never`](crate::Never) if nothing.
    type Letter: Clone + Send + 'static;

    /// Whether it has other cores to post to.
    const POSTS: bool = false;

    /// Whether it opens connections of its own.
    const CONNECTS: bool = false;

    /// A client has connected, or a connection to another server is open.
    fn opened(&mut self, conn: Conn, effects: &mut Effects<Self>);

    /// Bytes came. The engine takes all of them, and may change them in place. It bounds what it
    /// keeps by [`Status::reads`]; some bytes may still come after that.
    fn received(&mut self, conn: Conn, bytes: &mut [u8], effects: &mut Effects<Self>);

    /// All output of a connection has been written, and [`Status::wants_room`] asked for this.
    fn room(&mut self, conn: Conn, effects: &mut Effects<Self>);

    /// The peer sends nothing more; it may still read. The engine closes the connection once it has
    /// nothing more to say.
    fn ended(&mut self, conn: Conn, effects: &mut Effects<Self>);

    /// The connection is gone, or could not be opened. Its name names nothing from now on.
    fn closed(&mut self, conn: Conn, effects: &mut Effects<Self>);

    /// The alarm of [`Status::alarm`] is due.
    fn alarm(&mut self, _conn: Conn, _effects: &mut Effects<Self>) {}

    /// A job is done: `finish` appends its reply and says what the connection does after it.
    fn done(
        &mut self,
        _conn: Conn,
        _job: JobId,
        _finish: impl FnOnce(&mut Vec<u8>) -> Flow,
        _effects: &mut Effects<Self>,
    ) {
    }

    /// When [`Engine::tick`] is called at the latest.
    fn due(&self) -> Option<Instant> {
        None
    }

    /// The deadline of [`Engine::due`] has passed.
    fn tick(&mut self, _effects: &mut Effects<Self>) {}

    /// Which core this engine serves, from 0, and how many there are. Said once, before anything else,
    /// where the engine [posts](Engine::POSTS).
    fn seated(&mut self, _core: u32, _cores: u32) {}

    /// The engine of another core has posted this.
    fn heard(&mut self, _letter: Self::Letter, _effects: &mut Effects<Self>) {}
}

/// The connections of a core as its engine sees them. An effect on a connection that is gone is
/// ignored.
pub struct Effects<E: Engine> {
    pub(crate) now: Now,
    pub(crate) links: Slab<Link>,
    generation: u32,
    /// The connection that the engine was called for: the driver goes on with it anyway.
    pub(crate) current: Option<Conn>,
    /// Others that the engine has changed, in the order in which they were.
    pub(crate) dirty: VecDeque<Conn>,
    pub(crate) connects: VecDeque<(Conn, SocketAddr)>,
    pub(crate) jobs: VecDeque<Task<E::Job>>,
    pub(crate) letters: Vec<E::Letter>,
    /// So much output is pending that it is written before the end of the turn.
    pub(crate) crowded: bool,
    /// Pushes since [`Core::slice`](crate::Core::slice) was asked.
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

    /// For a change: the driver looks at the connection again before it waits.
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

    /// Memory of output that has been written.
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

    /// The output of a connection, to be appended to. The output of one that is connecting is written
    /// once it is open, or discarded if it cannot be opened.
    ///
    /// `None` if the connection is gone, failed or closing. One that failed may not have been reported
    /// to [`Engine::closed`] yet.
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

    /// Bytes of output that the kernel has not taken; 0 for a connection that is gone.
    #[inline]
    pub fn pending(&self, conn: Conn) -> usize {
        self.look(conn).map_or(0, Link::pending)
    }

    /// Whether a connection is a slow consumer: the kernel does not take its output, and more than
    /// `limit` bytes are pending.
    pub(crate) fn is_behind(&self, conn: Conn, limit: usize) -> bool {
        self.look(conn).is_some_and(|link| link.is_behind(limit))
    }

    /// Output was appended for an event of another connection. If it is much, the driver writes it
    /// before it hands over the next event.
    pub(crate) fn pushed(&mut self, conn: Conn) {
        self.pushes += 1;
        self.crowded |= self.look(conn).is_some_and(Link::is_crowded);
    }

    /// Closes a connection as `flow` says, once its output is written. One that is connecting is given
    /// up, and its output is discarded.
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

    /// Says what the engine wants of a connection from now on.
    #[inline]
    pub fn set(&mut self, conn: Conn, status: Status) {
        let now = self.now.instant;
        if let Some(link) = self.change(conn) {
            link.set_status(now, status);
        }
    }

    /// Opens a connection to another server. [`Engine::opened`] or [`Engine::closed`] follows.
    pub fn connect(&mut self, to: SocketAddr) -> Conn {
        let conn = self.insert(Side::Upstream);
        self.connects.push_back((conn, to));
        self.change(conn);
        conn
    }

    /// Has a job done for a connection; [`Engine::done`] follows, unless nobody waits for it.
    pub fn defer(&mut self, conn: Conn, id: JobId, job: E::Job, wanted: Weak<()>) {
        self.jobs.push_back(Task { conn, id, job, wanted });
    }

    /// Posts a letter to the engine of each other core.
    pub fn post(&mut self, letter: E::Letter) {
        self.letters.push(letter);
    }
}
