//! Which histories a hub fetches from the broker, and the members and backends that wait for them. For each room there
//! is one question to the broker at a time, however many wait. Rooms for which somebody waits, or of which something was
//! heard, come before all others.

use crate::hub::history::{Asker, RoomHistory, Span, Wanted};
use regatta_engine::{RoomName, Ticket};
use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

/// Fetches of messages at once. Each has at most 256 KiB and one message.
const FETCHES: usize = 4;
/// Looks at once: questions for no messages.
const LOOKS: usize = 256;
/// Maximum number of members and backends that wait.
const MOST: usize = 1 << 16;
/// Minimum time between two searches for members that have left, if so many wait.
const APART: Duration = Duration::from_secs(1);
/// So many questions to the broker somebody waits for, and two more for each message that the room keeps: an answer has at
/// least one. Then they get what there is.
const ROUNDS: usize = 8;
/// So many times the broker may refuse a fetch for a reason of the room, once with each heartbeat. Then nobody waits.
const MOST_REFUSED: u32 = 3;

/// A member or a backend that waits for a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub ticket: Ticket,
    pub wanted: Wanted,
    pub asker: Asker,
    /// How often the broker was asked since this question was put.
    rounds: usize,
}

impl Question {
    pub fn new(ticket: Ticket, wanted: Wanted, asker: Asker) -> Question {
        Question { ticket, wanted, asker, rounds: 0 }
    }
}

/// Why a room is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// It is its turn.
    Turn,
    /// Something was heard of it, or somebody waits for it.
    Heard,
    /// Messages are missing in the history itself, so that it must not continue. This is for the next heartbeat, so at most
    /// one epoch of a room ends in a second.
    Hole,
}

/// A question to the broker.
#[derive(Debug)]
pub(in super::super) struct Due {
    pub room: RoomName,
    pub history: Arc<RoomHistory>,
    pub span: Span,
    /// The history must not continue.
    pub breaks: bool,
}

#[derive(Debug)]
struct Room {
    history: Arc<RoomHistory>,
    questions: Vec<Question>,
    breaks: bool,
    /// It does not wait behind those whose turn it is.
    is_urgent: bool,
    state: State,
    /// What the broker was asked for last.
    span: Option<Span>,
    /// How many of the [`FETCHES`] it has, if it has asked; 0: it only looks.
    places: usize,
    /// How often in turn a fetch was refused.
    refused: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    /// It is in this queue.
    Queued(usize),
    /// The broker was asked.
    Asked,
    /// It waits for the next heartbeat.
    Waiting,
}

/// The queues, by their rank: urgent rooms, those of them that wait for a fetch, and others.
const URGENT: usize = 0;
const FETCHED: usize = 1;
const OTHERS: usize = 2;

/// The rooms whose histories are fetched.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    /// In order, so that a simulation is the same each time.
    rooms: BTreeMap<RoomName, Room>,
    /// A room whose state is not that it is in this queue was there earlier.
    queues: [VecDeque<RoomName>; 3],
    fetches: usize,
    looks: usize,
    questions: usize,
    /// Rooms whose histories must not continue.
    breaks: usize,
    /// When it has searched for members that have left.
    searched_at: Option<Instant>,
}

impl Fetches {
    /// The room is fetched.
    pub fn add(&mut self, room: &RoomName, history: Arc<RoomHistory>, cause: Cause) {
        let Fetches { rooms, queues, .. } = self;
        let one = rooms.entry(room.clone()).or_insert_with(|| Room::new(Arc::clone(&history)));
        one.history = history;
        let becomes_urgent = cause != Cause::Turn && !mem::replace(&mut one.is_urgent, true);
        let becomes_broken = cause == Cause::Hole && !mem::replace(&mut one.breaks, true);
        self.breaks += usize::from(becomes_broken);
        match one.state {
            State::Asked | State::Waiting => {}
            _ if becomes_broken => one.state = State::Waiting,
            State::Queued(_) if !becomes_urgent => {}
            State::New | State::Queued(_) => one.queue(room, queues),
        }
    }

    /// If as many wait as may, returns members in rooms that have none any longer: they need not wait.
    pub fn make_room(
        &mut self,
        now: Instant,
        has_members: impl Fn(&RoomName) -> bool,
    ) -> Vec<Question> {
        let is_soon = |at| now.saturating_duration_since(at) < APART;
        if self.questions < MOST || self.searched_at.is_some_and(is_soon) {
            return Vec::new();
        }
        self.searched_at = Some(now);
        self.take(|room, _| !has_members(room), |asker| asker != Asker::Backend)
    }

    /// Takes the questions of these askers in these rooms.
    fn take(
        &mut self,
        is_in: impl Fn(&RoomName, State) -> bool,
        is_of: impl Fn(Asker) -> bool,
    ) -> Vec<Question> {
        let rooms = self.rooms.iter_mut().filter(|(room, one)| is_in(room, one.state));
        let taken = rooms.flat_map(|(_, one)| {
            let is_of = &is_of;
            one.questions.extract_if(.., move |question| is_of(question.asker))
        });
        let taken: Vec<Question> = taken.collect();
        self.questions -= taken.len();
        taken
    }

    /// In how many rooms the history must not continue.
    pub fn breaks(&self) -> usize {
        self.breaks
    }

    /// Whether some room waits until the broker is asked for it.
    pub fn are_queued(&self) -> bool {
        self.queues.iter().any(|queue| !queue.is_empty())
    }

    /// Somebody waits for a room. Returns false if there is no place.
    pub fn ask(&mut self, room: &RoomName, history: Arc<RoomHistory>, question: Question) -> bool {
        if self.questions >= MOST {
            return false;
        }
        self.add(room, history, Cause::Heard);
        if let Some(one) = self.rooms.get_mut(room) {
            one.questions.push(question);
            self.questions += 1;
        }
        true
    }

    /// The next question to the broker, unless there are enough at once. `link`: the number of the connection.
    pub fn next(&mut self, link: u64, now: Instant) -> Option<Due> {
        [URGENT, FETCHED, OTHERS].into_iter().find_map(|rank| self.next_of(rank, link, now))
    }

    fn next_of(&mut self, rank: usize, link: u64, now: Instant) -> Option<Due> {
        while let Some(room) = self.queues[rank].pop_front() {
            let one = self.rooms.get_mut(&room).filter(|one| one.state == State::Queued(rank));
            let Some(one) = one else { continue };
            let (span, is_alone) = one.next(link, now);
            one.places = match span {
                Span::Nothing | Span::Skip => 0,
                // It may be this one that the connection does not bear.
                _ if is_alone => FETCHES,
                _ => 1,
            };
            if rank == URGENT && one.places > 0 {
                // Others that only look do not wait for it.
                one.state = State::Queued(FETCHED);
                self.queues[FETCHED].push_back(room);
                continue;
            }
            // The first one that waits for a fetch gets the places that become free.
            let is_behind = rank == OTHERS && !self.queues[FETCHED].is_empty();
            let is_full = if one.places == 0 {
                self.looks >= LOOKS
            } else {
                is_behind || self.fetches + one.places > FETCHES
            };
            if is_full {
                self.queues[rank].push_front(room);
                return None;
            }
            self.fetches += one.places;
            self.looks += usize::from(one.places == 0);
            one.questions.iter_mut().for_each(|question| question.rounds += 1);
            (one.state, one.span) = (State::Asked, Some(span));
            let (history, breaks) = (Arc::clone(&one.history), one.breaks);
            return Some(Due { room, history, span, breaks });
        }
        None
    }

    /// The broker has answered for this room, or has refused to.
    fn take_answered(&mut self, room: &RoomName) -> Option<&mut Room> {
        let one = self.rooms.get_mut(room).filter(|one| one.state == State::Asked)?;
        self.fetches -= one.places;
        self.looks -= usize::from(one.places == 0);
        one.state = State::Waiting;
        Some(one)
    }

    /// The broker has answered for this room, with `breaks` if it was asked so. Returns those who need not wait any longer.
    pub fn answered(
        &mut self,
        room: &RoomName,
        breaks: bool,
        link: u64,
        now: Instant,
    ) -> Vec<Ticket> {
        let Some(one) = self.take_answered(room) else { return Vec::new() };
        let is_broken = breaks && mem::take(&mut one.breaks);
        one.refused = 0;
        let history = Arc::clone(&one.history);
        let most = ROUNDS + 2 * history.limits().messages;
        let is_done = |question: &Question| {
            let missing = history.missing(link, Some(question.wanted), now);
            // A position that the history never had.
            let is_elsewhere = matches!(missing, Some(Span::From(_)))
                && question.rounds > 0
                && history.is_current(link);
            question.rounds > most || missing.is_none() || is_elsewhere
        };
        let done = one.questions.extract_if(.., |question| is_done(question));
        let done: Vec<Ticket> = done.map(|question| question.ticket).collect();
        self.questions -= done.len();
        self.breaks -= usize::from(is_broken);
        let Fetches { rooms, queues, .. } = self;
        match rooms.get_mut(room) {
            Some(one) if one.breaks => {}
            Some(one) if one.missing(link, now).is_some() => one.queue(room, queues),
            _ => drop(rooms.remove(room)),
        }
        done
    }

    /// The broker has refused the fetch of this room. `waits`: it refuses all, and members wait until that is over. `stays`: the
    /// room has members. Returns those who learn of it, and whether it is over for them.
    pub fn refused(&mut self, room: &RoomName, waits: bool, stays: bool) -> (Vec<Question>, bool) {
        let Some(one) = self.take_answered(room) else { return (Vec::new(), true) };
        one.refused += u32::from(!waits);
        let is_over = one.refused >= MOST_REFUSED || !stays;
        let gone = if is_over { mem::take(&mut one.questions) } else { one.gives_up() };
        if one.questions.is_empty() && !stays && !one.breaks {
            self.rooms.remove(room);
        }
        self.questions -= gone.len();
        (gone, is_over)
    }

    /// The broker has answered a heartbeat.
    pub fn beats(&mut self) {
        for (room, one) in &mut self.rooms {
            if one.state == State::Waiting {
                one.queue(room, &mut self.queues);
            }
        }
    }

    /// A heartbeat is sent. Returns members that have waited, and do not know yet that it takes longer.
    pub fn take_members(&mut self) -> Vec<Question> {
        self.take(|_, _| true, |asker| asker == Asker::Member)
    }

    /// The broker has refused a heartbeat, so rooms that wait for the next one wait for longer; or all for which it was not
    /// asked, if `is_blocked`. Returns their backends.
    pub fn take_backends(&mut self, is_blocked: bool) -> Vec<Question> {
        let waits = |state| state == State::Waiting || is_blocked && state != State::Asked;
        self.take(|_, state| waits(state), |asker| asker == Asker::Backend)
    }

    /// The connection is lost. Returns those who learn of it, and all of rooms without members. Rooms for which nobody waits
    /// are forgotten, unless their histories must not continue.
    pub fn lose(&mut self, has_members: impl Fn(&RoomName) -> bool) -> Vec<Question> {
        let mut gone = Vec::new();
        let Fetches { rooms, queues, .. } = self;
        queues.iter_mut().for_each(VecDeque::clear);
        (self.fetches, self.looks) = (0, 0);
        rooms.retain(|room, one| {
            if has_members(room) {
                gone.extend(one.gives_up());
            } else {
                gone.append(&mut one.questions);
            }
            if one.state == State::Asked
                && let Some(span) = one.span
            {
                one.history.lost(span, one.places == FETCHES);
            }
            one.state = State::Waiting;
            if !one.breaks && !one.questions.is_empty() {
                one.queue(room, queues);
            }
            one.breaks || !one.questions.is_empty()
        });
        self.questions -= gone.len();
        gone
    }
}

impl Room {
    fn new(history: Arc<RoomHistory>) -> Room {
        Room {
            history,
            questions: Vec::new(),
            breaks: false,
            is_urgent: false,
            state: State::New,
            span: None,
            places: 0,
            refused: 0,
        }
    }

    fn queue(&mut self, room: &RoomName, queues: &mut [VecDeque<RoomName>; 3]) {
        let rank = if self.is_urgent { URGENT } else { OTHERS };
        self.state = State::Queued(rank);
        queues[rank].push_back(room.clone());
    }

    /// What must be fetched: for the copy itself, and for those who wait.
    fn missing(&self, link: u64, now: Instant) -> Option<Span> {
        let own = self.history.missing(link, None, now);
        own.or_else(|| {
            let of = |one: &Question| self.history.missing(link, Some(one.wanted), now);
            self.questions.iter().find_map(of)
        })
    }

    /// What the broker is asked for next, and whether for nothing else meanwhile.
    fn next(&self, link: u64, now: Instant) -> (Span, bool) {
        if !self.is_urgent && self.span.is_none() {
            // Most likely, nothing is missing.
            return (Span::Nothing, false);
        }
        // Also if nothing is missing: those that wait are answered with the answer.
        self.history.tries(self.missing(link, now).unwrap_or(Span::Nothing))
    }

    /// Those who do not know yet that it takes longer.
    fn gives_up(&mut self) -> Vec<Question> {
        self.questions.extract_if(.., |one| one.asker != Asker::Waiting).collect()
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::history::{Histories, HistoryLimits, Seen};

    const LIMITS: HistoryLimits = HistoryLimits { messages: 100, ..HistoryLimits::NONE };

    fn ticket(count: u64) -> Ticket {
        Ticket { core: 0, count }
    }

    #[test]
    fn however_many_wait_there_is_one_fetch_for_a_room() {
        let (histories, now) = (Histories::mirroring(Arc::default()), Instant::now());
        let mut fetches = Fetches::default();
        let room = RoomName::of("a");
        let history = histories.open(&room, LIMITS, now).unwrap();
        for count in 0..100 {
            let wanted = Wanted::Newest(0);
            let asker = if count == 0 { Asker::Backend } else { Asker::Waiting };
            let question = Question::new(ticket(count), wanted, asker);
            assert!(fetches.ask(&room, Arc::clone(&history), question));
        }
        let due = fetches.next(1, now).unwrap();
        assert_eq!((due.span, due.breaks), (Span::Nothing, false));
        assert!(fetches.next(1, now).is_none());
        // Refused: a backend learns of it, members wait.
        let (gone, is_over) = fetches.refused(&room, false, true);
        assert_eq!((gone[0].ticket, gone.len(), is_over), (ticket(0), 1, false));
        assert!(fetches.next(1, now).is_none());
        fetches.beats();
        let due = fetches.next(1, now).unwrap();
        let epoch = histories.new_epoch();
        let seen = Seen { epoch, top: 3, is_all: true };
        due.history.learns(1, due.span, (&seen, Vec::new()), now);
        assert_eq!(fetches.answered(&room, false, 1, now).len(), 99);
        assert!(fetches.next(1, now).is_none() && fetches.rooms.is_empty());
        assert_eq!((fetches.fetches, fetches.looks, fetches.questions), (0, 0, 0));
    }

    #[test]
    fn nobody_waits_for_ever_for_a_room_that_the_broker_refuses() {
        let (histories, now) = (Histories::mirroring(Arc::default()), Instant::now());
        let mut fetches = Fetches::default();
        let room = RoomName::of("a");
        let history = histories.open(&room, LIMITS, now).unwrap();
        let (ticket, wanted) = (ticket(7), Wanted::Newest(0));
        let question = Question::new(ticket, wanted, Asker::Waiting);
        fetches.ask(&room, history, question);
        let mut refused = |waits| {
            fetches.beats();
            assert!(fetches.next(1, now).is_some());
            fetches.refused(&room, waits, true)
        };
        let none = (Vec::new(), false);
        (0..99).for_each(|_| assert_eq!(refused(true), none, "it refuses everything"));
        (1..MOST_REFUSED).for_each(|_| assert_eq!(refused(false), none));
        assert_eq!(refused(false).0[0].ticket, ticket);
        assert_eq!(fetches.questions, 0);
    }

    #[test]
    fn a_fetch_that_loses_the_connection_twice_is_given_up() {
        let (histories, now) = (Histories::mirroring(Arc::default()), Instant::now());
        let mut fetches = Fetches::default();
        let room = RoomName::of("a");
        let history = histories.open(&room, LIMITS, now).unwrap();
        let seen = Seen { epoch: histories.new_epoch(), top: 3, is_all: true };
        history.learns(1, Span::Nothing, (&seen, Vec::new()), now);
        fetches.add(&room, Arc::clone(&history), Cause::Heard);
        for link in 2..4 {
            assert_eq!(fetches.next(link, now).unwrap().span, Span::From(4));
            fetches.lose(|_| true);
            fetches.add(&room, Arc::clone(&history), Cause::Heard);
        }
        let due = fetches.next(4, now).unwrap();
        assert_eq!(due.span, Span::Skip);
        history.learns(4, due.span, (&Seen { top: 9, ..seen }, Vec::new()), now);
        fetches.answered(&room, false, 4, now);
        assert!(fetches.rooms.is_empty(), "it is current");
        // Older messages: those behind the newest one are fetched between.
        let asked = crate::hub::history::Asked { epoch: Some(seen.epoch), offset: 9 };
        let seen = Seen { top: 50, is_all: true, ..seen };
        history.learns(4, Span::Skip, (&seen, Vec::new()), now);
        let epoch = histories.new_epoch();
        let seen = Seen { epoch, ..seen };
        history.learns(4, Span::Nothing, (&seen, Vec::new()), now);
        let wanted = Wanted::Behind(crate::hub::history::Asked { epoch: Some(epoch), ..asked });
        fetches.ask(&room, Arc::clone(&history), Question::new(ticket(1), wanted, Asker::Waiting));
        for link in 4..6 {
            let due = fetches.next(link, now).unwrap();
            if due.span == Span::From(51) {
                history.learns(link, due.span, (&seen, Vec::new()), now);
                assert_eq!(fetches.answered(&room, false, link, now), []);
                assert_eq!(fetches.next(link, now).unwrap().span, Span::Down(50, 10));
            }
            fetches.lose(|_| true);
        }
        assert_eq!(fetches.next(6, now).unwrap().span, Span::From(51));
        history.learns(6, Span::From(51), (&seen, Vec::new()), now);
        assert_eq!(fetches.answered(&room, false, 6, now), []);
        assert_eq!(fetches.next(6, now).unwrap().span, Span::Skip);
        history.learns(6, Span::Skip, (&seen, Vec::new()), now);
        assert_eq!(fetches.answered(&room, false, 6, now), [ticket(1)], "it gets a gap");
    }

    #[test]
    fn a_position_that_the_history_never_had_is_asked_for_once() {
        let (histories, now) = (Histories::mirroring(Arc::default()), Instant::now());
        let mut fetches = Fetches::default();
        let room = RoomName::of("a");
        let history = histories.open(&room, LIMITS, now).unwrap();
        let epoch = histories.new_epoch();
        let seen = Seen { epoch, top: 3, is_all: true };
        history.learns(1, Span::Nothing, (&seen, Vec::new()), now);
        let wanted = Wanted::Behind(crate::hub::history::Asked { epoch: Some(epoch), offset: 9 });
        let ask = |fetches: &mut Fetches, count| {
            fetches.ask(
                &room,
                Arc::clone(&history),
                Question::new(ticket(count), wanted, Asker::Member),
            );
        };
        ask(&mut fetches, 1);
        assert_eq!(fetches.next(1, now).unwrap().span, Span::From(4));
        // This one comes too late for the question to the broker.
        ask(&mut fetches, 2);
        history.learns(1, Span::From(4), (&seen, Vec::new()), now);
        assert_eq!(fetches.answered(&room, false, 1, now), [ticket(1)]);
        assert!(fetches.next(1, now).is_some());
        assert_eq!(fetches.answered(&room, false, 1, now), [ticket(2)]);
        assert!(fetches.rooms.is_empty());
    }

    /// Adds rooms with a copy in which messages may be missing.
    fn add_known(fetches: &mut Fetches, histories: &Histories, names: &[&str], cause: Cause) {
        let now = Instant::now();
        for name in names {
            let room = RoomName::of(name);
            let history = histories.open(&room, LIMITS, now).unwrap();
            let seen = Seen { epoch: histories.new_epoch(), top: 3, is_all: true };
            history.learns(1, Span::Nothing, (&seen, Vec::new()), now);
            history.doubts();
            fetches.add(&room, history, cause);
        }
    }

    /// What the broker is asked for next.
    fn all_next(fetches: &mut Fetches) -> Vec<Due> {
        std::iter::from_fn(|| fetches.next(1, Instant::now())).collect()
    }

    fn names(due: &[Due]) -> Vec<&str> {
        due.iter().map(|due| due.room.as_str()).collect()
    }

    #[test]
    fn a_member_does_not_wait_behind_100000_rooms_whose_turn_it_is() {
        let (histories, now) = (Histories::mirroring(Arc::default()), Instant::now());
        let mut fetches = Fetches::default();
        let all: Vec<String> = (0..100_000).map(|n| n.to_string()).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        add_known(&mut fetches, &histories, &all, Cause::Turn);
        let looks = all_next(&mut fetches);
        assert!(looks.len() == LOOKS && looks.iter().all(|due| due.span == Span::Nothing));
        let ask = |fetches: &mut Fetches, name: &str| {
            let room = RoomName::of(name);
            let history = histories.open(&room, LIMITS, now).unwrap();
            let question = Question::new(ticket(1), Wanted::Newest(0), Asker::Member);
            assert!(fetches.ask(&room, history, question));
        };
        // Two in rooms that wait for their turn, and one in a new room.
        ["70000", "80000", "new"].into_iter().for_each(|name| ask(&mut fetches, name));
        let fetched = all_next(&mut fetches);
        assert_eq!(names(&fetched), ["70000", "80000"], "fetches have places of their own");
        fetches.answered(&looks[0].room, false, 1, now);
        assert_eq!(names(&all_next(&mut fetches)), ["new"]);
        // A few at once, and each room once.
        add_known(&mut fetches, &histories, &["a", "b", "c"], Cause::Heard);
        assert_eq!(names(&all_next(&mut fetches)), ["a", "b"]);
        fetches.lose(|_| true);
        assert_eq!(names(&all_next(&mut fetches)), [""; 0], "the others are forgotten");
    }

    #[test]
    fn a_room_that_may_be_too_much_for_the_connection_is_fetched_alone() {
        let histories = Histories::mirroring(Arc::default());
        let mut fetches = Fetches::default();
        let all = ["a", "b", "c"];
        add_known(&mut fetches, &histories, &all, Cause::Heard);
        assert_eq!(all_next(&mut fetches).len(), 3);
        fetches.lose(|_| true);
        add_known(&mut fetches, &histories, &["d"], Cause::Heard);
        let add_all = |fetches: &mut Fetches, names: &[&str]| {
            for name in names {
                let room = RoomName::of(name);
                fetches.add(&room, histories.kept(&room).unwrap(), Cause::Heard);
            }
        };
        add_all(&mut fetches, &all);
        assert_eq!(names(&all_next(&mut fetches)), ["d"]);
        fetches.answered(&RoomName::of("d"), false, 1, Instant::now());
        let due = all_next(&mut fetches);
        assert_eq!((names(&due), due[0].span), (vec!["a"], Span::From(4)));
        // The connection is lost again, and it was this one. The others are not given up.
        fetches.lose(|_| true);
        add_all(&mut fetches, &all);
        let due = all_next(&mut fetches);
        let spans: Vec<Span> = due.iter().map(|due| due.span).collect();
        assert_eq!((names(&due), spans), (vec!["a", "b"], vec![Span::Skip, Span::From(4)]));
    }

    #[test]
    fn whose_turn_it_is_takes_no_place_from_a_room_that_needs_all() {
        let histories = Histories::mirroring(Arc::default());
        let mut fetches = Fetches::default();
        add_known(&mut fetches, &histories, &["a"], Cause::Heard);
        all_next(&mut fetches);
        fetches.lose(|_| true);
        // These were looked at, and messages are missing.
        let turns = ["b", "c", "d", "e", "f"];
        add_known(&mut fetches, &histories, &turns, Cause::Turn);
        for due in all_next(&mut fetches) {
            fetches.answered(&due.room, false, 1, Instant::now());
        }
        assert_eq!(names(&all_next(&mut fetches)), turns[..FETCHES]);
        // A member joins the first room, which is fetched alone, and another one joins one behind it.
        let room = RoomName::of("a");
        fetches.add(&room, histories.kept(&room).unwrap(), Cause::Heard);
        add_known(&mut fetches, &histories, &["g"], Cause::Heard);
        for name in &turns[..FETCHES - 1] {
            fetches.answered(&RoomName::of(name), false, 1, Instant::now());
            assert_eq!(names(&all_next(&mut fetches)), [""; 0], "a place is kept");
        }
        fetches.answered(&RoomName::of(turns[FETCHES - 1]), false, 1, Instant::now());
        assert_eq!(names(&all_next(&mut fetches)), ["a"]);
    }

    #[test]
    fn a_backend_does_not_wait_while_the_broker_refuses_everything() {
        let (histories, now) = (Histories::mirroring(Arc::default()), Instant::now());
        let mut fetches = Fetches::default();
        let ask = |fetches: &mut Fetches, name: &str, count, asker| {
            let room = RoomName::of(name);
            let history = histories.open(&room, LIMITS, now).unwrap();
            fetches.ask(&room, history, Question::new(ticket(count), Wanted::Newest(9), asker));
        };
        let tickets = |gone: Vec<Question>| -> Vec<u64> {
            gone.into_iter().map(|question| question.ticket.count).collect()
        };
        ask(&mut fetches, "a", 1, Asker::Waiting);
        let due = fetches.next(1, now).unwrap();
        fetches.refused(&due.room, true, true);
        // The room waits for a heartbeat that is not refused.
        ask(&mut fetches, "a", 2, Asker::Backend);
        ask(&mut fetches, "b", 3, Asker::Backend);
        assert_eq!(tickets(fetches.take_backends(false)), [2]);
        assert_eq!(tickets(fetches.take_backends(true)), [3], "nothing is asked for");
        ask(&mut fetches, "c", 4, Asker::Backend);
        assert_eq!(names(&all_next(&mut fetches)), ["b", "c"]);
        assert_eq!(tickets(fetches.take_backends(true)), [0; 0], "it was asked for");
        assert_eq!(fetches.questions, 2);
    }

    #[test]
    fn members_that_have_left_do_not_keep_others_from_waiting() {
        let (histories, now) = (Histories::mirroring(Arc::default()), Instant::now());
        let mut fetches = Fetches::default();
        let ask = |fetches: &mut Fetches, name: &str, count| {
            let room = RoomName::of(name);
            let history = histories.open(&room, LIMITS, now).unwrap();
            let question = Question::new(ticket(count), Wanted::Newest(0), Asker::Waiting);
            fetches.ask(&room, history, question)
        };
        let stays = |room: &RoomName| room.as_str() == "stays";
        for count in 0..MOST as u64 {
            assert!(fetches.make_room(now, stays).is_empty());
            assert!(ask(&mut fetches, if count % 2 == 0 { "left" } else { "stays" }, count));
        }
        assert!(!ask(&mut fetches, "new", 0));
        assert_eq!(fetches.make_room(now, stays).len(), MOST / 2);
        (0..MOST as u64 / 2).for_each(|count| assert!(ask(&mut fetches, "left", count)));
        assert_eq!(fetches.make_room(now, stays).len(), 0, "not twice in a second");
        assert_eq!(fetches.make_room(now + APART, stays).len(), MOST / 2);
        assert!(ask(&mut fetches, "left", 7));
        assert_eq!(fetches.lose(stays).len(), 1, "members that wait know that it takes longer");
        assert_eq!(fetches.questions, MOST / 2);
    }

    #[test]
    fn an_epoch_ends_once_with_each_heartbeat() {
        let (histories, now) = (Histories::mirroring(Arc::default()), Instant::now());
        let mut fetches = Fetches::default();
        let room = RoomName::of("a");
        let history = histories.open(&room, LIMITS, now).unwrap();
        let add = |fetches: &mut Fetches, cause| fetches.add(&room, Arc::clone(&history), cause);
        let mut breaks = 0;
        for _ in 0..5 {
            for _ in 0..100 {
                add(&mut fetches, Cause::Hole);
                // Nothing else is asked for meanwhile: it would come before the gap.
                add(&mut fetches, Cause::Heard);
                assert!(all_next(&mut fetches).is_empty());
            }
            assert_eq!(fetches.breaks(), 1);
            fetches.beats();
            add(&mut fetches, Cause::Hole);
            for due in all_next(&mut fetches) {
                breaks += usize::from(due.breaks);
                add(&mut fetches, Cause::Hole);
                fetches.answered(&room, due.breaks, 1, now);
            }
        }
        assert_eq!((breaks, fetches.breaks()), (5, 0));
        // A loss changes nothing.
        add(&mut fetches, Cause::Hole);
        fetches.lose(|_| true);
        assert!(all_next(&mut fetches).is_empty());
        fetches.beats();
        assert!(all_next(&mut fetches)[0].breaks);
    }

    #[test]
    fn those_that_wait_get_what_there_is_after_as_many_answers_as_there_are_messages() {
        let (histories, now) = (Histories::mirroring(Arc::default()), Instant::now());
        let mut fetches = Fetches::default();
        let room = RoomName::of("a");
        let history = histories.open(&room, LIMITS, now).unwrap();
        let mut waits = 0;
        for count in 0..1_000 {
            // Somebody comes each time, and answers are of no use.
            let question = Question::new(ticket(count), Wanted::Newest(0), Asker::Waiting);
            fetches.ask(&room, Arc::clone(&history), question);
            assert_eq!(all_next(&mut fetches).len(), 1);
            waits += 1;
            waits -= fetches.answered(&room, false, 1, now).len();
        }
        assert_eq!(waits, ROUNDS + 2 * LIMITS.messages);
    }
}
