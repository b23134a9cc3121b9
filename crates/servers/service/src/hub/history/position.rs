//! Positions in the histories of rooms.

use regatta_engine::RemoteOutcome;
use std::{fmt, time::Duration};

/// How much is kept of the messages of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Maximum number of messages; 0: the room has no history.
    pub messages: usize,
    /// How long a message can be recovered. The history of a room without members is kept at least this long.
    pub time: Duration,
}

impl HistoryLimits {
    /// No message is kept. Five minutes, if a room has another number.
    pub const NONE: HistoryLimits =
        HistoryLimits { messages: 0, time: Duration::from_secs(5 * 60) };

    /// Whether messages are kept.
    pub fn are_kept(&self) -> bool {
        self.messages > 0
    }
}

/// Which history offsets are of: a random number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The place of a message in the history of its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Position {
    /// Which history it is of.
    pub epoch: Epoch,
    /// The number of the message, from 1; 0: before the first one.
    pub offset: u64,
}

impl Position {
    /// That of a message that the broker keeps, or of what it answers.
    pub fn kept(outcome: RemoteOutcome) -> Option<Position> {
        match outcome {
            RemoteOutcome::Kept { epoch, offset } => Some(Position { epoch: Epoch(epoch), offset }),
            _ => None,
        }
    }

    /// Whether the history has gone on from an earlier position, or not at all.
    pub fn continues(self, earlier: Position) -> bool {
        self.epoch == earlier.epoch && self.offset >= earlier.offset
    }

    /// The same as a question for what follows.
    pub fn asked(self) -> Asked {
        Asked { epoch: Some(self.epoch), offset: self.offset }
    }
}

/// The last position that a client knows: it asks for what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Asked {
    /// `None` if it is not one of this program.
    pub epoch: Option<Epoch>,
    pub offset: u64,
}

/// A query that names no position, but a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct MalformedPosition;

impl Asked {
    /// A position with an epoch in its form as a text.
    pub fn of(epoch: &str, offset: u64) -> Asked {
        Asked { epoch: u64::from_str_radix(epoch, 16).ok().map(Epoch), offset }
    }

    /// Reads `epoch=…&offset=…` in a query, in any order.
    ///
    /// # Errors
    /// Fails if only one of them is there, or `offset` is not a number.
    pub fn in_query(query: Option<&str>) -> Result<Option<Asked>, MalformedPosition> {
        let (mut epoch, mut offset) = (None, None);
        for (key, value) in form_urlencoded::parse(query.unwrap_or("").as_bytes()) {
            match &*key {
                "epoch" => epoch = Some(u64::from_str_radix(&value, 16).ok().map(Epoch)),
                "offset" => offset = Some(value.parse().map_err(|_| MalformedPosition)?),
                _ => {}
            }
        }
        match (epoch, offset) {
            (None, None) => Ok(None),
            (Some(epoch), Some(offset)) => Ok(Some(Asked { epoch, offset })),
            _ => Err(MalformedPosition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_an_epoch_and_an_offset() {
        let read = |query: &str| Asked::in_query(Some(query));
        let epoch = Epoch(0x0123_4567_89ab_cdef);
        let asked = Asked { epoch: Some(epoch), offset: 7 };
        assert_eq!(read(&format!("name=x&epoch={epoch}&offset=7")), Ok(Some(asked)));
        assert_eq!(read(&format!("offset=7&epoch={epoch}")), Ok(Some(asked)));
        for of_another_program in ["xyz", "", "00112233445566778899"] {
            let asked = Asked { epoch: None, offset: 0 };
            assert_eq!(read(&format!("epoch={of_another_program}&offset=0")), Ok(Some(asked)));
        }
        assert_eq!((read("name=x"), Asked::in_query(None)), (Ok(None), Ok(None)));
        for wrong in ["epoch=1", "offset=1", "epoch=1&offset=", "epoch=1&offset=-1"] {
            assert_eq!(read(wrong), Err(MalformedPosition), "{wrong}");
        }
        assert_eq!(read("epoch=1&offset=18446744073709551616"), Err(MalformedPosition));
    }
}
