//! Operations that servers push. For a dialect that has only requests, the counting is not compiled.

use super::{driver::Driver, state::Worker};
use crate::{clock::Nanos, counts::operations::Operations};
use regatta_record::Exchange;
use regatta_script::{At, Dialect};

/// Whether servers push operations in this dialect.
const fn hears<D: Dialect>() -> bool {
    D::OPERATIONS.len() > 1
}

/// Passes received bytes to the dialect, and counts the pushed operations in them. Returns the number of
/// completed replies.
#[inline]
pub(super) fn hear<D: Dialect>(
    dialect: &D,
    at: At<'_, D>,
    came: &[u8],
    now: Nanos,
    operations: &mut Operations,
) -> Result<u32, Box<Exchange>> {
    if const { hears::<D>() } {
        dialect.receive(at, came, now, &mut operations.listen(now))
    } else {
        dialect.receive(at, came, now, &mut ())
    }
}

impl<D: Dialect, V: Driver> Worker<'_, D, V> {
    /// Announces the next `k` requests of a connection to the dialect before they are written, with the
    /// time from which their latency counts.
    #[inline]
    pub(super) fn announce(&mut self, slot: u32, k: u32, now: Nanos) {
        if const { hears::<D>() } {
            let connection = &mut self.connections[slot as usize];
            let place = self.times.next_place(&connection.sent);
            let from = self.drive.intended(place).unwrap_or(now);
            self.dialect.asked(&mut connection.talk, k, from);
        }
    }
}
