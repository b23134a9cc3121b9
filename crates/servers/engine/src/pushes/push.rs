//! What sessions post to each other, and the rooms they are in.

use crate::Never;
use std::sync::Arc;

/// A message from one session to others. It is cheap to clone, e.g. an `Arc` of encoded bytes.
pub trait Push: Clone + Send + 'static {
    /// Whether pushes can exist. If not, no code is compiled for them.
    const EVER: bool = true;

    /// Its size in bytes, for [`Bounds::bytes`](crate::Bounds::bytes). 0 if only the number of
    /// pushes is bounded.
    fn size(&self) -> usize {
        0
    }

    /// Whether it reaches a slow consumer, too: no policy but `close` drops it.
    fn must_arrive(&self) -> bool {
        false
    }
}

impl Push for Never {
    const EVER: bool = false;
}

/// The name of a room, whose sessions receive each other's posts. The lobby has no name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoomName(Option<Arc<str>>);

impl RoomName {
    /// The room without a name.
    pub const LOBBY: RoomName = RoomName(None);

    /// Returns the room with this name, or the lobby if the name is empty.
    pub fn of(name: &str) -> RoomName {
        RoomName((!name.is_empty()).then(|| name.into()))
    }

    /// The name; empty for the lobby.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or("")
    }
}
