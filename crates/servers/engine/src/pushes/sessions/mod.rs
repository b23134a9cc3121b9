//! The engine of sessions: calls them, and carries out what they post.

mod members;
mod remote;
mod uplinked;

use crate::{
    Conn, ConnInterest, Context, Effects, Engine, Flow, Job, JobId, Letter, Never, Post, Push,
    PushOutcome, RoomName, Session, SessionFactory, Uplink,
};
use members::Members;
use remote::Remote;
use std::{collections::HashMap, time::Instant};

/// A count of members for which answers of other cores are pending.
#[derive(Debug)]
struct Count {
    conn: Conn,
    ticket: u64,
    /// Cores that have not answered.
    missing: u32,
    members: u32,
}

/// The engine of sessions. `U`: their common connection to another server, if there can be one.
pub struct Sessions<F: SessionFactory, U = Never> {
    start: F,
    /// The index of this core, and the number of cores.
    core: u32,
    cores: u32,
    /// The number of the last count.
    counted: u64,
    counts: HashMap<u64, Count>,
    local: <F::Session as Session>::Local,
    /// Indexed by [`Conn::index`].
    sessions: Vec<Option<F::Session>>,
    posts: Vec<Post<<F::Session as Session>::Push>>,
    members: Members,
    remote: Remote<U, <F::Session as Session>::Push>,
}

impl<F: SessionFactory> Sessions<F> {
    /// Creates an engine without sessions.
    pub fn new(start: F) -> Self {
        Sessions::with_uplink(start, None)
    }
}

impl<F: SessionFactory, U: Uplink<<F::Session as Session>::Push>> Sessions<F, U> {
    /// Like [`Sessions::new`], for sessions that have this connection to another server in common. Each core gets one;
    /// only that of core 0 is used.
    pub fn with_uplink(start: F, uplink: Option<U>) -> Self {
        Sessions {
            start,
            core: 0,
            cores: 1,
            counted: 0,
            counts: HashMap::new(),
            local: Default::default(),
            sessions: Vec::new(),
            posts: Vec::new(),
            members: Members::default(),
            remote: Remote::new(uplink),
        }
    }

    /// Calls a session, and passes on its status, jobs and posts.
    #[inline]
    fn call(
        &mut self,
        conn: Conn,
        effects: &mut Effects<Self>,
        what: impl FnOnce(&mut F::Session, &mut Context<'_, F::Session>) -> Flow,
    ) {
        let Some(Some(session)) = self.sessions.get_mut(conn.index()) else { return };
        let now = effects.now();
        if <F::Session as Session>::Push::EVER {
            session.on_output(effects.output(conn));
        }
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
                Post::Join(room) => self.members.join(conn, room),
                Post::Leave => {
                    self.members.leave(conn);
                    self.members.exit_all(conn);
                }
                Post::Enter(room) => self.members.enter(conn, room),
                Post::Exit(room) => self.members.exit(conn, &room),
                Post::Others(push) => {
                    let room = self.members.room(conn);
                    self.post(room, push, conn, effects);
                }
                Post::To(room, push) => self.post(room, push, conn, effects),
                Post::Counted(push, ticket) => self.count(conn, push, ticket, effects),
                Post::Remote(room, push, ticket) if U::EVER => {
                    self.send((conn, ticket), room, push, effects);
                }
                Post::Remote(..) => {}
            }
        }
        // Reuses the memory, unless a session that was called meanwhile has posted.
        if self.posts.is_empty() {
            self.posts = posts;
        }
    }

    /// Pushes to the members of a room on all cores, except the sender.
    fn post(
        &mut self,
        room: RoomName,
        push: <F::Session as Session>::Push,
        from: Conn,
        effects: &mut Effects<Self>,
    ) {
        self.push(&room, &push, Some(from), effects);
        effects.post(Letter::Push(room, push));
    }

    /// Pushes to the members on all cores, and reports their number to the sender.
    fn count(
        &mut self,
        conn: Conn,
        push: <F::Session as Session>::Push,
        ticket: u64,
        effects: &mut Effects<Self>,
    ) {
        let room = self.members.room(conn);
        let own = u32::from(self.members.has(conn));
        let members = own + self.push(&room, &push, Some(conn), effects);
        if self.cores == 1 {
            self.call(conn, effects, |session, context| {
                session.on_queued(context, ticket, members)
            });
            return;
        }
        self.counted += 1;
        let missing = self.cores - 1;
        self.counts.insert(self.counted, Count { conn, ticket, missing, members });
        effects.post(Letter::Counted { room, push, from: self.core, count: self.counted });
    }

    /// Another core has queued a counted push.
    fn queued(&mut self, count: u64, members: u32, effects: &mut Effects<Self>) {
        let Some(waiting) = self.counts.get_mut(&count) else { return };
        waiting.members += members;
        waiting.missing -= 1;
        if waiting.missing == 0
            && let Some(Count { conn, ticket, members, .. }) = self.counts.remove(&count)
        {
            self.call(conn, effects, |session, context| {
                session.on_queued(context, ticket, members)
            });
        }
    }

    /// Queues a push for the members of a room on this core, except `from`. Returns for how many it
    /// was queued.
    fn push(
        &mut self,
        room: &RoomName,
        push: &<F::Session as Session>::Push,
        from: Option<Conn>,
        effects: &mut Effects<Self>,
    ) -> u32 {
        let now = effects.now();
        let mut queued = 0;
        for &conn in self.members.of(room) {
            if from == Some(conn) {
                continue;
            }
            let Some(Some(session)) = self.sessions.get_mut(conn.index()) else { continue };
            session.on_output(effects.output(conn));
            // A closing connection receives nothing more.
            let Some(out) = effects.out(conn) else { continue };
            let heard = session.on_room_push(now, room, push, out);
            let flow = if heard == PushOutcome::Close { Flow::Close } else { Flow::Continue };
            follow(conn, flow, session, effects);
            effects.pushed(conn);
            queued += u32::from(heard == PushOutcome::Queued);
        }
        queued
    }
}

/// Passes on the status, jobs and flow of a session after a call.
#[inline]
fn follow<F: SessionFactory, U: Uplink<<F::Session as Session>::Push>>(
    conn: Conn,
    flow: Flow,
    session: &mut F::Session,
    effects: &mut Effects<Sessions<F, U>>,
) {
    if <F::Session as Session>::Job::EVER
        && let Some(slots) = session.slots()
    {
        while let Some((id, job)) = slots.next_job() {
            let wanted = slots.wanted();
            effects.defer(conn, id, job, wanted);
        }
    }
    let status = ConnInterest {
        reads: session.wants_input(),
        waits: session.is_working(),
        wants_drained: session.wants_drained(),
        inside: session.inside(),
        alarm: session.alarm(),
        gone_at_end: None,
        cut_at: session.cut_at(),
    };
    effects.set(conn, status);
    if flow != Flow::Continue && session.is_cut() {
        effects.abort(conn);
    } else if flow != Flow::Continue {
        effects.close(conn, flow);
    }
}

impl<F: SessionFactory, U: Uplink<<F::Session as Session>::Push>> Engine for Sessions<F, U> {
    type Job = <F::Session as Session>::Job;
    type Letter = Letter<<F::Session as Session>::Push>;
    const POSTS: bool = <F::Session as Session>::Push::EVER;
    const CONNECTS: bool = U::EVER;

    fn opened(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        if U::EVER && self.remote.is(conn) {
            return self.call_uplink(effects, U::opened);
        }
        let place = conn.index();
        if self.sessions.len() <= place {
            self.sessions.resize_with(place + 1, || None);
        }
        self.sessions[place] = Some(self.start.session(effects.now()));
        // A deadline of the session may have begun, e.g. of a handshake.
        self.call(conn, effects, |_, _| Flow::Continue);
    }

    #[inline]
    fn received(&mut self, conn: Conn, bytes: &mut [u8], effects: &mut Effects<Self>) {
        if U::EVER && self.remote.is(conn) {
            return self.call_uplink(effects, |uplink, turn| uplink.received(bytes, turn));
        }
        self.call(conn, effects, |session, context| session.on_bytes(context, bytes));
    }

    #[inline]
    fn room(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        self.call(conn, effects, |session, context| session.on_drained(context));
    }

    fn ended(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        if U::EVER && self.remote.is(conn) {
            effects.abort(conn);
            return self.uplink_closed(effects);
        }
        self.call(conn, effects, |session, context| session.on_end(context));
    }

    fn closed(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        if U::EVER && self.remote.is(conn) {
            return self.uplink_closed(effects);
        }
        if <F::Session as Session>::Push::EVER {
            let session = self.sessions.get_mut(conn.index()).and_then(Option::as_mut);
            let push = session.and_then(Session::on_close);
            if let Some((room, push)) = self.members.leave(conn).zip(push) {
                self.push(&room, &push, None, effects);
                effects.post(Letter::Push(room, push));
            }
            for room in self.members.exit_all(conn) {
                let session = self.sessions.get_mut(conn.index()).and_then(Option::as_mut);
                if let Some(push) = session.and_then(|session| session.on_exit(&room)) {
                    self.push(&room, &push, None, effects);
                    effects.post(Letter::Push(room, push));
                }
            }
        }
        if let Some(place) = self.sessions.get_mut(conn.index()) {
            *place = None;
        }
    }

    fn alarm(&mut self, conn: Conn, effects: &mut Effects<Self>) {
        self.call(conn, effects, |session, context| session.on_alarm(context));
    }

    fn retire(&mut self, conn: Conn, random: u32, effects: &mut Effects<Self>) {
        self.call(conn, effects, |session, context| session.on_retire(context, random));
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
        // Older output is written first.
        if effects.pending(conn) == 0 {
            self.call(conn, effects, |session, context| session.on_drained(context));
        }
    }

    fn due(&self) -> Option<Instant> {
        if U::EVER { self.remote.due() } else { None }
    }

    fn tick(&mut self, effects: &mut Effects<Self>) {
        if U::EVER {
            self.call_uplink(effects, U::tick);
        }
    }

    fn set_core(&mut self, core: u32, cores: u32) {
        (self.core, self.cores) = (core, cores);
        if core != 0 {
            self.remote.leaves_it_to_others();
        }
    }

    fn heard(&mut self, letter: Self::Letter, effects: &mut Effects<Self>) {
        match letter {
            Letter::Push(room, push) => {
                let push = self.start.arrived(&room, push);
                self.push(&room, &push, None, effects);
            }
            Letter::Counted { room, push, from, count } => {
                let push = self.start.arrived(&room, push);
                let members = self.push(&room, &push, None, effects);
                effects.post(Letter::Queued { to: from, count, members });
            }
            Letter::Queued { to, count, members } if to == self.core => {
                self.queued(count, members, effects);
            }
            Letter::Queued { .. } => {}
            letter if U::EVER => self.heard_remote(letter, effects),
            Letter::All(_) | Letter::Remote { .. } | Letter::Sent { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Core, Limits, Never, Next, Now, OutputState};
    use std::time::Duration;

    /// Joins if its input starts with `j`, and posts if it starts with `p`; otherwise echoes it.
    #[derive(Default)]
    struct Loud {
        /// Its output that the kernel has not accepted, at the last call.
        pending: usize,
        is_cut: bool,
        /// When its first request begins.
        inside: Option<Instant>,
    }

    /// Bytes of pending output beyond which a push cuts it.
    const UNREAD: usize = 100;

    #[derive(Clone)]
    struct Said;

    impl Push for Said {}

    impl Session for Loud {
        type Job = Never;
        type Push = Said;
        type Local = ();

        fn on_bytes(&mut self, context: &mut Context<'_, Self>, bytes: &mut [u8]) -> Flow {
            match bytes[0] {
                b'j' => context.post(Post::Join(RoomName::LOBBY)),
                b'p' => context.post(Post::Others(Said)),
                _ => context.out.extend_from_slice(bytes),
            }
            Flow::Continue
        }

        fn on_end(&mut self, _: &mut Context<'_, Self>) -> Flow {
            Flow::Close
        }

        fn on_retire(&mut self, _: &mut Context<'_, Self>, _: u32) -> Flow {
            Flow::Close
        }

        fn on_output(&mut self, output: OutputState) {
            self.pending = output.pending;
        }

        fn on_push(&mut self, _: Now, _: &Said, out: &mut Vec<u8>) -> PushOutcome {
            if self.pending > UNREAD {
                self.is_cut = true;
                return PushOutcome::Close;
            }
            out.push(b'!');
            PushOutcome::Queued
        }

        fn is_cut(&self) -> bool {
            self.is_cut
        }

        fn inside(&self) -> Option<Instant> {
            self.inside
        }
    }

    /// Creates sessions, whose first request begins at once if this is true.
    struct Louds(bool);

    impl SessionFactory for Louds {
        type Session = Loud;

        fn session(&self, now: Now) -> Loud {
            Loud { inside: self.0.then_some(now.instant), ..Loud::default() }
        }
    }

    fn core_of(start: Louds) -> Core<Sessions<Louds>> {
        let now = Now { instant: Instant::now(), unix_s: 0 };
        Core::new(Sessions::new(start), Limits::default(), now)
    }

    fn core() -> Core<Sessions<Louds>> {
        core_of(Louds(false))
    }

    fn member(core: &mut Core<Sessions<Louds>>) -> Conn {
        let conn = core.accept();
        core.received(conn, &mut b"j".to_vec());
        conn
    }

    #[test]
    fn a_new_session_has_its_deadline_before_it_has_received_anything() {
        for (inside, limit) in [(false, Limits::default().idle), (true, Limits::default().request)]
        {
            let mut core = core_of(Louds(inside));
            let conn = core.accept();
            core.settle(conn);
            assert_eq!(core.due(), Some(core.now().instant + limit), "inside a request: {inside}");
        }
    }

    #[test]
    fn a_member_that_cuts_itself_at_a_push_is_aborted_and_the_others_are_unaffected() {
        let mut core = core();
        let [slow, other, loud] = [(); 3].map(|()| member(&mut core));
        core.received(slow, &mut [b'x'; UNREAD]);
        core.received(loud, &mut b"p".to_vec());
        core.wrote(slow, 60);
        for _ in 0..60 {
            core.received(loud, &mut b"p".to_vec());
        }
        assert_eq!(core.output(slow).len(), UNREAD + 1, "only what is not written is pending");
        core.received(loud, &mut b"p".to_vec());
        assert_eq!(core.next(slow, &()), Next::Close);
        assert_eq!(core.next(loud, &()), Next::Wait);
        assert_eq!(core.output(other), [b'!'; 62]);
    }

    #[test]
    fn a_drain_retires_each_session_within_its_time_and_the_others_stay() {
        let mut core = core();
        let conns: Vec<Conn> = (0..10).map(|_| core.accept()).collect();
        let (start, over) = (core.now(), Duration::from_secs(10));
        assert!(!core.is_stopping());
        core.drain(over, 1);
        assert!(core.is_stopping() && !core.is_drained());
        let mut open = conns.len();
        while !core.is_drained() {
            let now = Now { instant: core.due().unwrap(), ..start };
            core.turn(now);
            core.tick(&());
            while let Some(conn) = core.next_changed() {
                assert_eq!(core.next(conn, &()), Next::ShutdownWrite, "the usual way to close");
                core.shutdown_completed(conn, true);
                core.ended(conn);
                assert_eq!(core.next(conn, &()), Next::Close);
                core.closed(conn);
                open -= 1;
            }
            let passed = now.instant - start.instant;
            let left = 10 - passed.as_secs() as usize;
            assert!(open == left || open + 1 == left, "{open} are open after {passed:?}");
        }
        assert_eq!((open, core.clients()), (0, 0));
        core.stop(Duration::ZERO);
        assert!(core.is_stopping() && !core.is_drained());
    }

    #[test]
    fn a_slice_grows_with_the_pushes_and_serves_the_oldest_changes_first() {
        let mut core = core();
        let conns: Vec<Conn> = (0..101).map(|_| member(&mut core)).collect();
        core.slice();
        assert_eq!((core.slice(), core.has_changed()), (64, false));
        assert!(!core.has_letters());
        core.received(conns[5], &mut b"p".to_vec());
        assert_eq!(core.slice(), 64, "100 pushes are cheap");
        for _ in 0..64 {
            core.received(conns[7], &mut b"p".to_vec());
        }
        assert_eq!((core.slice(), core.slice()), (6400 / 32, 64));
        let mut changed: Vec<Conn> = std::iter::from_fn(|| core.next_changed()).take(3).collect();
        assert!(core.has_changed());
        assert_eq!(changed, conns[..3]);
        // A connection that has just been served is served again last.
        core.received(conns[5], &mut b"p".to_vec());
        changed.extend(std::iter::from_fn(|| core.next_changed()));
        let rest = conns[3..].iter().filter(|conn| **conn != conns[5]).chain([&conns[5]]);
        let again = &conns[..3];
        let expected: Vec<Conn> = again.iter().chain(rest).chain(again).copied().collect();
        assert_eq!(changed, expected);
        assert!(!core.has_changed());
    }

    #[test]
    fn rooms_drop_members_that_leave_and_keep_the_places_of_the_others() {
        let mut core = core();
        let conns: Vec<Conn> = (0..4).map(|_| core.accept()).collect();
        let mut members = Members::default();
        let red = RoomName::of("red");
        for (i, conn) in conns.iter().enumerate() {
            members.join(*conn, if i == 3 { RoomName::of("") } else { red.clone() });
        }
        assert_eq!((members.of(&red), members.of(&RoomName::LOBBY)), (&conns[..3], &conns[3..]));
        members.join(conns[0], RoomName::LOBBY);
        assert_eq!(members.room(conns[0]), red, "it is in a room already");
        assert_eq!(members.leave(conns[0]), Some(red.clone()));
        assert_eq!(members.leave(conns[0]), None);
        assert_eq!(members.of(&red), [conns[2], conns[1]]);
        members.leave(conns[2]);
        assert_eq!(members.of(&red), [conns[1]]);
        members.leave(conns[1]);
        assert!(members.of(&red).is_empty() && members.rooms.len() == 1, "empty rooms are removed");
        assert!(!members.has(conns[1]) && members.has(conns[3]));
    }

    #[test]
    fn a_push_does_not_change_the_last_replies_of_a_closing_member() {
        let mut core = core();
        let [closing, loud] = [(); 2].map(|()| member(&mut core));
        core.received(closing, &mut b"many replies".to_vec());
        core.ended(closing);
        core.received(loud, &mut b"p".to_vec());
        assert_eq!(core.output(closing), b"many replies");
        assert_eq!(core.next(closing, &()), Next::Write { last: true });
    }
}
