//! How far a member is in the history of its room.

use super::{
    position::{Asked, Epoch, Position},
    room::{Extent, Found, RoomHistory},
};
use crate::hub::broadcast::Broadcast;
use std::{collections::VecDeque, mem, sync::Arc, time::Instant};

/// How far a member is. All messages that it gets pass [`Follower::next`], in the order of their offsets, so it is there
/// that nothing is left out in silence.
#[derive(Debug)]
pub(in super::super) struct Follower {
    history: Arc<RoomHistory>,
    /// The epoch of its position, and the turn of the history in which it has it.
    epoch: Epoch,
    turn: u64,
    /// The history may have another turn.
    is_moved: bool,
    /// The first message that is for it.
    start: u64,
    /// The last message of before it joined, if its client has named a position.
    joined: u64,
    /// The first message that is not in its output.
    next: u64,
    /// The last message that it knows to exist.
    heard: u64,
    /// Results of its own messages that are not in its output yet.
    results: VecDeque<Waiting>,
}

/// The result of an own message, which waits for that message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Waiting {
    pub offset: u64,
    pub ticket: u64,
    /// For how many members it was queued.
    pub members: u32,
}

/// Where a member begins: what is behind this position follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Start {
    pub position: Position,
    /// It has missed something that it asked for.
    pub has_gap: bool,
}

/// What a member gets next.
#[derive(Debug)]
pub(in super::super) enum Step {
    Message(Broadcast),
    /// Messages up to this position are gone. With the turn of the history in which the position is.
    Gap(Position, u64),
}

impl Follower {
    /// A member joins the room. `asked`: the position that its client names.
    pub fn join(
        history: &Arc<RoomHistory>,
        asked: Option<Asked>,
        now: Instant,
    ) -> (Follower, Start) {
        let (mut follower, start) = Follower::begin(history, asked, now);
        if asked.is_some() {
            let share = history.share();
            let counter = if start.has_gap { &share.failed_recoveries } else { &share.recoveries };
            counter.add(1);
            follower.joined = follower.heard;
        }
        (follower, start)
    }

    /// A member begins behind this position, which is not that of its client.
    pub fn begin(
        history: &Arc<RoomHistory>,
        asked: Option<Asked>,
        now: Instant,
    ) -> (Follower, Start) {
        let Extent { epoch, turn, oldest, top, first } = history.extent(now);
        // The first message that it does not have, and whether one before it may be missing.
        let (start, is_elsewhere) = match asked {
            None => (top + 1, false),
            Some(Asked { epoch: of, offset }) if of == Some(epoch) && offset <= top => {
                (offset + 1, false)
            }
            // A position that this history never had.
            Some(Asked { epoch: of, .. }) if of == Some(epoch) => (top + 1, true),
            // It cannot know any message of this history.
            Some(_) => (first, true),
        };
        let next = start.max(oldest);
        let has_gap = is_elsewhere || next > start;
        let (history, results) = (Arc::clone(history), VecDeque::new());
        let (joined, heard, is_moved) = (0, top, false);
        let follower =
            Follower { history, epoch, turn, is_moved, start, joined, next, heard, results };
        (follower, Start { position: Position { epoch, offset: next - 1 }, has_gap })
    }

    /// The history of its room.
    pub fn history(&self) -> &RoomHistory {
        &self.history
    }

    /// A push arrived. Returns whether the member should get its message: it is of this history, and behind the position
    /// at which the member began.
    pub fn hears(&mut self, push: &Broadcast) -> bool {
        let Some(Position { epoch, offset }) = push.position() else { return false };
        if epoch != self.epoch {
            self.is_moved = self.history.turn_and_top().0 != self.turn;
            return self.is_moved;
        }
        let is_for_it = offset >= self.start;
        if is_for_it {
            self.heard = self.heard.max(offset);
        }
        is_for_it
    }

    /// Looks for messages whose pushes came before it had joined, and whether the history has changed.
    pub fn looks(&mut self) {
        let (turn, top) = self.history.turn_and_top();
        self.is_moved = turn != self.turn;
        if !self.is_moved {
            self.heard = self.heard.max(top);
        }
    }

    /// Whether there is something that is not in its output.
    pub fn is_behind(&self) -> bool {
        self.is_moved || self.next <= self.heard
    }

    /// What it gets next, if it is behind; the same again until [`Follower::took`]. `push`: one that has just come.
    pub fn next(&self, push: Option<&Broadcast>) -> Option<Step> {
        if !self.is_behind() {
            return None;
        }
        let epoch = self.epoch;
        let next = Position { epoch, offset: self.next };
        if let Some(push) = push.filter(|push| push.position() == Some(next)) {
            return Some(Step::Message(push.clone()));
        }
        Some(match self.history.find(self.next, self.turn) {
            Found::Message(message) => Step::Message(message),
            Found::Gone(oldest) => Step::Gap(Position { epoch, offset: oldest - 1 }, self.turn),
            Found::Moved(to, turn) => Step::Gap(to, turn),
        })
    }

    /// The history has begun again.
    fn moves(&mut self, to: Position, turn: u64) {
        (self.epoch, self.turn, self.is_moved) = (to.epoch, turn, false);
        (self.start, self.heard) = (to.offset + 1, to.offset);
        // Messages from now on are not of before it joined.
        self.joined = 0;
        // Its own messages are in the gap.
        self.results.iter_mut().for_each(|waiting| waiting.offset = 0);
    }

    /// What [`Follower::next`] has returned is in its output.
    pub fn took(&mut self, step: &Step) {
        let share = self.history.share();
        match step {
            Step::Message(_) => {
                if self.next <= self.joined {
                    share.recovered.add(1);
                }
                self.next += 1;
            }
            Step::Gap(position, turn) => {
                share.gaps.add(1);
                if *turn != self.turn {
                    self.moves(*position, *turn);
                }
                self.next = position.offset + 1;
                self.looks();
            }
        }
    }

    /// The result of its own message is known. Returns false if it must wait, because the message is not in its output yet.
    pub fn may_answer(&mut self, waiting: Waiting) -> bool {
        let may = waiting.offset < self.next;
        if !may {
            self.results.push_back(waiting);
        }
        may
    }

    /// Its own message is at this position. Returns whether the result waits until that is in the output.
    pub fn holds(&mut self, ticket: u64, position: Position) -> bool {
        let waiting = Waiting { offset: position.offset, ticket, members: 0 };
        self.will_have(position) && !self.may_answer(waiting)
    }

    /// Whether its own message at this position will be in its output.
    fn will_have(&self, position: Position) -> bool {
        let (_, top) = self.history.turn_and_top();
        position.epoch == self.history.epoch() && position.offset <= top
    }

    /// It ends. Returns the results that have waited.
    pub fn take_results(&mut self) -> VecDeque<Waiting> {
        mem::take(&mut self.results)
    }

    /// The next result that has waited, if its message is in the output now.
    pub fn answerable(&mut self) -> Option<Waiting> {
        let next = self.next;
        self.results.pop_front_if(|waiting| waiting.offset < next)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        mirror::{Seen, Span},
        position::{Epoch, HistoryLimits},
        share::Share,
    };
    use super::*;
    use std::time::Duration;

    const EPOCH: Epoch = Epoch(7);

    fn publish(history: &RoomHistory) -> Broadcast {
        publish_at(history, Instant::now())
    }

    fn publish_at(history: &RoomHistory, now: Instant) -> Broadcast {
        let memory = Arc::default();
        history.publish(now, |at| Broadcast::kept("1", at, false, false, &memory))
    }

    /// A history with the messages from 4 to 9.
    fn history() -> Arc<RoomHistory> {
        let limits = HistoryLimits { messages: 6, ..HistoryLimits::NONE };
        let history = Arc::new(RoomHistory::new(EPOCH, limits, &Arc::new(Share::default())));
        (1..=9).for_each(|_| drop(publish(&history)));
        history
    }

    fn join(history: &Arc<RoomHistory>, asked: Option<(Option<u64>, u64)>) -> (Follower, Start) {
        let asked = asked.map(|(epoch, offset)| Asked { epoch: epoch.map(Epoch), offset });
        Follower::join(history, asked, Instant::now())
    }

    /// Takes what it gets: offsets of messages, and negative ones of gaps.
    fn take(follower: &mut Follower) -> Vec<i64> {
        let mut all = Vec::new();
        while let Some(step) = follower.next(None) {
            all.push(match &step {
                Step::Message(message) => message.position().unwrap().offset as i64,
                Step::Gap(position, _) => -(position.offset as i64),
            });
            follower.took(&step);
        }
        all
    }

    #[test]
    fn a_member_gets_what_follows_its_position_or_a_gap() {
        let history = history();
        let start = |asked| {
            let (mut follower, Start { position, has_gap }) = join(&history, asked);
            (position.offset, has_gap, take(&mut follower).first().copied())
        };
        assert_eq!(start(None), (9, false, None), "from now on");
        assert_eq!(start(Some((Some(7), 9))), (9, false, None), "nothing is missing");
        assert_eq!(start(Some((Some(7), 6))), (6, false, Some(7)));
        assert_eq!(start(Some((Some(7), 3))), (3, false, Some(4)), "all that is kept");
        assert_eq!(start(Some((Some(7), 2))), (3, true, Some(4)), "message 3 is gone");
        assert_eq!(start(Some((Some(7), 10))), (9, true, None), "a position that never was");
        assert_eq!(start(Some((Some(7), u64::MAX))), (9, true, None));
        assert_eq!(start(Some((Some(8), 6))), (3, true, Some(4)), "another history");
        assert_eq!(start(Some((None, 0))), (3, true, Some(4)));
        let share = history.share();
        assert_eq!((share.recoveries.get(), share.failed_recoveries.get()), (3, 5));
        assert_eq!(share.recovered.get(), 3 + 6 + 6 + 6 + 6);
    }

    #[test]
    fn a_push_is_for_a_member_once_and_in_order() {
        let history = history();
        let (mut follower, _) = join(&history, None);
        let [ten, eleven] = [publish(&history), publish(&history)];
        let other = RoomHistory::new(Epoch(8), HistoryLimits::NONE, &Arc::new(Share::default()));
        assert!(!follower.hears(&publish(&other)) && !follower.is_behind(), "of another history");
        assert!(follower.hears(&eleven) && take(&mut follower) == [10, 11], "it reads the first");
        assert!(follower.hears(&ten) && !follower.is_behind());
        let (mut late, _) = join(&history, None);
        assert!(!late.hears(&ten) && !late.hears(&eleven), "from before it joined");
        publish(&history);
        late.looks();
        assert_eq!(take(&mut late), [12]);
        assert!(follower.next(Some(&ten)).is_none());
    }

    #[test]
    fn what_is_gone_before_a_member_has_it_is_one_gap() {
        let (history, start) = (history(), Instant::now());
        let (mut follower, _) = join(&history, Some((Some(7), 5)));
        // Too slowly for the reserve.
        for n in 1..=10 {
            let push = publish_at(&history, start + Duration::from_secs(3 * n));
            assert!(follower.hears(&push));
        }
        assert_eq!(take(&mut follower), [-13, 14, 15, 16, 17, 18, 19]);
        assert_eq!((history.share().gaps.get(), history.share().recovered.get()), (1, 0));
    }

    #[test]
    fn a_burst_beyond_the_limit_is_no_gap_for_members_and_is_not_recovered() {
        let history = history();
        let (mut follower, _) = join(&history, Some((Some(7), 9)));
        (0..100).for_each(|_| assert!(follower.hears(&publish(&history))));
        assert_eq!(take(&mut follower), (10..=109).collect::<Vec<_>>());
        let (mut late, Start { position, has_gap }) = join(&history, Some((Some(7), 9)));
        assert_eq!((position.offset, has_gap), (103, true));
        assert_eq!(take(&mut late), (104..=109).collect::<Vec<_>>());
    }

    #[test]
    fn another_epoch_is_a_gap_also_if_there_is_no_room_for_it_at_first() {
        let (share, now) = (Arc::new(Share::default()), Instant::now());
        let history = Arc::new(RoomHistory::mirroring(HistoryLimits::NONE, &share));
        let learns = |epoch, top| {
            let seen = Seen { epoch: Epoch(epoch), top, is_all: true };
            history.learns(1, Span::Nothing, (&seen, Vec::new()), now);
        };
        learns(7, 3);
        let (mut follower, _) = join(&history, None);
        learns(8, 1);
        follower.looks();
        (0..2).for_each(|_| assert!(matches!(follower.next(None), Some(Step::Gap(..)))));
        assert_eq!(take(&mut follower), [-1]);
        assert!(!follower.is_behind());
    }

    #[test]
    fn a_result_waits_for_its_message() {
        let history = history();
        let (mut follower, _) = join(&history, Some((Some(7), 7)));
        assert!(follower.hears(&publish(&history)));
        let waiting = Waiting { offset: 10, ticket: 10, members: 3 };
        assert!(!follower.may_answer(waiting) && follower.answerable().is_none());
        assert_eq!(take(&mut follower), [8, 9, 10]);
        assert_eq!((follower.answerable(), follower.answerable()), (Some(waiting), None));
        assert!(follower.may_answer(waiting));
    }
}
