//! A closed loop with a bound on the requests of all connections together: connections take turns,
//! and as many more are sent as were answered.

use super::{Worker, turns::Turns};
use crate::connection::State;
use regatta_script::Dialect;

/// How many more requests a load thread may send, and who sends them.
pub(super) struct InFlight {
    pub turns: Turns,
    /// Requests that may be outstanding more than are. The first request of a connection is beside
    /// the bound, unless the connection is opened for it in its turn.
    pub left: u32,
}

impl InFlight {
    /// At most `most` requests outstanding, on `slots` connections.
    pub fn new(most: usize, slots: usize) -> Self {
        InFlight { turns: Turns::new(slots), left: most as u32 }
    }
}

impl<D: Dialect> Worker<'_, D> {
    /// Sends as many as the bound and the connections allow.
    pub(super) fn send_in_turn(&mut self) {
        while self.depth > 0
            && let Some(InFlight { turns, left: left @ 1.. }) = &mut self.in_flight
        {
            let Some((slot, since)) = turns.next() else { return };
            let connection = &self.connections[slot as usize];
            let owed = connection.cursor.owed();
            if connection.state == State::Closed {
                *left -= 1;
                self.connect_in_turn(slot);
                continue;
            }
            if connection.state != State::Open || owed >= self.depth {
                continue;
            }
            *left -= 1;
            if owed + 1 < self.depth {
                turns.freed(slot, since);
            }
            self.ask(slot, 1);
        }
    }
}
