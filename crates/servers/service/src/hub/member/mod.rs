//! A connection of the hub: HTTP until its upgrade, then the messages of a member.

mod following;
mod remote;
mod sender;

use super::{
    api::{self, Awaited},
    begun::Begun,
    broadcast::Broadcast,
    broker::{LEAVES, Settling},
    bucket::Bucket,
    census::{Census, Presence},
    compress::{self, send_back},
    dismissal::Dismissal,
    door::{self, Entered},
    history::{Follower, Joining, Waiting},
    holding::{COUNTED, FULL, Holding, NO_MEMORY},
    last_delivery::Unwritten,
    live::Live,
    message::{Change, write_reconnect, write_roster},
    results::Results,
    rooms::{Plan, RoomTerms},
    state::State,
};
use regatta_engine::{
    Backlog, Context, Flow, Limits, Never, Now, OutputState, Post, PushOutcome, RemoteOutcome,
    Session,
};
use regatta_proto::{
    http1::{CONTINUE, Date, server},
    websocket::{CloseCode, Decoder, Event, Frame, Role},
};
use sender::Sender;
use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

/// Maximum number of names in the list sent to a new member.
const NAMES: usize = 100;
/// The code of the Close frame when a token has expired, as of Centrifugo.
const EXPIRED: CloseCode = CloseCode(3005);
/// How long a member that leaves waits for the results of its broadcasts.
const RESULTS: Duration = Duration::from_secs(1);
/// The longest pause before a reconnect that a drain asks of a member, in milliseconds.
const RECONNECT_MS: u32 = 1000;

/// One connection of the hub.
#[derive(Debug)]
pub struct Member {
    live: Arc<Live>,
    /// The settings at its last request.
    settings: Arc<Plan>,
    census: Arc<Census>,
    /// What holds in its room.
    terms: Arc<RoomTerms>,
    /// Its entry in a room. `None` while it is in none.
    presence: Option<Presence>,
    state: State,
    /// Whether its client accepts the frames that are compressed once for all members.
    inflates: bool,
    /// The start of an incomplete request or frame.
    held: Vec<u8>,
    /// Payloads of its broadcasts that are not yet queued on every core, by ticket.
    results: Results,
    /// The reply to a backend that waits for the broker. Meanwhile no other request is handled.
    awaited: Option<Box<Awaited>>,
    /// Broadcasts that wait because too much output is pending.
    backlog: Backlog<Broadcast>,
    /// How far it is in the history of its room, if that is kept. Then its messages do not wait in `backlog`.
    follower: Option<Box<Follower>>,
    /// It waits for the history of its room, which the broker has.
    joining: Option<Box<Joining>>,
    /// Broadcasts in its output whose deliveries are timed: held until the output is written.
    unwritten: Unwritten<Broadcast>,
    holding: Holding,
    /// When input last arrived.
    heard_at: Instant,
    begun: Begun,
    /// When its silence is checked next.
    pings_at: Option<Instant>,
    /// When its token expires.
    expires_at: Option<Instant>,
    /// When its connection ends, although its client has not taken the Close frame.
    cut_at: Option<Instant>,
    /// It leaves a hub with a broker.
    settling: Option<Box<Settling>>,
    /// It has joined, and looks once whether a backend has dismissed it meanwhile.
    looks_at: Option<Instant>,
    /// Whether it may send messages to its room.
    sends: bool,
    /// For the rate of its messages.
    messages: Bucket,
    /// Its hub has a broker, and it waits for the list of the members of its room. That is followed by all changes.
    awaits_list: bool,
}

impl Session for Member {
    type Job = Never;
    type Push = Broadcast;
    type Local = ();

    fn on_bytes(&mut self, context: &mut Context<'_, Self>, bytes: &mut [u8]) -> Flow {
        self.heard_at = context.now.instant;
        let (length, unread) = (context.out.len(), self.holding.counted(context.out.len()));
        let flow = if self.held.is_empty() {
            let (taken, flow) = self.take(context, bytes, unread);
            self.held.extend_from_slice(&bytes[taken..]);
            flow
        } else {
            let mut held = mem::take(&mut self.held);
            held.extend_from_slice(bytes);
            let (taken, flow) = self.take(context, &mut held, unread);
            held.drain(..taken);
            if !held.is_empty() {
                self.held = held;
            }
            flow
        };
        if !self.held.is_empty() || self.state.is_inside_message() {
            self.begun.begins(context.now.instant);
        }
        self.pauses(context.now, context.out);
        if let Some(flow) = flow.filter(|_| self.has_room(context.out.len(), unread)) {
            return flow;
        }
        // What this call appended is discarded; a Close frame may follow.
        context.out.truncate(length);
        context.out.shrink_to(length + 128);
        if matches!(self.state, State::Open { .. }) && unread < COUNTED {
            self.close(context, CloseCode::TRY_AGAIN_LATER, NO_MEMORY);
        }
        self.starve(unread);
        Flow::Close
    }

    /// The client closed its side, or the server is stopping. Pending broadcasts and results are
    /// sent, then a Close frame.
    fn on_end(&mut self, context: &mut Context<'_, Self>) -> Flow {
        if self.awaits_last() {
            return Flow::Continue;
        }
        match self.state {
            State::Open { .. } => {
                self.leave(context.now.instant, CloseCode::GOING_AWAY, None);
                self.on_drained(context)
            }
            // The client closed its side after its Close frame.
            State::Leaving { .. } if self.is_working() || self.wants_drained() => Flow::Continue,
            _ => Flow::Close,
        }
    }

    /// Pending broadcasts and results are sent, then the pause before a reconnect and a Close frame.
    fn on_retire(&mut self, context: &mut Context<'_, Self>, random: u32) -> Flow {
        match self.state {
            State::Open { echoes, .. } => {
                let pause_ms = (!echoes).then_some((random % (RECONNECT_MS + 1)) as u16);
                self.leave(context.now.instant, CloseCode::GOING_AWAY, pause_ms);
                self.on_drained(context)
            }
            // No request has begun.
            State::Http(_) if self.held.is_empty() && self.awaited.is_none() => Flow::Close,
            _ => Flow::Continue,
        }
    }

    fn on_output(&mut self, output: OutputState) {
        self.holding.set_taken(output.taken);
        self.unwritten.look(output);
    }

    fn on_push(&mut self, now: Now, push: &Broadcast, out: &mut Vec<u8>) -> PushOutcome {
        if !matches!(self.state, State::Open { .. }) && !self.settles(now.instant) {
            return PushOutcome::Missed;
        }
        if let Some(dismissal) = push.dismissal() {
            return self.dismissed(dismissal, now, out);
        }
        let place = self.presence.as_ref().map_or(usize::MAX, Presence::place);
        let of_presence = push.of_presence(place, self.awaits_list);
        match of_presence {
            Some(false) => return PushOutcome::Missed,
            Some(true) => self.awaits_list = false,
            None => {}
        }
        if self.joining.is_some() && of_presence.is_none() || push.is_before(place) {
            // It begins with what the broker answers, or with what comes once it is counted.
            return PushOutcome::Missed;
        }
        if self.follower.is_some() && of_presence.is_none() {
            return self.follow(push, now, out);
        }
        let (length, unread) = (out.len(), self.holding.counted(out.len()));
        let (pending, frame) = (self.holding.pending(length), push.frame(self.inflates));
        let is_short = pending + frame.len() < COUNTED;
        if self.backlog.is_empty()
            && pending < FULL
            && (is_short || self.fits(length + frame.len()))
        {
            out.extend_from_slice(frame);
            if push.sample().is_some() {
                self.unwritten.add(push.clone());
            }
            self.pauses(now, out);
            return self.census.queued(push);
        }
        // All members share it until it can be written. What is dropped instead may free memory.
        let is_scarce = self.settings.backlog.memory.is_scarce();
        let heard = self.backlog.add(push.clone(), &self.terms.bounds);
        match heard {
            PushOutcome::Queued if self.has_room(length, unread) => {
                return self.census.queued(push);
            }
            PushOutcome::Queued => self.starve(COUNTED),
            PushOutcome::Missed => return heard,
            // It is counted already.
            PushOutcome::Close if is_scarce => {
                self.state = State::Cut;
                self.free();
            }
            PushOutcome::Close => {
                self.on_overrun(out);
                self.cut_at = Some(now.instant + Limits::LAST_OUTPUT);
            }
        }
        PushOutcome::Close
    }

    fn on_overrun(&mut self, out: &mut Vec<u8>) {
        CloseCode::TRY_AGAIN_LATER.write("reads too slowly", out);
        self.closes();
    }

    fn is_cut(&self) -> bool {
        matches!(self.state, State::Cut)
    }

    fn cut_at(&self) -> Option<Instant> {
        // The alarm waits until output is written.
        let expires_at = self.expires_at.filter(|_| matches!(self.state, State::Open { .. }));
        self.cut_at.or_else(|| expires_at?.checked_add(Limits::LAST_OUTPUT))
    }

    fn must_leave(&self) -> bool {
        let is_dismissed = |own: &Presence| own.dismissal().is_some();
        self.settings.api.is_some() && self.presence.as_ref().is_some_and(is_dismissed)
    }

    fn wants_drained(&self) -> bool {
        let counts_again = matches!(self.state, State::Http(_) | State::Open { .. });
        !self.backlog.is_empty()
            || !self.unwritten.is_empty()
            || self.is_behind()
            || counts_again && self.holding.counts_output()
    }

    fn on_drained(&mut self, context: &mut Context<'_, Self>) -> Flow {
        self.holding.drained(context.out.len());
        if self.holding.pending(context.out.len()) == 0 {
            self.unwritten.clear();
        }
        let unread = self.holding.counted(context.out.len());
        while self.holding.pending(context.out.len()) < FULL
            && let Some(push) = self.backlog.take()
        {
            context.out.extend_from_slice(push.frame(self.inflates));
            if push.sample().is_some() {
                self.unwritten.add(push);
            }
        }
        if self.is_behind() {
            // Some models take pushes and alarms only when nothing follows.
            if let Some(order) = self.dismissal() {
                self.close(context, order.code, &order.reason);
                return Flow::Close;
            }
            if self.expires_at.is_some_and(|at| at <= context.now.instant) {
                self.close(context, EXPIRED, "the token has expired");
                return Flow::Close;
            }
            self.catch_up(None, context.out, false);
        }
        if !self.has_room(context.out.len(), unread) {
            self.starve(context.out.len());
            return Flow::Close;
        }
        if let State::Leaving { code, reconnect_ms } = self.state {
            // Its alarm waits while much output is pending.
            let (waits, now) = (!self.results.is_empty(), context.now.instant);
            self.settling.take_if(|settling| !settling.waits(waits, now));
            if !self.backlog.is_empty() || self.is_working() || self.is_behind() {
                return Flow::Continue;
            }
            if let Some(after_ms) = reconnect_ms {
                write_reconnect(after_ms, context.out);
            }
            self.close(context, code, "");
            return Flow::Close;
        }
        self.begun.resumes(context.now.instant);
        self.pauses(context.now, context.out);
        Flow::Continue
    }

    fn on_alarm(&mut self, context: &mut Context<'_, Self>) -> Flow {
        if matches!(self.state, State::Leaving { .. }) && self.settings.broker.is_some() {
            self.settles_again(context.now.instant);
            return self.on_drained(context);
        }
        if matches!(self.state, State::Leaving { .. }) {
            // A core does not answer, unless results wait for their messages.
            self.pings_at = self.is_behind().then(|| context.now.instant + RESULTS);
            if self.pings_at.is_none() {
                self.results = Results::default();
            }
            return self.on_drained(context);
        }
        let now = context.now.instant;
        if self.looks_at.take().is_some() {
            if let Some(order) = self.dismissal() {
                self.close(context, order.code, &order.reason);
                return Flow::Close;
            }
            if let Some(follower) = &mut self.follower {
                follower.looks();
            }
        }
        if self.expires_at.is_some_and(|at| at <= now) {
            self.close(context, EXPIRED, "the token has expired");
            return Flow::Close;
        }
        let Some(every) = self.settings.ping else { return Flow::Continue };
        let gone = self.heard_at + self.settings.silence;
        if gone <= now {
            self.close(context, CloseCode::GOING_AWAY, "no answer to a ping");
            return Flow::Close;
        }
        let due = self.heard_at + every;
        if due <= now {
            Frame::ping(b"").write(context.out);
        }
        self.pings_at = Some(gone.min(if due <= now { now + every } else { due }));
        Flow::Continue
    }

    fn alarm(&self) -> Option<Instant> {
        let of_open = self.expires_at.into_iter().chain(self.looks_at);
        let of_open = of_open.min().filter(|_| matches!(self.state, State::Open { .. }));
        let settles_at = self.settling.as_ref().map(|settling| settling.at);
        settles_at.or(self.pings_at).into_iter().chain(of_open).min()
    }

    fn inside(&self) -> Option<Instant> {
        self.begun.at().filter(|_| matches!(self.state, State::Http(_) | State::Open { .. }))
    }

    fn on_close(&mut self) -> Option<Broadcast> {
        let presence = self.presence.take()?;
        // With a broker, the connection to it notifies the members.
        let is_notified_here = self.terms.presence && self.settings.broker.is_none();
        is_notified_here.then(|| presence.left(&self.settings.backlog.memory))
    }

    fn on_queued(&mut self, context: &mut Context<'_, Self>, ticket: u64, members: u32) -> Flow {
        let follower = self.follower.as_mut();
        // Its ticket is the offset of its message.
        let waiting = Waiting { offset: ticket, ticket, members };
        if follower.is_none_or(|follower| follower.may_answer(waiting)) {
            self.answer(ticket, members, context.out);
        }
        if self.holding.is_counted() {
            // The payload is freed.
            self.has_room(context.out.len(), 0);
        }
        match self.state {
            State::Leaving { .. } => self.on_drained(context),
            _ => Flow::Continue,
        }
    }

    fn on_sent(
        &mut self,
        context: &mut Context<'_, Self>,
        ticket: u64,
        outcome: RemoteOutcome,
    ) -> Flow {
        self.learns(context, ticket, outcome)
    }

    fn wants_input(&self) -> bool {
        // Every result asks again, and without any the member is read.
        let is_held_back = !self.results.is_empty()
            && (self.settings.backlog.memory.is_full() || self.is_broker_busy());
        !self.results.is_full() && !is_held_back && self.awaited.is_none()
    }

    /// A member that leaves waits for the results of its broadcasts.
    fn is_working(&self) -> bool {
        let waits = !self.results.is_empty() || self.settling.is_some();
        matches!(self.state, State::Leaving { .. }) && waits || self.awaited.is_some()
    }
}

impl Member {
    /// Creates the session of a new connection.
    pub(super) fn new(live: &Arc<Live>, census: &Arc<Census>, now: Now) -> Member {
        let settings = live.current();
        Member {
            live: Arc::clone(live),
            census: Arc::clone(census),
            terms: Arc::clone(settings.usual()),
            presence: None,
            state: State::Http(server::Decoder::default()),
            inflates: false,
            held: Vec::new(),
            results: Results::default(),
            awaited: None,
            backlog: Backlog::default(),
            follower: None,
            joining: None,
            unwritten: Unwritten::default(),
            holding: Holding::new(Arc::clone(&settings.backlog.memory)),
            heard_at: now.instant,
            begun: Begun::default(),
            pings_at: None,
            expires_at: None,
            cut_at: None,
            settling: None,
            looks_at: None,
            sends: false,
            messages: Bucket::default(),
            awaits_list: false,
            settings,
        }
    }

    /// Whether its client speaks the protocol of Centrifugo.
    pub(super) fn is_handed_over(&self) -> bool {
        matches!(self.state, State::HandedOver)
    }

    /// If its client speaks the protocol of Centrifugo, returns what it has sent after its request.
    pub(super) fn hand_over(&mut self) -> Option<Vec<u8>> {
        self.is_handed_over().then(|| mem::take(&mut self.held))
    }

    /// The settings and the members of the hub.
    pub(super) fn hub(&self) -> (&Arc<Live>, &Arc<Census>) {
        (&self.live, &self.census)
    }

    /// Notes whether so much output is pending that it is not read.
    fn pauses(&mut self, now: Now, out: &[u8]) {
        if self.holding.pending(out.len()) >= FULL || !self.backlog.is_empty() {
            self.begun.pauses(now.instant);
        }
    }

    /// What it holds except output, in bytes.
    fn own(&mut self) -> usize {
        let message = match &mut self.state {
            State::Open { decoder, .. } => {
                decoder.release();
                decoder.held()
            }
            _ => 0,
        };
        let awaited = self.awaited.as_ref().map_or(0, |awaited| awaited.footprint());
        let messages = self.results.footprint() + self.backlog.footprint();
        self.held.len() + message + messages + awaited
    }

    /// See [`Holding::has_room`].
    fn has_room(&mut self, output: usize, unread: usize) -> bool {
        let own = self.own();
        self.holding.has_room(own, output, unread)
    }

    /// See [`Holding::fits`].
    fn fits(&mut self, output: usize) -> bool {
        let own = self.own();
        self.holding.fits(own, output)
    }

    /// Frees what it holds, because there is no room for more. `unread`: output that it did not read, in
    /// bytes.
    fn starve(&mut self, unread: usize) {
        self.settings.backlog.counts.starved.add(1);
        if unread >= COUNTED {
            self.state = State::Cut;
        }
        self.free();
    }

    fn free(&mut self) {
        (self.held, self.results, self.unwritten, self.follower) = Default::default();
        self.joining = None;
        self.backlog.clear();
        self.holding.free();
    }

    /// Handles all complete requests and frames. Returns the number of bytes consumed, and the flow, or
    /// `None` if there is no room for what they cause. `unread`: see [`Holding::has_room`].
    fn take(
        &mut self,
        context: &mut Context<'_, Self>,
        bytes: &mut [u8],
        unread: usize,
    ) -> (usize, Option<Flow>) {
        let (mut taken, mut checked) = (0, context.out.len());
        while taken < bytes.len() {
            let input = &mut bytes[taken..];
            let (more, flow) = match &mut self.state {
                State::Leaving { .. } | State::Closed | State::Cut => {
                    return (bytes.len(), Some(Flow::Continue));
                }
                State::HandedOver => return (taken, Some(Flow::Continue)),
                State::Http(_) if self.awaited.is_some() => break,
                State::Http(_) => self.request(context, input),
                State::Open { .. } => self.frame(context, input),
            };
            taken += more;
            // A control frame between the frames of a message does not end it (RFC 6455, 5.4).
            if more > 0 && !self.state.is_inside_message() {
                self.begun.ends();
            }
            if flow != Flow::Continue {
                return (bytes.len(), Some(flow));
            }
            // Short input may cause much: it is inflated, or asks for a long reply.
            let caused = context.out.len() + self.results.footprint();
            if caused >= checked + FULL {
                checked = caused;
                if !self.has_room(context.out.len(), unread) {
                    return (bytes.len(), None);
                }
            }
            if more == 0 {
                break;
            }
        }
        (taken, Some(Flow::Continue))
    }

    fn request(&mut self, context: &mut Context<'_, Self>, input: &[u8]) -> (usize, Flow) {
        let State::Http(decoder) = &mut self.state else { return (0, Flow::Continue) };
        let date = Date::at(context.now.unix_s);
        match decoder.decode(input) {
            None => (0, Flow::Continue),
            Some((server::Event::Continue, _)) => {
                context.out.extend_from_slice(CONTINUE);
                (0, Flow::Continue)
            }
            Some((server::Event::Rejected(rejection), taken)) => {
                rejection.write(&date, context.out);
                (taken, Flow::Close)
            }
            Some((server::Event::Request(request), taken)) => {
                self.settings = self.live.current();
                let (settings, census) = (&self.settings, &self.census);
                if let Some(api) = &settings.api
                    && let Some(method) = api::method(&request)
                {
                    let Context { now, out, posts, .. } = context;
                    let mut backend = api::Backend::new(api, settings, census, *now, posts);
                    let flow = api::answer(method, &request, &mut backend, out);
                    self.awaited = backend.awaited.map(Box::new);
                    return (taken, flow);
                }
                let (entered, flow) =
                    door::answer(&request, settings, census, context.now, context.out);
                if let Some(entered) = entered {
                    self.enter(context, entered);
                }
                (taken, flow)
            }
        }
    }

    /// Starts the WebSocket of a client whose upgrade was accepted.
    fn enter(&mut self, context: &mut Context<'_, Self>, entered: Entered) {
        let Entered { place, terms, agreed, sends, expires_at, asked, is_of_centrifuge } = entered;
        if is_of_centrifuge {
            self.state = State::HandedOver;
            return;
        }
        self.terms = terms;
        let mut decoder = Decoder::new(Role::Server, self.settings.longest);
        if let Some(agreed) = agreed {
            decoder = decoder.inflating(agreed);
        }
        self.pings_at = self.settings.ping.map(|every| context.now.instant + every);
        self.inflates = agreed.is_some_and(compress::is_shared);
        self.sends = sends;
        self.expires_at = expires_at;
        let (decoder, echoes) = (Box::new(decoder), place.is_none());
        self.state = State::Open { decoder, echoes, next_ticket: 0 };
        let Some((room, presence)) = place else { return };
        context.post(Post::Join(room));
        let history = presence.history().cloned();
        let presence = self.presence.insert(presence);
        let lists = self.terms.presence && self.settings.broker.is_none();
        let here = lists.then(|| (presence.here(NAMES), presence.note(Change::Joined)));
        self.start_following(history.as_ref(), asked, context);
        let looks = self.settings.api.is_some() || self.follower.is_some();
        self.looks_at = looks.then_some(context.now.instant);
        self.awaits_list = self.terms.presence && self.settings.broker.is_some();
        if let Some(((members, names), note)) = here {
            let names: Vec<&str> = names.iter().map(|name| &**name).collect();
            write_roster(&names, members, context.out);
            let memory = &self.settings.backlog.memory;
            context.post(Post::Others(Broadcast::presence(note, members, memory)));
        }
    }

    /// Handles no more input. A Close frame follows once everything pending has been sent.
    fn leave(&mut self, now: Instant, code: CloseCode, reconnect_ms: Option<u16>) {
        self.state = State::Leaving { code, reconnect_ms };
        let has_broker = self.settings.broker.is_some();
        self.settling = has_broker.then(|| Settling::new(now));
        // The client can no longer answer a ping.
        self.pings_at = (!has_broker && !self.results.is_empty()).then(|| now + RESULTS);
    }

    /// Sends a Close frame and leaves the room. Further input is ignored.
    fn close(&mut self, context: &mut Context<'_, Self>, code: CloseCode, why: &str) {
        code.write(why, context.out);
        // The stop limits how long a member that gets its queued messages first may take.
        if !matches!(self.state, State::Leaving { .. }) || self.cut_at.is_some() {
            self.cut_at = Some(context.now.instant + Limits::LAST_OUTPUT);
        }
        self.closes();
        if let Some(push) = self.on_close() {
            context.post(Post::Others(push));
        }
        context.post(Post::Leave);
    }

    /// A Close frame was sent: nothing follows it.
    fn closes(&mut self) {
        self.state = State::Closed;
        (self.pings_at, self.settling, self.follower, self.joining) = Default::default();
        self.unwritten.clear();
        self.backlog.clear();
    }

    /// The order of a backend to disconnect it, if one was given.
    fn dismissal(&self) -> Option<Arc<Dismissal>> {
        self.settings.api.as_ref()?;
        self.presence.as_ref()?.dismissal()
    }

    /// Closes it if the order is for it. What it has not received is not sent.
    fn dismissed(&mut self, order: &Dismissal, now: Now, out: &mut Vec<u8>) -> PushOutcome {
        let own = self.presence.as_ref();
        if !own.is_some_and(|own| order.is_for(own.number(), own.user())) {
            return PushOutcome::Missed;
        }
        order.code.write(&order.reason, out);
        self.closes();
        self.cut_at = Some(now.instant + Limits::LAST_OUTPUT);
        (self.held, self.results) = Default::default();
        // It is not listed from now on. That it leaves is announced once its connection is closed.
        if let Some(presence) = &mut self.presence {
            presence.leave();
        }
        PushOutcome::Close
    }

    /// Handles one frame of an open WebSocket.
    fn frame(&mut self, context: &mut Context<'_, Self>, input: &mut [u8]) -> (usize, Flow) {
        let State::Open { decoder, echoes, next_ticket } = &mut self.state else {
            return (0, Flow::Continue);
        };
        let (taken, event) = match decoder.next(input) {
            Ok(next) => next,
            Err(violation) => {
                self.close(context, violation.code, violation.why);
                return (0, Flow::Close);
            }
        };
        let closes = match event {
            Some(Event::Text(text)) if *echoes => {
                send_back(Frame::text(text.as_bytes()), self.inflates, context.out);
                None
            }
            Some(Event::Binary(bytes)) if *echoes => {
                send_back(Frame::binary(bytes), self.inflates, context.out);
                None
            }
            Some(Event::Text(text)) => {
                let mut sender = Sender {
                    settings: &self.settings,
                    census: &self.census,
                    terms: &self.terms,
                    presence: self.presence.as_ref().filter(|_| self.sends),
                    inflates: self.inflates,
                    messages: &mut self.messages,
                    results: &mut self.results,
                    unwritten: &mut self.unwritten,
                    follower: self.follower.as_deref_mut(),
                    next_ticket,
                    out: context.out,
                    posts: context.posts,
                };
                sender.message(text, context.now);
                if self.is_behind() {
                    self.catch_up(None, context.out, true);
                }
                None
            }
            Some(Event::Binary(_)) => {
                Some((CloseCode::UNSUPPORTED, "only text messages are expected"))
            }
            Some(Event::Ping(payload)) => {
                Frame::pong(payload).write(context.out);
                None
            }
            Some(Event::Close(code)) => {
                let code = code.map_or(CloseCode::NORMAL, |(code, _)| code);
                if !self.results.is_empty() {
                    // The client may have sent the Close frame right behind a broadcast.
                    self.backlog.clear();
                    self.leave(context.now.instant, code, None);
                    let has_broker = self.settings.broker.is_some();
                    self.cut_at = has_broker.then(|| context.now.instant + LEAVES);
                    return (taken, Flow::Continue);
                }
                Some((code, ""))
            }
            None | Some(Event::Pong(_)) => None,
        };
        match closes {
            Some((code, why)) => {
                self.close(context, code, why);
                (taken, Flow::Close)
            }
            None => (taken, Flow::Continue),
        }
    }
}
