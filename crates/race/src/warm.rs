//! How a contender is warmed up: by what was seen of it before, or it is seen now.

use crate::sources;
use regatta_host::Meter;
use regatta_judge::Settler;
use regatta_load::{Plan, Processes, SoFar, Until, WarmUp};
use regatta_record::{Settling, WarmUpClass, WarmUpSlice};
use std::{sync::atomic::AtomicBool, time::Duration};

/// So much longer than a contender was seen to need, in time and in requests, it is warmed up.
const MARGIN: f64 = 1.25;
/// The window of a load that is only there to see how a contender warms up.
pub(crate) const NO_WINDOW: Duration = Duration::from_millis(20);

/// What is to be done before the window.
pub(crate) enum Warm<'a> {
    /// Load until the rate is steady, and for as long as was seen to be needed, where it was.
    Needs(Option<&'a Settling>),
    /// See what is needed. There is no window to speak of.
    See(&'a mut Settler, Duration),
}

impl Warm<'_> {
    /// The warm-up of a contender for which `usual` is enough, unless it was seen to need more.
    pub fn up(&self, usual: Duration) -> WarmUp {
        match self {
            Warm::Needs(None) => WarmUp::steady(usual),
            Warm::Needs(Some(settling)) => {
                let (least, requests) = needs(settling);
                // A machine that is slower than it was gets twice the time for as many requests.
                WarmUp::Steady { least, requests, longest: usual.max(2 * least) }
            }
            Warm::See(_, longest) => WarmUp::Judged { longest: *longest },
        }
    }

    /// When the window ends.
    pub fn until(&self, usual: Until) -> Until {
        match self {
            Warm::Needs(_) => usual,
            Warm::See(..) => Until::Elapsed(NO_WINDOW),
        }
    }

    /// What was seen before.
    pub fn settling(&self) -> Option<Settling> {
        match self {
            Warm::Needs(settling) => settling.copied(),
            Warm::See(..) => None,
        }
    }
}

/// How long a contender is warmed up at least, and with how many requests. One that never settled gets
/// as long as it was observed, if its cost had a direction.
pub(crate) fn needs(settling: &Settling) -> (Duration, u64) {
    match settling.class {
        WarmUpClass::NeverSettles if !settling.has_direction() => (Duration::ZERO, 0),
        WarmUpClass::NeverSettles => (Duration::from_nanos(settling.observed_ns), 0),
        _ => (
            Duration::from_nanos(settling.after_ns).mul_f64(MARGIN),
            (settling.after_requests as f64 * MARGIN) as u64,
        ),
    }
}

/// Sees a server warm up, slice by slice.
pub struct Seeing<'a> {
    settler: &'a mut Settler,
    meter: Meter,
    last: SoFar,
}

impl<'a> Seeing<'a> {
    /// From now on. `meter` reads the server's CPU; `settler` is told all slices.
    pub fn new(settler: &'a mut Settler, meter: Meter) -> Self {
        let last = SoFar { lasted: Duration::ZERO, replies: 0 };
        Seeing { settler, meter, last }
    }

    /// One more slice is over: whether the contender is warm.
    pub fn is_warm(&mut self, so_far: &SoFar) -> bool {
        let slice = WarmUpSlice {
            ns: so_far.lasted.saturating_sub(self.last.lasted).as_nanos() as u64,
            requests: so_far.replies.saturating_sub(self.last.replies),
            cpu_ns: self.meter.lap(),
        };
        self.last = *so_far;
        self.settler.add(slice)
    }

    /// Tries whether the server, which is warm by now, cares where connections come from.
    pub(crate) fn try_sources(mut self, plan: &Plan, how: &Processes, stop: &AtomicBool) {
        if let Some(logs) = sources::compare(&mut self.meter, plan, how, stop) {
            self.settler.add_sources(logs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settling(class: WarmUpClass, after_ms: u64) -> Settling {
        Settling {
            class,
            observed_ns: 30_000_000_000,
            after_ns: after_ms * 1_000_000,
            after_requests: after_ms * 40,
            cold_ns_per_request: 2.0,
            warm_ns_per_request: 1.0,
            from_localhost: None,
        }
    }

    #[test]
    fn a_warm_up_has_a_margin_in_time_and_in_requests() {
        let usual = Duration::from_secs(1);
        let of = |settling: &Settling| Warm::Needs(Some(settling)).up(usual);
        let slow = settling(WarmUpClass::WarmsUp, 4_000);
        let five = Duration::from_secs(5);
        assert_eq!(of(&slow), WarmUp::Steady { least: five, requests: 200_000, longest: 2 * five });
        let flat = settling(WarmUpClass::Flat, 0);
        assert_eq!(of(&flat), WarmUp::steady(usual), "as if it had not been observed");
        let restless = settling(WarmUpClass::NeverSettles, 29_000);
        let longest = Duration::from_secs(30);
        assert_eq!(
            of(&restless),
            WarmUp::Steady { least: longest, requests: 0, longest: 2 * longest }
        );
        let wanders = Settling { cold_ns_per_request: 1.05, ..restless };
        assert_eq!(of(&wanders), WarmUp::steady(usual), "waiting does not help");
    }
}
