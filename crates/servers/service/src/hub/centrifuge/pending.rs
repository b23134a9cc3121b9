//! Commands of a client that wait for the broker.

use crate::hub::{
    history::{Asked, Page},
    results::{IN_FLIGHT, IN_FLIGHT_BYTES},
};
use regatta_engine::RoomName;
use std::collections::BTreeMap;

/// How many times as much may wait as when a client is not read. A frame may be read at once that has this much.
const OVERFULL: usize = 4;

/// A command that waits for the broker.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    /// The number of the command.
    pub id: u32,
    pub room: RoomName,
    pub what: What,
}

/// What a command does.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// It publishes so many bytes. It also waits until the client's own copy is in the output.
    Publish(usize),
    /// It begins the subscription with this number.
    Subscribe(u64),
    Presence,
    PresenceStats,
    /// It reads this page. The position is that of the client, if it names an epoch.
    History(Page, Option<Asked>),
}

/// The commands of a client that wait for the broker, by ticket.
#[derive(Debug, Default)]
pub(super) struct Pending {
    all: BTreeMap<u64, Waiter>,
    /// The next ticket.
    next: u64,
    /// How many of them publish, and how many bytes.
    publishing: usize,
    bytes: usize,
}

impl Pending {
    /// Adds a command. Returns its ticket.
    pub fn add(&mut self, waiter: Waiter) -> u64 {
        if let What::Publish(bytes) = waiter.what {
            (self.publishing, self.bytes) = (self.publishing + 1, self.bytes + bytes);
        }
        let ticket = self.next;
        self.next += 1;
        self.all.insert(ticket, waiter);
        ticket
    }

    /// The next ticket. Those of earlier commands are lower.
    pub fn next_ticket(&self) -> u64 {
        self.next
    }

    /// The command with this ticket, if it still waits.
    pub fn get(&self, ticket: u64) -> Option<&Waiter> {
        self.all.get(&ticket)
    }

    /// Takes a command that waits no longer.
    pub fn take(&mut self, ticket: u64) -> Option<Waiter> {
        let waiter = self.all.remove(&ticket)?;
        if let What::Publish(bytes) = waiter.what {
            (self.publishing, self.bytes) = (self.publishing - 1, self.bytes - bytes);
        }
        Some(waiter)
    }

    /// No command waits any longer. Tickets of before stay unknown.
    pub fn clear(&mut self) {
        *self = Pending { next: self.next, ..Pending::default() };
    }

    /// Whether some command publishes.
    pub fn is_publishing(&self) -> bool {
        self.publishing > 0
    }

    /// Whether the client must not be read. What was already read is still handled, until it is overfull.
    pub fn is_full(&self) -> bool {
        self.all.len() >= IN_FLIGHT || self.bytes >= IN_FLIGHT_BYTES
    }

    /// Whether commands must be refused: a frame may have thousands of them, and others wait behind them at the broker.
    pub fn is_overfull(&self) -> bool {
        self.all.len() >= OVERFULL * IN_FLIGHT || self.bytes >= OVERFULL * IN_FLIGHT_BYTES
    }

    /// The memory that it uses, in bytes. What is published is charged where it waits.
    pub fn footprint(&self) -> usize {
        self.all.len() * size_of::<(u64, Waiter)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(what: What) -> Waiter {
        Waiter { id: 7, room: RoomName::of("red"), what }
    }

    #[test]
    fn a_client_is_not_read_while_256_commands_or_1_mib_of_messages_wait() {
        let mut pending = Pending::default();
        let tickets: Vec<u64> =
            (0..256).map(|number| pending.add(waiter(What::Subscribe(number)))).collect();
        assert!(pending.is_full() && !pending.is_publishing());
        assert_eq!(pending.take(tickets[9]).map(|one| one.id), Some(7));
        assert!(!pending.is_full() && pending.get(tickets[9]).is_none());
        pending.clear();
        (0..1_023).for_each(|number| _ = pending.add(waiter(What::Subscribe(number))));
        assert!(!pending.is_overfull());
        pending.add(waiter(What::Presence));
        assert!(pending.is_overfull());
        pending.clear();
        let ticket = pending.add(waiter(What::Publish(1 << 20)));
        assert!(!pending.is_overfull());
        assert!(pending.is_full() && pending.is_publishing() && !tickets.contains(&ticket));
        assert_eq!(pending.footprint(), size_of::<(u64, Waiter)>());
        assert!(pending.take(ticket).is_some() && pending.take(ticket).is_none());
        assert!(!pending.is_full() && !pending.is_publishing() && pending.footprint() == 0);
    }
}
