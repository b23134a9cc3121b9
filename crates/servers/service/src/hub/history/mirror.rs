//! What a copy of a history at the broker knows of its original, and what is asked of the broker for it. How the copy follows
//! the original is in `copy`.

use super::position::{Asked, Epoch};
use std::{mem, time::Instant};

/// A copy that does not come nearer to its original in so many fetches gives up what it lacks.
pub(super) const FETCHES: u32 = 16;

/// Whether a fetch is worth it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Trust {
    #[default]
    Full,
    /// The connection was lost during it, so it is the only one next time.
    Alone,
    /// And it was lost again: there may be a message that is longer than what the broker holds back for a connection
    /// (`client-output-buffer-limit`). Or messages come as fast as they are fetched.
    None,
}

/// What a copy knows of its original.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    /// The number of the connection on which it is current; 0: it is not.
    pub link: u64,
    /// Something is known of the original.
    pub is_known: bool,
    /// The newest message when the present epoch began here. Followers of an epoch that does not continue begin behind it.
    pub base: u64,
    /// Messages before this one cannot be had; until this time, if there was no memory for them.
    pub floor: u64,
    pub floor_until: Option<Instant>,
    /// Fetches behind its newest message, and before its oldest one.
    pub trust: [Trust; 2],
    /// Fetches in turn after which it lacked messages, and how many it lacked after the first one of [`FETCHES`].
    pub fetches: u32,
    pub lacks: u64,
    /// The number of the connection of these.
    pub fetched_on: u64,
    /// Answers in turn with older messages that did not fit, because it had dropped its oldest ones meanwhile.
    pub unfit: u32,
}

/// What the broker says of the history of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Seen {
    pub epoch: Epoch,
    /// The offset of the newest message.
    pub top: u64,
    /// There are no more messages in the direction that was asked for.
    pub is_all: bool,
}

/// Which messages are fetched next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Span {
    /// None: only what the broker says of the history.
    Nothing,
    /// From this offset on.
    From(u64),
    /// From the first of these offsets down to the second one.
    Down(u64, u64),
    /// None: what is missing is given up, because it was too much for the connection.
    Skip,
}

impl Span {
    /// Whether it is behind the newest message (0) or before the oldest one (1).
    pub(super) fn kind(self) -> Option<usize> {
        match self {
            Span::From(_) => Some(0),
            Span::Down(..) => Some(1),
            Span::Nothing | Span::Skip => None,
        }
    }
}

/// What somebody wants to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Wanted {
    /// What is behind this position.
    Behind(Asked),
    /// So many of the newest messages.
    Newest(u64),
}

/// Who asks the connection to the broker for a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Asker {
    /// A backend, or a client of Centrifugo: it does not wait while the broker does not answer.
    Backend,
    /// It waits, and learns once that it takes longer.
    Member,
    /// It waits, and knows that it takes longer.
    Waiting,
}

/// What became of a message of the subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Heard {
    /// It is in the history now.
    Next,
    /// The history is not current, and gets it with the next fetch.
    Later,
    /// It does not follow the last one: the history is not current from now on.
    Hole,
}

/// What a copy has learned from the answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Learned {
    Nothing,
    /// Members must look at the history.
    News,
    /// The broker has lost messages of an epoch that goes on there: it would give their offsets again.
    Loss,
}

impl Mirror {
    /// So many messages it lacks after a fetch on this connection.
    pub fn has_fetched(&mut self, link: u64, lacks: u64) {
        if mem::replace(&mut self.fetched_on, link) != link {
            self.fetches = 0;
        }
        self.fetches = if lacks == 0 { 0 } else { self.fetches + 1 };
        if self.fetches % FETCHES == 1 {
            if self.fetches > 1 && lacks >= self.lacks {
                self.trust[0] = Trust::None;
            }
            self.lacks = lacks;
        }
    }
}
