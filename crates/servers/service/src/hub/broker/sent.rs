//! What a hub has published and what has not come back. The broker answers each command in order, and delivers what it
//! answers: each message comes back on the same connection, right before or right after its reply. So a reply
//! or a message that comes too early shows that something was lost.

use regatta_engine::Ticket;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// How long a sender waits for the outcome while nothing comes from the broker.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// How long a message may take to come back and to be confirmed while nothing comes from the broker, before the
/// connection counts as lost. Heartbeats are messages, too.
pub(super) const SILENCE: Duration = Duration::from_secs(3);
/// The same two while something comes: a hub that is busy with what others publish finds its own messages behind that.
const LONG_PATIENCE: Duration = Duration::from_secs(10);
const LONG_SILENCE: Duration = Duration::from_secs(30);

/// A message that was sent.
#[derive(Debug)]
struct Entry {
    /// The sender that waits for its outcome. `None`: none, or no longer.
    ticket: Option<Ticket>,
    at: Instant,
    /// The broker has confirmed it.
    is_confirmed: bool,
    /// It has come back, or was refused.
    is_back: bool,
}

/// The broker confirms messages that it does not deliver, or delivers some that it did not get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inconsistent;

/// Messages that were sent on one connection, the oldest first. Those in front that are confirmed and back are gone.
#[derive(Debug, Default)]
pub(super) struct Sent {
    entries: VecDeque<Entry>,
    /// The number of the first message on this connection.
    start: u64,
    /// The number of the first entry. The others follow without a gap.
    first: u64,
    /// So many entries in front are confirmed, are back, and are known to be late.
    confirmed: usize,
    back: usize,
    late: usize,
    /// When something last came from the broker on this connection.
    heard_at: Option<Instant>,
}

impl Sent {
    /// None yet. `next`: the number of the first message.
    pub(super) fn new(next: u64) -> Sent {
        Sent { start: next, first: next, ..Sent::default() }
    }

    /// The number of the next message.
    pub(super) fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// How many messages are not confirmed and back.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Something has come from the broker.
    pub(super) fn hears(&mut self, now: Instant) {
        self.heard_at = Some(now);
    }

    /// When the message was sent that comes back next.
    pub(super) fn next_back(&self) -> Option<Instant> {
        self.entries.get(self.back).map(|entry| entry.at)
    }

    /// When a message of this time has waited for too long: `short` if nothing has come since, and `long` otherwise.
    fn end(&self, at: Instant, short: Duration, long: Duration) -> Instant {
        let silent = self.heard_at.map_or(at, |heard| heard.max(at)) + short;
        silent.min(at + long)
    }

    fn late_at(&self, at: Instant) -> Instant {
        self.end(at, PATIENCE, LONG_PATIENCE)
    }

    fn lost_at(&self) -> Option<Instant> {
        self.entries.front().map(|entry| self.end(entry.at, SILENCE, LONG_SILENCE))
    }

    /// The next message was sent.
    pub(super) fn add(&mut self, ticket: Option<Ticket>, at: Instant) {
        self.entries.push_back(Entry { ticket, at, is_confirmed: false, is_back: false });
    }

    /// The broker has answered the next command. `is_refused`: it did not publish the message. Returns the sender
    /// that waits for its outcome, if it was refused.
    pub(super) fn answered(&mut self, is_refused: bool) -> Result<Option<Ticket>, Inconsistent> {
        let at = self.confirmed;
        let entry = self.entries.get_mut(at).ok_or(Inconsistent)?;
        (entry.is_confirmed, self.confirmed) = (true, at + 1);
        let mut ticket = None;
        if is_refused {
            (entry.is_back, ticket) = (true, entry.ticket.take());
        }
        self.advance();
        // All before it have come back.
        if self.back < at { Err(Inconsistent) } else { Ok(self.forget(ticket)) }
    }

    /// A message has come back. Returns the sender that waits for its outcome. The broker may handle messages of an earlier
    /// connection late: nobody waits for these any longer.
    pub(super) fn came_back(&mut self, number: u64) -> Result<Option<Ticket>, Inconsistent> {
        if number < self.start {
            return Ok(None);
        }
        let at = number.checked_sub(self.first).ok_or(Inconsistent)?;
        if at != self.back as u64 {
            return Err(Inconsistent);
        }
        let entry = self.entries.get_mut(self.back).ok_or(Inconsistent)?;
        entry.is_back = true;
        let ticket = entry.ticket.take();
        self.advance();
        Ok(self.forget(ticket))
    }

    fn advance(&mut self) {
        while self.entries.get(self.back).is_some_and(|entry| entry.is_back) {
            self.back += 1;
        }
    }

    /// Removes what is done in front. Returns `same`.
    fn forget<T>(&mut self, same: T) -> T {
        while self.confirmed > 0 && self.back > 0 {
            self.entries.pop_front();
            self.first += 1;
            (self.confirmed, self.back) = (self.confirmed - 1, self.back - 1);
            self.late = self.late.saturating_sub(1);
        }
        same
    }

    /// When something is late.
    pub(super) fn due(&self) -> Option<Instant> {
        let late = self.entries.get(self.late).map(|entry| self.late_at(entry.at));
        late.into_iter().chain(self.lost_at()).min()
    }

    /// Whether the broker has been silent for too long.
    pub(super) fn is_silent(&self, now: Instant) -> bool {
        self.lost_at().is_some_and(|at| at <= now)
    }

    /// Returns the next sender that has waited for too long, and whether the broker has confirmed its message.
    pub(super) fn take_late(&mut self, now: Instant) -> Option<(Ticket, bool)> {
        while let Some(entry) = self.entries.get(self.late)
            && self.late_at(entry.at) <= now
            && let Some(entry) = self.entries.get_mut(self.late)
        {
            self.late += 1;
            if let Some(ticket) = entry.ticket.take() {
                return Some((ticket, entry.is_confirmed));
            }
        }
        None
    }

    /// The connection is lost. Returns all that still wait, with whether the broker has confirmed their messages.
    pub(super) fn lose(&mut self) -> Vec<(Ticket, bool)> {
        let next = self.next();
        let entries = std::mem::replace(self, Sent::new(next)).entries;
        let waiting = |entry: Entry| entry.ticket.map(|ticket| (ticket, entry.is_confirmed));
        entries.into_iter().filter_map(waiting).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(count: u64) -> Option<Ticket> {
        Some(Ticket { core: 0, count })
    }

    fn three(now: Instant) -> Sent {
        let mut sent = Sent::new(7);
        (0..3).for_each(|count| sent.add(ticket(count), now));
        assert_eq!((sent.next(), sent.len()), (10, 3));
        sent
    }

    #[test]
    fn a_reply_may_come_before_or_after_its_message() {
        let mut sent = three(Instant::now());
        assert_eq!(sent.answered(false), Ok(None));
        assert_eq!(sent.came_back(7), Ok(ticket(0)));
        assert_eq!(sent.came_back(8), Ok(ticket(1)));
        assert_eq!(sent.len(), 2);
        assert_eq!(sent.answered(false), Ok(None));
        assert_eq!((sent.next(), sent.len()), (10, 1));
        assert_eq!(sent.answered(true), Ok(ticket(2)), "it was refused");
        assert_eq!((sent.next(), sent.len(), sent.due()), (10, 0, None));
        assert_eq!(sent.answered(false), Err(Inconsistent), "to nothing");
    }

    #[test]
    fn a_message_that_is_confirmed_and_not_delivered_is_noticed_with_the_next_one() {
        let now = Instant::now();
        let mut sent = three(now);
        assert_eq!(sent.answered(false), Ok(None));
        assert_eq!(sent.answered(false), Err(Inconsistent));
        let mut sent = three(now);
        assert_eq!(sent.came_back(8), Err(Inconsistent));
        let mut sent = three(now);
        assert_eq!(sent.came_back(7), Ok(ticket(0)));
        assert_eq!(sent.came_back(7), Err(Inconsistent), "twice");
        assert_eq!(sent.came_back(3), Ok(None), "of an earlier connection");
        assert_eq!(sent.came_back(99), Err(Inconsistent), "never sent");
    }

    #[test]
    fn a_refused_message_does_not_come_back() {
        let mut sent = three(Instant::now());
        assert_eq!(sent.came_back(7), Ok(ticket(0)));
        assert_eq!(sent.answered(false), Ok(None));
        assert_eq!(sent.answered(true), Ok(ticket(1)));
        assert_eq!(sent.came_back(9), Ok(ticket(2)));
        assert_eq!(sent.answered(false), Ok(None));
        assert_eq!(sent.len(), 0);
    }

    #[test]
    fn senders_wait_for_two_seconds_and_the_connection_for_three() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut sent = Sent::new(0);
        sent.add(ticket(0), at(0));
        sent.add(None, at(100));
        sent.add(ticket(2), at(200));
        assert_eq!(sent.answered(false), Ok(None));
        assert_eq!((sent.due(), sent.take_late(at(1999))), (Some(at(2000)), None));
        assert_eq!(sent.take_late(at(2150)), Some((Ticket { core: 0, count: 0 }, true)));
        assert_eq!((sent.take_late(at(2150)), sent.due()), (None, Some(at(2200))));
        assert_eq!(sent.take_late(at(2200)), Some((Ticket { core: 0, count: 2 }, false)));
        assert_eq!(sent.due(), Some(at(3000)));
        assert!(!sent.is_silent(at(2999)) && sent.is_silent(at(3000)));
        assert_eq!(sent.lose(), [], "nobody waits");
        assert_eq!((sent.next(), sent.due()), (3, None));
    }

    #[test]
    fn what_comes_late_behind_other_messages_is_waited_for() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut sent = Sent::new(0);
        sent.add(ticket(0), at(0));
        sent.hears(at(1900));
        assert_eq!((sent.take_late(at(3800)), sent.due()), (None, Some(at(3900))));
        assert!(!sent.is_silent(at(4800)) && sent.is_silent(at(4900)), "nothing comes any longer");
        (2..29).for_each(|second| sent.hears(at(second * 1000)));
        assert!(!sent.is_silent(at(29_000)));
        assert_eq!(sent.take_late(at(9_999)), None);
        assert_eq!(sent.take_late(at(10_000)), Some((Ticket { core: 0, count: 0 }, false)));
        sent.hears(at(29_999));
        assert!(sent.is_silent(at(30_000)), "it is not in what comes");
    }

    #[test]
    fn when_the_connection_is_lost_all_who_wait_learn_whether_the_broker_had_confirmed() {
        let mut sent = three(Instant::now());
        assert_eq!(sent.answered(false), Ok(None));
        let (one, other) = (Ticket { core: 0, count: 0 }, Ticket { core: 0, count: 1 });
        assert_eq!(sent.lose()[..2], [(one, true), (other, false)]);
    }
}
