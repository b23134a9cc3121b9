//! Warm-up of a contender. Its length comes from an earlier observation or is observed now.

use crate::contenders::sources;
use regatta_host::Meter;
use regatta_judge::Settler;
use regatta_load::{LoadProcessConfig, Plan, Until, WarmUp, WarmUpProgress};
use regatta_record::{Settling, WarmUpClass, WarmUpSlice};
use std::{sync::atomic::AtomicBool, time::Duration};

/// The warm-up, as a multiple of the time and requests that the contender was seen to need.
const MARGIN: f64 = 1.25;
/// Minimum warm-up of a contender whose cost had a direction but never settled: three times the first second,
/// whose cost is the cold one.
const LEAST_UNSETTLED: Duration = Duration::from_secs(3);
/// A cost that falls by this factor is that of a program that is compiled while it runs. The machine rarely changes
/// costs by as much.
pub(crate) const COMPILES: f64 = 1.5;
/// Under each further load of a life a contender is observed for at most this part of the longest observation: the
/// first load has compiled most of it.
pub(crate) const FURTHER: u32 = 4;
/// Requests of a short observation under a load that decides how many there are: a virtual machine compiles what was
/// called some thousand times (HotSpot: 5,000 to 15,000), which may take longer than two seconds then.
pub(crate) const LEAST_REQUESTS: u64 = 20_000;
/// The window of a load that only observes how a contender warms up.
pub(crate) const NO_WINDOW: Duration = Duration::from_millis(20);

/// The purpose of the warm-up before the window.
pub(crate) enum Warm<'a> {
    /// Load until the rate is steady, and at least as long as an observation found necessary.
    Needs(Option<&'a Settling>),
    /// Observe how long a warm-up is needed, for at most this time. The window is negligible.
    See(&'a mut Settler, Duration),
    /// Load until the time for each request is steady, for at most this time, and measure then. For the rate of a
    /// pilot: a server may become faster without using less CPU.
    Pace(&'a mut Settler, Duration),
}

impl Warm<'_> {
    /// Returns the warm-up: at most `usual`, unless the contender was seen to need more.
    pub fn up(&self, usual: Duration) -> WarmUp {
        match self {
            Warm::Needs(None) => WarmUp::steady(usual),
            Warm::Needs(Some(settling)) => {
                let (least, requests) = needs(settling);
                // If the machine has become slower, the requests get up to twice the time.
                WarmUp::Steady { least, requests, longest: usual.max(2 * least) }
            }
            Warm::See(_, longest) | Warm::Pace(_, longest) => WarmUp::Judged { longest: *longest },
        }
    }

    /// Returns the end of the window.
    pub fn until(&self, usual: Until) -> Until {
        match self {
            Warm::Needs(_) | Warm::Pace(..) => usual,
            Warm::See(..) => Until::Elapsed(NO_WINDOW),
        }
    }

    /// Returns the earlier observation, if there is one.
    pub fn settling(&self) -> Option<Settling> {
        match self {
            Warm::Needs(settling) => settling.copied(),
            Warm::See(..) | Warm::Pace(..) => None,
        }
    }
}

/// Whether a contender has a warm-up: its cost fell or rose.
pub(crate) fn is_needed(settling: &Settling) -> bool {
    match settling.class {
        WarmUpClass::Flat => false,
        WarmUpClass::NeverSettles => settling.has_direction(),
        WarmUpClass::WarmsUp | WarmUpClass::SlowsDown => true,
    }
}

/// Whether a warm-up is certainly the contender's: its cost fell by more than the machine changes costs.
pub(crate) fn is_certain(settling: &Settling) -> bool {
    is_needed(settling) && settling.cold_ns_per_request > COMPILES * settling.warm_ns_per_request
}

/// Returns the minimum time and number of requests of a contender's warm-up. One that never settled
/// is warmed up for twice as long as its cost was unlike the last one, and three seconds at least, if its cost had a
/// direction: longer does not help.
pub(crate) fn needs(settling: &Settling) -> (Duration, u64) {
    let cold = Duration::from_nanos(settling.cold_for_ns).mul_f64(MARGIN);
    match settling.class {
        WarmUpClass::NeverSettles if !settling.has_direction() => (cold, 0),
        WarmUpClass::NeverSettles => {
            let unlike = Duration::from_nanos(settling.cold_for_ns) * 2;
            (unlike.max(LEAST_UNSETTLED).min(Duration::from_nanos(settling.observed_ns)), 0)
        }
        _ => (
            Duration::from_nanos(settling.after_ns).mul_f64(MARGIN).max(cold),
            (settling.after_requests as f64 * MARGIN) as u64,
        ),
    }
}

/// Observes a server's warm-up, slice by slice.
pub struct WarmUpObserver<'a> {
    settler: &'a mut Settler,
    /// `None`: the time of a slice counts as its cost.
    meter: Option<Meter>,
    last: WarmUpProgress,
}

impl<'a> WarmUpObserver<'a> {
    /// Starts observing. `meter` reads the server's CPU time; `settler` receives all slices.
    pub fn new(settler: &'a mut Settler, meter: Meter) -> Self {
        WarmUpObserver { meter: Some(meter), ..WarmUpObserver::of_pace(settler) }
    }

    /// Starts observing the time for each request in place of a cost.
    pub(crate) fn of_pace(settler: &'a mut Settler) -> Self {
        let last = WarmUpProgress { lasted: Duration::ZERO, replies: 0 };
        WarmUpObserver { settler, meter: None, last }
    }

    /// Takes the slice that just ended. Returns whether the contender is warm.
    pub fn is_warm(&mut self, so_far: &WarmUpProgress) -> bool {
        let ns = so_far.lasted.saturating_sub(self.last.lasted).as_nanos() as u64;
        let slice = WarmUpSlice {
            ns,
            requests: so_far.replies.saturating_sub(self.last.replies),
            cpu_ns: self.meter.as_mut().map_or(Some(ns), Meter::lap),
        };
        self.last = *so_far;
        self.settler.add(slice)
    }

    /// Tests whether the cost of the server, which is warm by now, depends on source addresses.
    pub(crate) fn try_sources(mut self, plan: &Plan, how: &LoadProcessConfig, stop: &AtomicBool) {
        let Some(meter) = &mut self.meter else { return };
        if let Some(logs) = sources::compare(meter, plan, how, stop) {
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
            cold_for_ns: 0,
            from_localhost: None,
        }
    }

    #[test]
    fn what_never_settles_is_warmed_up_for_twice_as_long_as_it_was_cold() {
        let cold_for = |ns| Settling {
            cold_for_ns: ns,
            cold_ns_per_request: 9.0,
            ..settling(WarmUpClass::NeverSettles, 29_000)
        };
        let needs_ms = |ns| needs(&cold_for(ns)).0.as_millis();
        assert_eq!(needs_ms(4_000_000_000), 8_000);
        assert_eq!(needs_ms(20_000_000_000), 30_000, "at most as long as it was observed");
        assert_eq!(needs_ms(1), 3_000, "at least");
        assert!(is_certain(&cold_for(1)));
        assert!(!is_certain(&Settling { cold_ns_per_request: 1.4, ..cold_for(1) }));
        assert!(!is_certain(&Settling { class: WarmUpClass::Flat, ..cold_for(1) }));
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
        let least = Duration::from_secs(3);
        assert_eq!(of(&restless), WarmUp::Steady { least, requests: 0, longest: 2 * least });
        let wanders = Settling { cold_ns_per_request: 1.05, ..restless };
        assert_eq!(of(&wanders), WarmUp::steady(usual), "waiting does not help");
        // Short as it is, the time in which it was cold counts.
        for one in [flat, wanders] {
            let (least, _) = needs(&Settling { cold_for_ns: 100_000_000, ..one });
            assert_eq!(least, Duration::from_millis(125), "{one:?}");
        }
        let (least, _) = needs(&Settling { cold_for_ns: 100_000_000, ..slow });
        assert_eq!(least, five);
    }
}
