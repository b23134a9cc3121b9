//! The memory of a connection in a program that can push to it, and in one that cannot.
//!
//! `Link` (the lifecycle of a connection) and a driver's data of a socket have no type parameter
//! for pushes, so pushes cannot change them. Only the session and the tables of members in
//! `Sessions` could grow. Both are measured here, in bytes allocated.

use regatta_engine::{
    Conn, Context, Core, Flow, Limits, Never, Next, Now, Post, Push, RoomName, Session,
    SessionFactory, Sessions, Slots,
};
use regatta_service::{ServiceProgram, double::Double};
use std::{marker::PhantomData, mem::size_of, sync::Arc, time::Instant};

/// A push type.
#[derive(Clone)]
struct Bytes(#[allow(dead_code)] Arc<[u8]>);

impl Push for Bytes {}

type Doubling = <ServiceProgram<Double> as SessionFactory>::Session;

/// `double`, in a program whose push is `P`.
struct With<P, const JOINS: bool>(Doubling, PhantomData<P>);

impl<P: Push, const JOINS: bool> Session for With<P, JOINS> {
    type Job = <Doubling as Session>::Job;
    type Push = P;
    type Local = <Doubling as Session>::Local;

    fn on_bytes(&mut self, context: &mut Context<'_, Self>, bytes: &mut [u8]) -> Flow {
        if JOINS {
            context.post(Post::Join(RoomName::LOBBY));
        }
        self.inner(context, |session, context| session.on_bytes(context, bytes))
    }
    fn on_drained(&mut self, context: &mut Context<'_, Self>) -> Flow {
        self.inner(context, |session, context| session.on_drained(context))
    }
    fn on_end(&mut self, context: &mut Context<'_, Self>) -> Flow {
        self.inner(context, |session, context| session.on_end(context))
    }
    fn slots(&mut self) -> Option<&mut Slots<Self::Job>> {
        self.0.slots()
    }
    fn wants_input(&self) -> bool {
        self.0.wants_input()
    }
    fn wants_drained(&self) -> bool {
        self.0.wants_drained()
    }
    fn is_working(&self) -> bool {
        self.0.is_working()
    }
    fn inside(&self) -> Option<Instant> {
        self.0.inside()
    }
}

impl<P: Push, const JOINS: bool> With<P, JOINS> {
    fn inner(
        &mut self,
        context: &mut Context<'_, Self>,
        call: impl FnOnce(&mut Doubling, &mut Context<'_, Doubling>) -> Flow,
    ) -> Flow {
        let Context { now, local, out, .. } = context;
        call(&mut self.0, &mut Context { now: *now, local, out, posts: &mut Vec::new() })
    }
}

/// Creates the sessions.
struct Program<P, const JOINS: bool>(PhantomData<P>);

impl<P: Push, const JOINS: bool> SessionFactory for Program<P, JOINS> {
    type Session = With<P, JOINS>;

    fn session(&self, now: Now) -> With<P, JOINS> {
        With(ServiceProgram(Double).session(now), PhantomData)
    }
}

const CONNECTIONS: usize = 1000;

/// Returns the bytes allocated for `CONNECTIONS` connections after one reply each.
fn bytes<F: SessionFactory>(start: F) -> u64 {
    let now = Now { instant: Instant::now(), unix_s: 0 };
    let counted = allocation_counter::measure(|| {
        let mut core = Core::new(Sessions::new(start), Limits::default(), now);
        for _ in 0..CONNECTIONS {
            let conn = core.accept();
            core.received(conn, &mut b"21\n".to_vec());
            assert_eq!(core.next(conn, &()), Next::Write { last: false });
            assert_eq!(core.output(conn), b"42\n");
            core.wrote(conn, 3);
            core.settle(conn);
        }
        assert_eq!(core.clients(), CONNECTIONS);
    });
    counted.bytes_total
}

#[test]
fn a_connection_of_double_needs_no_more_memory_in_a_program_with_pushes() {
    assert_eq!(size_of::<With<Bytes, false>>(), size_of::<Doubling>());
    let double = bytes(ServiceProgram(Double));
    assert_eq!(bytes(Program::<Never, false>(PhantomData)), double);
    assert_eq!(bytes(Program::<Bytes, false>(PhantomData)), double);
}

#[test]
fn only_a_session_that_can_receive_pushes_is_kept_as_a_member() {
    let double = bytes(ServiceProgram(Double));
    // Each session joins, but nothing can be pushed.
    assert_eq!(bytes(Program::<Never, true>(PhantomData)), double);
    // If something can, one table contains its connection, and another its room and place.
    let a_member = (size_of::<Conn>() + size_of::<Option<u32>>()) as u64;
    let joined = bytes(Program::<Bytes, true>(PhantomData));
    assert!(joined >= double + CONNECTIONS as u64 * a_member, "{joined} and {double} bytes");
}
