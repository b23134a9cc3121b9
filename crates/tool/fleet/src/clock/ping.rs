//! One clock ping.

use super::{
    fault::{Fault, Side},
    line::Point,
};

/// Latest time that is read of a clock, in nanoseconds: 146 years.
pub const LATEST_NS: u64 = (1 << 62) - 1;

/// A question for the agent's time, and its answer. Times are nanoseconds of `CLOCK_MONOTONIC`, read by the program
/// that sends or has received. The kernel truncates them to whole nanoseconds.
///
/// For the offset of wall clocks, read `CLOCK_REALTIME` at the same places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// The leader's clock, before it sent the question.
    pub t0_ns: u64,
    /// The agent's clock, after it received the question.
    pub t1_ns: u64,
    /// The agent's clock, before it sent the answer.
    pub t2_ns: u64,
    /// The leader's clock, after it received the answer.
    pub t3_ns: u64,
}

impl Ping {
    /// Returns the round trip, in nanoseconds: `(t3 − t0) − (t2 − t1)`, without the time that the agent took (the
    /// delay of RFC 5905, section 8). 0 if the agent took longer than the leader waited, which is possible with clocks of
    /// different rates. `None` if a clock went backwards.
    pub fn round_trip_ns(&self) -> Option<u64> {
        let waited = self.t3_ns.checked_sub(self.t0_ns)?;
        Some(waited.saturating_sub(self.t2_ns.checked_sub(self.t1_ns)?))
    }

    /// Returns what the ping says about the offset: a point that it does not exceed, and one that it is not below.
    ///
    /// A reading of `t` is of a time in `[t, t + 1)`. So the agent's clock read less than `t1 + 1` after the leader's
    /// read `t0`, and at least `t2` before the leader's read `t3 + 1`.
    pub(super) fn bounds(&self) -> Result<(Point, Point), Fault> {
        let of_leader = [self.t0_ns, self.t3_ns].map(|ns| (Side::Leader, ns));
        let of_agent = [self.t1_ns, self.t2_ns].map(|ns| (Side::Agent, ns));
        for [(side, from_ns), (_, to_ns)] in [of_leader, of_agent] {
            if let Some(ns) = [from_ns, to_ns].into_iter().find(|ns| *ns > LATEST_NS) {
                return Err(Fault::TooLate { side, ns });
            }
            if to_ns < from_ns {
                return Err(Fault::Backwards { side, from_ns, to_ns });
            }
        }
        let (sent, returned) = (i128::from(self.t0_ns), i128::from(self.t3_ns) + 1);
        let (received, answered) = (i128::from(self.t1_ns) + 1, i128::from(self.t2_ns));
        let most = Point { x: sent, y: received - sent };
        let least = Point { x: returned, y: answered - returned };
        Ok((most, least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: Ping = Ping { t0_ns: 1_000, t1_ns: 70_040, t2_ns: 70_050, t3_ns: 1_100 };

    #[test]
    fn a_round_trip_excludes_the_time_that_the_agent_took() {
        assert_eq!(PING.round_trip_ns(), Some(90));
        assert_eq!(Ping { t3_ns: 999, ..PING }.round_trip_ns(), None);
        assert_eq!(Ping { t2_ns: 70_039, ..PING }.round_trip_ns(), None);
        assert_eq!(
            Ping { t2_ns: 70_141, ..PING }.round_trip_ns(),
            Some(0),
            "longer than it waited"
        );
    }

    #[test]
    fn the_offset_is_below_the_way_out_and_above_the_way_back() {
        // 70,040 − 1,000 and 70,050 − 1,100, each 1 ns wider because readings are truncated.
        let (most, least) = PING.bounds().unwrap();
        assert_eq!((most.x, most.y), (1_000, 69_041));
        assert_eq!((least.x, least.y), (1_101, 68_949));
    }

    #[test]
    fn times_that_cannot_be_are_refused() {
        let late = Ping { t1_ns: LATEST_NS + 1, t2_ns: LATEST_NS + 1, ..PING };
        let fault = Fault::TooLate { side: Side::Agent, ns: LATEST_NS + 1 };
        assert_eq!(late.bounds(), Err(fault));
        assert!(Ping { t1_ns: LATEST_NS, t2_ns: LATEST_NS, ..PING }.bounds().is_ok());
        let back = Ping { t3_ns: 999, ..PING };
        let fault = Fault::Backwards { side: Side::Leader, from_ns: 1_000, to_ns: 999 };
        assert_eq!(back.bounds(), Err(fault));
        let back = Ping { t2_ns: 70_039, ..PING };
        let fault = Fault::Backwards { side: Side::Agent, from_ns: 70_040, to_ns: 70_039 };
        assert_eq!(back.bounds(), Err(fault));
    }
}
