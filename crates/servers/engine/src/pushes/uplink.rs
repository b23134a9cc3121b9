//! A connection of all sessions of a server to another server, e.g. to a broker that joins several servers.

use crate::{Never, Now, Push, RoomName};
use std::{net::SocketAddr, time::Instant};

/// The end of a connection to another server that all sessions of a server have in common. Core 0 has it. Like a
/// session it owns no socket: it takes bytes and events, and appends output and [acts](UplinkAct).
pub trait Uplink<P: Push>: Sized + 'static {
    /// Whether there can be one. If not, no code is compiled for it.
    const EVER: bool = true;

    /// Called when the connection that it asked for is open.
    fn opened(&mut self, turn: &mut UplinkTurn<'_, P>);

    /// Called when bytes have arrived.
    fn received(&mut self, bytes: &[u8], turn: &mut UplinkTurn<'_, P>);

    /// Called when the connection could not be opened, or is lost. Not after [`UplinkAct::Disconnect`].
    fn closed(&mut self, turn: &mut UplinkTurn<'_, P>);

    /// Called for a [`Post::Remote`](crate::Post::Remote) of a session on any core. [`UplinkAct::Done`] must follow
    /// once, with the same ticket.
    fn send(&mut self, room: &RoomName, push: &P, ticket: Ticket, turn: &mut UplinkTurn<'_, P>);

    /// Latest time at which [`Uplink::tick`] must be called.
    fn due(&self) -> Option<Instant>;

    /// Called when the deadline of [`Uplink::due`] has passed.
    fn tick(&mut self, turn: &mut UplinkTurn<'_, P>);
}

/// The arguments of a call to an uplink.
#[derive(Debug)]
pub struct UplinkTurn<'a, P> {
    /// The time at which this turn of the loop began.
    pub now: Now,
    /// The output of its connection, to append to. Discarded while there is none.
    pub out: &'a mut Vec<u8>,
    /// Bytes of output that the kernel has not accepted.
    pub pending: usize,
    /// What is to be done, in this order, after the call.
    pub acts: &'a mut Vec<UplinkAct<P>>,
}

/// What an uplink wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UplinkAct<P> {
    /// Opens its connection. It must have none.
    Connect(SocketAddr),
    /// Drops its connection at once, with all unwritten output. It hears of it no more.
    Disconnect,
    /// All sessions in this room receive this, on every core.
    Push(RoomName, P),
    /// All sessions in all rooms receive this, on every core.
    PushAll(P),
    /// What became of a [`Post::Remote`](crate::Post::Remote).
    Done(Ticket, RemoteOutcome),
}

/// Which session waits for the outcome of what it has posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Its core.
    pub core: u32,
    /// The number of the post on that core.
    pub count: u64,
}

/// What became of a [`Post::Remote`](crate::Post::Remote).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteOutcome {
    /// The other server has it.
    Sent,
    /// The other server has it, and keeps it at this place of an order of its own.
    Kept {
        /// Which order that is.
        epoch: u64,
        /// The number of the post in it.
        offset: u64,
    },
    /// The other server does not have it, and will not have it later.
    NotSent,
    /// As [`RemoteOutcome::NotSent`]: the other server has refused it, for this reason.
    Refused(&'static str),
    /// It was sent, and nobody knows whether the other server has it.
    Unknown,
}

/// No uplink: the sessions of a server post only to each other.
impl<P: Push> Uplink<P> for Never {
    const EVER: bool = false;

    fn opened(&mut self, _: &mut UplinkTurn<'_, P>) {}

    fn received(&mut self, _: &[u8], _: &mut UplinkTurn<'_, P>) {}

    fn closed(&mut self, _: &mut UplinkTurn<'_, P>) {}

    fn send(&mut self, _: &RoomName, _: &P, _: Ticket, _: &mut UplinkTurn<'_, P>) {}

    fn due(&self) -> Option<Instant> {
        None
    }

    fn tick(&mut self, _: &mut UplinkTurn<'_, P>) {}
}
