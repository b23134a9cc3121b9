//! Which histories a hub fetches from the broker, and who waits for them. Of each room there is one fetch at a time,
//! however many wait, and a few rooms have one at once.

use crate::hub::history::{Asker, RoomHistory, Span, Wanted};
use regatta_engine::{RoomName, Ticket};
use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    sync::Arc,
    time::Instant,
};

/// Fetches at once. Each has at most 256 KiB and one message.
const AT_ONCE: usize = 4;
/// Maximum number of members and backends that wait.
const MOST: usize = 1 << 16;
/// Fetches of one room for the same who wait. Then they get what there is.
const ROUNDS: usize = 10_000;
/// So many times the broker may refuse a fetch for a reason of the room, once with each heartbeat. Then nobody waits.
const MOST_REFUSED: u32 = 3;

/// A member or a backend that waits for a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub ticket: Ticket,
    pub wanted: Wanted,
    pub asker: Asker,
    /// The broker was asked after it has come.
    was_asked: bool,
}

impl Question {
    pub fn new(ticket: Ticket, wanted: Wanted, asker: Asker) -> Question {
        Question { ticket, wanted, asker, was_asked: false }
    }
}

/// A fetch that is due.
#[derive(Debug)]
pub(in super::super) struct Due {
    pub room: RoomName,
    pub history: Arc<RoomHistory>,
    pub span: Span,
    /// A message was published without a place in the history.
    pub breaks: bool,
}

#[derive(Debug)]
struct Room {
    history: Arc<RoomHistory>,
    questions: Vec<Question>,
    breaks: bool,
    state: State,
    rounds: usize,
    /// What the broker was asked for last.
    span: Span,
    /// How often in turn a fetch was refused.
    refused: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is in the queue.
    Queued,
    /// The broker was asked.
    Asked,
    /// The broker has refused to answer.
    Refused,
}

/// The rooms whose histories are fetched.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    /// In order, so that a simulation is the same each time.
    rooms: BTreeMap<RoomName, Room>,
    queue: VecDeque<RoomName>,
    asked: usize,
    questions: usize,
}

impl Fetches {
    /// The room is fetched. `breaks`: see [`Due::breaks`].
    pub fn add(&mut self, room: &RoomName, history: Arc<RoomHistory>, breaks: bool) {
        let one = self.rooms.entry(room.clone()).or_insert_with(|| {
            self.queue.push_back(room.clone());
            let (history, questions, state) = (Arc::clone(&history), Vec::new(), State::Queued);
            Room { history, questions, breaks, state, rounds: 0, span: Span::Nothing, refused: 0 }
        });
        one.history = history;
        one.breaks |= breaks;
    }

    /// Somebody waits for a room. Returns false if there is no place.
    pub fn ask(&mut self, room: &RoomName, history: Arc<RoomHistory>, question: Question) -> bool {
        if self.questions >= MOST {
            return false;
        }
        self.add(room, history, false);
        if let Some(one) = self.rooms.get_mut(room) {
            one.questions.push(question);
            one.rounds = 0;
            self.questions += 1;
        }
        true
    }

    /// The next fetch, unless there are enough at once. `link`: the number of the connection.
    pub fn next(&mut self, link: u64, now: Instant) -> Option<Due> {
        while self.asked < AT_ONCE
            && let Some(room) = self.queue.pop_front()
        {
            let Some(one) = self.rooms.get_mut(&room) else { continue };
            let (history, breaks) = (Arc::clone(&one.history), one.breaks);
            // Also if nothing is missing: what waits is answered with the answer.
            let span = history.tries(one.missing(link, now).unwrap_or(Span::Nothing));
            one.span = span;
            one.questions.iter_mut().for_each(|question| question.was_asked = true);
            one.state = State::Asked;
            one.rounds += 1;
            self.asked += 1;
            return Some(Due { room, history, span, breaks });
        }
        None
    }

    /// The broker has answered the fetch of this room, with `breaks` if it was asked so. Returns those who need not wait any
    /// longer.
    pub fn answered(
        &mut self,
        room: &RoomName,
        breaks: bool,
        link: u64,
        now: Instant,
    ) -> Vec<Ticket> {
        self.asked = self.asked.saturating_sub(1);
        let Some(one) = self.rooms.get_mut(room) else { return Vec::new() };
        one.breaks &= !breaks;
        one.refused = 0;
        let (history, is_over) = (Arc::clone(&one.history), one.rounds > ROUNDS);
        let is_done = |question: &Question| {
            let missing = history.missing(link, Some(question.wanted), now);
            // A position that the history never had.
            let is_elsewhere = matches!(missing, Some(Span::From(_)))
                && question.was_asked
                && history.is_current(link);
            is_over || missing.is_none() || is_elsewhere
        };
        let done: Vec<Ticket> = one
            .questions
            .extract_if(.., |question| is_done(question))
            .map(|one| one.ticket)
            .collect();
        self.questions -= done.len();
        if one.missing(link, now).is_some() || one.breaks {
            one.state = State::Queued;
            self.queue.push_back(room.clone());
        } else {
            self.rooms.remove(room);
        }
        done
    }

    /// The broker has refused the fetch of this room. `waits`: it refuses all, and members wait until that is over. `stays`: the
    /// room has members. Returns those who learn of it, and whether it is over for them.
    pub fn refused(&mut self, room: &RoomName, waits: bool, stays: bool) -> (Vec<Question>, bool) {
        self.asked = self.asked.saturating_sub(1);
        let Some(one) = self.rooms.get_mut(room) else { return (Vec::new(), true) };
        one.state = State::Refused;
        one.refused += u32::from(!waits);
        let is_over = one.refused >= MOST_REFUSED;
        let gone = if is_over { mem::take(&mut one.questions) } else { one.gives_up() };
        if one.questions.is_empty() && !stays && !one.breaks {
            self.rooms.remove(room);
        }
        self.questions -= gone.len();
        (gone, is_over)
    }

    /// What was refused is tried again.
    pub fn retry(&mut self) {
        for (room, one) in &mut self.rooms {
            if one.state == State::Refused {
                one.state = State::Queued;
                self.queue.push_back(room.clone());
            }
        }
    }

    /// The connection is lost. Returns those who learn of it. Rooms for which nobody waits are forgotten, unless
    /// their histories must not continue.
    pub fn lose(&mut self) -> Vec<Question> {
        let mut gone = Vec::new();
        self.queue.clear();
        self.asked = 0;
        self.rooms.retain(|room, one| {
            gone.extend(one.gives_up());
            if one.state == State::Asked {
                one.history.lost(one.span);
            }
            let stays = one.breaks || !one.questions.is_empty();
            if stays {
                one.state = State::Queued;
                self.queue.push_back(room.clone());
            }
            stays
        });
        self.questions -= gone.len();
        gone
    }
}

impl Room {
    /// What must be fetched: for the copy itself, and for those who wait.
    fn missing(&self, link: u64, now: Instant) -> Option<Span> {
        let own = self.history.missing(link, None, now);
        own.or_else(|| {
            let of = |one: &Question| self.history.missing(link, Some(one.wanted), now);
            self.questions.iter().find_map(of)
        })
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
        fetches.retry();
        let due = fetches.next(1, now).unwrap();
        let epoch = histories.new_epoch();
        let seen = Seen { epoch, top: 3, is_all: true };
        due.history.learns(1, due.span, (&seen, Vec::new()), now);
        assert_eq!(fetches.answered(&room, false, 1, now).len(), 99);
        assert!(fetches.next(1, now).is_none() && fetches.rooms.is_empty());
        assert_eq!((fetches.asked, fetches.questions), (0, 0));
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
            fetches.retry();
            assert!(fetches.next(1, now).is_some());
            fetches.refused(&room, waits, false)
        };
        let none = (Vec::new(), false);
        (0..99).for_each(|_| assert_eq!(refused(true), none, "it refuses everything"));
        (1..MOST_REFUSED).for_each(|_| assert_eq!(refused(false), none));
        assert_eq!(refused(false).0[0].ticket, ticket);
        assert!(fetches.rooms.is_empty() && fetches.questions == 0);
    }

    #[test]
    fn a_fetch_that_loses_the_connection_twice_is_given_up() {
        let (histories, now) = (Histories::mirroring(Arc::default()), Instant::now());
        let mut fetches = Fetches::default();
        let room = RoomName::of("a");
        let history = histories.open(&room, LIMITS, now).unwrap();
        let seen = Seen { epoch: histories.new_epoch(), top: 3, is_all: true };
        history.learns(1, Span::Nothing, (&seen, Vec::new()), now);
        fetches.add(&room, Arc::clone(&history), false);
        for link in 2..4 {
            assert_eq!(fetches.next(link, now).unwrap().span, Span::From(4));
            fetches.lose();
            fetches.add(&room, Arc::clone(&history), false);
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
            fetches.lose();
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

    #[test]
    fn a_few_rooms_are_fetched_at_once_and_a_loss_begins_again() {
        let (histories, now) = (Histories::mirroring(Arc::default()), Instant::now());
        let mut fetches = Fetches::default();
        for number in 0..10 {
            let room = RoomName::of(&number.to_string());
            let history = histories.open(&room, LIMITS, now).unwrap();
            fetches.add(&room, history, number == 0);
        }
        assert_eq!((0..10).filter_map(|_| fetches.next(1, now)).count(), AT_ONCE);
        assert_eq!(fetches.lose(), []);
        let due = fetches.next(2, now).unwrap();
        assert!(due.breaks && fetches.next(2, now).is_none(), "the others are forgotten");
        fetches.answered(&due.room, true, 2, now);
        assert!(!fetches.next(2, now).unwrap().breaks, "nothing is known yet");
    }
}
