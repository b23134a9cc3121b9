//! The precision of timers.

use std::{io, num::NonZeroU64};

/// Sets the timer slack of the calling thread to the minimum, 1 ns, so that its sleeps do not
/// overrun. The default is 50 µs (PR_SET_TIMERSLACK(2const)).
pub fn minimize_slack() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?)
}
