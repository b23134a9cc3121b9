//! The history of a room as a copy of that at the broker. It has the newest messages, without a hole: new ones come from
//! the subscription, each one more than the last, and others are fetched, behind the newest or before the oldest.
//!
//! The broker answers in the order in which it carries out commands, on the connection of the subscription. So with the
//! answer to a question, all messages up to the newest one that the answer names have come, and those behind it will come:
//! from then on the copy is current, for as long as the connection lives.

use super::{
    mirror::{Heard, Learned, Mirror, Seen, Span, Trust, Wanted},
    position::Position,
    room::{Inside, RoomHistory},
};
use crate::hub::broadcast::Broadcast;
use std::{
    sync::MutexGuard,
    time::{Duration, Instant},
};

/// How long older messages are not fetched again after there was no memory for them.
const PAUSE: Duration = Duration::from_secs(2);
/// So many answers in turn with older messages may not fit.
const UNFIT: u32 = 3;

impl RoomHistory {
    /// Its inside, if it is a copy.
    fn mirror(&self) -> Option<MutexGuard<'_, Inside>> {
        Some(self.lock()).filter(|inside| inside.mirror.is_some())
    }

    /// The broker has delivered this message on connection number `link`. Returns how it follows what the copy has.
    pub fn hears(&self, link: u64, message: Broadcast, now: Instant) -> Heard {
        let (Some(mut inside), Some(position)) = (self.mirror(), message.position()) else {
            return Heard::Later;
        };
        let next = Position { epoch: inside.epoch, offset: inside.log.top() + 1 };
        let Some(mirror) = &mut inside.mirror else { return Heard::Later };
        if mirror.link != link {
            return Heard::Later;
        }
        if position != next {
            mirror.link = 0;
            return Heard::Hole;
        }
        inside.append(message, now);
        Heard::Next
    }

    /// Messages may be missing: it is not current from now on.
    pub fn doubts(&self) {
        if let Some(mirror) = self.lock().mirror.as_mut() {
            mirror.link = 0;
        }
    }

    /// What must be fetched for somebody who wants this; `None`: it can be read now. `link`: the number of the present
    /// connection. A position that a current copy never had is asked for as what follows the newest message.
    pub fn missing(&self, link: u64, wanted: Option<Wanted>, now: Instant) -> Option<Span> {
        let mut inside = self.mirror()?;
        inside.expire(now);
        let top = inside.log.top();
        let mirror = inside.mirror.as_mut()?;
        if mirror.floor_until.is_some_and(|until| until <= now) {
            (mirror.floor, mirror.floor_until) = (0, None);
        }
        let mirror = inside.mirror.as_ref()?;
        if !mirror.is_known {
            return Some(Span::Nothing);
        }
        if mirror.link != link {
            return Some(Span::From(top + 1));
        }
        let first = match wanted? {
            Wanted::Behind(asked) if inside.continues(asked) => asked.offset + 1,
            // The member may come from a hub that has heard more: what this one lacks may be on its way.
            Wanted::Behind(_) => return Some(Span::From(top + 1)),
            Wanted::Newest(messages) => (top + 1).saturating_sub(messages).max(1),
        };
        // Messages beyond the limit of the room are not recovered.
        let limit = (top + 1).saturating_sub(inside.limits.messages as u64);
        let oldest = inside.log.oldest();
        let is_limited = matches!(wanted, Some(Wanted::Behind(_))) && first < limit;
        let first = first.max(limit).max(mirror.floor);
        let is_gone =
            matches!(wanted, Some(Wanted::Behind(asked)) if asked.offset + 1 < mirror.floor);
        if is_limited || is_gone || oldest <= first {
            return None;
        }
        Some(Span::Down(oldest - 1, first))
    }

    /// Whether it has all that was published before the last question to the broker.
    pub fn is_current(&self, link: u64) -> bool {
        self.lock().mirror.as_ref().is_some_and(|mirror| mirror.link == link)
    }

    /// The connection was lost during a fetch of this span. `is_alone`: there was no other fetch.
    pub fn lost(&self, span: Span, is_alone: bool) {
        if let (Some(mirror), Some(kind)) = (self.lock().mirror.as_mut(), span.kind()) {
            mirror.trust[kind] = if is_alone { Trust::None } else { Trust::Alone };
        }
    }

    /// This span, or that it is given up; and whether there must be no other fetch.
    pub fn tries(&self, span: Span) -> (Span, bool) {
        let inside = self.lock();
        let trust = inside.mirror.as_ref().zip(span.kind()).map(|(one, kind)| one.trust[kind]);
        match trust.unwrap_or_default() {
            Trust::None => (Span::Skip, false),
            trust => (span, trust == Trust::Alone),
        }
    }

    /// The broker has answered a question for a span. `messages`: those of it, in its direction.
    pub fn learns(
        &self,
        link: u64,
        span: Span,
        (seen, messages): (&Seen, Vec<Broadcast>),
        now: Instant,
    ) -> Learned {
        let Some(mut inside) = self.mirror() else { return Learned::Nothing };
        if let (Some(mirror), Some(kind)) = (inside.mirror.as_mut(), span.kind()) {
            mirror.trust[kind] = Trust::Full;
        }
        let (epoch, top) = (inside.epoch, inside.log.top());
        let is_known = inside.mirror.as_ref().is_some_and(|mirror| mirror.is_known);
        if is_known && seen.epoch == epoch && seen.top < top {
            inside.is_at(0);
            return Learned::Loss;
        }
        if !is_known || seen.epoch != epoch {
            inside.begins(link, seen);
            return if is_known { Learned::News } else { Learned::Nothing };
        }
        if let Span::Down(first, last) = span {
            inside.extends(link, (first, last), (seen, messages), now);
            return Learned::Nothing;
        }
        if span == Span::Skip {
            inside.skips(seen);
        } else {
            let is_all = seen.is_all && span != Span::Nothing;
            inside.follows((seen, messages), is_all, now);
        }
        let lacks = seen.top.saturating_sub(inside.log.top());
        inside.is_at(if lacks == 0 { link } else { 0 });
        if let Some(mirror) = &mut inside.mirror {
            mirror.has_fetched(link, lacks);
        }
        if inside.log.top() == top { Learned::Nothing } else { Learned::News }
    }
}

impl Inside {
    /// It begins at the newest message.
    fn begins(&mut self, link: u64, seen: &Seen) {
        (self.epoch, self.turn) = (seen.epoch, self.turn + 1);
        self.log.start_at(seen.top);
        self.note();
        let (is_known, base) = (true, seen.top);
        self.mirror = Some(Mirror { link, is_known, base, ..Mirror::default() });
    }

    /// It is current on this connection.
    fn is_at(&mut self, link: u64) {
        if let Some(mirror) = &mut self.mirror {
            mirror.link = link;
        }
    }

    /// Goes on at the newest message, without those that it does not have.
    fn skips(&mut self, seen: &Seen) {
        if self.log.top() < seen.top {
            self.log.start_at(seen.top);
            self.note();
        }
        let oldest = self.log.oldest();
        if let Some(mirror) = &mut self.mirror {
            (mirror.floor, mirror.floor_until, mirror.trust) = (oldest, None, Default::default());
        }
    }

    /// Adds messages behind its newest one. `is_all`: the broker has no others.
    fn follows(&mut self, (seen, messages): (&Seen, Vec<Broadcast>), is_all: bool, now: Instant) {
        for message in messages {
            let offset = message.position().map_or(0, |position| position.offset);
            if offset <= self.log.top() {
                continue;
            }
            if offset > self.log.top() + 1 {
                self.log.start_at(offset - 1);
            }
            self.append(message, now);
        }
        if is_all && self.log.top() < seen.top {
            self.log.start_at(seen.top);
            self.note();
        }
    }

    /// Older messages have come. `is_unfit`: they do not fit, because it has dropped its oldest ones meanwhile. If it
    /// does that again and again, they are not fetched for a while.
    fn is_unfit(&mut self, is_unfit: bool, now: Instant) -> bool {
        let oldest = self.log.oldest();
        if let Some(mirror) = &mut self.mirror {
            mirror.unfit = if is_unfit { mirror.unfit + 1 } else { 0 };
            if mirror.unfit == UNFIT {
                (mirror.floor, mirror.floor_until, mirror.unfit) = (oldest, Some(now + PAUSE), 0);
            }
        }
        is_unfit
    }

    /// Adds messages before its oldest one: of those from `first` down to `last`.
    fn extends(
        &mut self,
        link: u64,
        (first, last): (u64, u64),
        (seen, messages): (&Seen, Vec<Broadcast>),
        now: Instant,
    ) {
        let is_current = self.mirror.as_ref().is_some_and(|mirror| mirror.link == link);
        if !is_current || self.epoch != seen.epoch {
            return;
        }
        let fits = self.log.oldest() == first + 1;
        if self.is_unfit(!fits, now) {
            return;
        }
        let (mut is_all, mut has_memory) = (seen.is_all, true);
        for message in messages {
            if message.position().is_none_or(|position| position.offset + 1 != self.log.oldest()) {
                is_all = true;
                break;
            }
            has_memory = self.prepend(message, now);
            if !has_memory {
                break;
            }
        }
        let oldest = self.log.oldest();
        if let Some(mirror) = &mut self.mirror
            && oldest > last
        {
            if !has_memory {
                (mirror.floor, mirror.floor_until) = (oldest, Some(now + PAUSE));
            } else if is_all {
                // The broker has no more of what was asked for.
                (mirror.floor, mirror.floor_until) = (oldest, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        mirror::FETCHES,
        position::{Asked, Epoch, HistoryLimits},
        share::Share,
    };
    use super::*;
    use regatta_engine::Memory;
    use std::sync::Arc;

    const LINK: u64 = 1;
    const EPOCH: Epoch = Epoch(7);
    const LIMITS: HistoryLimits = HistoryLimits { messages: 1_000, ..HistoryLimits::NONE };

    fn seen(top: u64, is_all: bool) -> Seen {
        Seen { epoch: EPOCH, top, is_all }
    }

    fn behind(offset: u64) -> Wanted {
        Wanted::Behind(Asked { epoch: Some(EPOCH), offset })
    }

    struct Copy {
        history: RoomHistory,
        memory: Arc<Memory>,
        now: Instant,
    }

    impl Copy {
        /// One that has seen that the newest message is 50.
        fn new(memory: usize) -> Copy {
            let memory = Arc::new(Memory::new(memory));
            let history =
                RoomHistory::mirroring(LIMITS, &Arc::new(Share::new(Arc::clone(&memory))));
            let copy = Copy { history, memory, now: Instant::now() };
            assert_eq!(copy.missing(behind(0)), Some(Span::Nothing));
            copy.learns(Span::Nothing, seen(50, true), []);
            copy
        }

        fn missing(&self, wanted: Wanted) -> Option<Span> {
            self.history.missing(LINK, Some(wanted), self.now)
        }

        fn learns(
            &self,
            span: Span,
            seen: Seen,
            offsets: impl IntoIterator<Item = u64>,
        ) -> Learned {
            let message = |offset| {
                let at = Position { epoch: EPOCH, offset };
                Broadcast::kept(&"x".repeat(3_000), at, false, false, &self.memory)
            };
            let messages = offsets.into_iter().map(message).collect();
            self.history.learns(LINK, span, (&seen, messages), self.now)
        }
    }

    #[test]
    fn a_recovery_does_not_spoil_that_of_an_older_position() {
        let copy = Copy::new(1 << 24);
        let newest = Span::Down(50, 46);
        assert_eq!(copy.missing(behind(45)), Some(newest));
        // There is no more in this span.
        copy.learns(newest, seen(50, true), (46..=50).rev());
        assert_eq!((copy.missing(behind(45)), copy.missing(behind(49))), (None, None));
        assert_eq!(copy.missing(behind(40)), Some(Span::Down(45, 41)));
        let all = Span::Down(45, 1);
        assert_eq!(copy.missing(behind(0)), Some(all));
        copy.learns(all, seen(50, false), (20..=45).rev());
        assert_eq!(
            copy.missing(behind(0)),
            Some(Span::Down(19, 1)),
            "it was too much for one answer"
        );
        // The broker has kept no more than that.
        copy.learns(Span::Down(19, 1), seen(50, true), (11..=19).rev());
        assert_eq!(
            (copy.missing(behind(0)), copy.missing(behind(9))),
            (None, None),
            "they are gone"
        );
        assert_eq!(copy.history.extent(copy.now).oldest, 11);
    }

    #[test]
    fn messages_for_which_there_was_no_memory_are_fetched_again_later() {
        let mut copy = Copy::new(50_000);
        copy.learns(Span::Down(50, 41), seen(50, true), (41..=50).rev());
        let oldest = copy.history.extent(copy.now).oldest;
        assert!((46..=50).contains(&oldest), "{oldest}");
        assert_eq!(copy.missing(behind(40)), None, "nobody waits for memory");
        copy.now += PAUSE;
        assert_eq!(copy.missing(behind(40)), Some(Span::Down(oldest - 1, 41)));
    }

    #[test]
    fn older_messages_are_given_up_if_the_copy_drops_its_oldest_ones_all_the_time() {
        let mut copy = Copy::new(1 << 24);
        let hears = |copy: &Copy, offset| {
            let at = Position { epoch: EPOCH, offset };
            let message = Broadcast::kept("1", at, false, false, &copy.memory);
            assert_eq!(copy.history.hears(LINK, message, copy.now), Heard::Next);
        };
        for offset in 51..51 + u64::from(UNFIT) {
            hears(&copy, offset);
            let span = Span::Down(offset - 1, 41);
            assert_eq!(copy.missing(behind(40)), Some(span));
            // It is too old before the answer comes.
            copy.now += LIMITS.time;
            assert_eq!(copy.history.extent(copy.now).oldest, offset + 1);
            copy.learns(span, seen(offset, true), (41..offset).rev());
        }
        assert_eq!(copy.missing(behind(40)), None, "a member that waits gets a gap");
        copy.now += PAUSE;
        let span = Span::Down(50 + u64::from(UNFIT), 41);
        assert_eq!(copy.missing(behind(40)), Some(span));
        copy.learns(span, seen(50 + u64::from(UNFIT), true), (41..51 + u64::from(UNFIT)).rev());
        assert_eq!((copy.missing(behind(40)), copy.history.extent(copy.now).oldest), (None, 41));
    }

    #[test]
    fn a_copy_that_loses_its_connection_while_it_catches_up_begins_again() {
        let copy = Copy::new(1 << 24);
        for link in 2..2 + 2 * u64::from(FETCHES) {
            let span = Span::From(51);
            assert_eq!(copy.history.tries(span), (span, false));
            copy.history.learns(link, span, (&seen(150, false), Vec::new()), copy.now);
        }
    }

    #[test]
    fn an_epoch_does_not_go_on_over_messages_that_are_lost() {
        let copy = Copy::new(1 << 24);
        assert_eq!(copy.learns(Span::From(51), seen(52, true), [51, 52]), Learned::News);
        assert_eq!(copy.learns(Span::From(53), seen(51, true), []), Learned::Loss);
        assert_eq!(copy.missing(behind(50)), Some(Span::From(53)), "it is not current");
        let next = Seen { epoch: Epoch(8), ..seen(51, true) };
        assert_eq!(copy.learns(Span::Nothing, next, []), Learned::News);
        assert_eq!(copy.history.extent(copy.now).top, 51);
    }

    #[test]
    fn what_cannot_be_fetched_is_a_gap() {
        let copy = Copy::new(1 << 24);
        copy.history.doubts();
        assert_eq!(copy.missing(behind(50)), Some(Span::From(51)));
        assert_eq!(copy.learns(Span::Skip, seen(60, true), []), Learned::News);
        assert_eq!((copy.missing(behind(60)), copy.missing(behind(50))), (None, None));
        let extent = copy.history.extent(copy.now);
        assert_eq!((extent.oldest, extent.top), (61, 60));
    }

    #[test]
    fn a_copy_that_never_catches_up_gives_up_what_it_lacks() {
        // For each message that is fetched there is a new one, or for each second one.
        for (of, is_given_up) in [(2, false), (1, true)] {
            let copy = Copy::new(1 << 24);
            copy.history.doubts();
            for n in 0..=u64::from(FETCHES) {
                let span = Span::From(51 + n);
                assert_eq!(copy.history.tries(span), (span, false));
                copy.learns(span, seen(150 + n / of, false), [51 + n]);
            }
            let next = Span::From(52 + u64::from(FETCHES));
            assert_eq!(copy.history.tries(next).0 == Span::Skip, is_given_up);
            copy.learns(Span::Skip, seen(500, true), []);
            assert_eq!(copy.missing(behind(500)), None);
            assert_eq!(copy.history.tries(next), (next, false));
        }
    }

    #[test]
    fn a_position_that_is_ahead_is_asked_for() {
        let copy = Copy::new(1 << 24);
        assert_eq!(copy.missing(behind(52)), Some(Span::From(51)));
        assert!(copy.history.is_current(LINK));
        copy.learns(Span::From(51), seen(52, true), [51, 52]);
        assert_eq!(copy.missing(behind(52)), None);
    }

    #[test]
    fn another_epoch_is_learned_from_every_answer() {
        let copy = Copy::new(1 << 24);
        let next = Seen { epoch: Epoch(8), ..seen(50, true) };
        assert_eq!(copy.learns(Span::Down(50, 1), next, []), Learned::News);
        assert_eq!(copy.missing(behind(0)), Some(Span::From(51)), "it never had this position");
    }
}
