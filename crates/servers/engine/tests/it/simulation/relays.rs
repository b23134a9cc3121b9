//! What the simulations of relays have in common.

use regatta_engine::simulator::{Fault, Scenario, Visit, assert_finds};
use regatta_testkit::by_tier;

pub fn histories() -> u64 {
    by_tier(1_500, 5_000)
}

/// Events that never occur.
pub const NEVER: &[Visit] = &[
    Visit::EndPart,
    Visit::EndRequest,
    Visit::TimerRequest,
    Visit::TimerAlarm,
    Visit::JobDone,
    Visit::JobLate,
    Visit::Letter,
];

pub fn assert_finds_faults<S: Scenario>(scenario: impl Fn() -> S) {
    for fault in [Fault::LostByte, Fault::DoubledByte, Fault::NeverCloses, Fault::MissedTimer] {
        assert_finds(&scenario, fault, 3000);
    }
}
