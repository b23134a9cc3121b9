//! The time of day for services, given to them so that they read no clock themselves.

use regatta_proto::http1::Date;
use rustix::time::{ClockId, clock_gettime};
use std::cell::RefCell;

/// A second of the time of day, in the two forms that replies need.
#[derive(Clone, Debug)]
pub struct Moment {
    /// Seconds since the beginning of 1970, UTC.
    pub unix_s: u64,
    /// The same as a Date field.
    pub date: Date,
}

impl Moment {
    /// The moment of that second.
    pub fn at(unix_s: u64) -> Self {
        Moment { unix_s, date: Date::at(unix_s) }
    }
}

/// Something that knows the time.
pub trait Clock: Clone + Send + Sync + 'static {
    /// Calls `use_it` with the present moment.
    fn moment<R>(&self, use_it: impl FnOnce(&Moment) -> R) -> R;
}

/// The machine's clock. Each thread formats a second once. It is read to the tick of the kernel
/// (some milliseconds), which is cheaper than reading it exactly.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

thread_local! {
    static NOW: RefCell<Moment> = RefCell::new(Moment::at(0));
}

impl Clock for SystemClock {
    #[inline]
    fn moment<R>(&self, use_it: impl FnOnce(&Moment) -> R) -> R {
        let unix_s = u64::try_from(clock_gettime(ClockId::RealtimeCoarse).tv_sec).unwrap_or(0);
        NOW.with_borrow_mut(|now| {
            if now.unix_s != unix_s {
                *now = Moment::at(unix_s);
            }
            use_it(now)
        })
    }
}

/// A clock that stands still, for tests.
#[derive(Clone, Debug)]
pub struct StoppedAt(pub Moment);

impl Clock for StoppedAt {
    fn moment<R>(&self, use_it: impl FnOnce(&Moment) -> R) -> R {
        use_it(&self.0)
    }
}
