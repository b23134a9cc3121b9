//! Sessions that hear what others post, as straight-line loops: wait for whichever comes first of
//! input, a push and a deadline; call the session; write. For green threads and tasks.
//!
//! On the callback models the engine of sessions does this. A thread that blocks in `read` cannot wait
//! for anything else, so `threads` has a way of its own (`regatta-serve`).

use super::{
    asynchronous, sequential,
    silence::{Silence, look},
};
use crate::{Flow, Limits, Never, Now, Session};
use regatta_engine::{Context, Post};
use std::{future::Future, io, time::Instant};

/// Bytes of output from which on it is written before more is read or heard.
const FULL: usize = 64 * 1024;

/// What a member waited for.
#[derive(Debug)]
pub enum Wake<P> {
    /// A read would not wait.
    Readable,
    /// Another session has posted this.
    Push(P),
    /// The deadline has passed.
    Deadline,
}

/// What all members of a server post to.
pub trait Room<P> {
    /// Carries out what this member posts.
    fn post(&mut self, post: Post<P>);

    /// The next push that has come already.
    fn next(&mut self) -> Option<P>;

    /// Whether this member was too slow for what was pushed to it, so that it has missed something
    /// and is to be closed.
    fn is_overrun(&self) -> bool;
}

/// A blocking stream of a member.
pub trait Blocking<P>: sequential::Stream + Room<P> {
    /// Waits for input, a push or the deadline.
    fn wait(&mut self, until: Instant) -> io::Result<Wake<P>>;
}

/// A stream of a member, for tasks.
pub trait Waiting<P>: asynchronous::Stream + Room<P> {
    /// Waits for input, a push or the deadline.
    fn wait(&mut self, until: Instant) -> impl Future<Output = io::Result<Wake<P>>> + Send;
}

/// A session, and what its loop keeps for it.
struct Member<S: Session> {
    session: S,
    local: S::Local,
    out: Vec<u8>,
    posts: Vec<Post<S::Push>>,
    flow: Flow,
    limits: Limits,
    heard: Instant,
    /// Bytes written in all.
    sent: u64,
    silence: Silence,
    /// The next look at a silent client.
    look_at: Instant,
}

impl<S: Session<Job = Never>> Member<S> {
    fn new(session: S, limits: Limits, now: Now) -> Self {
        let mut member = Member {
            session,
            local: S::Local::default(),
            out: Vec::new(),
            posts: Vec::new(),
            flow: Flow::Continue,
            limits,
            heard: now.instant,
            sent: 0,
            silence: Silence::default(),
            look_at: now.instant + look(limits),
        };
        member.call(now, |session, context| session.on_open(context));
        member
    }

    fn call(&mut self, now: Now, what: impl FnOnce(&mut S, &mut Context<'_, S>) -> Flow) {
        let Member { session, local, out, posts, .. } = self;
        self.flow = what(session, &mut Context { now, local, out, posts });
    }

    fn read(&mut self, now: Now, bytes: &mut [u8]) {
        self.heard = now.instant;
        self.silence.ends();
        self.look_at = now.instant + look(self.limits);
        if bytes.is_empty() {
            self.call(now, |session, context| session.on_end(context));
        } else {
            self.call(now, |session, context| session.on_bytes(context, bytes));
        }
    }

    /// Hears `first`, and what else has come.
    fn hear(&mut self, now: Now, first: S::Push, room: &mut impl Room<S::Push>) {
        let mut next = Some(first);
        while let Some(push) = next
            && self.flow == Flow::Continue
        {
            self.flow = self.session.on_push(now, &push, &mut self.out);
            next = if self.out.len() < FULL { room.next() } else { None };
        }
    }

    fn post(&mut self, room: &mut impl Room<S::Push>) {
        self.posts.drain(..).for_each(|post| room.post(post));
    }

    /// All is written: whether there is more.
    fn has_more(&mut self, now: Now) -> bool {
        if self.flow == Flow::Continue && self.session.wants_room() {
            self.call(now, |session, context| session.on_room(context));
        }
        !self.out.is_empty()
    }

    fn due(&self) -> Instant {
        let due = match self.session.inside() {
            None => self.look_at,
            inside => self.limits.due(self.heard, inside),
        };
        self.session.alarm().map_or(due, |alarm| due.min(alarm))
    }

    /// A deadline has passed: `TimedOut` if it is that of a silent client.
    fn on_deadline(&mut self, now: Now, unacknowledged: impl FnOnce() -> usize) -> io::Result<()> {
        if self.session.alarm().is_some_and(|alarm| alarm <= now.instant) {
            self.call(now, |session, context| session.on_alarm(context));
            return Ok(());
        }
        let more = match self.session.inside() {
            None => self.silence.look(now.instant, self.sent, unacknowledged(), self.limits),
            Some(_) => None,
        };
        self.look_at = now.instant + more.ok_or(io::ErrorKind::TimedOut)?;
        Ok(())
    }
}

const OVERRUN: &str = "the client reads too slowly for what is pushed to it";

/// Serves one member to its end, blocking. Errors are those of the stream.
pub fn serve_blocking<S, T>(session: S, stream: &mut T, limits: Limits) -> io::Result<()>
where
    S: Session<Job = Never>,
    T: Blocking<S::Push>,
{
    let mut member = Member::new(session, limits, stream.now());
    let mut ended = false;
    loop {
        member.post(stream);
        let last = member.flow != Flow::Continue && !ended;
        member.sent += member.out.len() as u64;
        let at_once = sequential::send(stream, &mut member.out, last, limits)?;
        if stream.is_overrun() {
            return Err(io::Error::other(OVERRUN));
        }
        match member.flow {
            Flow::Continue => {}
            _ if ended => return Ok(()),
            Flow::Part => return sequential::part(stream, at_once),
            Flow::Close => return sequential::linger(stream),
        }
        if member.has_more(stream.now()) {
            continue;
        }
        match stream.wait(member.due())? {
            Wake::Readable => {
                let mut input = [0; 4096];
                let read = sequential::retry(|| stream.read(&mut input))?;
                ended |= read == 0;
                member.read(stream.now(), &mut input[..read]);
            }
            Wake::Push(push) => member.hear(stream.now(), push, stream),
            Wake::Deadline => {
                member.on_deadline(stream.now(), || stream.unacknowledged())?;
            }
        }
    }
}

/// Serves one member to its end, as a future. Errors are those of the stream.
pub async fn serve<S, T>(session: S, mut stream: T, limits: Limits) -> io::Result<()>
where
    S: Session<Job = Never, Push: Send, Local: Send> + Send,
    T: Waiting<S::Push>,
{
    let mut member = Member::new(session, limits, stream.now());
    let mut input = vec![0; 4096];
    let mut ended = false;
    loop {
        member.post(&mut stream);
        let last = member.flow != Flow::Continue && !ended;
        member.sent += member.out.len() as u64;
        let at_once = asynchronous::send(&mut stream, &member.out, last, limits).await?;
        member.out.clear();
        if stream.is_overrun() {
            return Err(io::Error::other(OVERRUN));
        }
        match member.flow {
            Flow::Continue => {}
            _ if ended => return Ok(()),
            Flow::Part => return asynchronous::part(&mut stream, at_once).await,
            Flow::Close => return asynchronous::linger(&mut stream).await,
        }
        if member.has_more(stream.now()) {
            continue;
        }
        match stream.wait(member.due()).await? {
            Wake::Readable => {
                let due = stream.now().instant + limits.idle;
                let read = stream.read(&mut input, due).await?;
                ended |= read == 0;
                member.read(stream.now(), &mut input[..read]);
            }
            Wake::Push(push) => member.hear(stream.now(), push, &mut stream),
            Wake::Deadline => member.on_deadline(stream.now(), || stream.unacknowledged())?,
        }
    }
}
