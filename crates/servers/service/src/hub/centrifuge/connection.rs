//! The session of a connection of the hub.

use super::client::{Client, Turn};
use crate::hub::{broadcast::Broadcast, member::Member};
use regatta_engine::{
    Context, Flow, Never, Now, OutputState, PushOutcome, RemoteOutcome, RoomName, Session,
};
use std::time::Instant;

/// A connection of the hub: a member of one room, which it is before its upgrade, too, or a client that may be in
/// several.
#[derive(Debug)]
pub struct Connection(Kind);

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are members")]
enum Kind {
    Member(Member),
    Client(Box<Client>),
}

fn turn<'a>(context: &'a mut Context<'_, Connection>) -> Turn<'a> {
    Turn { now: context.now, out: context.out, posts: context.posts }
}

fn of_member<'a>(context: &'a mut Context<'_, Connection>) -> Context<'a, Member> {
    let Context { now, local, out, posts } = context;
    Context { now: *now, local, out, posts }
}

impl Connection {
    pub(in super::super) fn new(member: Member) -> Connection {
        Connection(Kind::Member(member))
    }

    /// Goes on as a client, if the member has opened that protocol.
    #[cold]
    fn hand_over(&mut self, context: &mut Context<'_, Self>) -> Flow {
        let Kind::Member(member) = &mut self.0 else { return Flow::Continue };
        let Some(mut rest) = member.hand_over() else { return Flow::Continue };
        let (live, census) = member.hub();
        let mut client = Box::new(Client::new(live, census, context.now));
        let flow = match rest.is_empty() {
            true => Flow::Continue,
            false => client.on_bytes(&mut turn(context), &mut rest),
        };
        self.0 = Kind::Client(client);
        flow
    }
}

impl Session for Connection {
    type Job = Never;
    type Push = Broadcast;
    type Local = ();

    fn on_bytes(&mut self, context: &mut Context<'_, Self>, bytes: &mut [u8]) -> Flow {
        match &mut self.0 {
            Kind::Client(client) => client.on_bytes(&mut turn(context), bytes),
            Kind::Member(member) => {
                let flow = member.on_bytes(&mut of_member(context), bytes);
                if flow != Flow::Continue || !member.is_handed_over() {
                    return flow;
                }
                self.hand_over(context)
            }
        }
    }

    fn on_end(&mut self, context: &mut Context<'_, Self>) -> Flow {
        match &mut self.0 {
            Kind::Member(member) => member.on_end(&mut of_member(context)),
            Kind::Client(client) => client.on_end(&mut turn(context)),
        }
    }

    fn on_retire(&mut self, context: &mut Context<'_, Self>, random: u32) -> Flow {
        match &mut self.0 {
            Kind::Member(member) => member.on_retire(&mut of_member(context), random),
            // Clients pause for a random time before they connect again.
            Kind::Client(client) => client.on_retire(&mut turn(context)),
        }
    }

    #[inline]
    fn on_output(&mut self, output: OutputState) {
        match &mut self.0 {
            Kind::Member(member) => member.on_output(output),
            Kind::Client(client) => client.on_output(output),
        }
    }

    fn on_push(&mut self, now: Now, push: &Broadcast, out: &mut Vec<u8>) -> PushOutcome {
        match &mut self.0 {
            Kind::Member(member) => member.on_push(now, push, out),
            // Its pushes come with their rooms.
            Kind::Client(_) => PushOutcome::Missed,
        }
    }

    fn on_room_push(
        &mut self,
        now: Now,
        room: &RoomName,
        push: &Broadcast,
        out: &mut Vec<u8>,
    ) -> PushOutcome {
        match &mut self.0 {
            Kind::Member(member) => member.on_push(now, push, out),
            Kind::Client(client) => client.on_push(now, room, push, out),
        }
    }

    fn on_overrun(&mut self, out: &mut Vec<u8>) {
        if let Kind::Member(member) = &mut self.0 {
            member.on_overrun(out);
        }
    }

    fn is_cut(&self) -> bool {
        match &self.0 {
            Kind::Member(member) => member.is_cut(),
            Kind::Client(client) => client.is_cut(),
        }
    }

    #[inline]
    fn cut_at(&self) -> Option<Instant> {
        match &self.0 {
            Kind::Member(member) => member.cut_at(),
            Kind::Client(client) => client.cut_at(),
        }
    }

    fn must_leave(&self) -> bool {
        matches!(&self.0, Kind::Member(member) if member.must_leave())
    }

    #[inline]
    fn wants_drained(&self) -> bool {
        match &self.0 {
            Kind::Member(member) => member.wants_drained(),
            Kind::Client(client) => client.wants_drained(),
        }
    }

    fn on_drained(&mut self, context: &mut Context<'_, Self>) -> Flow {
        match &mut self.0 {
            Kind::Member(member) => member.on_drained(&mut of_member(context)),
            Kind::Client(client) => client.on_drained(&mut turn(context)),
        }
    }

    fn on_alarm(&mut self, context: &mut Context<'_, Self>) -> Flow {
        match &mut self.0 {
            Kind::Member(member) => member.on_alarm(&mut of_member(context)),
            Kind::Client(client) => client.on_alarm(&mut turn(context)),
        }
    }

    #[inline]
    fn alarm(&self) -> Option<Instant> {
        match &self.0 {
            Kind::Member(member) => member.alarm(),
            Kind::Client(client) => client.alarm(),
        }
    }

    #[inline]
    fn inside(&self) -> Option<Instant> {
        match &self.0 {
            Kind::Member(member) => member.inside(),
            Kind::Client(client) => client.inside(),
        }
    }

    fn on_close(&mut self) -> Option<Broadcast> {
        match &mut self.0 {
            Kind::Member(member) => member.on_close(),
            Kind::Client(_) => None,
        }
    }

    fn on_exit(&mut self, room: &RoomName) -> Option<Broadcast> {
        match &mut self.0 {
            Kind::Member(_) => None,
            Kind::Client(client) => client.on_exit(room),
        }
    }

    fn on_queued(&mut self, context: &mut Context<'_, Self>, ticket: u64, members: u32) -> Flow {
        match &mut self.0 {
            Kind::Member(member) => member.on_queued(&mut of_member(context), ticket, members),
            Kind::Client(_) => Flow::Continue,
        }
    }

    fn on_sent(
        &mut self,
        context: &mut Context<'_, Self>,
        ticket: u64,
        outcome: RemoteOutcome,
    ) -> Flow {
        match &mut self.0 {
            Kind::Member(member) => member.on_sent(&mut of_member(context), ticket, outcome),
            Kind::Client(client) => client.on_sent(&mut turn(context), ticket, outcome),
        }
    }

    #[inline]
    fn wants_input(&self) -> bool {
        match &self.0 {
            Kind::Member(member) => member.wants_input(),
            Kind::Client(client) => client.wants_input(),
        }
    }

    #[inline]
    fn is_working(&self) -> bool {
        match &self.0 {
            Kind::Member(member) => member.is_working(),
            Kind::Client(client) => client.is_working(),
        }
    }
}
