//! Servers whose connections are sessions. Each session has its own state, may post to the others,
//! and receives what they post.

use crate::{
    Bounds, Flow, Job, Now, OutputState, Policy, Push, PushOutcome, RemoteOutcome, RoomName, Slots,
};
use std::{sync::Arc, time::Instant};

/// One connection of a server: a state machine that the driver of the model calls.
pub trait Session: Sized + 'static {
    /// The jobs that its replies may need; [`Never`](crate::Never) if none.
    type Job: Job;

    /// What it posts to other sessions; [`Never`](crate::Never) if nothing, and no code is compiled for it.
    type Push: Push;

    /// State that sessions of one thread may share. It holds caches only: replies must not depend
    /// on it. A model creates one per thread or one per connection.
    type Local: Default;

    /// Called when bytes have arrived. The session takes all of them, and may change them in place.
    fn on_bytes(&mut self, context: &mut Context<'_, Self>, bytes: &mut [u8]) -> Flow;

    /// Called when all output is written, or none is pending, if [`Session::wants_drained`], and when a
    /// job is done while no output is pending.
    fn on_drained(&mut self, _context: &mut Context<'_, Self>) -> Flow {
        Flow::Continue
    }

    /// Called when the client has closed its sending side, or a stop has shut down the input.
    /// Returns [`Flow::Close`] once nothing more will be appended.
    fn on_end(&mut self, context: &mut Context<'_, Self>) -> Flow;

    /// Called before any other call that may append output, except on a model that writes all output of a
    /// session before it calls it again. `output`: how much of it is written.
    #[inline]
    fn on_output(&mut self, _output: OutputState) {}

    /// Called when another session has posted `push` to the room of this session. Appends the
    /// client's message to `out`, which may still contain unwritten output, or keeps it until
    /// [`Session::on_drained`]. It must bound both for a client that does not read, e.g. by a
    /// [`Backlog`](crate::Backlog).
    fn on_push(&mut self, _now: Now, _push: &Self::Push, _out: &mut Vec<u8>) -> PushOutcome {
        PushOutcome::Missed
    }

    /// Like [`Session::on_push`], with the room: for sessions that [enter](Post::Enter) several. Called instead of it,
    /// on engines.
    #[inline]
    fn on_room_push(
        &mut self,
        now: Now,
        _room: &RoomName,
        push: &Self::Push,
        out: &mut Vec<u8>,
    ) -> PushOutcome {
        self.on_push(now, push, out)
    }

    /// Called when the pushes queued for this session exceed [`SessionFactory::bounds`] with
    /// [`Policy::Close`], on a model that queues pushes outside of the session. Appends its last
    /// message to `out`. Then it is closed.
    fn on_overrun(&mut self, _out: &mut Vec<u8>) {}

    /// Called when a [`Post::Counted`] of this session has reached the members of its room on every
    /// core. `members` is the number of those that it is queued for, plus 1 if this session has
    /// joined.
    fn on_queued(&mut self, _context: &mut Context<'_, Self>, _ticket: u64, _members: u32) -> Flow {
        Flow::Continue
    }

    /// Called when it is known what became of a [`Post::Remote`] of this session.
    fn on_sent(
        &mut self,
        _context: &mut Context<'_, Self>,
        _ticket: u64,
        _outcome: RemoteOutcome,
    ) -> Flow {
        Flow::Continue
    }

    /// Called once if the session can post: when the connection is gone, for any reason, or when it
    /// leaves its room because it closes. Nothing can be written any longer. Returns what is pushed to the others in its room.
    fn on_close(&mut self) -> Option<Self::Push> {
        None
    }

    /// Called when the connection is gone, for each room that it had [entered](Post::Enter). Returns what is pushed to the
    /// others in this room.
    fn on_exit(&mut self, _room: &RoomName) -> Option<Self::Push> {
        None
    }

    /// Called once during a paced drain, when it is the turn of this session to leave. One that
    /// continues is stopped at the end of the drain. `random`: a random number, e.g. to spread what
    /// clients do next.
    fn on_retire(&mut self, _context: &mut Context<'_, Self>, _random: u32) -> Flow {
        Flow::Continue
    }

    /// Called when the alarm of [`Session::alarm`] is due.
    fn on_alarm(&mut self, _context: &mut Context<'_, Self>) -> Flow {
        Flow::Continue
    }

    /// The replies that wait for jobs.
    #[inline]
    fn slots(&mut self) -> Option<&mut Slots<Self::Job>> {
        None
    }

    /// Whether it accepts more input now. It must bound its buffers through this.
    #[inline]
    fn wants_input(&self) -> bool {
        true
    }

    /// Whether its connection ends at once, and its pending output is discarded. Asked after a call that
    /// closes it.
    fn is_cut(&self) -> bool {
        false
    }

    /// When its connection ends, and its pending output is discarded, unless that was written before: for a
    /// client that does not read, but must leave. Asked after every call. It is late by at most
    /// [`Limits::progress_interval`](crate::Limits::progress_interval).
    #[inline]
    fn cut_at(&self) -> Option<Instant> {
        None
    }

    /// Whether it must leave, of which a push that is still queued will notify it. Asked only on a model that
    /// queues pushes outside of the session, while output cannot be written. It is cut
    /// [`Limits::LAST_OUTPUT`](crate::Limits::LAST_OUTPUT) later.
    fn must_leave(&self) -> bool {
        false
    }

    /// Whether it has more to write once its output is written.
    #[inline]
    fn wants_drained(&self) -> bool {
        false
    }

    /// Whether its client waits for a reply that is in progress, so that its silence does not count
    /// as idle.
    #[inline]
    fn is_working(&self) -> bool {
        false
    }

    /// When the request or message that is still incomplete started.
    #[inline]
    fn inside(&self) -> Option<Instant> {
        None
    }

    /// When [`Session::on_alarm`] should be called. The call is deferred while 64 KiB or more of
    /// output are pending.
    #[inline]
    fn alarm(&self) -> Option<Instant> {
        None
    }
}

/// The arguments of a call to a session.
pub struct Context<'a, S: Session> {
    /// The current time. In a loop, the start time of this turn.
    pub now: Now,
    /// State that sessions of its thread may share.
    pub local: &'a mut S::Local,
    /// Its output, to append to.
    pub out: &'a mut Vec<u8>,
    /// What it posts.
    pub posts: &'a mut Vec<Post<S::Push>>,
}

impl<S: Session> Context<'_, S> {
    /// Posts something. Does nothing if the session's push type is [`Never`](crate::Never).
    pub fn post(&mut self, post: Post<S::Push>) {
        if S::Push::EVER {
            self.posts.push(post);
        }
    }
}

/// What a session posts.
#[derive(Clone, Debug)]
pub enum Post<P> {
    /// Joins a room: from now on it receives what others in the room post. Ignored if it is already
    /// in a room.
    Join(RoomName),
    /// Leaves its room, and all that it has entered.
    Leave,
    /// Enters one of several rooms: from now on it receives what others in this room post, too, as
    /// [`Session::on_room_push`]. Ignored if it is already in this room. Only on engines: no other model has sessions in
    /// several rooms.
    Enter(RoomName),
    /// Leaves a room that it has entered.
    Exit(RoomName),
    /// Every other session in its room, on every core, receives this; in the lobby, if it is in no
    /// room. The posts of one sender arrive in order.
    Others(P),
    /// Like [`Post::Others`]. Once it has reached all of them, [`Session::on_queued`] is called
    /// with this ticket.
    Counted(P, u64),
    /// Every other session in this room, on every core, receives this.
    To(RoomName, P),
    /// Passes this for this room to the [`Uplink`](crate::Uplink) of the server, in the order of the posts of this
    /// session. Once it is known what became of it, [`Session::on_sent`] is called with this ticket. A server without
    /// an uplink does nothing.
    Remote(RoomName, P, u64),
}

/// Creates the sessions of a server.
pub trait SessionFactory {
    /// The type of the sessions.
    type Session: Session;

    /// Creates a session for a new connection.
    fn session(&self, now: Now) -> Self::Session;

    /// Called when a [`Letter`](crate::Letter) from another core has brought `push` for a room.
    /// Returns what the sessions of this core receive.
    fn arrived(
        &self,
        _room: &RoomName,
        push: <Self::Session as Session>::Push,
    ) -> <Self::Session as Session>::Push {
        push
    }

    /// How much may be queued for a session that joins this room, on a model that queues pushes outside of
    /// the session. By default 16,384 pushes.
    fn bounds(&self, _room: &RoomName) -> Bounds {
        Bounds {
            bytes: usize::MAX,
            pushes: 16_384,
            policy: Policy::Close,
            counts: Arc::default(),
            memory: Arc::default(),
        }
    }
}
