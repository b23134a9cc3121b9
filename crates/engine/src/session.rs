//! Servers whose connections are sessions: each has its own state, may post to the others, and hears
//! what they post.

use crate::{Conn, Effects, Engine, Flow, Job, JobId, Never, Now, Slots, Status};
use std::time::Instant;

/// One connection of a server, as a state machine that the driver of its model calls.
pub trait Session: Sized + 'static {
    /// What its replies may need; [`Never`] if nothing.
    type Job: Job;

    /// What it posts to other sessions; [`Never`] if nothing. Nothing is compiled for it then.
    type Push: Push;

    /// What sessions of one thread may share: caches, never meaning. A model makes one for a core,
    /// or one for a connection, as it is built.
    type Local: Default;

    /// Bytes of output that the kernel does not take, beyond which a session that is pushed to is
    /// closed: a slow consumer.
    const BACKLOG: usize = 1 << 20;

    /// The connection is open. Bytes appended to the output are sent before anything was received.
    fn on_open(&mut self, _context: &mut Context<'_, Self>) -> Flow {
        Flow::Continue
    }

    /// Bytes came. The session takes all of them, and may change them in place.
    fn on_bytes(&mut self, context: &mut Context<'_, Self>, bytes: &mut [u8]) -> Flow;

    /// All output was written, or a job is done. Called after [`Session::wants_room`].
    fn on_room(&mut self, _context: &mut Context<'_, Self>) -> Flow {
        Flow::Continue
    }

    /// The client sends nothing more. [`Flow::Close`] as soon as nothing more will be appended.
    fn on_end(&mut self, context: &mut Context<'_, Self>) -> Flow;

    /// Another session has posted this, and this one has joined. Appends to `out` what its client is
    /// to hear of it.
    fn on_push(&mut self, _now: Now, _push: &Self::Push, _out: &mut Vec<u8>) -> Flow {
        Flow::Continue
    }

    /// The alarm of [`Session::alarm`] is due.
    fn on_alarm(&mut self, _context: &mut Context<'_, Self>) -> Flow {
        Flow::Continue
    }

    /// The replies that wait for jobs.
    #[inline]
    fn slots(&mut self) -> Option<&mut Slots<Self::Job>> {
        None
    }

    /// Whether it takes more input now. It must bound what it holds by this.
    #[inline]
    fn wants_input(&self) -> bool {
        true
    }

    /// Whether it has more to write once its output is written.
    #[inline]
    fn wants_room(&self) -> bool {
        false
    }

    /// Whether its client waits for a reply that is being worked on, so that its silence is no
    /// timeout.
    #[inline]
    fn is_waited_for(&self) -> bool {
        false
    }

    /// Since when its client is inside a request.
    #[inline]
    fn inside(&self) -> Option<Instant> {
        None
    }

    /// When it wants [`Session::on_alarm`] to be called. The call waits while 64 KiB of output, or
    /// more, are pending.
    #[inline]
    fn alarm(&self) -> Option<Instant> {
        None
    }
}

/// What is pushed from one session to others: cheap to clone, e.g. an `Arc` of encoded bytes.
pub trait Push: Clone + Send + 'static {
    /// Whether there can be one. Where not, nothing is compiled for it.
    const EVER: bool = true;
}

impl Push for Never {
    const EVER: bool = false;
}

/// What a session is called with.
pub struct Context<'a, S: Session> {
    /// The time at which this turn began.
    pub now: Now,
    /// What it shares with others of its thread.
    pub local: &'a mut S::Local,
    /// Its output, to be appended to.
    pub out: &'a mut Vec<u8>,
    /// What it posts.
    pub posts: &'a mut Vec<Post<S::Push>>,
}

impl<S: Session> Context<'_, S> {
    /// Posts something. Does nothing where nothing can be pushed.
    pub fn post(&mut self, post: Post<S::Push>) {
        if S::Push::EVER {
            self.posts.push(post);
        }
    }
}

/// What a session posts.
#[derive(Clone, Debug)]
pub enum Post<P> {
    /// From now on it hears what others post.
    Join,
    /// It hears nothing any more.
    Leave,
    /// Every other session that has joined hears this, on every core, in the order of one sender's
    /// posts.
    Others(P),
}

/// Makes the sessions of a server.
pub trait Start {
    /// What it makes.
    type Session: Session;

    /// A session for a new connection.
    fn session(&self, now: Now) -> Self::Session;
}

/// The engine of sessions.
pub struct Sessions<F: Start> {
    start: F,
    local: <F::Session as Session>::Local,
    /// By the place of their connections.
    sessions: Vec<Option<F::Session>>,
    posts: Vec<Post<<F::Session as Session>::Push>>,
    members: Members,
}

impl<F: Start> Sessions<F> {
    /// An engine without sessions.
    pub fn new(start: F) -> Self {
        Sessions {
            start,
            local: Default::default(),
            sessions: Vec::new(),
            posts: Vec::new(),
            members: Members::default(),
        }
    }

    /// Calls a session, and passes on what it wants.
    #[inline]
    fn call(
        &mut self,
        conn: Conn,
        effects: &mut Effects<Self>,
        what: impl FnOnce(&mut F::Session, &mut Context<'_, F::Session>) -> Flow,
    ) {
        let Some(Some(session)) = self.sessions.get_mut(conn.index()) else { return };
        let now = effects.now();
        let Some(out) = effects.out(conn) else { return };
        let (local, posts) = (&mut self.local, &mut self.posts);
        let flow = what(session, &mut Context { now, local, out, posts });
        follow(conn, flow, session, effects);
        if <F::Session as Session>::Push::EVER && !self.posts.is_empty() {
            self.carry_out_posts(conn, effects);
        }
    }

    fn carry_out_posts(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        let mut posts = std::mem::take(&mut self.posts);
        for post in posts.drain(..) {
            match post {
                Post::Join => self.members.join(conn),
                Post::Leave => self.members.leave(conn),
                Post::Others(push) => {
                    self.push(&push, Some(conn), effects);
                    effects.post(push);
                }
            }
        }
        self.posts = posts;
    }

    fn push(
        &mut self,
        push: &<F::Session as Session>::Push,
        from: Option<Conn>,
        effects: &mut Effects<Self>,
    ) {
        let now = effects.now();
        for &conn in self.members.all() {
            if from == Some(conn) {
                continue;
            }
            let Some(Some(session)) = self.sessions.get_mut(conn.index()) else { continue };
            let behind = effects.is_behind(conn, F::Session::BACKLOG);
            // One that is closing hears nothing more.
            let Some(out) = effects.out(conn) else { continue };
            if behind {
                effects.abort(conn);
                continue;
            }
            let flow = session.on_push(now, push, out);
            follow(conn, flow, session, effects);
            effects.pushed(conn);
        }
    }
}

/// Passes on what a session wants after a call.
#[inline]
fn follow<F: Start>(
    conn: Conn,
    flow: Flow,
    session: &mut F::Session,
    effects: &mut Effects<Sessions<F>>,
) {
    if <F::Session as Session>::Job::EVER
        && let Some(slots) = session.slots()
    {
        while let Some((id, job)) = slots.next_job() {
            let wanted = slots.wanted();
            effects.defer(conn, id, job, wanted);
        }
    }
    let status = Status {
        reads: session.wants_input(),
        waits: session.is_waited_for(),
        wants_room: session.wants_room(),
        inside: session.inside(),
        alarm: session.alarm(),
    };
    effects.set(conn, status);
    if flow != Flow::Continue {
        effects.close(conn, flow);
    }
}

impl<F: Start> Engine for Sessions<F> {
    type Job = <F::Session as Session>::Job;
    type Letter = <F::Session as Session>::Push;
    const POSTS: bool = <F::Session as Session>::Push::EVER;

    fn opened(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        let place = conn.index();
        if self.sessions.len() <= place {
            self.sessions.resize_with(place + 1, || None);
        }
        self.sessions[place] = Some(self.start.session(effects.now()));
        self.call(conn, effects, |session, context| session.on_open(context));
    }

    #[inline]
    fn received(&mut self, conn: Conn, bytes: &mut [u8], effects: &mut Effects<Self>) {
        self.call(conn, effects, |session, context| session.on_bytes(context, bytes));
    }

    #[inline]
    fn room(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        self.call(conn, effects, |session, context| session.on_room(context));
    }

    fn ended(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        self.call(conn, effects, |session, context| session.on_end(context));
    }

    fn closed(&mut self, conn: Conn, _: &mut Effects<Self>) {
        if <F::Session as Session>::Push::EVER {
            self.members.leave(conn);
        }
        if let Some(place) = self.sessions.get_mut(conn.index()) {
            *place = None;
        }
    }

    fn alarm(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        self.call(conn, effects, |session, context| session.on_alarm(context));
    }

    fn done(
        &mut self,
        conn: Conn,
        job: JobId,
        finish: impl FnOnce(&mut Vec<u8>) -> Flow,
        effects: &mut Effects<Self>,
    ) {
        let Some(Some(session)) = self.sessions.get_mut(conn.index()) else { return };
        if let Some(slots) = session.slots() {
            slots.finish(job, finish);
        }
        // What the client has not taken yet goes first.
        if effects.pending(conn) == 0 {
            self.call(conn, effects, |session, context| session.on_room(context));
        }
    }

    fn heard(&mut self, push: Self::Letter, effects: &mut Effects<Self>) {
        self.push(&push, None, effects);
    }
}

/// The sessions that hear what others post.
#[derive(Debug, Default)]
struct Members {
    all: Vec<Conn>,
    /// Where each is in `all`, by the place of its connection.
    places: Vec<Option<u32>>,
}

impl Members {
    fn all(&self) -> &[Conn] {
        &self.all
    }

    fn join(&mut self, conn: Conn) {
        let index = conn.index();
        if self.places.len() <= index {
            self.places.resize(index + 1, None);
        }
        if self.places[index].is_none() {
            self.places[index] = Some(self.all.len() as u32);
            self.all.push(conn);
        }
    }

    fn leave(&mut self, conn: Conn) {
        let Some(place) = self.places.get_mut(conn.index()).and_then(Option::take) else { return };
        self.all.swap_remove(place as usize);
        if let Some(moved) = self.all.get(place as usize) {
            self.places[moved.index()] = Some(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Core, Limits, Next, Socket};

    /// Says what it is sent, and posts what begins with `p`.
    #[derive(Default)]
    struct Loud;

    #[derive(Clone)]
    struct Said;

    impl Push for Said {}

    impl Session for Loud {
        type Job = Never;
        type Push = Said;
        type Local = ();
        const BACKLOG: usize = 3;

        fn on_open(&mut self, context: &mut Context<'_, Self>) -> Flow {
            context.post(Post::Join);
            Flow::Continue
        }

        fn on_bytes(&mut self, context: &mut Context<'_, Self>, bytes: &mut [u8]) -> Flow {
            if bytes[0] == b'p' {
                context.post(Post::Others(Said));
            } else {
                context.out.extend_from_slice(bytes);
            }
            Flow::Continue
        }

        fn on_end(&mut self, _: &mut Context<'_, Self>) -> Flow {
            Flow::Close
        }

        fn on_push(&mut self, _: Now, _: &Said, out: &mut Vec<u8>) -> Flow {
            out.push(b'!');
            Flow::Continue
        }
    }

    struct Louds;

    impl Start for Louds {
        type Session = Loud;

        fn session(&self, _: Now) -> Loud {
            Loud
        }
    }

    /// A socket that nothing is asked of.
    struct Silent;

    impl Socket for Silent {
        fn unacknowledged(&self, _: Conn) -> usize {
            0
        }

        fn is_readable(&self, _: Conn) -> bool {
            false
        }

        fn is_gone(&self, _: Conn) -> bool {
            false
        }
    }

    fn core() -> Core<Sessions<Louds>> {
        let now = Now { instant: Instant::now(), unix_s: 0 };
        Core::new(Sessions::new(Louds), Limits::default(), now)
    }

    #[test]
    fn a_push_aborts_a_member_beyond_its_backlog() {
        let mut core = core();
        let (slow, loud) = (core.accept(), core.accept());
        core.received(slow, &mut b"abc".to_vec());
        core.received(loud, &mut b"p".to_vec());
        assert_eq!(core.output(slow), b"abc!");
        core.received(loud, &mut b"p".to_vec());
        assert_eq!(core.output(slow), b"abc!!", "the kernel has not refused anything yet");
        core.wrote(slow, 2);
        core.received(loud, &mut b"p".to_vec());
        assert_eq!(core.output(slow), b"c!!!", "as much as the backlog was not too much");
        core.received(loud, &mut b"p".to_vec());
        assert_eq!(core.next(slow, &Silent), Next::Close);
        assert_eq!(core.next(loud, &Silent), Next::Wait, "the others do not suffer");
    }

    #[test]
    fn a_push_leaves_the_last_replies_of_a_closing_member_alone() {
        let mut core = core();
        let (closing, loud) = (core.accept(), core.accept());
        core.received(closing, &mut b"many replies".to_vec());
        core.ended(closing);
        core.received(loud, &mut b"p".to_vec());
        assert_eq!(core.output(closing), b"many replies");
        assert_eq!(core.next(closing, &Silent), Next::Write { last: true });
    }
}
