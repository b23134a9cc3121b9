//! Rules for rooms.

use super::pattern::RoomPattern;
use regatta_engine::Policy;
use std::{num::NonZeroU32, time::Duration};

/// What holds in the rooms of a pattern, instead of the hub's settings. `None`: as in the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomRule {
    /// Its rooms, unless an earlier rule is for them.
    pub pattern: RoomPattern,
    /// Who may publish there.
    pub publish: Publish,
    /// Whether members are notified when others join or leave.
    pub presence: Option<bool>,
    /// What happens to slow members.
    pub slow: Option<Policy>,
    /// Maximum number of members of each of these rooms.
    pub max_members: Option<usize>,
    /// Broadcasts of the members of each of these rooms, per second.
    pub rate: Option<NonZeroU32>,
    /// How many messages are kept; 0: none.
    pub history: Option<usize>,
    /// How long they are kept.
    pub history_ttl: Option<Duration>,
}

impl RoomRule {
    /// A rule that changes nothing.
    pub fn new(pattern: RoomPattern) -> Self {
        RoomRule {
            pattern,
            publish: Publish::default(),
            presence: None,
            slow: None,
            max_members: None,
            rate: None,
            history: None,
            history_ttl: None,
        }
    }
}

/// Who may publish in a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Publish {
    /// Its members, if their tokens allow it, and backends.
    #[default]
    Members,
    /// Only backends, through the API.
    Api,
}

impl Publish {
    /// All values.
    pub const ALL: [Publish; 2] = [Publish::Members, Publish::Api];

    /// The name in configuration files.
    pub fn name(self) -> &'static str {
        match self {
            Publish::Members => "members",
            Publish::Api => "api",
        }
    }
}
