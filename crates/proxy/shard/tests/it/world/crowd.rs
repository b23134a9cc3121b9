//! Many clients that try passwords at the same time.

use super::{Tested, World};
use crate::{
    client::Client,
    seen::{Fault, Seen},
    wire::{End, Wire},
};
use rand::Rng;
use regatta_engine::Conn;

/// The start of the reply to a wrong password.
pub(super) const REFUSAL: &[u8] = b"-WRONGPASS ";

/// How many of them fit in the smallest reply buffer of Redis: 64 bytes of 1 KiB.
const FIT: usize = 16;

impl<E: Tested> World<E> {
    /// Connects clients that try passwords.
    pub(super) fn admit_crowd(&mut self) {
        for _ in 0..self.random.random_range(10..40) {
            self.turn();
            let conn = self.core.accept();
            let client = Client::guessing(self.clients, self.trouble, &mut self.random);
            self.clients += 1;
            self.wires.insert(conn, Wire::new(End::Client(client)));
            self.serve(conn);
            self.end_turn();
        }
    }

    /// Closes a connection that has not authenticated if more refusals are pending than fit, as a node does whose first
    /// user needs a password. None of them arrives.
    pub(super) fn limit_refusals(&mut self, conn: Conn, seen: &mut Seen) {
        let fit = if self.fault == Some(Fault::ManyLogins) { 3 } else { FIT };
        let Some(wire) = self.wires.get_mut(&conn) else { return };
        let pending = wire.to_proxy.windows(REFUSAL.len()).filter(|part| *part == REFUSAL).count();
        seen.crowded_logins += u64::from(pending > 6);
        if pending > fit {
            wire.to_proxy.clear();
            wire.is_reset = true;
        }
    }
}
