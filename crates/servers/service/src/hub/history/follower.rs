//! How far a member is in the history of its room.

use super::position::{Asked, Epoch, Position};

/// How far a member is. Every message that it gets passes [`Follower::writes`], so it is there that nothing is left
/// out in silence.
#[derive(Debug)]
pub(in super::super) struct Follower {
    epoch: Epoch,
    /// The first message that is for it.
    start: u64,
    /// The last message of before it joined.
    joined: u64,
    /// The first message that is neither in its output nor queued for it.
    next: u64,
    /// The last message that it knows to exist.
    heard: u64,
    /// The last message in its output, or that it has been notified to miss.
    written: u64,
}

/// What a push is to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Heard {
    /// Not for it: of before it joined, or of another history.
    Stranger,
    /// It has the message already.
    Known,
    /// The next message.
    Next,
    /// A later message: the ones before it are in the history.
    Ahead,
}

/// What a member gets first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Start {
    /// The messages behind this one follow.
    pub position: Position,
    /// It has missed something that it asked for.
    pub has_gap: bool,
}

impl Follower {
    /// A member joins the room whose history has these `top` and `oldest` messages (as in
    /// [`Log`](super::log::Log)). `asked`: the position that its client names.
    pub fn join(epoch: Epoch, top: u64, oldest: u64, asked: Option<Asked>) -> (Follower, Start) {
        // The first message that it does not have, and whether one before it may be missing.
        let (start, ends_elsewhere) = match asked {
            None => (top + 1, false),
            Some(Asked { epoch: of, offset }) if of == Some(epoch) && offset <= top => {
                (offset + 1, false)
            }
            // A position that this history never had.
            Some(Asked { epoch: of, .. }) if of == Some(epoch) => (top + 1, true),
            // It cannot know any message of this history.
            Some(_) => (1, true),
        };
        let next = start.max(oldest);
        let position = Position { epoch, offset: next - 1 };
        let follower = Follower { epoch, start, joined: top, next, heard: top, written: next - 1 };
        (follower, Start { position, has_gap: ends_elsewhere || next > start })
    }

    /// A push has come. Returns what it is.
    pub fn hears(&mut self, position: Option<Position>) -> Heard {
        let Some(Position { offset, .. }) = position.filter(|one| one.epoch == self.epoch) else {
            return Heard::Stranger;
        };
        if offset < self.start {
            return Heard::Stranger;
        }
        self.hears_of(offset);
        match offset {
            _ if offset < self.next => Heard::Known,
            _ if offset == self.next => Heard::Next,
            _ => Heard::Ahead,
        }
    }

    /// There is a message with this offset.
    pub fn hears_of(&mut self, offset: u64) {
        self.heard = self.heard.max(offset);
    }

    /// The first message that it must get next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The last message that it knows to exist.
    pub fn heard(&self) -> u64 {
        self.heard
    }

    /// Whether it must read the history.
    pub fn is_behind(&self) -> bool {
        self.next <= self.heard
    }

    /// Whether the next message is one of before it joined.
    pub fn is_recovering(&self) -> bool {
        self.next <= self.joined
    }

    /// The message is in its output, or queued for it.
    pub fn queues(&mut self, offset: u64) {
        self.next = offset + 1;
    }

    /// All messages before this one are gone, if it does not have them.
    pub fn skips_to(&mut self, oldest: u64) {
        self.next = self.next.max(oldest.min(self.heard + 1));
    }

    /// The last message in its output.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// A message is about to be appended to its output. Returns the position up to which it misses messages, if it
    /// misses some: it must be notified first.
    pub fn writes(&mut self, offset: u64) -> Option<Position> {
        let gap = (offset > self.written + 1).then(|| self.at(offset - 1));
        self.written = offset;
        gap
    }

    /// Nothing is queued for it. Returns the position up to which it misses messages, if it misses some that were
    /// [skipped](Follower::skips_to).
    pub fn open_gap(&mut self) -> Option<Position> {
        let gap = (self.written + 1 < self.next).then(|| self.at(self.next - 1));
        self.written = self.next - 1;
        gap
    }

    fn at(&self, offset: u64) -> Position {
        Position { epoch: self.epoch, offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: Epoch = Epoch(7);

    /// Joins a room whose history has the messages 4 to 9.
    fn join(asked: Option<(Option<u64>, u64)>) -> (Follower, u64, bool) {
        let asked = asked.map(|(epoch, offset)| Asked { epoch: epoch.map(Epoch), offset });
        let (follower, Start { position, has_gap }) = Follower::join(EPOCH, 9, 4, asked);
        assert_eq!((position.epoch, follower.written()), (EPOCH, position.offset));
        (follower, position.offset, has_gap)
    }

    #[test]
    fn a_member_gets_what_follows_its_position_or_a_gap() {
        let start = |asked| {
            let (follower, offset, has_gap) = join(asked);
            assert_eq!(follower.next(), offset + 1);
            (offset, has_gap, follower.is_behind())
        };
        assert_eq!(start(None), (9, false, false), "from now on");
        assert_eq!(start(Some((Some(7), 9))), (9, false, false), "nothing is missing");
        assert_eq!(start(Some((Some(7), 6))), (6, false, true));
        assert_eq!(start(Some((Some(7), 3))), (3, false, true), "all that is kept");
        assert_eq!(start(Some((Some(7), 2))), (3, true, true), "message 3 is gone");
        assert_eq!(start(Some((Some(7), 10))), (9, true, false), "a position that never was");
        assert_eq!(start(Some((Some(7), u64::MAX))), (9, true, false));
        assert_eq!(start(Some((Some(8), 6))), (3, true, true), "another history");
        assert_eq!(start(Some((None, 0))), (3, true, true));
        let empty = |asked| Follower::join(EPOCH, 0, 1, asked).1;
        assert_eq!(empty(None).position.offset, 0);
        assert!(empty(Some(Asked { epoch: Some(Epoch(8)), offset: 0 })).has_gap);
        assert!(!empty(Some(Asked { epoch: Some(EPOCH), offset: 0 })).has_gap);
    }

    #[test]
    fn a_push_is_for_a_member_once_and_in_order() {
        let (mut follower, ..) = join(None);
        let push = |epoch, offset| Some(Position { epoch, offset });
        assert_eq!(follower.hears(push(EPOCH, 9)), Heard::Stranger, "from before it joined");
        assert_eq!(follower.hears(push(Epoch(8), 10)), Heard::Stranger, "of another history");
        assert_eq!(follower.hears(None), Heard::Stranger);
        assert!(!follower.is_behind());
        assert_eq!(follower.hears(push(EPOCH, 11)), Heard::Ahead);
        assert_eq!((follower.is_behind(), follower.heard(), follower.next()), (true, 11, 10));
        for offset in [10, 11] {
            assert_eq!(follower.hears(push(EPOCH, offset)), Heard::Next);
            follower.queues(offset);
            assert_eq!(follower.writes(offset), None);
        }
        assert!(!follower.is_behind());
        assert_eq!(follower.hears(push(EPOCH, 10)), Heard::Known);
    }

    #[test]
    fn what_is_skipped_is_announced_once() {
        let (mut follower, ..) = join(Some((Some(7), 5)));
        assert!(follower.is_recovering());
        follower.skips_to(8);
        assert_eq!(follower.next(), 8);
        follower.queues(8);
        let gap = |offset| Some(Position { epoch: EPOCH, offset });
        assert_eq!(follower.writes(8), gap(7));
        assert_eq!((follower.open_gap(), follower.writes(9)), (None, None));
        let (mut follower, ..) = join(Some((Some(7), 5)));
        follower.skips_to(20);
        assert_eq!(follower.next(), 10, "nothing is known of later ones");
        assert!(!follower.is_recovering() && !follower.is_behind());
        assert_eq!((follower.open_gap(), follower.open_gap()), (gap(9), None));
        assert_eq!(follower.written(), 9);
    }
}
