//! Sessions that receive posts from others, as straight-line loops: wait for input, a push or a
//! deadline, whichever comes first; call the session; write. For green threads and tasks.
//!
//! On the callback models, the session engine does this. A thread that blocks in `read` cannot wait
//! for anything else, so `threads` has its own way (`regatta-serve`).

use super::{asynchronous, sequential};
use crate::{Flow, Limits, Locals, Never, Now, Session};
use regatta_engine::{Activity, Context, Post, PushOutcome};
use std::{future::Future, io, mem, time::Instant};

/// Bytes of output from which on it is written before more is read or received.
const FULL: usize = 64 * 1024;
/// Bytes per read, and bytes of output memory that are kept.
const READ: usize = 4096;

/// A read buffer. The members of a thread share one, so a waiting member holds none.
struct Input([u8; READ]);

impl Default for Input {
    fn default() -> Self {
        Input([0; READ])
    }
}

/// The event that ended a wait.
#[derive(Debug)]
pub enum Wake<P> {
    /// Input may be available.
    Readable,
    /// Another session posted this.
    Push(P),
    /// [`PushEndpoint::is_overrun`] became true.
    Overrun,
    /// The deadline passed.
    Deadline,
}

/// The place where all members of a server post.
pub trait PushEndpoint<P> {
    /// Carries out a post. Returns the number of members that a [`Post::Counted`] was queued for; the
    /// result of other posts is ignored. After [`Post::Leave`], [`PushEndpoint::next`] no longer returns
    /// earlier pushes.
    fn post(&mut self, post: Post<P>) -> u32;

    /// Returns the next push that has already arrived.
    fn next(&mut self) -> Option<P>;

    /// Returns whether this member fell too far behind and must be closed. Its pending pushes are
    /// discarded.
    fn is_overrun(&self) -> bool;

    /// Returns whether the connection was reset, or both directions are closed.
    fn is_gone(&self) -> bool;
}

/// The blocking stream of a member.
pub trait BlockingMember<P>: sequential::Stream + PushEndpoint<P> {
    /// Waits for a push, an overrun, the deadline, or, if `reads`, input.
    fn wait(&mut self, reads: bool, until: Instant) -> io::Result<Wake<P>>;

    /// Reads what is available, or returns `WouldBlock`.
    fn read_now(&mut self, into: &mut [u8]) -> io::Result<usize>;
}

/// The stream of a member, for tasks.
pub trait AsyncMember<P>: asynchronous::Stream + PushEndpoint<P> {
    /// Waits for a push, an overrun, the deadline, or, if `reads`, input.
    fn wait(
        &mut self,
        reads: bool,
        until: Instant,
    ) -> impl Future<Output = io::Result<Wake<P>>> + Send;

    /// Reads what is available, or returns `WouldBlock`.
    fn read_now(&mut self, into: &mut [u8]) -> io::Result<usize>;
}

/// A session, and the state of its loop.
struct Member<S: Session> {
    session: S,
    local: S::Local,
    out: Vec<u8>,
    posts: Vec<Post<S::Push>>,
    flow: Flow,
    limits: Limits,
    activity: Activity,
    /// The client has closed its sending side.
    ended: bool,
    /// The alarm was handled since the last wait.
    rang: bool,
    /// The output is what a drained session appended, which may go on for long. Before it is asked for more, there is a
    /// look for input and pushes.
    yields: bool,
    /// The next wait is only a look.
    looks: bool,
    /// The others were notified that it leaves.
    has_left: bool,
    /// When it was first found, while its output could not be written, that it must leave.
    leaves_since: Option<Instant>,
}

impl<S: Session<Job = Never>> Member<S> {
    fn new(session: S, limits: Limits, now: Now) -> Self {
        Member {
            session,
            local: S::Local::default(),
            out: Vec::new(),
            posts: Vec::new(),
            flow: Flow::Continue,
            limits,
            activity: Activity::new(now.instant),
            ended: false,
            rang: false,
            yields: false,
            looks: false,
            has_left: false,
            leaves_since: None,
        }
    }

    fn call(&mut self, now: Now, what: impl FnOnce(&mut S, &mut Context<'_, S>) -> Flow) {
        let Member { session, local, out, posts, .. } = self;
        self.flow = what(session, &mut Context { now, local, out, posts });
    }

    /// Handles the result of a read into `input`.
    fn read(&mut self, now: Now, read: io::Result<usize>, input: &mut [u8]) -> io::Result<()> {
        let read = match read {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        };
        self.activity.heard(now.instant);
        if read == 0 {
            self.ended = true;
            self.call(now, |session, context| session.on_end(context));
        } else {
            self.call(now, |session, context| session.on_bytes(context, &mut input[..read]));
        }
        Ok(())
    }

    /// Handles `first` and all other pushes that have arrived. Returns `false` if it stopped because
    /// the connection closes or the output is full.
    fn hear(
        &mut self,
        now: Now,
        first: Option<S::Push>,
        room: &mut impl PushEndpoint<S::Push>,
    ) -> bool {
        let mut next = first;
        while let Some(push) = next {
            if self.session.on_push(now, &push, &mut self.out) == PushOutcome::Close {
                self.flow = Flow::Close;
            }
            if self.flow != Flow::Continue || self.out.len() >= FULL {
                return false;
            }
            next = room.next();
        }
        true
    }

    /// Returns whether the member fell too far behind. If so, its last words are appended to the
    /// output.
    fn is_overrun(&mut self, room: &impl PushEndpoint<S::Push>) -> bool {
        let is_overrun = room.is_overrun() && self.flow == Flow::Continue;
        if is_overrun {
            self.session.on_overrun(&mut self.out);
            self.flow = Flow::Close;
        }
        is_overrun
    }

    fn post(&mut self, now: Now, room: &mut impl PushEndpoint<S::Push>) {
        // By a call or by a push.
        if self.session.is_cut() {
            self.out = Vec::new();
        }
        // Posts made while handling a count are carried out, too.
        while !self.posts.is_empty() {
            for post in mem::take(&mut self.posts) {
                let ticket = match post {
                    Post::Counted(_, ticket) => Some(ticket),
                    _ => None,
                };
                let members = room.post(post);
                if let Some(ticket) = ticket.filter(|_| self.flow == Flow::Continue) {
                    self.call(now, |session, context| session.on_queued(context, ticket, members));
                }
            }
        }
        if self.flow != Flow::Continue && !self.has_left {
            // The notice goes to the members of the room that it leaves.
            self.announce_leave(room);
            room.post(Post::Leave);
        }
    }

    /// Notifies the others that the member leaves, once.
    fn announce_leave(&mut self, room: &mut impl PushEndpoint<S::Push>) {
        if mem::replace(&mut self.has_left, true) {
            return;
        }
        if let Some(push) = self.session.on_close() {
            room.post(Post::Others(push));
        }
    }

    /// Returns whether the output is the last, so that a FIN follows it.
    fn is_last(&self) -> bool {
        self.flow != Flow::Continue && !self.ended
    }

    /// Splits into the output, and a check to be made while it cannot be written. The check fails if the member
    /// must have taken it by now.
    fn output<R: PushEndpoint<S::Push>>(
        &mut self,
    ) -> (&mut Vec<u8>, impl FnMut(&R, Instant) -> io::Result<()>) {
        let Member { session, out, leaves_since, .. } = self;
        let check = move |room: &R, now: Instant| {
            if room.is_overrun() || session.must_leave() {
                leaves_since.get_or_insert(now);
            }
            let leaves_by = leaves_since.map(|since| since + Limits::LAST_OUTPUT);
            match leaves_by.into_iter().chain(session.cut_at()).any(|at| at <= now) {
                true => Err(io::ErrorKind::TimedOut.into()),
                false => Ok(()),
            }
        };
        (out, check)
    }

    /// Called after all output was written.
    fn wrote(&mut self, bytes: usize) {
        self.activity.wrote(bytes);
        self.out.clear();
        // A waiting member holds little memory.
        self.out.shrink_to(READ);
    }

    /// Called before a wait. Returns whether the session has more to do first.
    fn continue_before_wait(&mut self, now: Now) -> bool {
        self.looks = mem::take(&mut self.yields);
        if !self.looks && self.session.wants_drained() {
            self.call(now, |session, context| session.on_drained(context));
            self.yields = !self.out.is_empty();
        } else if self.rings(now) && !mem::replace(&mut self.rang, true) {
            self.call(now, |session, context| session.on_alarm(context));
        } else {
            self.rang = false;
            return false;
        }
        self.flow != Flow::Continue || !self.out.is_empty() || !self.posts.is_empty()
    }

    fn rings(&self, now: Now) -> bool {
        self.session.alarm().is_some_and(|alarm| alarm <= now.instant)
    }

    fn reads(&self) -> bool {
        self.session.wants_input() && !self.ended
    }

    /// Returns whether the client's silence is not a timeout.
    fn is_held_up(&self) -> bool {
        !self.reads() || self.session.is_working()
    }

    fn due(&self, now: Now) -> Instant {
        if self.looks {
            return now.instant;
        }
        let check = match self.is_held_up() {
            true => now.instant + Limits::LIVENESS_INTERVAL,
            false => self.activity.due(&self.limits, self.session.inside()),
        };
        self.session.alarm().map_or(check, |alarm| check.min(alarm))
    }

    /// Handles the event that ended a wait.
    #[expect(clippy::too_many_arguments, reason = "two ways of reading differ between the models")]
    fn woke<T: PushEndpoint<S::Push> + Locals>(
        &mut self,
        wake: Wake<S::Push>,
        now: Now,
        stream: &mut T,
        read_now: impl FnOnce(&mut T, &mut [u8]) -> io::Result<usize>,
        unacknowledged: impl FnOnce(&T) -> usize,
    ) -> io::Result<()> {
        match wake {
            Wake::Readable => {
                // Pushes that arrived before this input are handled first.
                let next = stream.next();
                if self.hear(now, next, stream) {
                    let mut input = stream.take::<Input>();
                    let read = read_now(stream, &mut input.0);
                    let heard = self.read(now, read, &mut input.0);
                    stream.give_back(input);
                    heard?;
                }
            }
            Wake::Push(push) => {
                self.hear(now, Some(push), stream);
            }
            Wake::Overrun => {}
            Wake::Deadline => self.check_deadline(now, stream, || unacknowledged(stream))?,
        }
        Ok(())
    }

    /// Called when a deadline has passed. Fails if the client has timed out. While its silence is not a
    /// timeout, fails if the connection is gone.
    fn check_deadline(
        &mut self,
        now: Now,
        room: &impl PushEndpoint<S::Push>,
        unacknowledged: impl FnOnce() -> usize,
    ) -> io::Result<()> {
        let inside = self.session.inside();
        if self.is_held_up() {
            if room.is_gone() { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
        } else if self.activity.has_timed_out(now.instant, unacknowledged, &self.limits, inside) {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            Ok(())
        }
    }
}

/// Serves one member until its connection closes, blocking. Returns an error if the stream fails or a
/// timeout passes.
pub fn serve_blocking<S, T>(session: S, stream: &mut T, limits: Limits) -> io::Result<()>
where
    S: Session<Job = Never>,
    T: BlockingMember<S::Push>,
{
    let mut member = Member::new(session, limits, stream.now());
    let ended = talk_blocking(&mut member, stream);
    member.announce_leave(stream);
    ended
}

fn talk_blocking<S, T>(member: &mut Member<S>, stream: &mut T) -> io::Result<()>
where
    S: Session<Job = Never>,
    T: BlockingMember<S::Push>,
{
    let limits = member.limits;
    loop {
        member.post(stream.now(), stream);
        let (bytes, last) = (member.out.len(), member.is_last());
        let (out, check_stuck) = member.output();
        let at_once = sequential::send_while(stream, out, last, limits, check_stuck)?;
        member.wrote(bytes);
        if member.is_overrun(stream) {
            continue;
        }
        match member.flow {
            Flow::Continue => {}
            _ if member.ended => return Ok(()),
            Flow::ClosedByClient => return sequential::close_by_client(stream, at_once),
            Flow::Close => return sequential::linger(stream),
        }
        let now = stream.now();
        if member.continue_before_wait(now) {
            continue;
        }
        let wake = stream.wait(member.reads(), member.due(now))?;
        let now = stream.now();
        member.woke(wake, now, stream, T::read_now, T::unacknowledged)?;
    }
}

/// Serves one member until its connection closes, as a future. Returns an error if the stream fails
/// or a timeout passes.
pub async fn serve<S, T>(session: S, mut stream: T, limits: Limits) -> io::Result<()>
where
    S: Session<Job = Never, Push: Send, Local: Send> + Send,
    T: AsyncMember<S::Push>,
{
    let mut member = Member::new(session, limits, stream.now());
    let ended = talk(&mut member, &mut stream).await;
    member.announce_leave(&mut stream);
    ended
}

async fn talk<S, T>(member: &mut Member<S>, stream: &mut T) -> io::Result<()>
where
    S: Session<Job = Never, Push: Send, Local: Send> + Send,
    T: AsyncMember<S::Push>,
{
    let limits = member.limits;
    loop {
        member.post(stream.now(), stream);
        let last = member.is_last();
        let (out, check_stuck) = member.output();
        let at_once = asynchronous::send_while(stream, out, last, limits, check_stuck).await?;
        member.wrote(member.out.len());
        if member.is_overrun(stream) {
            continue;
        }
        match member.flow {
            Flow::Continue => {}
            _ if member.ended => return Ok(()),
            Flow::ClosedByClient => return asynchronous::close_by_client(stream, at_once).await,
            Flow::Close => return asynchronous::linger(stream).await,
        }
        let now = stream.now();
        if member.continue_before_wait(now) {
            continue;
        }
        let wake = stream.wait(member.reads(), member.due(now)).await?;
        let now = stream.now();
        member.woke(wake, now, stream, T::read_now, T::unacknowledged)?;
    }
}
