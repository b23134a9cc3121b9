//! Whatever is killed (`kill -9`) in whatever phase of a load over agents or of a race on another machine: it is reported
//! within 3 s, nothing is left of it after 12 s, and the result is void and says so, or it counts. Exception: a broker
//! that stays away is reported after the lease.
//!
//! A phase is recognised by a message on its way, which is held until the victim is dead.

mod broker;
mod contender;
mod fleet;
mod loads;
mod tap;

use std::{fmt::Write, time::Duration};

/// A loss is reported within this time.
const REPORTED_WITHIN: Duration = Duration::from_secs(3);
/// Nothing is left after this time: the lease, and some time to end.
const GONE_WITHIN: Duration = Duration::from_secs(12);

/// What happened after a kill.
struct Row {
    phase: &'static str,
    /// From the kill until it was reported.
    reported: Duration,
    /// From the kill until nothing was left.
    gone: Duration,
    /// What the report says, or what was counted.
    outcome: String,
}

/// Prints what happened in each phase.
fn print(victim: &str, rows: &[Row]) {
    let mut text = format!("killed: {victim}\n{:24} reported      gone  outcome\n", "phase");
    for Row { phase, reported, gone, outcome } in rows {
        let [reported, gone] = [reported, gone].map(|time| format!("{:.2} s", time.as_secs_f64()));
        writeln!(text, "{phase:24} {reported:>8}  {gone:>8}  {outcome}").unwrap();
    }
    println!("{text}");
}
