//! Requests of an open loop that a server did not process before a close that it announced: they are sent
//! again, and keep their due times.

use super::{Asked, Open};
use crate::{running::worker::state::Worker, sockets::connection::State};
use regatta_script::Dialect;

impl Open {
    /// Sends the requests again that were not processed before an announced close, while connections are
    /// free. Their latency still starts at the intended send. Returns whether none is left.
    pub(super) fn send_again<D: Dialect>(worker: &mut Worker<'_, D, Self>) -> bool {
        let now = worker.now;
        while let Some(&(intended, refused)) = worker.drive.again.front() {
            let open = &mut worker.drive;
            if now >= open.sends_until || intended.saturating_add(open.timeout) < now {
                open.again.pop_front();
                open.window.count(intended).timed_out += 1;
                worker.count.errors.timeout += 1;
                let timeout = worker.plan.timeout;
                let cause = "not processed before closes that the server announced, within";
                worker.count.lost(&format!("{cause} {timeout:?}"));
                continue;
            }
            let Some((slot, since)) = open.turns.next() else { return false };
            let depth = worker.depth_of(slot);
            let connection = &worker.connections[slot as usize];
            let owed = connection.cursor.owed();
            let closed = connection.state == State::Closed;
            if !closed && (connection.state != State::Open || owed >= depth) {
                continue;
            }
            let place = worker.times.next_place(&connection.sent);
            let open = &mut worker.drive;
            open.again.pop_front();
            // Until it was refused, the server had it.
            open.asked[place] = Asked { intended, free: since.max(refused) };
            if closed {
                worker.connect_in_turn(slot);
                continue;
            }
            if owed + 1 < depth {
                open.turns.freed(slot, since);
            }
            worker.ask(slot, 1);
        }
        true
    }
}
