//! Sessions that post to each other, each in its own thread that blocks in `read`.
//!
//! Such a thread cannot be woken for a push. So each session is behind a lock. A thread that posts
//! calls the session and writes to its socket, without blocking. One additional thread, the helper,
//! does what must wait: it writes output that did not fit into a socket, and fires alarms that a
//! push has set.
//!
//! Lock order: `Room::members`, `Member::state`, `Room::waiting`.

mod ends;
mod helper;

use crate::{
    between::membership::PushSessionFactory,
    clock,
    host::{Host, ServeError, Stop},
    models::threads::accept,
    open::Entered,
};
use regatta_engine::{
    Activity, Context, Flow, Limits, OutputState, Post, PushOutcome, RoomName, SessionFactory,
};
use regatta_service::Session;
use regatta_sys::{net, queue};
use rustix::event::{EventfdFlags, eventfd};
use slab::Slab;
use std::{
    collections::HashMap,
    io, mem,
    net::TcpStream,
    os::fd::OwnedFd,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Instant,
};

/// Size of a read in bytes, and of the output buffer that is kept.
const READ: usize = 4096;
/// Bytes of pending output from which a member is not read.
const FULL: usize = 64 * 1024;
/// Maximum number of consecutive writes for a session before the helper takes over.
const WRITES: usize = 16;

pub(crate) fn run<F: PushSessionFactory>(start: F, host: &Host) -> Result<(), ServeError> {
    let room = Arc::new(Room::<F::Session>::new()?);
    let helper = {
        let (room, stop, limits) = (Arc::clone(&room), host.stop.clone(), host.limits);
        thread::Builder::new().spawn(move || room.help(&stop, limits))?
    };
    let accepted = {
        let room = Arc::clone(&room);
        accept(host, move |entered, limits, stop| {
            // An error closes only its own connection.
            let _ = serve(&start, &room, entered, limits, stop);
        })
    };
    room.over.store(true, Relaxed);
    room.ring();
    helper.join().expect("the helper does not panic");
    accepted
}

/// State shared by the members of a server.
struct Room<S: Session> {
    members: Mutex<HashMap<RoomName, Slab<Arc<Member<S>>>>>,
    waiting: Mutex<Waiting<S>>,
    /// Rung when the helper has something new to wait for.
    bell: OwnedFd,
    numbers: AtomicU64,
    /// All connections are closed or cut.
    over: AtomicBool,
}

type ByNumber<T> = HashMap<u64, T>;

/// The events that the helper waits for.
struct Waiting<S: Session> {
    /// Members whose socket is full.
    stuck: ByNumber<Arc<Member<S>>>,
    /// Alarms that are earlier than the time until which their threads block.
    alarms: ByNumber<(Instant, Arc<Member<S>>)>,
}

struct Member<S: Session> {
    stream: Arc<TcpStream>,
    number: u64,
    state: Mutex<State<S>>,
    /// Notified when the output was written, when it will not be, and when the session was called.
    moved: Condvar,
}

struct State<S: Session> {
    session: S,
    local: S::Local,
    out: Vec<u8>,
    /// Bytes of output that the kernel has accepted.
    accepted: u64,
    posts: Vec<Post<S::Push>>,
    flow: Flow,
    /// The helper writes the output.
    stuck: bool,
    /// The connection was given up: both directions are shut down.
    gone: bool,
    /// The input was shut down, to wake the thread.
    cut: bool,
    /// The input has ended: the client has closed its side, or a stop has shut it down.
    ended: bool,
    activity: Activity,
    /// The time until which the thread waits.
    until: Instant,
    joined: bool,
    /// Its room, and its key in the room.
    seat: Option<(RoomName, usize)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic closes its connection, not the server.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Session> State<S> {
    fn call(&mut self, what: impl FnOnce(&mut S, &mut Context<'_, S>) -> Flow) {
        if self.flow != Flow::Continue {
            return;
        }
        self.show_output();
        let State { session, local, out, posts, .. } = self;
        self.flow = what(session, &mut Context { now: clock::now(), local, out, posts });
        if self.session.is_cut() {
            self.out = Vec::new();
        }
        // This happens at once, so that no push follows the reply to a leave.
        for post in &self.posts {
            match post {
                Post::Join(_) => self.joined = true,
                Post::Leave => self.joined = false,
                Post::Others(_) | Post::Counted(..) | Post::To(..) | Post::Remote(..) => {}
                // Only engines have sessions in several rooms.
                Post::Enter(_) | Post::Exit(_) => {}
            }
        }
    }

    /// Shows the session how much of its output is written.
    fn show_output(&mut self) {
        let (accepted, pending) = (self.accepted, self.out.len());
        self.session.on_output(OutputState { accepted, pending, taken: 0 });
    }

    fn rings(&self) -> bool {
        self.session.alarm().is_some_and(|alarm| alarm <= Instant::now())
    }

    fn reads(&self) -> bool {
        self.session.wants_input() && !self.ended
    }

    /// Whether its client's silence does not count as idle.
    fn is_held_up(&self) -> bool {
        !self.reads() || self.session.is_working()
    }

    /// Whether output must be written before anything else happens.
    fn is_full(&self) -> bool {
        self.out.len() >= if self.flow == Flow::Continue { FULL } else { 1 }
    }

    /// Returns until when its thread waits for input.
    fn due(&self, limits: &Limits) -> Instant {
        let now = Instant::now();
        let look = if self.stuck {
            now + limits.idle
        } else if self.is_held_up() {
            now + Limits::LIVENESS_INTERVAL
        } else {
            self.activity.due(limits, self.session.inside())
        };
        self.session.alarm().map_or(look, |alarm| look.min(alarm))
    }
}

impl<S: Session> Member<S> {
    /// Writes as much as fits, and leaves the rest to the helper. Fails if the connection is gone.
    fn write(self: &Arc<Self>, state: &mut State<S>, room: &Room<S>) -> io::Result<()> {
        for _ in 0..WRITES {
            if state.stuck {
                return Ok(());
            }
            if state.out.is_empty() && state.session.wants_drained() {
                state.call(|session, context| session.on_drained(context));
            }
            if state.out.is_empty() {
                return Ok(());
            }
            let written = match net::write_now(&*self.stream, &state.out, false) {
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(error) => return Err(error),
            };
            state.out.drain(..written);
            state.accepted += written as u64;
            state.activity.wrote(written);
            if !state.out.is_empty() {
                break;
            }
            // A waiting member keeps only a small buffer.
            state.out.shrink_to(READ);
        }
        state.stuck = true;
        state.activity.waits_for_room(Instant::now());
        lock(&room.waiting).stuck.insert(self.number, Arc::clone(self));
        room.ring();
        Ok(())
    }

    /// Closes the connection at once.
    fn give_up(&self, state: &mut State<S>) {
        state.out = Vec::new();
        state.flow = Flow::Close;
        state.gone = true;
        let _ = net::shutdown_both(&*self.stream);
        self.moved.notify_all();
    }

    /// Called after another thread has called the session.
    fn called(self: &Arc<Self>, state: &mut State<S>, room: &Room<S>) {
        self.settle(state, room);
        if state.flow != Flow::Continue && !state.gone {
            // Its thread may be blocked in a read.
            state.cut = true;
            let _ = net::shutdown_read(&*self.stream);
        }
    }

    /// Writes on behalf of another thread, and registers an alarm that its own thread does not wait
    /// for.
    fn settle(self: &Arc<Self>, state: &mut State<S>, room: &Room<S>) {
        if self.write(state, room).is_err() {
            self.give_up(state);
        } else if let Some(alarm) = state.session.alarm().filter(|alarm| *alarm < state.until)
            && !state.is_full()
        {
            state.until = alarm;
            lock(&room.waiting).alarms.insert(self.number, (alarm, Arc::clone(self)));
            room.ring();
        }
        self.moved.notify_all();
    }
}

impl<S: Session> Room<S> {
    fn new() -> io::Result<Self> {
        Ok(Room {
            members: Mutex::new(HashMap::new()),
            waiting: Mutex::new(Waiting { stuck: HashMap::new(), alarms: HashMap::new() }),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            numbers: AtomicU64::new(0),
            over: AtomicBool::new(false),
        })
    }

    /// Wakes the helper.
    fn ring(&self) {
        // It fails only if the counter is at 2^64 - 2.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Carries out the posts of `from`. Its lock is not held, because others may post to it
    /// meanwhile.
    fn carry_out(&self, from: &Arc<Member<S>>, posts: Vec<Post<S::Push>>) {
        let mut pushes = Vec::new();
        for post in posts {
            match post {
                Post::Others(push) => {
                    pushes.push(push);
                    continue;
                }
                Post::Join(room) => {
                    self.push(from, mem::take(&mut pushes));
                    let mut rooms = lock(&self.members);
                    let mut state = lock(&from.state);
                    if state.seat.is_none() {
                        let key = rooms.entry(room.clone()).or_default().insert(Arc::clone(from));
                        state.seat = Some((room, key));
                    }
                }
                Post::Leave => {
                    self.push(from, mem::take(&mut pushes));
                    self.leave(from);
                }
                // Only engines have sessions in several rooms.
                Post::Enter(_) | Post::Exit(_) => {}
                Post::To(room, push) => {
                    self.push(from, mem::take(&mut pushes));
                    self.push_to(&room, from, &[push]);
                }
                // This model has no uplink.
                Post::Remote(..) => {}
                Post::Counted(push, ticket) => {
                    pushes.push(push);
                    let others = self.push(from, mem::take(&mut pushes));
                    let mut state = lock(&from.state);
                    let members = others + u32::from(state.joined);
                    state.call(|session, context| session.on_queued(context, ticket, members));
                }
            }
        }
        self.push(from, pushes);
    }

    fn leave(&self, member: &Member<S>) {
        let Some((room, key)) = lock(&member.state).seat.take() else { return };
        let mut rooms = lock(&self.members);
        let Some(members) = rooms.get_mut(&room) else { return };
        members.remove(key);
        if members.is_empty() {
            rooms.remove(&room);
        }
    }

    /// Delivers all pushes to each of the other members of the sender's room. Returns for how many
    /// members the last push is queued.
    fn push(&self, from: &Arc<Member<S>>, pushes: Vec<S::Push>) -> u32 {
        if pushes.is_empty() {
            return 0;
        }
        let room =
            lock(&from.state).seat.as_ref().map_or(RoomName::LOBBY, |(room, _)| room.clone());
        self.push_to(&room, from, &pushes)
    }

    /// Delivers all pushes to each of the other members of a room, in one write per member. Returns for
    /// how many members the last push is queued.
    fn push_to(&self, room: &RoomName, from: &Arc<Member<S>>, pushes: &[S::Push]) -> u32 {
        let mut queued = 0;
        let rooms = lock(&self.members);
        let others: Vec<_> =
            rooms.get(room).into_iter().flatten().map(|(_, m)| Arc::clone(m)).collect();
        drop(rooms);
        for member in others.iter().filter(|member| !Arc::ptr_eq(member, from)) {
            let mut state = lock(&member.state);
            if state.flow != Flow::Continue || !state.joined {
                continue;
            }
            state.show_output();
            let State { session, out, flow, .. } = &mut *state;
            let mut heard = PushOutcome::Missed;
            for push in pushes {
                if *flow == Flow::Continue {
                    heard = session.on_push(clock::now(), push, out);
                    *flow = if heard == PushOutcome::Close { Flow::Close } else { Flow::Continue };
                }
            }
            member.called(&mut state, self);
            if state.session.is_cut() {
                member.give_up(&mut state);
            } else {
                queued += u32::from(heard == PushOutcome::Queued);
            }
        }
        queued
    }
}

/// The member leaves its room when this is dropped.
struct Seat<'a, S: Session> {
    member: Arc<Member<S>>,
    room: &'a Room<S>,
}

impl<S: Session> Drop for Seat<'_, S> {
    fn drop(&mut self) {
        // The session is not called after this.
        let mut state = lock(&self.member.state);
        state.flow = Flow::Close;
        let push = state.session.on_close();
        drop(state);
        self.room.push(&self.member, push.into_iter().collect());
        self.room.leave(&self.member);
        let mut waiting = lock(&self.room.waiting);
        waiting.stuck.remove(&self.member.number);
        waiting.alarms.remove(&self.member.number);
    }
}

/// Serves one member until it closes.
fn serve<F: SessionFactory>(
    start: &F,
    room: &Room<F::Session>,
    entered: &Entered<TcpStream>,
    limits: Limits,
    stop: &Stop,
) -> io::Result<()> {
    let now = clock::now();
    let member = Arc::new(Member {
        stream: Arc::clone(&entered.stream),
        number: room.numbers.fetch_add(1, Relaxed),
        state: Mutex::new(State {
            session: start.session(now),
            local: Default::default(),
            out: Vec::new(),
            accepted: 0,
            posts: Vec::new(),
            flow: Flow::Continue,
            stuck: false,
            gone: false,
            cut: false,
            ended: false,
            activity: Activity::new(now.instant),
            until: now.instant,
            joined: false,
            seat: None,
        }),
        moved: Condvar::new(),
    });
    let seat = Seat { member, room };
    talk(&seat.member, room, limits, stop)
}

fn talk<S: Session>(
    member: &Arc<Member<S>>,
    room: &Room<S>,
    limits: Limits,
    stop: &Stop,
) -> io::Result<()> {
    let stream = &*member.stream;
    let mut input = [0; READ];
    // The alarm has rung since the last wait.
    let mut rang = false;
    loop {
        let mut state = lock(&member.state);
        // Posts first: a reply to a join or a message confirms that it has been carried out.
        while !state.posts.is_empty() {
            let posts = mem::take(&mut state.posts);
            drop(state);
            room.carry_out(member, posts);
            state = lock(&member.state);
        }
        member.write(&mut state, room)?;
        // Backpressure: a client that does not read its output is not read.
        while state.is_full() {
            state = member.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.flow != Flow::Continue {
            if state.gone || state.ended {
                return Ok(());
            }
            let (flow, cut) = (state.flow, state.cut);
            drop(state);
            return ends::finish(stream, flow, cut, stop);
        }
        if state.rings() && !mem::replace(&mut rang, true) {
            state.call(|session, context| session.on_alarm(context));
            continue;
        }
        rang = false;
        state.until = state.due(&limits);
        let wait = state.until.saturating_duration_since(Instant::now());
        if !state.reads() {
            let (state, waited) =
                member.moved.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
            if waited.timed_out() {
                look(stream, state, limits)?;
            }
            continue;
        }
        drop(state);
        net::set_read_timeout(stream, wait)?;
        let read = net::read(stream, &mut input);
        let mut state = lock(&member.state);
        match read {
            Ok(0) if state.cut || state.gone => {}
            Ok(read) => {
                state.activity.heard(Instant::now());
                let bytes = &mut input[..read];
                state.ended = read == 0;
                state.call(|session, context| match read {
                    0 => session.on_end(context),
                    _ => session.on_bytes(context, bytes),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => look(stream, state, limits)?,
            Err(error) => return Err(error),
        }
    }
}

/// Called when the wait of a member has expired. Fails if its client has timed out or is gone.
fn look<S: Session>(
    stream: &TcpStream,
    mut state: MutexGuard<'_, State<S>>,
    limits: Limits,
) -> io::Result<()> {
    let inside = state.session.inside();
    // The helper checks the progress of stuck members.
    if state.stuck || state.flow != Flow::Continue {
        return Ok(());
    }
    if state.is_held_up() {
        return if net::is_gone(stream) {
            Err(io::ErrorKind::ConnectionReset.into())
        } else {
            Ok(())
        };
    }
    let unacknowledged = || queue::unacknowledged(stream).unwrap_or(0);
    match state.activity.has_timed_out(Instant::now(), unacknowledged, &limits, inside) {
        true => Err(io::ErrorKind::TimedOut.into()),
        false => Ok(()),
    }
}
