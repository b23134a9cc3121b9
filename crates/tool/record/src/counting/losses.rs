//! Losses that a server announces, wrong deliveries, and what else is counted of broadcasts.

use serde::{Deserialize, Serialize};

/// What a server announced as lost, or as not known, if the load permits that (`--allow-gaps`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnnouncedLosses {
    /// Gaps that members got.
    pub gaps: u64,
    /// Deliveries that members were owed when they got a gap, and that did not follow it.
    pub missed: u64,
    /// Broadcasts that the server reported as not published. Nobody got them.
    pub not_published: u64,
    /// Broadcasts for which the server did not know whether they were published. Nobody was owed a copy.
    pub unknown: u64,
    /// Deliveries of those. They are among the deliveries, because their copies may come before the result does.
    #[serde(default)]
    pub unknown_deliveries: u64,
}

impl AnnouncedLosses {
    /// Adds what another process counted.
    pub fn add(&mut self, other: AnnouncedLosses) {
        self.gaps += other.gaps;
        // A process may take off what another one has counted; only the sum is at least 0.
        self.missed = self.missed.wrapping_add(other.missed);
        self.not_published += other.not_published;
        self.unknown += other.unknown;
        self.unknown_deliveries += other.unknown_deliveries;
    }

    /// Requests whose results announce a loss. They are not among the requests, and have no latency.
    pub fn refused(self) -> u64 {
        self.not_published + self.unknown
    }
}

/// Wrong deliveries, by kind. The first one ends a load that does not tolerate errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrongDeliveries {
    /// Deliveries that have not come, and that no announcement excused: those that were owed at the end of the load,
    /// to a member when its connection was lost, or when too many later broadcasts were sent.
    pub missing: u64,
    /// Deliveries that came before.
    pub twice: u64,
    /// Deliveries in another order than that of their sender, or of the member that got them first. One that is
    /// left out counts here, too, if all members must get one order: what follows it came too early. If that member
    /// was the first to get what follows, the deliveries of that to all others count.
    pub out_of_order: u64,
    /// Deliveries that no member has sent, or whose result says that they are not published: each copy of such a
    /// broadcast.
    pub unsent: u64,
}

impl WrongDeliveries {
    /// Adds what another process counted.
    pub fn add(&mut self, other: WrongDeliveries) {
        self.missing += other.missing;
        self.twice += other.twice;
        self.out_of_order += other.out_of_order;
        self.unsent += other.unsent;
    }

    /// All of them.
    pub fn total(self) -> u64 {
        self.missing + self.twice + self.out_of_order + self.unsent
    }
}

/// Whether more than 1 in 1,000 are lost, or were owed to nobody. They have no latency, and a server that loses what is
/// late would look fast, so rate and latency are void then. `rest` are the others.
pub fn are_many_lost(lost: u64, rest: u64) -> bool {
    lost.saturating_mul(1_000) > lost.saturating_add(rest)
}

/// What else is counted of the broadcasts and the members of a hub, in the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BroadcastCounts {
    /// Replies among [`crate::Counted::replies`] with which members joined.
    pub joins: u64,
    /// Connections that were lost, or got a wrong message, before that reply. Each is one of the errors.
    pub failed_joins: u64,
    /// Results among [`crate::Counted::replies`] that were wrong, although the load continued after them. Each is one of
    /// the errors.
    pub wrong_results: u64,
    /// Deliveries that nobody was owed, because the connection of a member was lost and it had not joined again. They
    /// are in no other count.
    pub absent: u64,
}

impl BroadcastCounts {
    /// Adds what another process counted.
    pub fn add(&mut self, other: BroadcastCounts) {
        self.joins += other.joins;
        self.failed_joins += other.failed_joins;
        self.wrong_results += other.wrong_results;
        self.absent = self.absent.saturating_add(other.absent);
    }
}
