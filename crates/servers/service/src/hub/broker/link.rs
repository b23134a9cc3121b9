//! The connection of a hub to its broker, as a state machine: `Down → Connecting → Greeting → Subscribing → Proving → Up`.
//!
//! It is up once its first heartbeat has come back: so the broker lets it subscribe and publish. With each heartbeat it
//! asks again whether the server is a master. What it has to do for histories is in `history`.
//!
//! One connection speaks RESP3, subscribes and publishes. It counts as lost if anything is not as expected: an own
//! message or heartbeat that does not come back, a reply to nothing, the end of a subscription. Then it is dropped and
//! dialled again. When it is up again, all members get a gap, and what came before that is discarded: so no member
//! gets a message behind a missing one without a gap between them.

use super::{
    attempt::Attempt,
    envelope::Envelope,
    greeting::{greeted, shown},
    history::{Asked, Keeper, Placed},
    input::{Heard, Input},
    moves::Moves,
    newest::Newest,
    partition::Channels,
    presence::Desk,
    queue::Queue,
    sent::{Inconsistent, SILENCE, Sent},
    settings::Broker,
    window::Window,
};
use crate::hub::{broadcast::Broadcast, census::Census, live::Live};
use regatta_engine::{RemoteOutcome, RoomName, Ticket, Uplink, UplinkAct, UplinkTurn};
use regatta_proto::resp::{Value, write_bulk, write_command};
use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

/// How often the hub sends itself a heartbeat.
const BEAT: Duration = Duration::from_secs(1);
/// How long an attempt to connect to an address may take.
const OPENING: Duration = Duration::from_secs(3);
/// The pause after the first failed attempt, and the longest one. Each is changed by up to 20%.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// How long it must be up until the pauses are short again.
const STEADY: Duration = Duration::from_secs(10);
/// Bytes of unwritten output from which on messages wait. With more, the connection would not be read.
const MOST_PENDING: usize = 48 << 10;
/// The same while presence has something to send. It leaves some room for the histories.
const MOST_SHARED: usize = MOST_PENDING / 2;
/// How soon it is checked whether the output is written, and others learn that it is up.
const SOON: Duration = Duration::from_millis(1);

type Turn<'a> = UplinkTurn<'a, Broadcast>;

/// The connection of a hub to its broker.
#[derive(Debug)]
pub(super) struct Link {
    broker: Arc<Broker>,
    live: Arc<Live>,
    channels: Channels,
    state: State,
    input: Input,
    sent: Sent,
    /// What waits for room in `window`.
    queue: Queue,
    window: Window,
    /// When the queue is looked at again, if output is unwritten.
    flushes_at: Option<Instant>,
    /// The histories, and the commands that are not answered.
    keeper: Keeper,
    /// What this hub knows of the members of others, if its own are notified.
    presence: Option<Box<Desk>>,
    /// Presence has sent something since a message was taken from the queue.
    messages_first: bool,
    /// Since when it is up.
    up_at: Instant,
    /// When others learn that it is up, if they have not. This is in a later turn, when the gap is on its way to all cores:
    /// a client that comes because the hub is ready gets no gap for the time before.
    reports_at: Option<Instant>,
    /// The addresses that are tried.
    attempt: Attempt,
    moves: Moves,
    newest: Newest,
    /// Attempts since it was up, for the pause before the next one.
    attempts: u32,
    /// Random numbers for the pauses.
    random: u64,
    /// The reason of the last failure that people were shown.
    shown: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// The next attempt is at this time.
    Down(Instant),
    /// Must be up by then.
    Connecting(Instant),
    /// `HELLO` was sent.
    Greeting(Instant),
    /// So many channels are subscribed to.
    Subscribing(Instant, usize),
    /// The first heartbeat was sent.
    Proving(Instant),
    /// The next heartbeat is due at this time.
    Up(Instant),
}

/// What a hub publishes for hubs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Note {
    /// It is there: only for itself.
    Beat,
    /// It was at another server before.
    Moved,
}

/// Why a connection is dropped.
type Why = String;

impl Link {
    /// Creates one that connects at its first [tick](Uplink::tick).
    pub(super) fn new(broker: Arc<Broker>, live: Arc<Live>, census: Arc<Census>) -> Link {
        let mut channels = Channels::new(&broker.start(), broker.node, broker.is_in_cluster);
        let presence = live.current().has_presence().then(|| {
            let (publish, channel) = (channels.publish, channels.with_presence(&broker.start()));
            Box::new(Desk::new(&broker, &live, &census, (publish, channel)))
        });
        Link {
            channels,
            random: broker.node | 1,
            keeper: Keeper::new(Arc::clone(&broker), Arc::clone(&live), census),
            broker,
            live,
            state: State::Down(Instant::now()),
            input: Input::default(),
            sent: Sent::default(),
            queue: Queue::default(),
            window: Window::default(),
            flushes_at: None,
            presence,
            messages_first: false,
            up_at: Instant::now(),
            reports_at: None,
            attempt: Attempt::default(),
            moves: Moves::default(),
            newest: Newest::default(),
            attempts: 0,
            shown: String::new(),
        }
    }

    fn log(&self, line: &str) {
        (self.live.current().log)(&format!("regatta: broker {}: {line}", self.broker.name));
    }

    /// Drops the connection, if there is one, and answers all who wait.
    pub(super) fn lose(&mut self, why: &str, turn: &mut Turn<'_>) {
        let (now, health) = (turn.now.instant, &self.broker.health);
        let was_up = matches!(self.state, State::Up(_));
        if was_up { &health.lost } else { &health.failed }.add(1);
        health.down(now);
        self.broker.place.is_lost(was_up);
        turn.acts.push(UplinkAct::Disconnect);
        for (ticket, is_confirmed) in self.sent.lose() {
            self.done(ticket, outcome(is_confirmed), turn);
        }
        while let Some(waiting) = self.queue.take() {
            self.done(waiting.ticket, RemoteOutcome::NotSent, turn);
        }
        (self.window, self.flushes_at, self.reports_at) = (Window::default(), None, None);
        self.keeper.lose(turn);
        if let Some(presence) = &mut self.presence {
            presence.lose(turn);
        }
        self.broker.health.set_busy(false);
        self.input = Input::default();
        if was_up {
            self.log(&format!("the connection is lost: {why}; the hub tries again"));
            self.shown = why.to_owned();
        } else {
            let Some(why) = self.attempt.fails(why) else { return self.connect_to_next(turn) };
            // Not each attempt is worth a line.
            if self.shown != why {
                self.log(&format!("no connection: {why}; the hub tries again"));
                self.shown = why;
            }
        }
        self.state = State::Down(now + self.pause());
    }

    /// The pause before the next attempt.
    fn pause(&mut self) -> Duration {
        let (first, longest) = PAUSES;
        let pause = longest.min(first * (1 << self.attempts.min(10)));
        self.attempts += 1;
        // Xorshift (Marsaglia 2003): hubs that lost the same broker do not come back at the same moment.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        pause * (80 + (self.random % 41) as u32) / 100
    }

    fn done(&self, ticket: Ticket, outcome: RemoteOutcome, turn: &mut Turn<'_>) {
        self.broker.health.count(outcome);
        turn.acts.push(UplinkAct::Done(ticket, outcome));
    }

    fn connect(&mut self, turn: &mut Turn<'_>) {
        self.attempt = Attempt::default();
        match self.broker.place.addresses() {
            Err(why) => self.lose(&why, turn),
            Ok(addresses) => {
                self.attempt = Attempt::new(addresses);
                self.connect_to_next(turn);
            }
        }
    }

    fn connect_to_next(&mut self, turn: &mut Turn<'_>) {
        let Some(address) = self.attempt.next() else {
            return self.lose("its name has no address", turn);
        };
        self.state = State::Connecting(turn.now.instant + OPENING);
        turn.acts.push(UplinkAct::Connect(address));
    }

    fn subscribe(&mut self, until: Instant, turn: &mut Turn<'_>) {
        self.state = State::Subscribing(until, 0);
        let args: Vec<&[u8]> = [self.channels.subscribe]
            .into_iter()
            .chain(self.channels.all().map(str::as_bytes))
            .collect();
        write_command(args, turn.out);
    }

    fn is_up(&mut self, turn: &mut Turn<'_>) {
        self.state = State::Up(turn.now.instant + BEAT);
        self.up_at = turn.now.instant;
        self.reports_at = Some(turn.now.instant + SOON);
        self.shown.clear();
        self.log("connected");
        // Members that are there have missed what was published meanwhile, unless their room has a history.
        turn.acts.push(UplinkAct::PushAll(Broadcast::gap()));
        if self.moves.is_up(self.attempt.at(), turn.now.instant) {
            // What it published at the other server has reached only hubs that were there, too. Those that had left it
            // missed that.
            self.moves.announces(self.sent.next());
            self.note(Note::Moved, turn);
        }
        if let Some(presence) = &mut self.presence {
            presence.is_up(turn.now.instant);
        }
        self.keeper.is_up(turn);
    }

    /// Asks for the role of the server, and sends a heartbeat.
    fn beat(&mut self, turn: &mut Turn<'_>) {
        write_command([&b"HELLO"[..], b"3"], turn.out);
        self.keeper.asks(Asked::Role);
        self.keeper.beats(turn);
        self.note(Note::Beat, turn);
    }

    /// Publishes that this hub is there, or that it was elsewhere.
    fn note(&mut self, note: Note, turn: &mut Turn<'_>) {
        let text = format!("{:016x}:{}", self.broker.secret, self.sent.next());
        let channel = match note {
            Note::Beat => &self.channels.beat,
            Note::Moved => &self.channels.moved,
        };
        write_command([self.channels.publish, channel.as_bytes(), text.as_bytes()], turn.out);
        self.keeper.asks(Asked::Publish(None));
        self.sent.add(None, turn.now.instant);
    }

    /// The number of a note, and whether it is of this hub.
    fn number_of_note(&self, payload: &[u8]) -> Option<(u64, bool)> {
        let (secret, number) = str::from_utf8(payload).ok()?.split_once(':')?;
        let is_own = u64::from_str_radix(secret, 16).ok()? == self.broker.secret;
        Some((number.parse().ok()?, is_own))
    }

    fn heard(&mut self, heard: Heard<'_>, turn: &mut Turn<'_>) -> Result<(), Why> {
        match (self.state, heard) {
            (_, Heard::Unsubscribed) => Err("it has ended a subscription".to_owned()),
            (_, Heard::Other) => Ok(()),
            (State::Up(_), Heard::Message { channel, payload }) => {
                self.message(channel, payload, turn)
            }
            (State::Proving(_), Heard::Message { channel, payload })
                if channel == self.channels.beat.as_bytes() =>
            {
                self.message(channel, payload, turn)
            }
            // Nothing that comes before the gap is delivered.
            (_, Heard::Message { .. }) => Ok(()),
            (State::Subscribing(until, before), Heard::Subscribed) => {
                self.state = State::Subscribing(until, before + 1);
                if before + 1 == self.channels.count() {
                    self.state = State::Proving(until);
                    self.beat(turn);
                }
                Ok(())
            }
            (State::Greeting(until), Heard::Reply(reply)) => {
                greeted(reply, self.broker.is_in_cluster)?;
                self.subscribe(until, turn);
                Ok(())
            }
            (State::Proving(_) | State::Up(_), Heard::Reply(reply)) => {
                match self.keeper.next_answered() {
                    None => Err("it answers what was not asked".to_owned()),
                    Some(Asked::Role) => greeted(reply, self.broker.is_in_cluster),
                    Some(Asked::Publish(room)) => self.answered(reply, room.as_ref(), turn),
                    Some(Asked::Presence(question)) => {
                        if let Some(presence) = &mut self.presence {
                            presence.answered(question, reply, turn);
                        }
                        Ok(())
                    }
                    Some(asked) => {
                        self.keeper.answered(asked, reply, turn);
                        Ok(())
                    }
                }
            }
            (_, Heard::Reply(Value::Error(text))) => Err(shown(text)),
            (_, Heard::Reply(_) | Heard::Subscribed) => {
                Err("it answers what was not asked".to_owned())
            }
        }
    }

    /// The broker has answered a `PUBLISH`; or the script that publishes, for a message of this room.
    fn answered(
        &mut self,
        reply: Value<'_>,
        room: Option<&RoomName>,
        turn: &mut Turn<'_>,
    ) -> Result<(), Why> {
        let now = turn.now.instant;
        let refusal = match reply {
            Value::Integer(1..) => None,
            // This hub is a receiver itself.
            Value::Integer(_) => return Err("it has lost a subscription".to_owned()),
            Value::Error(text) => Some((self.keeper.refused(room, text, now), text)),
            _ => return Err("it answers what was not asked".to_owned()),
        };
        let ticket = self.sent.answered(refusal.is_some()).map_err(inconsistent)?;
        let (outcome, why) = match refusal {
            None => {
                if room.is_some() {
                    self.keeper.hears(now);
                }
                (RemoteOutcome::NotSent, Ok(()))
            }
            Some((Some(outcome), _)) => (outcome, Ok(())),
            Some((None, text)) => {
                self.broker.health.refuses();
                let why = format!("it refuses to publish: {}", shown(text));
                (RemoteOutcome::NotSent, Err(why))
            }
        };
        if let Some(ticket) = ticket {
            self.done(ticket, outcome, turn);
        }
        why
    }

    /// A message has come.
    fn message(&mut self, channel: &[u8], payload: &[u8], turn: &mut Turn<'_>) -> Result<(), Why> {
        if channel == self.channels.beat.as_bytes() {
            let Some((number, true)) = self.number_of_note(payload) else {
                self.ignores();
                return Ok(());
            };
            self.came_back(number, turn.now.instant)?;
            match self.state {
                State::Up(_) if self.up_at + STEADY <= turn.now.instant => self.attempts = 0,
                State::Up(_) => {}
                _ => self.is_up(turn),
            }
            return Ok(());
        }
        if let Some(presence) = &mut self.presence
            && presence.is_channel(channel)
        {
            presence.hears(payload, turn);
            return Ok(());
        }
        self.broker.health.received.add(1);
        let placed = Placed::read(payload);
        let message = Envelope::read(placed.as_ref().map_or(payload, |placed| placed.message))
            .filter(|message| self.channels.of(message.room).as_bytes() == channel);
        let Some(Envelope { node, number, room, payload, .. }) = message else {
            return self.other(channel, payload, turn);
        };
        let sender = if node == self.broker.secret {
            self.came_back(number, turn.now.instant)?
        } else {
            None
        };
        let room = RoomName::of(room);
        let is_placed = placed.as_ref().is_some_and(|placed| placed.position.is_some());
        // A copy of the history knows by the offset whether it has a message.
        if self.broker.is_in_cluster
            && !self.newest.is_newer(node, number)
            && !(is_placed && self.keeper.has_copy(&room))
        {
            self.broker.health.repeated.add(1);
            return Ok(());
        }
        // A member is counted before it joins its room, so one that is not counted yet gets what follows, and nothing else.
        let position = self.keeper.delivers(&room, payload, placed.as_ref(), turn);
        if let Some(ticket) = sender {
            let outcome = position.map_or(RemoteOutcome::Sent, |position| RemoteOutcome::Kept {
                epoch: position.epoch.0,
                offset: position.offset,
            });
            self.done(ticket, outcome, turn);
        }
        Ok(())
    }

    /// Handles what is neither a heartbeat nor a message of a hub.
    fn other(&mut self, channel: &[u8], payload: &[u8], turn: &mut Turn<'_>) -> Result<(), Why> {
        let note = self.number_of_note(payload);
        match note.filter(|_| channel == self.channels.moved.as_bytes()) {
            Some((number, true)) => {
                self.came_back(number, turn.now.instant)?;
                self.moves.came_back(number);
                Ok(())
            }
            Some((_, false)) => {
                self.moves.other_moved(turn.now.instant);
                self.push_due_gap(turn);
                Ok(())
            }
            None => {
                self.ignores();
                Ok(())
            }
        }
    }

    /// All members get a gap if one is due because other hubs have moved.
    fn push_due_gap(&mut self, turn: &mut Turn<'_>) {
        if self.moves.take_due(turn.now.instant) {
            self.log("another hub comes from another server; members get a gap");
            turn.acts.push(UplinkAct::PushAll(Broadcast::gap()));
        }
    }

    /// An own message or heartbeat has come back. Returns the ticket of its sender, if that waits.
    fn came_back(&mut self, number: u64, now: Instant) -> Result<Option<Ticket>, Why> {
        let sent_at = self.sent.next_back();
        let waits = self.sent.came_back(number).map_err(inconsistent)?;
        if let Some(sent_at) = sent_at {
            self.window.returns(now.saturating_duration_since(sent_at), self.sent.len());
        }
        Ok(waits)
    }

    fn ignores(&self) {
        if self.broker.health.ignored.add(1) == 0 {
            self.log("ignores messages that no hub of this version has published");
        }
    }

    /// A backend asks for the members of a room on all hubs.
    fn asked_for_members(&mut self, room: &RoomName, ticket: Ticket, turn: &mut Turn<'_>) {
        match &mut self.presence {
            Some(presence) => presence.ask(room, ticket, turn),
            None => turn.acts.push(UplinkAct::Done(ticket, RemoteOutcome::NotSent)),
        }
        self.flush(turn);
    }

    /// Whether a message may be sent now.
    fn has_room(&self, turn: &Turn<'_>) -> bool {
        // What presence has to send needs room, too.
        let presence = self.presence.as_ref();
        let most =
            if presence.is_some_and(|one| one.has_commands()) { MOST_SHARED } else { MOST_PENDING };
        self.sent.len() < self.window.most() && turn.pending.max(turn.out.len()) < most
    }

    /// Sends what waits, up to the limits of `has_room`.
    fn flush(&mut self, turn: &mut Turn<'_>) {
        if !matches!(self.state, State::Up(_)) {
            return;
        }
        // Presence and messages take turns: a single write of presence may be longer than what may be unwritten.
        let has_sent = self.messages_first && self.empties_queue(turn);
        let Link { presence, keeper, .. } = self;
        if let Some(presence) = presence {
            let before = turn.out.len();
            let asks = |question| keeper.asks(Asked::Presence(question));
            presence.flush(MOST_SHARED, turn, asks);
            self.messages_first |= turn.out.len() > before;
        }
        // Before messages, because these would leave no room for questions.
        self.keeper.flush(turn);
        if self.empties_queue(turn) || has_sent {
            self.messages_first = false;
        }
        let is_busy = !self.queue.is_empty();
        self.broker.health.set_busy(is_busy);
        let has_window = self.sent.len() < self.window.most();
        let waits = is_busy && has_window || self.keeper.is_held();
        self.flushes_at = waits.then(|| turn.now.instant + SOON);
    }

    /// Publishes what waits, as long as there is room. Returns whether it has published something.
    fn empties_queue(&mut self, turn: &mut Turn<'_>) -> bool {
        let mut has_sent = false;
        while self.has_room(turn)
            && let Some(waiting) = self.queue.take()
        {
            self.publish(&waiting.room, &waiting.push, waiting.ticket, turn);
            has_sent = true;
        }
        has_sent
    }

    fn publish(&mut self, room: &RoomName, push: &Broadcast, ticket: Ticket, turn: &mut Turn<'_>) {
        let Ok(payload) = str::from_utf8(push.frame(false)) else {
            return self.done(ticket, RemoteOutcome::NotSent, turn);
        };
        let message = Envelope {
            node: self.broker.secret,
            number: self.sent.next(),
            is_of_backend: push.is_of_backend(),
            room: room.as_str(),
            payload,
        };
        let channel = self.channels.of(room.as_str());
        let by_script = self.keeper.publishes((room, channel), &message, turn);
        if !by_script {
            turn.out.extend_from_slice(b"*3\r\n");
            write_bulk(self.channels.publish, turn.out);
            write_bulk(channel.as_bytes(), turn.out);
            turn.out.push(b'$');
            turn.out.extend_from_slice(itoa::Buffer::new().format(message.len()).as_bytes());
            turn.out.extend_from_slice(b"\r\n");
            message.write(turn.out);
            turn.out.extend_from_slice(b"\r\n");
        }
        self.keeper.asks(Asked::Publish(by_script.then(|| room.clone())));
        self.sent.add(Some(ticket), turn.now.instant);
    }
}

impl Uplink<Broadcast> for Link {
    fn opened(&mut self, turn: &mut Turn<'_>) {
        let State::Connecting(until) = self.state else { return };
        self.state = State::Greeting(until);
        let mut args: Vec<&[u8]> = vec![b"HELLO", b"3"];
        let password = self.broker.password.as_ref().map(|newest| newest());
        if let Some(password) = &password {
            let user = self.broker.user.as_deref().unwrap_or("default");
            args.extend([b"AUTH", user.as_bytes(), password.as_bytes()]);
        }
        args.extend([&b"SETNAME"[..], b"regatta-hub"]);
        write_command(args, turn.out);
    }

    fn received(&mut self, bytes: &[u8], turn: &mut Turn<'_>) {
        self.sent.hears(turn.now.instant);
        let mut input = mem::take(&mut self.input);
        let mut lost = None;
        let taken = input.take(bytes, |heard| {
            lost = self.heard(heard, turn).err();
            lost.is_none()
        });
        match lost.or(taken.err().map(|why| format!("not RESP: {why}"))) {
            Some(why) => self.lose(&why, turn),
            None => self.input = input,
        }
        self.flush(turn);
    }

    fn closed(&mut self, turn: &mut Turn<'_>) {
        let why = match self.state {
            State::Connecting(_) => "it does not accept connections",
            _ => "it has closed the connection",
        };
        self.lose(why, turn);
    }

    fn send(&mut self, room: &RoomName, push: &Broadcast, ticket: Ticket, turn: &mut Turn<'_>) {
        if push.asks_for_members() {
            return self.asked_for_members(room, ticket, turn);
        }
        if push.asked().is_some() {
            self.keeper.asked_for(room, push, ticket, turn);
            if self.keeper.is_held() {
                self.flushes_at.get_or_insert(turn.now.instant + SOON);
            }
            return;
        }
        self.broker.health.awaits();
        if !matches!(self.state, State::Up(_)) || self.queue.is_full() {
            return self.done(ticket, RemoteOutcome::NotSent, turn);
        }
        if self.queue.is_empty() && self.has_room(turn) {
            return self.publish(room, push, ticket, turn);
        }
        self.queue.add(room.clone(), push.clone(), ticket, turn.now.instant);
        self.broker.health.set_busy(true);
        self.flushes_at.get_or_insert(turn.now.instant + SOON);
    }

    fn due(&self) -> Option<Instant> {
        let of_presence = self.presence.as_ref().map(|presence| presence.due());
        self.must_act_at().into_iter().chain(of_presence).min()
    }

    fn tick(&mut self, turn: &mut Turn<'_>) {
        if let Some(presence) = &mut self.presence
            && presence.due() <= turn.now.instant
        {
            presence.tick(turn);
            self.flush(turn);
        }
        self.acts(turn);
    }
}

impl Link {
    /// The deadline of the connection.
    pub(super) fn must_act_at(&self) -> Option<Instant> {
        match self.state {
            State::Down(at)
            | State::Connecting(at)
            | State::Greeting(at)
            | State::Subscribing(at, _)
            | State::Proving(at) => Some(at),
            State::Up(beats_at) => {
                let due = self.sent.due().into_iter().chain(self.queue.due());
                let due = due.chain(self.flushes_at).chain(self.moves.due());
                due.chain(self.reports_at).chain([beats_at]).min()
            }
        }
    }

    /// Does what is due for the connection.
    fn acts(&mut self, turn: &mut Turn<'_>) {
        let now = turn.now.instant;
        match self.state {
            State::Down(at) if at <= now => self.connect(turn),
            State::Connecting(until) if until <= now => {
                self.lose("it does not accept connections", turn);
            }
            State::Greeting(until) | State::Subscribing(until, _) | State::Proving(until)
                if until <= now =>
            {
                self.lose("it does not answer", turn);
            }
            State::Up(_) if self.sent.is_silent(now) => {
                let seconds = SILENCE.as_secs();
                self.lose(&format!("a message did not come back within {seconds} s"), turn);
            }
            State::Up(beats_at) => {
                if self.reports_at.take_if(|at| *at <= now).is_some() {
                    self.broker.health.up();
                }
                self.push_due_gap(turn);
                while let Some((ticket, is_confirmed)) = self.sent.take_late(now) {
                    self.done(ticket, outcome(is_confirmed), turn);
                }
                while let Some(ticket) = self.queue.take_late(now) {
                    self.done(ticket, RemoteOutcome::NotSent, turn);
                }
                if beats_at <= now {
                    if let Some(why) =
                        self.attempt.at().and_then(|at| self.broker.place.has_left(at))
                    {
                        return self.lose(&why, turn);
                    }
                    self.state = State::Up(now + BEAT);
                    self.beat(turn);
                }
                self.flush(turn);
            }
            _ => {}
        }
    }
}

/// What a sender learns of a message that did not come back.
fn outcome(is_confirmed: bool) -> RemoteOutcome {
    if is_confirmed { RemoteOutcome::Sent } else { RemoteOutcome::Unknown }
}

fn inconsistent(Inconsistent: Inconsistent) -> Why {
    "messages of this hub came back in another order, twice, or not at all".to_owned()
}
