//! The state of a core's sessions towards another server.

use crate::{Conn, Push, Uplink, UplinkAct};
use std::{collections::HashMap, time::Instant};

/// The state of a core. `waiting` is for its own sessions; only core 0 uses the rest.
pub(super) struct Remote<U, P> {
    /// `None`: this is not core 0, or the server has none.
    pub(super) uplink: Option<U>,
    pub(super) conn: Option<Conn>,
    pub(super) acts: Vec<UplinkAct<P>>,
    /// The number of the last post.
    pub(super) counted: u64,
    /// The session and its ticket, by the number of the post.
    pub(super) waiting: HashMap<u64, (Conn, u64)>,
}

impl<U, P> Remote<U, P> {
    pub(super) fn new(uplink: Option<U>) -> Self {
        Remote { uplink, conn: None, acts: Vec::new(), counted: 0, waiting: HashMap::new() }
    }

    /// Whether this is the connection of the uplink.
    #[inline]
    pub(super) fn is(&self, conn: Conn) -> bool {
        self.conn == Some(conn)
    }

    pub(super) fn due(&self) -> Option<Instant>
    where
        U: Uplink<P>,
        P: Push,
    {
        self.uplink.as_ref().and_then(U::due)
    }

    /// This core is not the one that has the connection.
    pub(super) fn leaves_it_to_others(&mut self) {
        self.uplink = None;
    }
}
