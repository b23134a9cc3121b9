//! What is kept of a member.

use super::{
    member::Got,
    message::{Payload, Request},
    opening::Upgrade,
    roster::Roster,
};
use crate::time::Nanos;
use rand::{RngCore, SeedableRng, rngs::SmallRng};
use regatta_proto::websocket::Decoder;
use std::{collections::VecDeque, mem};

/// What is kept of a member.
pub struct Talk {
    pub(super) number: u32,
    pub(super) random: SmallRng,
    pub(super) stage: Stage,
    /// Requests that were asked: their frames, of which the last bytes are unsent.
    pub(super) out: Vec<u8>,
    /// Those without a reply.
    pub(super) asked: VecDeque<Request>,
    /// Requests with a reply.
    pub(super) answered: u64,
    /// Echoes so far.
    pub(super) echoes: u64,
    /// Bytes that came of something that is not whole.
    pub(super) part: Vec<u8>,
    /// It asked for its upgrade.
    pub(super) has_begun: bool,
    /// The server has spoken first, where it is to.
    pub(super) is_greeted: bool,
    pub(super) standing: Standing,
    pub(super) got: Got,
    /// Answers to pings and the like, to be sent.
    pub(super) asides: Vec<u8>,
    /// A request could not be followed.
    pub(super) too_many: bool,
    /// Through an adapter: bytes of a stream whose end has not come.
    pub(super) held: Vec<u8>,
    /// Through an adapter: when it last said something, of a server that is to hear from it.
    pub(super) said_at: Nanos,
}

/// Whether a connection is that of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has no answer yet.
    New,
    /// It was answered, and is owed all that is sent from then on.
    Member,
    /// It has begun to leave, and is owed what was sent before.
    Leaving,
    /// It has said so to the server, in a Close frame.
    Closing,
    /// The server has answered that.
    Closed,
}

/// How far a connection is.
pub(super) enum Stage {
    /// HTTP, until the upgrade.
    Opening(Upgrade),
    /// Whole messages in one frame each.
    Plain,
    /// Something else came, and is read by the codec from then on.
    Coded(Box<Decoder>),
}

impl Talk {
    /// Of a fresh connection.
    pub(super) fn new(number: u32, seed: u64) -> Talk {
        let mut random = SmallRng::seed_from_u64(seed ^ u64::from(number).rotate_left(32));
        let mut nonce = [0; 16];
        random.fill_bytes(&mut nonce);
        Talk {
            number,
            random,
            stage: Stage::Opening(Upgrade::new(nonce)),
            out: Vec::new(),
            asked: VecDeque::new(),
            answered: 0,
            echoes: 0,
            part: Vec::new(),
            has_begun: false,
            is_greeted: false,
            standing: Standing::New,
            got: Got::nothing(),
            asides: Vec::new(),
            too_many: false,
            held: Vec::new(),
            said_at: 0,
        }
    }

    /// Four bytes to mask a frame with.
    pub(super) fn mask(&mut self) -> [u8; 4] {
        self.random.next_u32().to_ne_bytes()
    }

    /// Whether the oldest request without a reply is this broadcast.
    pub(super) fn waits_for(&self, payload: Payload) -> bool {
        self.asked.front() == Some(&Request::Broadcast(payload))
    }

    /// It has an answer: with the first it joins.
    pub(super) fn is_answered(&mut self, roster: &Roster) {
        if self.standing == Standing::New {
            self.standing = Standing::Member;
            self.got.joins(roster.join());
        }
    }

    /// A member begins to leave.
    pub(super) fn leaves(&mut self, roster: &Roster) {
        if self.standing == Standing::Member {
            self.standing = Standing::Leaving;
            self.got.leaves(roster.leave());
        }
    }

    /// Nothing more is read: what has not come will not.
    pub(super) fn is_over(&mut self, roster: &Roster) {
        self.leaves(roster);
        let got = mem::replace(&mut self.got, Got::nothing());
        roster.forgive(got.missing(roster.next()));
    }
}
