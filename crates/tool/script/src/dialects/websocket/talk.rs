//! State of a member.

use super::{
    afar::FarInbox,
    member::Inbox,
    message::{Payload, Request},
    opening::Upgrade,
    order::Place,
    roster::{Missing, Roster},
};
use crate::time::Nanos;
use rand::{RngCore, SeedableRng, rngs::SmallRng};
use regatta_proto::websocket::Decoder;
use std::{collections::VecDeque, mem};

/// State of a member.
pub struct ConnectionState {
    pub(super) number: u32,
    pub(super) random: SmallRng,
    pub(super) stage: Stage,
    /// The frames of issued requests; the last bytes are unsent.
    pub(super) out: Vec<u8>,
    /// Pending requests.
    pub(super) asked: VecDeque<Request>,
    /// Number of requests with a reply.
    pub(super) answered: u64,
    /// Number of echo requests so far.
    pub(super) echoes: u64,
    /// Received bytes of an incomplete frame or upgrade.
    pub(super) part: Vec<u8>,
    /// Whether it has sent its upgrade request.
    pub(super) upgrade_sent: bool,
    /// Whether the server has sent its greeting, if the protocol has one.
    pub(super) is_greeted: bool,
    pub(super) standing: Standing,
    /// Whether it was a member until the server closed its connection, and is none again.
    pub(super) is_away: bool,
    pub(super) inbox: Inbox,
    /// What it received last, where all members must get one order.
    pub(super) place: Place,
    /// What it received from each other machine of the load. Empty: there are none.
    pub(super) far: Box<[FarInbox]>,
    /// The results that the last received bytes completed and that say that a broadcast is not published, or may not be:
    /// the index of each among the replies in these bytes.
    pub(super) refused: VecDeque<u32>,
    /// When the bytes that are handled came.
    pub(super) now: Nanos,
    /// Frames to be sent besides requests, e.g. answers to pings.
    pub(super) asides: Vec<u8>,
    /// What was missing when this member sent a broadcast, and was given up because so many later ones were sent; not
    /// reported yet.
    pub(super) given_up: Vec<Missing>,
    /// Through an adapter: received bytes of an incomplete message in a stream.
    pub(super) held: Vec<u8>,
    /// Through an adapter: when it last sent a request or heartbeat.
    pub(super) last_sent_at: Nanos,
}

/// The membership of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has no reply yet.
    New,
    /// It has its first reply, and is owed all broadcasts sent from then on.
    Member,
    /// It has started to leave, and is owed earlier broadcasts.
    Leaving,
    /// It has sent a Close frame.
    Closing,
    /// The server has answered with a Close frame.
    Closed,
}

/// How received bytes are parsed.
pub(super) enum Stage {
    /// As HTTP, until the upgrade.
    Opening(Upgrade),
    /// As complete messages in a single frame each.
    Plain,
    /// By the codec, from the first bytes on that are not such messages.
    Coded(Box<Decoder>),
}

impl ConnectionState {
    /// Creates the state of a new connection.
    pub(super) fn new(number: u32, seed: u64) -> ConnectionState {
        let mut random = SmallRng::seed_from_u64(seed ^ u64::from(number).rotate_left(32));
        let mut nonce = [0; 16];
        random.fill_bytes(&mut nonce);
        ConnectionState {
            number,
            random,
            stage: Stage::Opening(Upgrade::new(nonce)),
            out: Vec::new(),
            asked: VecDeque::new(),
            answered: 0,
            echoes: 0,
            part: Vec::new(),
            upgrade_sent: false,
            is_greeted: false,
            standing: Standing::New,
            is_away: false,
            inbox: Inbox::empty(),
            place: Place::Unknown,
            far: Box::default(),
            refused: VecDeque::new(),
            now: 0,
            asides: Vec::new(),
            given_up: Vec::new(),
            held: Vec::new(),
            last_sent_at: 0,
        }
    }

    /// Returns four bytes to mask a frame with.
    pub(super) fn mask(&mut self) -> [u8; 4] {
        self.random.next_u32().to_ne_bytes()
    }

    /// Whether the oldest pending request is this broadcast.
    pub(super) fn waits_for(&self, payload: Payload) -> bool {
        self.asked.front() == Some(&Request::Broadcast(payload))
    }

    /// Records a reply. With its first reply, the connection becomes a member.
    pub(super) fn note_reply(&mut self, roster: &Roster) {
        if self.standing == Standing::New {
            self.standing = Standing::Member;
            if mem::take(&mut self.is_away) {
                roster.comes_back();
            }
            let first = roster.join();
            self.inbox.joins(first);
            if first == 0 {
                self.place = Place::First;
            }
        }
    }

    /// Starts to leave, if it is a member.
    pub(super) fn leaves(&mut self, roster: &Roster) {
        if self.standing == Standing::Member {
            self.standing = Standing::Leaving;
            self.inbox.leaves(roster.leave());
        }
    }

    /// The server has lost its connection. Returns whether it was a member.
    pub(super) fn goes_away(&mut self, roster: &Roster) -> bool {
        let was_member = self.standing == Standing::Member;
        if self.standing == Standing::Leaving {
            roster.lose_leaver();
        }
        if was_member {
            self.standing = Standing::Leaving;
            self.inbox.leaves(roster.lose());
            self.is_away = true;
        }
        was_member
    }

    /// Stops reading. Returns the broadcasts that have not arrived: each must be cancelled in the roster.
    #[must_use]
    pub(super) fn stops_reading(&mut self, roster: &Roster) -> Vec<u64> {
        self.leaves(roster);
        mem::replace(&mut self.inbox, Inbox::empty()).missing(roster.next()).collect()
    }

    /// The same for a connection that the load closes, or does not read any longer: nothing is missing.
    pub(super) fn forgives(&mut self, roster: &Roster) {
        for number in self.stops_reading(roster) {
            roster.forgive(number);
        }
    }
}
