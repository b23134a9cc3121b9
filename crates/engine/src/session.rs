//! Servers whose connections are sessions: each has its own state, may post to the others, and hears
//! what they post.

use crate::{Bounds, Flow, Heard, Job, Now, Policy, Push, RoomName, Slots};
use std::{sync::Arc, time::Instant};

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

    /// Whether it has something to say to a slow consumer before it is closed: [`Session::on_overrun`]. Where
    /// not, its connection is closed at once, without what it has not taken.
    const LAST_WORDS: bool = false;

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

    /// Another session has posted this, and this one has joined. Appends to `out`, in which older output
    /// may still wait for room, what its client is to hear of it; or holds it back until
    /// [`Session::on_room`].
    fn on_push(&mut self, _now: Now, _push: &Self::Push, _out: &mut Vec<u8>) -> Heard {
        Heard::Missed
    }

    /// More would wait for this session than [`Start::bounds`] allow, on a model that keeps its pushes for
    /// it until it hears them. Appends its last words to `out`. Called only if it has
    /// [some](Session::LAST_WORDS).
    fn on_overrun(&mut self, _out: &mut Vec<u8>) {}

    /// What this session posted as [`Post::Counted`] is queued for all who had joined, on every core: so
    /// many, itself included if it had joined.
    fn on_queued(&mut self, _context: &mut Context<'_, Self>, _ticket: u64, _members: u32) -> Flow {
        Flow::Continue
    }

    /// The connection is gone, for whatever reason; nothing can be written any more. What the others in its
    /// room hear of that.
    fn on_gone(&mut self) -> Option<Self::Push> {
        None
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

    /// Since when its client is inside a request, or a message.
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
    /// From now on it hears what others in this room post. Nothing changes if it is in a room already.
    Join(RoomName),
    /// It hears nothing any more.
    Leave,
    /// Every other session in its room, or in the lobby if it is in none, hears this, on every core, in
    /// the order of one sender's posts.
    Others(P),
    /// As [`Post::Others`]. Once it is queued for all of them, [`Session::on_queued`] says for how many,
    /// with this ticket.
    Counted(P, u64),
}

/// Makes the sessions of a server.
pub trait Start {
    /// What it makes.
    type Session: Session;

    /// A session for a new connection.
    fn session(&self, now: Now) -> Self::Session;

    /// Another core has posted this to a room. Returns what the sessions of this core hear.
    fn arrived(
        &self,
        _room: &RoomName,
        push: <Self::Session as Session>::Push,
    ) -> <Self::Session as Session>::Push {
        push
    }

    /// How much may wait for one of its sessions on a model that keeps pushes until they are heard. By
    /// default so many that pushes of 64 bytes fill [`Session::BACKLOG`].
    fn bounds(&self) -> Bounds {
        Bounds {
            bytes: usize::MAX,
            pushes: (Self::Session::BACKLOG / 64).max(1),
            policy: Policy::Close,
            counts: Arc::default(),
        }
    }
}
