//! How exactly a thread is woken.

use std::{io, num::NonZeroU64};

/// From now on the calling thread sleeps no longer than it asked for: its timer slack, by default
/// 50 µs, becomes the least there is, 1 ns (PR_SET_TIMERSLACK(2const)).
pub fn as_exact_as_can_be() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?)
}
