//! The clock of an agent, bounded from pings: how far it is ahead of the leader's clock at any time of a round.
//!
//! Pure: times come in as numbers. Both clocks are `CLOCK_MONOTONIC`, in nanoseconds. NTP changes its rate, but
//! never sets it.
//!
//! # Method
//!
//! A [`Ping`] has four times, as in NTP (RFC 5905, section 8): the leader sends at `t0`, the agent receives at `t1`
//! and answers at `t2`, the leader receives at `t3`. A message never arrives before it is sent. So the offset
//! `o = agent − leader` is at most `t1 − t0` when the leader's clock reads `t0`, and at least `t2 − t3` when it reads
//! `t3`. No symmetry of the two ways is assumed. Intersecting what all pings allow (Marzullo, *Maintaining the
//! Time in a Distributed System*, 1984; RFC 5905, section 11.2.1) is at least as tight as half the round trip of the
//! best ping.
//!
//! Quartz clocks differ in their rate, so the offset is a line over the leader's time, with a rate of at most
//! [`MAX_RATE_PPB`]. It passes below all points `(t0, t1 − t0)` and above all points `(t3, t2 − t3)`. The lines that
//! do so are a [`Region`] of two dimensions, offset and rate: a linear program, for which the corners of the two
//! convex hulls are enough (Moon, Skelly and Towsley, *Estimation and Removal of Clock Skew from Network Delay
//! Measurements*, INFOCOM 1999; Zhang, Liu and Xia, *Clock Synchronization Algorithms for Network Measurements*,
//! INFOCOM 2002). With pings before and after a round, the offset at any time between them is known as well as at
//! the ends.
//!
//! All arithmetic is exact, in integers, and every result is rounded outwards.
//!
//! # What is assumed
//!
//! The rate is constant from the first ping to the last. If NTP changes it in between, the region becomes empty,
//! which is a [`Fault`], or the change is smaller than what the pings can show. Pings during the round make the
//! second case smaller: a region takes any number of them.

mod fault;
mod hull;
mod line;
mod ping;
mod region;
#[cfg(test)]
mod tests;

pub use fault::{Fault, Gain, Side};
pub use ping::{LATEST_NS, Ping};
pub use region::{LONGEST_NS, MAX_RATE_PPB, MOST_PINGS, Moment, Offset, Region};
