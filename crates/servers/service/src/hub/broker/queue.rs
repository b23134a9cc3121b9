//! Messages that wait until those at the broker have come back.

use crate::hub::broadcast::Broadcast;
use regatta_engine::{RoomName, Ticket};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Maximum number of messages that wait. Beyond it, more are not published.
const MOST: usize = 1 << 16;
/// How long a message may wait here. Then it is not published.
const PATIENCE: Duration = Duration::from_secs(10);

/// A message that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub room: RoomName,
    /// Messages of one request share their payload.
    pub push: Broadcast,
    pub ticket: Ticket,
    since: Instant,
}

/// The messages that wait, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Queue(VecDeque<Waiting>);

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is no room for one more.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= MOST
    }

    pub(super) fn add(&mut self, room: RoomName, push: Broadcast, ticket: Ticket, now: Instant) {
        self.0.push_back(Waiting { room, push, ticket, since: now });
    }

    /// Takes the oldest one.
    pub(super) fn take(&mut self) -> Option<Waiting> {
        self.0.pop_front()
    }

    /// When the oldest one has waited for too long.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.front().map(|waiting| waiting.since + PATIENCE)
    }

    /// Takes the oldest one if it has waited for too long.
    pub(super) fn take_late(&mut self, now: Instant) -> Option<Ticket> {
        self.due().filter(|due| *due <= now)?;
        self.take().map(|waiting| waiting.ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn messages_wait_in_their_order_and_not_for_ever() {
        let (mut queue, start) = (Queue::default(), Instant::now());
        let push = Broadcast::outgoing("1", false, &Arc::default());
        for count in 0..3 {
            let ticket = Ticket { core: 0, count };
            queue.add(RoomName::LOBBY, push.clone(), ticket, start + Duration::from_secs(count));
        }
        assert_eq!(queue.take().map(|waiting| waiting.ticket.count), Some(0));
        let end = start + Duration::from_secs(11);
        assert_eq!(queue.due(), Some(end));
        assert_eq!(queue.take_late(end - Duration::from_millis(1)), None);
        assert_eq!(queue.take_late(end).map(|ticket| ticket.count), Some(1));
        assert_eq!(queue.take_late(end), None);
        assert!(!queue.is_empty() && !queue.is_full());
    }
}
