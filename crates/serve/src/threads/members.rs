//! Sessions that post to each other, each in a thread that blocks in `read`.
//!
//! Such a thread cannot be woken for a push. So a session is behind a lock, and whoever posts calls it
//! and writes to its socket, without blocking. What a socket has no room for, one more thread writes
//! when there is.

use crate::{
    clock,
    host::{Host, ServeError, Stop},
    members::Members,
    open::Entered,
    threads::accept,
};
use regatta_engine::{Context, Flow, Limits, Post, Progress, Start};
use regatta_service::Session;
use regatta_sys::{Event, Interest, Readiness, net, poll::Poll, queue};
use rustix::event::{EventfdFlags, eventfd};
use slab::Slab;
use std::{
    collections::HashMap,
    io, mem,
    net::TcpStream,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Instant,
};

/// Bytes of one read.
const READ: usize = 4096;
/// Bytes of pending output from which on a member is not read.
const FULL: usize = 64 * 1024;

pub(crate) fn run<F: Members>(start: F, host: &Host) -> Result<(), ServeError> {
    let room = Arc::new(Room::<F::Session>::new()?);
    {
        let (room, stop, limits) = (Arc::clone(&room), host.stop.clone(), host.limits);
        thread::spawn(move || room.write_when_there_is_room(&stop, limits));
    }
    accept(host, move |entered, limits, stop| {
        // A connection's errors are its own end, and nobody else's business.
        let _ = serve(&start, &room, entered, limits, stop);
    })
}

/// What the members of a server share.
struct Room<S: Session> {
    members: Mutex<Slab<Arc<Member<S>>>>,
    /// Those whose socket had no room, by a number of their own.
    stuck: Mutex<HashMap<u64, Arc<Member<S>>>>,
    /// Rung when there is another one.
    bell: OwnedFd,
    numbers: AtomicU64,
}

struct Member<S: Session> {
    stream: Arc<TcpStream>,
    number: u64,
    state: Mutex<State<S>>,
    /// The output was written, or will not be.
    moved: Condvar,
}

struct State<S: Session> {
    session: S,
    local: S::Local,
    out: Vec<u8>,
    posts: Vec<Post<S::Push>>,
    flow: Flow,
    /// Room is waited for elsewhere.
    stuck: bool,
    sent: u64,
    progress: Option<Progress>,
    key: Option<usize>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic ends its connection, not the server.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Session> State<S> {
    fn call(&mut self, what: impl FnOnce(&mut S, &mut Context<'_, S>) -> Flow) {
        let State { session, local, out, posts, .. } = self;
        let flow = what(session, &mut Context { now: clock::now(), local, out, posts });
        if self.flow == Flow::Continue {
            self.flow = flow;
        }
    }
}

impl<S: Session> Member<S> {
    /// Writes what there is room for. Fails when the connection is gone.
    fn write(self: &Arc<Self>, state: &mut State<S>, room: &Room<S>) -> io::Result<()> {
        if state.stuck || state.out.is_empty() {
            return Ok(());
        }
        let written = match net::write_now(&*self.stream, &state.out, false) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        state.out.drain(..written);
        state.sent += written as u64;
        if !state.out.is_empty() {
            state.stuck = true;
            state.progress = Some(Progress::new(Instant::now()));
            lock(&room.stuck).insert(self.number, Arc::clone(self));
            // It fails only at 2^64 - 2.
            let _ = rustix::io::write(&room.bell, &1_u64.to_ne_bytes());
        }
        Ok(())
    }

    /// Nothing more is written to it.
    fn give_up(&self, state: &mut State<S>) {
        state.out = Vec::new();
        state.flow = Flow::Close;
        let _ = net::finish(&*self.stream);
        self.moved.notify_all();
    }
}

impl<S: Session> Room<S> {
    fn new() -> io::Result<Self> {
        Ok(Room {
            members: Mutex::new(Slab::new()),
            stuck: Mutex::default(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            numbers: AtomicU64::new(0),
        })
    }

    /// Carries out what `from` has posted. Its lock is not held: others may post to it meanwhile.
    fn carry_out(&self, from: &Arc<Member<S>>, posts: Vec<Post<S::Push>>) {
        for post in posts {
            match post {
                Post::Join => {
                    let mut members = lock(&self.members);
                    let mut state = lock(&from.state);
                    state.key.get_or_insert_with(|| members.insert(Arc::clone(from)));
                }
                Post::Leave => self.leave(from),
                Post::Others(push) => self.push(from, &push),
            }
        }
    }

    fn leave(&self, member: &Member<S>) {
        let key = lock(&member.state).key.take();
        if let Some(key) = key {
            lock(&self.members).remove(key);
        }
    }

    fn push(&self, from: &Arc<Member<S>>, push: &S::Push) {
        let others: Vec<_> = lock(&self.members).iter().map(|(_, m)| Arc::clone(m)).collect();
        for member in others.iter().filter(|member| !Arc::ptr_eq(member, from)) {
            let mut state = lock(&member.state);
            if state.flow != Flow::Continue {
                continue;
            }
            let State { session, out, .. } = &mut *state;
            state.flow = session.on_push(clock::now(), push, out);
            // A slow consumer, or one that is gone.
            if state.out.len() > S::BACKLOG || member.write(&mut state, self).is_err() {
                member.give_up(&mut state);
            }
        }
    }

    /// The life of the thread that writes what sockets had no room for, until the process ends.
    fn write_when_there_is_room(&self, stop: &Stop, limits: Limits) {
        const BELL: u64 = u64::MAX;
        let mut events: Vec<Event> = Vec::new();
        let mut looked = Instant::now();
        loop {
            let stuck: Vec<_> = lock(&self.stuck).values().cloned().collect();
            let mut poll = Poll::new();
            let mut waited = poll.add(self.bell.as_fd(), BELL, Interest::READ);
            for member in &stuck {
                let room = Interest { read: false, write: true };
                let watched = poll.add(member.stream.as_fd(), member.number, room);
                waited = waited.and(watched);
            }
            if waited.and_then(|()| poll.wait(&mut events, Some(limits.look()))).is_err() {
                stop.set(); // the server cannot keep its promises any more
                return;
            }
            for event in &events {
                match event.token {
                    BELL => drop(rustix::io::read(&self.bell, &mut [0; 8])),
                    number => self.write_rest(number),
                }
            }
            if looked.elapsed() >= limits.look() {
                looked = Instant::now();
                self.look(limits);
            }
        }
    }

    fn write_rest(&self, number: u64) {
        let Some(member) = lock(&self.stuck).remove(&number) else { return };
        let mut state = lock(&member.state);
        state.stuck = false;
        if member.write(&mut state, self).is_err() {
            member.give_up(&mut state);
        }
        member.moved.notify_all();
    }

    /// Closes those that take nothing of what they are owed.
    fn look(&self, limits: Limits) {
        let stuck: Vec<_> = lock(&self.stuck).values().cloned().collect();
        for member in stuck {
            let mut state = lock(&member.state);
            let (now, sent) = (Instant::now(), state.sent);
            let unacknowledged = queue::unacknowledged(&*member.stream).unwrap_or(0);
            let Some(progress) = &mut state.progress else { continue };
            progress.look(now, sent, unacknowledged);
            if progress.is_stalled(now, limits.idle) {
                member.give_up(&mut state);
            }
        }
    }
}

/// Serves one member to its end.
fn serve<F: Start>(
    start: &F,
    room: &Arc<Room<F::Session>>,
    entered: &Entered<TcpStream>,
    limits: Limits,
    stop: &Stop,
) -> io::Result<()> {
    let member = Arc::new(Member {
        stream: Arc::clone(&entered.stream),
        number: room.numbers.fetch_add(1, Relaxed),
        state: Mutex::new(State {
            session: start.session(clock::now()),
            local: Default::default(),
            out: Vec::new(),
            posts: Vec::new(),
            flow: Flow::Continue,
            stuck: false,
            sent: 0,
            progress: None,
            key: None,
        }),
        moved: Condvar::new(),
    });
    let served = talk(&member, room, limits, stop);
    room.leave(&member);
    lock(&room.stuck).remove(&member.number);
    served
}

fn talk<S: Session>(
    member: &Arc<Member<S>>,
    room: &Room<S>,
    limits: Limits,
    stop: &Stop,
) -> io::Result<()> {
    let stream = &*member.stream;
    let mut input = [0; READ];
    let mut heard = Instant::now();
    let mut ended = false;
    lock(&member.state).call(|session, context| session.on_open(context));
    loop {
        let mut state = lock(&member.state);
        member.write(&mut state, room)?;
        let posts = mem::take(&mut state.posts);
        if !posts.is_empty() {
            drop(state);
            room.carry_out(member, posts);
            state = lock(&member.state);
        }
        // A client that does not read stops being read.
        let closes = state.flow != Flow::Continue;
        while state.out.len() >= if closes { 1 } else { FULL } {
            state = member.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.flow != Flow::Continue {
            let flow = state.flow;
            drop(state);
            return if ended { Ok(()) } else { finish(stream, flow, stop, &mut input) };
        }
        if state.out.is_empty() && state.session.wants_room() {
            state.call(|session, context| session.on_room(context));
            continue;
        }
        let due = limits.due(heard, state.session.inside());
        let until = state.session.alarm().map_or(due, |alarm| alarm.min(due));
        drop(state);
        net::set_read_timeout(stream, until.saturating_duration_since(Instant::now()))?;
        let read = net::read(stream, &mut input);
        let mut state = lock(&member.state);
        match read {
            Ok(read) => {
                heard = Instant::now();
                let bytes = &mut input[..read];
                ended |= read == 0;
                state.call(|session, context| match ended {
                    true => session.on_end(context),
                    false => session.on_bytes(context, bytes),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let now = Instant::now();
                if state.session.alarm().is_some_and(|alarm| alarm <= now) {
                    state.call(|session, context| session.on_alarm(context));
                } else if now >= limits.due(heard, state.session.inside())
                    // What it takes is the business of the thread that writes the rest.
                    && !state.stuck
                {
                    return Err(io::ErrorKind::TimedOut.into());
                } else if state.stuck {
                    heard = now;
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Ends our direction, and reads on for a while, so that a reset does not overtake the last bytes.
fn finish(stream: &TcpStream, flow: Flow, stop: &Stop, input: &mut [u8]) -> io::Result<()> {
    if stop.is_set() {
        return Ok(());
    }
    net::finish_writing(stream)?;
    let due = Instant::now() + Limits::LINGER;
    let mut allowed = Limits::LINGER_BYTES;
    while flow == Flow::Close && Instant::now() < due {
        net::set_read_timeout(stream, due.saturating_duration_since(Instant::now()))?;
        match net::read(stream, input) {
            Ok(read) if (1..allowed).contains(&read) => allowed -= read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    Ok(())
}
