//! The connection of a client: what it has sent, what it gets, and its times.

use super::{
    codes::{Disconnect, Failure, Unsubscribed},
    pending::Pending,
    reply::{PING, write_failure},
    request::lines,
    subscription::Subscription,
};
use crate::hub::{
    access::Scope,
    begun::Begun,
    broadcast::Broadcast,
    broker::{LEAVES, Settling},
    bucket::Bucket,
    census::Census,
    holding::{COUNTED, FULL, Holding, NO_MEMORY},
    last_delivery::Unwritten,
    live::Live,
    rooms::Plan,
};
use regatta_engine::{
    Backlog, Bounds, Flow, Limits, Now, OutputState, Policy, Post, Push, RoomName,
};
use regatta_proto::websocket::{CloseCode, Decoder, Event, Frame, Role};
use serde_json::value::RawValue;
use std::{
    collections::{HashMap, VecDeque},
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a client may take until it is connected.
const CONNECTS_WITHIN: Duration = Duration::from_secs(15);

/// The arguments of a call.
pub(super) struct Turn<'a> {
    pub now: Now,
    pub out: &'a mut Vec<u8>,
    pub posts: &'a mut Vec<Post<Broadcast>>,
}

/// One connection of a client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) live: Arc<Live>,
    /// The settings at its upgrade, or when it last subscribed.
    pub(super) settings: Arc<Plan>,
    pub(super) census: Arc<Census>,
    pub(super) phase: Phase,
    /// `None` while what it has returned is handled.
    decoder: Option<Box<Decoder>>,
    /// The start of an incomplete frame.
    held: Vec<u8>,
    /// Who it is, once it is connected.
    pub(super) identity: Option<Identity>,
    pub(super) rooms: HashMap<RoomName, Subscription>,
    /// The number of the next subscription.
    pub(super) next: u64,
    /// Rooms whose histories have more for it.
    pub(super) behind: VecDeque<RoomName>,
    /// Messages without a history that wait because too much output is pending, and their limits.
    pub(super) backlog: Backlog<Waiting>,
    pub(super) bounds: Bounds,
    /// Rooms that it has left while nothing could be posted, and what the others there receive.
    pub(super) exits: Vec<(RoomName, Option<Broadcast>)>,
    pub(super) unwritten: Unwritten<Broadcast>,
    /// Commands that wait for the broker.
    pub(super) pending: Pending,
    /// How it is closed when it has left.
    leaves_with: Disconnect,
    /// It leaves a hub with a broker.
    pub(super) settling: Option<Box<Settling>>,
    pub(super) holding: Holding,
    begun: Begun,
    heard_at: Instant,
    pub(super) times: Times,
    /// For the rate of its commands.
    pub(super) commands: Bucket,
}

/// What a client does with its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    /// The input has ended. A Close frame follows what is pending.
    Leaving,
    /// A Close frame was sent. Input is ignored.
    Closed,
    /// There is no memory for it, and it has output to read before it would see a Close frame.
    Cut,
}

/// Who a client is.
#[derive(Debug)]
pub(super) struct Identity {
    /// The number of its connection.
    pub number: usize,
    pub user: Option<Box<str>>,
    pub info: Option<Box<RawValue>>,
    /// What its token allows.
    pub scope: Scope,
}

/// When something happens to a client.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// It must be connected.
    pub connects_by: Option<Instant>,
    /// It is pinged, or its silence is checked.
    pub pings_at: Option<Instant>,
    /// Its token expires.
    pub expires_at: Option<Instant>,
    /// The first token of a subscription expires.
    pub subscription_expires_at: Option<Instant>,
    /// Its connection ends, although it has not taken the Close frame.
    pub cut_at: Option<Instant>,
}

/// A message that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub room: RoomName,
    /// The number of the subscription.
    pub subscription: u64,
    pub push: Broadcast,
}

impl Push for Waiting {
    fn size(&self) -> usize {
        self.push.size() + self.push.infos()
    }
}

/// Why the input of a client is not handled further.
pub(super) enum End {
    Close(Disconnect),
    NoMemory,
}

impl Client {
    /// A client whose WebSocket was opened.
    pub fn new(live: &Arc<Live>, census: &Arc<Census>, now: Now) -> Client {
        let settings = live.current();
        Client {
            live: Arc::clone(live),
            census: Arc::clone(census),
            phase: Phase::Open,
            decoder: Some(Box::new(Decoder::new(Role::Server, settings.longest))),
            held: Vec::new(),
            identity: None,
            rooms: HashMap::new(),
            next: 0,
            behind: VecDeque::new(),
            backlog: Backlog::default(),
            bounds: Bounds { policy: Policy::Close, ..settings.backlog.clone() },
            exits: Vec::new(),
            unwritten: Unwritten::default(),
            pending: Pending::default(),
            leaves_with: Disconnect::SHUTDOWN,
            settling: None,
            holding: Holding::new(Arc::clone(&settings.backlog.memory)),
            begun: Begun::default(),
            heard_at: now.instant,
            times: Times { connects_by: Some(now.instant + CONNECTS_WITHIN), ..Times::default() },
            commands: Bucket::default(),
            settings,
        }
    }

    pub fn on_bytes(&mut self, turn: &mut Turn<'_>, bytes: &mut [u8]) -> Flow {
        self.heard_at = turn.now.instant;
        self.post_exits(turn);
        let (length, unread) = (turn.out.len(), self.holding.counted(turn.out.len()));
        let flow = if self.held.is_empty() {
            let (taken, flow) = self.take(turn, bytes, unread);
            self.held.extend_from_slice(&bytes[taken..]);
            flow
        } else {
            let mut held = mem::take(&mut self.held);
            held.extend_from_slice(bytes);
            let (taken, flow) = self.take(turn, &mut held, unread);
            held.drain(..taken);
            if !held.is_empty() {
                self.held = held;
            }
            flow
        };
        if !self.held.is_empty() || self.is_inside_message() {
            self.begun.begins(turn.now.instant);
        }
        self.pauses(turn.now, turn.out);
        if let Some(flow) = flow.filter(|_| self.has_room(turn.out.len(), unread)) {
            return flow;
        }
        // What this call appended is discarded; a Close frame may follow.
        turn.out.truncate(length);
        turn.out.shrink_to(length + 128);
        if self.phase == Phase::Open && unread < COUNTED {
            self.close(turn, CloseCode::TRY_AGAIN_LATER, NO_MEMORY);
        }
        self.starve(unread);
        Flow::Close
    }

    pub fn on_end(&mut self, turn: &mut Turn<'_>) -> Flow {
        match self.phase {
            Phase::Open => {
                self.leave(turn.now.instant, Disconnect::SHUTDOWN);
                self.on_drained(turn)
            }
            Phase::Leaving if self.is_working() || self.wants_drained() => Flow::Continue,
            _ => Flow::Close,
        }
    }

    /// Handles no more input. A Close frame follows once everything pending has been sent.
    fn leave(&mut self, now: Instant, why: Disconnect) {
        (self.phase, self.leaves_with) = (Phase::Leaving, why);
        self.settling = self.has_broker().then(|| Settling::new(now));
    }

    /// Whether it leaves, and something must come from the broker before.
    pub fn is_working(&self) -> bool {
        let waits = self.pending.is_publishing() || self.settling.is_some();
        self.phase == Phase::Leaving && waits
    }

    /// Pending messages are sent, then a Close frame.
    pub fn on_retire(&mut self, turn: &mut Turn<'_>) -> Flow {
        match self.phase {
            Phase::Open => self.on_end(turn),
            _ => Flow::Continue,
        }
    }

    pub fn on_output(&mut self, output: OutputState) {
        self.holding.set_taken(output.taken);
        self.unwritten.look(output);
    }

    pub fn on_drained(&mut self, turn: &mut Turn<'_>) -> Flow {
        self.post_exits(turn);
        // Its alarm waits while much output is pending.
        if self.gets_more() && is_due(self.times.expires_at, turn.now.instant) {
            self.times.cut_at = self.times.expires_at;
            return self.disconnect(turn, &Disconnect::EXPIRED);
        }
        self.holding.drained(turn.out.len());
        if self.holding.pending(turn.out.len()) == 0 {
            self.unwritten.clear();
        }
        let unread = self.holding.counted(turn.out.len());
        while self.holding.pending(turn.out.len()) < FULL
            && let Some(Waiting { room, subscription, push }) = self.backlog.take()
        {
            let of_room = self.rooms.get(&room).filter(|one| one.number == subscription);
            if let Some(subscription) = of_room {
                subscription.pushes.write(&push, turn.out);
                self.wrote(&push);
            }
        }
        self.catch_up_all(turn.out);
        if !self.has_room(turn.out.len(), unread) {
            self.starve(turn.out.len());
            return Flow::Close;
        }
        if self.phase == Phase::Leaving {
            let (waits, now) = (self.pending.is_publishing(), turn.now.instant);
            self.settling.take_if(|settling| !settling.waits(waits, now));
            if !self.backlog.is_empty() || !self.behind.is_empty() || self.is_working() {
                return Flow::Continue;
            }
            let why = self.leaves_with.clone();
            return self.disconnect(turn, &why);
        }
        self.begun.resumes(turn.now.instant);
        self.pauses(turn.now, turn.out);
        Flow::Continue
    }

    /// Whether it may get more than what is in its output.
    fn gets_more(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Leaving)
    }

    pub fn wants_drained(&self) -> bool {
        self.gets_more()
            && (!self.backlog.is_empty()
                || !self.behind.is_empty()
                || !self.unwritten.is_empty()
                || self.holding.counts_output())
    }

    pub fn on_alarm(&mut self, turn: &mut Turn<'_>) -> Flow {
        if self.phase != Phase::Open {
            if self.phase == Phase::Leaving {
                self.settles_again(turn.now.instant);
            }
            return self.on_drained(turn);
        }
        self.post_exits(turn);
        let now = turn.now.instant;
        if is_due(self.times.expires_at, now) {
            return self.disconnect(turn, &Disconnect::EXPIRED);
        }
        if is_due(self.times.connects_by, now) {
            return self.disconnect(turn, &Disconnect::STALE);
        }
        if is_due(self.times.subscription_expires_at, now) {
            self.end_expired(turn);
        }
        if !is_due(self.times.pings_at, now) {
            return Flow::Continue;
        }
        let gone = self.heard_at + self.settings.silence;
        if gone <= now {
            return self.disconnect(turn, &Disconnect::NO_PONG);
        }
        // Clients expect pings at regular times, also while they send or receive.
        turn.out.extend_from_slice(PING);
        self.times.pings_at = self.settings.ping.map(|every| gone.min(now + every));
        Flow::Continue
    }

    pub fn alarm(&self) -> Option<Instant> {
        let Times { connects_by, pings_at, expires_at, subscription_expires_at, .. } = self.times;
        if self.phase == Phase::Leaving {
            let settles_at = self.settling.as_ref().map(|settling| settling.at);
            return settles_at.into_iter().chain(expires_at).min();
        }
        if self.phase != Phase::Open {
            return None;
        }
        let at_once = (!self.exits.is_empty()).then_some(self.heard_at);
        let all = [connects_by, pings_at, expires_at, subscription_expires_at, at_once];
        all.into_iter().flatten().min()
    }

    pub fn cut_at(&self) -> Option<Instant> {
        // The alarm waits until output is written.
        let expires_at = self.times.expires_at.filter(|_| self.gets_more());
        self.times.cut_at.or_else(|| expires_at?.checked_add(Limits::LAST_OUTPUT))
    }

    pub fn is_cut(&self) -> bool {
        self.phase == Phase::Cut
    }

    pub fn inside(&self) -> Option<Instant> {
        self.begun.at().filter(|_| self.phase == Phase::Open)
    }

    /// Ends a subscription, of which the client is notified, and leaves the room as soon as something can be posted.
    pub(super) fn end(&mut self, room: &RoomName, why: Unsubscribed, out: &mut Vec<u8>) {
        if let Some(subscription) = self.rooms.remove(room) {
            subscription.write_end(why, out);
            let left = self.ended(subscription, out);
            self.exits.push((room.clone(), left));
        }
    }

    /// A subscription has ended: the replies to own messages do not wait for it any longer. Returns what the others in the
    /// room receive.
    pub(super) fn ended(
        &mut self,
        mut subscription: Subscription,
        out: &mut Vec<u8>,
    ) -> Option<Broadcast> {
        for ticket in subscription.take_results() {
            self.answers(ticket, out);
        }
        subscription.end(&self.settings)
    }

    /// Leaves a room as the client wants it. `why`: for the command that should have begun the subscription.
    pub(super) fn leave_room(&mut self, turn: &mut Turn<'_>, room: RoomName, why: &Failure) {
        let Some(subscription) = self.rooms.remove(&room) else { return };
        if let Some(opening) = &subscription.opening {
            write_failure(opening.id, why, turn.out);
        }
        let left = self.ended(subscription, turn.out);
        turn.posts.extend(left.map(|left| Post::To(room.clone(), left)));
        turn.posts.push(Post::Exit(room));
        self.finds_first_expiry();
    }

    /// Ends the subscriptions whose tokens have expired.
    fn end_expired(&mut self, turn: &mut Turn<'_>) {
        let now = turn.now.instant;
        let is_over = |one: &Subscription| one.expires_at.is_some_and(|at| at <= now);
        let over = self.rooms.iter().filter(|(_, one)| is_over(one));
        let over: Vec<RoomName> = over.map(|(room, _)| room.clone()).collect();
        for room in over {
            self.end(&room, Unsubscribed::EXPIRED, turn.out);
        }
        self.finds_first_expiry();
        self.post_exits(turn);
    }

    /// Notes when the first token of a subscription expires.
    pub(super) fn finds_first_expiry(&mut self) {
        self.times.subscription_expires_at =
            self.rooms.values().filter_map(|one| one.expires_at).min();
    }

    /// Leaves rooms that it could not leave before.
    pub(super) fn post_exits(&mut self, turn: &mut Turn<'_>) {
        for (room, left) in self.exits.drain(..) {
            turn.posts.extend(left.map(|left| Post::To(room.clone(), left)));
            turn.posts.push(Post::Exit(room));
        }
    }

    /// Sends a Close frame and leaves all rooms. Further input is ignored.
    fn close(&mut self, turn: &mut Turn<'_>, code: CloseCode, why: &str) {
        code.write(why, turn.out);
        // The stop limits how long a client that gets its queued messages first may take.
        if self.phase != Phase::Leaving || self.times.cut_at.is_some() {
            self.times.cut_at = Some(turn.now.instant + Limits::LAST_OUTPUT);
        }
        self.phase = Phase::Closed;
        self.unwritten.clear();
        self.backlog.clear();
        self.behind.clear();
        self.pending.clear();
        self.post_exits(turn);
        for (room, subscription) in self.rooms.drain() {
            let left = subscription.end(&self.settings);
            turn.posts.extend(left.map(|left| Post::To(room, left)));
        }
        turn.posts.push(Post::Leave);
    }

    fn disconnect(&mut self, turn: &mut Turn<'_>, why: &Disconnect) -> Flow {
        self.close(turn, why.code, &why.reason);
        Flow::Close
    }

    /// Whether it gets nothing more.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Closed | Phase::Cut)
    }

    fn is_inside_message(&self) -> bool {
        self.decoder.as_ref().is_some_and(|decoder| decoder.is_inside())
    }

    /// Notes whether so much output is pending that it is not read.
    pub(super) fn pauses(&mut self, now: Now, out: &[u8]) {
        if self.holding.pending(out.len()) >= FULL || !self.backlog.is_empty() {
            self.begun.pauses(now.instant);
        }
    }

    /// What it holds except output, in bytes.
    pub(super) fn own(&mut self) -> usize {
        let message = self.decoder.as_mut().map_or(0, |decoder| {
            decoder.release();
            decoder.held()
        });
        self.held.len() + message + self.backlog.footprint() + self.pending.footprint()
    }

    /// See [`Holding::has_room`].
    pub(super) fn has_room(&mut self, output: usize, unread: usize) -> bool {
        let own = self.own();
        self.holding.has_room(own, output, unread)
    }

    /// See [`Holding::fits`].
    pub(super) fn fits(&mut self, output: usize) -> bool {
        let own = self.own();
        self.holding.fits(own, output)
    }

    /// Frees what it holds, because there is no room for more. `unread`: output that it did not read, in bytes.
    pub(super) fn starve(&mut self, unread: usize) {
        self.settings.backlog.counts.starved.add(1);
        if unread >= COUNTED {
            self.phase = Phase::Cut;
        }
        self.free();
    }

    pub(super) fn free(&mut self) {
        (self.held, self.unwritten) = Default::default();
        self.behind.clear();
        self.backlog.clear();
        self.pending.clear();
        for subscription in self.rooms.values_mut() {
            (subscription.follower, subscription.opening) = (None, None);
        }
        self.holding.free();
    }

    /// Handles all complete frames. Returns the number of bytes consumed, and the flow, or `None` if there is no room for
    /// what they cause. `unread`: see [`Holding::has_room`].
    fn take(
        &mut self,
        turn: &mut Turn<'_>,
        bytes: &mut [u8],
        unread: usize,
    ) -> (usize, Option<Flow>) {
        let mut taken = 0;
        while taken < bytes.len() {
            if self.phase != Phase::Open {
                return (bytes.len(), Some(Flow::Continue));
            }
            let (more, end) = self.frame(turn, &mut bytes[taken..], unread);
            taken += more;
            // A control frame between the frames of a message does not end it (RFC 6455, 5.4).
            if more > 0 && !self.is_inside_message() {
                self.begun.ends();
            }
            match end {
                // A message that it has sent itself was too much for it.
                Ok(()) if self.is_over() => return (bytes.len(), Some(Flow::Close)),
                Ok(()) => {}
                Err(End::NoMemory) => return (bytes.len(), None),
                Err(End::Close(why)) => {
                    return (bytes.len(), Some(self.disconnect(turn, &why)));
                }
            }
            if more == 0 {
                break;
            }
        }
        (taken, Some(Flow::Continue))
    }

    /// Handles one frame. Returns its length, 0 if it is incomplete.
    fn frame(
        &mut self,
        turn: &mut Turn<'_>,
        input: &mut [u8],
        unread: usize,
    ) -> (usize, Result<(), End>) {
        let Some(mut decoder) = self.decoder.take() else { return (0, Ok(())) };
        let close = |code, reason: &'static str| {
            Err(End::Close(Disconnect { code, reason: reason.into() }))
        };
        let (taken, end) = match decoder.next(input) {
            Err(violation) => (0, close(violation.code, violation.why)),
            Ok((taken, event)) => {
                let end = match event {
                    Some(Event::Text(text)) => self.text(turn, text, unread),
                    Some(Event::Binary(_)) => Err(End::Close(Disconnect::bad(
                        "bad request: expected JSON in text frames; the hub does not speak Protobuf",
                    ))),
                    Some(Event::Ping(payload)) => {
                        Frame::pong(payload).write(turn.out);
                        Ok(())
                    }
                    Some(Event::Close(code)) => {
                        let code = code.map_or(CloseCode::NORMAL, |(code, _)| code);
                        if self.pending.is_publishing() {
                            // The client may have sent the Close frame right behind a message.
                            let why = Disconnect { code, reason: "".into() };
                            self.backlog.clear();
                            self.leave(turn.now.instant, why);
                            self.times.cut_at = Some(turn.now.instant + LEAVES);
                            Ok(())
                        } else {
                            close(code, "")
                        }
                    }
                    None | Some(Event::Pong(_)) => Ok(()),
                };
                (taken, end)
            }
        };
        self.decoder = Some(decoder);
        (taken, end)
    }

    /// Handles the lines of a text frame. Short lines may cause much output.
    fn text(&mut self, turn: &mut Turn<'_>, text: &str, unread: usize) -> Result<(), End> {
        let mut checked = turn.out.len();
        for line in lines(text) {
            self.line(turn, line).map_err(End::Close)?;
            if self.is_over() {
                return Ok(());
            }
            if turn.out.len() >= checked + FULL {
                checked = turn.out.len();
                if !self.has_room(turn.out.len(), unread) {
                    return Err(End::NoMemory);
                }
            }
        }
        Ok(())
    }
}

fn is_due(at: Option<Instant>, now: Instant) -> bool {
    at.is_some_and(|at| at <= now)
}
