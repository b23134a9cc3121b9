//! The offsets and rates that a set of pings allows.

use super::{
    fault::{Fault, Gain, Side},
    hull::{lower_half, upper_half},
    line::{Line, Point, Rate},
    ping::{LATEST_NS, Ping},
};
use std::cmp::Ordering;

/// Highest rate at which an agent's clock may gain or lose, in parts per billion: 500 ppm. This is the highest
/// correction of a clock's frequency that NTP and the kernel make (`MAXFREQ` of RFC 5905, appendix A.1.1, and of
/// adjtimex(2)). Clocks of quartz differ by up to 100 ppm. A faster one is being corrected, and is a [`Fault`].
pub const MAX_RATE_PPB: i64 = 500_000;
/// Most pings in a region.
pub const MOST_PINGS: usize = 1024;
/// Longest time between two pings of a region, and from them to a time to convert, in nanoseconds: a day.
pub const LONGEST_NS: u64 = 86_400_000_000_000;

/// All lines over the leader's time that the offset of an agent's clock may be. Never empty.
#[derive(Clone, Debug)]
pub struct Region {
    /// The highest offset at a time is that of one of these. Each satisfies all pings.
    above: Vec<Line>,
    /// The lowest offset at a time is that of one of these. Each satisfies all pings.
    below: Vec<Line>,
    /// Lowest and highest rate.
    rates: [Rate; 2],
    /// Times of the first and the last ping.
    times: [i128; 2],
}

/// An offset of an agent's clock, agent − leader: in `[centre_ns − bound_ns, centre_ns + bound_ns]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The middle of what is possible, in nanoseconds. Positive if the agent's clock is ahead.
    pub centre_ns: i64,
    /// Half of the width of what is possible, in nanoseconds.
    pub bound_ns: u64,
}

/// A time on the other clock: in `[at_ns − bound_ns, at_ns + bound_ns]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The middle of what is possible, in nanoseconds.
    pub at_ns: u64,
    /// Half of the width of what is possible, in nanoseconds.
    pub bound_ns: u64,
}

impl Region {
    /// Returns what these pings allow, in any order: one set, or those before, during and after a round (use `chain`).
    ///
    /// # Errors
    ///
    /// [`Fault::Contradiction`] if they allow nothing, because a clock was changed or a machine suspended. Other
    /// faults if there are no pings, or more than [`MOST_PINGS`], or within more than [`LONGEST_NS`], or if a time
    /// cannot be.
    pub fn of<'a>(pings: impl IntoIterator<Item = &'a Ping>) -> Result<Region, Fault> {
        let (mut most, mut least) = (Vec::new(), Vec::new());
        for ping in pings {
            if most.len() == MOST_PINGS {
                return Err(Fault::TooMany { limit: MOST_PINGS });
            }
            let (upper, lower) = ping.bounds()?;
            most.push(upper);
            least.push(lower);
        }
        let first = most.iter().map(|point| point.x).min().ok_or(Fault::NoPings)?;
        let last = least.iter().map(|point| point.x).max().ok_or(Fault::NoPings)?;
        // `last` is the end of the nanosecond.
        let span_ns = last - 1 - first;
        if span_ns > i128::from(LONGEST_NS) {
            return Err(Fault::TooLong { span_ns: u64::try_from(span_ns).unwrap_or(u64::MAX) });
        }
        let (most, least) = (lower_half(most), upper_half(least));
        let rates = rates(&most, &least)?;
        let above = lines(&most, rates, |corner, nearest| corner < nearest);
        let below = lines(&least, rates, |corner, nearest| corner > nearest);
        Ok(Region { above, below, rates, times: [first, last] })
    }

    /// Returns the offset when the leader's clock reads `leader_ns`. Between the pings it is known best; outside, the
    /// bound grows with the uncertainty of the rate.
    ///
    /// # Errors
    ///
    /// [`Fault::Far`] if that is more than [`LONGEST_NS`] before or after the pings.
    pub fn offset_at(&self, leader_ns: u64) -> Result<Offset, Fault> {
        let [least, most] = self.offsets(leader_ns)?;
        let far = Fault::Far { side: Side::Leader, ns: leader_ns };
        let (centre, bound) = middle(least, most);
        let centre_ns = i64::try_from(centre).map_err(|_| far)?;
        Ok(Offset { centre_ns, bound_ns: u64::try_from(bound).map_err(|_| far)? })
    }

    /// Converts a time of the leader's clock to the agent's clock.
    ///
    /// # Errors
    ///
    /// [`Fault::Far`] if that is more than [`LONGEST_NS`] before or after the pings, or before the agent's clock
    /// started.
    pub fn to_agent(&self, leader_ns: u64) -> Result<Moment, Fault> {
        let [least, most] = self.offsets(leader_ns)?.map(|offset| i128::from(leader_ns) + offset);
        moment(least, most).ok_or(Fault::Far { side: Side::Leader, ns: leader_ns })
    }

    /// Converts a time of the agent's clock to the leader's clock.
    ///
    /// # Errors
    ///
    /// As those of [`Region::to_agent`], and [`Fault::TooLate`] for a time over [`LATEST_NS`].
    pub fn to_leader(&self, agent_ns: u64) -> Result<Moment, Fault> {
        if agent_ns > LATEST_NS {
            return Err(Fault::TooLate { side: Side::Agent, ns: agent_ns });
        }
        // Rates are above −1, so the higher the offset, the earlier the agent's clock read this.
        let agent = i128::from(agent_ns);
        let least = self.above.iter().map(|line| line.floor_when(agent)).min();
        let most = self.below.iter().map(|line| line.ceil_when(agent)).max();
        let far = Fault::Far { side: Side::Agent, ns: agent_ns };
        let (least, most) = least.zip(most).ok_or(far)?;
        if !self.is_near(least) || !self.is_near(most) {
            return Err(far);
        }
        moment(least, most).ok_or(far)
    }

    /// Returns the lowest and the highest rate, in parts per billion, rounded outwards: how many nanoseconds the
    /// agent's clock gains in a second of the leader's clock.
    pub fn rates_ppb(&self) -> [i64; 2] {
        let [least, most] = self.rates;
        // They are within MAX_RATE_PPB, which fits.
        [least.floor_ppb(), most.ceil_ppb()].map(|ppb| ppb as i64)
    }

    /// The lowest and the highest offset at a time.
    fn offsets(&self, leader_ns: u64) -> Result<[i128; 2], Fault> {
        let far = Fault::Far { side: Side::Leader, ns: leader_ns };
        let x = i128::from(leader_ns);
        if !self.is_near(x) {
            return Err(far);
        }
        let least = self.below.iter().map(|line| line.floor_at(x)).min();
        let most = self.above.iter().map(|line| line.ceil_at(x)).max();
        let (least, most) = least.zip(most).ok_or(far)?;
        Ok([least, most])
    }

    fn is_near(&self, x: i128) -> bool {
        let [first, last] = self.times;
        (first - i128::from(LONGEST_NS)..=last + i128::from(LONGEST_NS)).contains(&x)
    }
}

/// The lowest and the highest rate of a line below the points `most` and above the points `least`: eliminates the
/// offset from the inequalities (Fourier and Motzkin), by combining each of one kind with each of the other.
fn rates(most: &[Point], least: &[Point]) -> Result<[Rate; 2], Fault> {
    let limit = Rate { rise: MAX_RATE_PPB.into(), run: 1_000_000_000 };
    let (mut low, mut high) = (Rate { rise: -limit.rise, ..limit }, limit);
    for &upper in most {
        for &lower in least {
            // From below `upper` to above `lower`, or the other way round.
            if upper.x > lower.x {
                let rate = Rate::between(lower, upper);
                if rate.order(high) == Ordering::Less {
                    high = rate;
                }
            } else if upper.x < lower.x || lower.y > upper.y {
                let rate = Rate::between(upper, lower);
                if rate.order(low) == Ordering::Greater {
                    low = rate;
                }
            }
        }
    }
    match low.order(high) {
        Ordering::Greater => Err(Fault::Contradiction { least: gain(low), most: gain(high) }),
        _ => Ok([low, high]),
    }
}

fn gain(rate: Rate) -> Gain {
    let gained_ns = rate.rise.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    Gain { gained_ns, over_ns: u64::try_from(rate.run).unwrap_or(u64::MAX) }
}

/// The lines that touch the corners of one half of a hull, and whose rate is the lowest, the highest, or that of an
/// edge between two corners. Between them the region has no other corner on this side. `is_nearer` says whether a
/// corner is nearer to the other half than another, by their distance from a line through the origin.
fn lines(corners: &[Point], rates: [Rate; 2], is_nearer: impl Fn(i128, i128) -> bool) -> Vec<Line> {
    let touching = |rate: Rate| {
        let height = |point: &Point| point.y * rate.run - rate.rise * point.x;
        let nearest = corners.iter().copied().reduce(|nearest, corner| {
            if is_nearer(height(&corner), height(&nearest)) { corner } else { nearest }
        });
        nearest.map(|point| Line { point, rate })
    };
    let [low, high] = rates;
    let edges = corners
        .windows(2)
        .map(|ends| Line { point: ends[0], rate: Rate::between(ends[0], ends[1]) });
    let within = edges.filter(|edge| {
        edge.rate.order(low) == Ordering::Greater && edge.rate.order(high) == Ordering::Less
    });
    within.chain(touching(low)).chain(touching(high)).collect()
}

/// The middle and half of the width, rounded so that both ends are inside.
fn middle(least: i128, most: i128) -> (i128, i128) {
    let centre = (least + most).div_euclid(2);
    (centre, most - centre)
}

/// `None` if a part of it is before the start of a clock, or if it is too late.
fn moment(least: i128, most: i128) -> Option<Moment> {
    let (at, bound) = middle(least, most);
    u64::try_from(least).ok()?;
    let at_ns = u64::try_from(at).ok().filter(|at| *at <= LATEST_NS)?;
    Some(Moment { at_ns, bound_ns: u64::try_from(bound).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    #[test]
    fn both_ends_are_within_the_bound_of_the_middle() {
        let middles = [(0, 4), (0, 3), (-3, 0), (-4, -1)].map(|(least, most)| middle(least, most));
        assert_eq!(middles, [(2, 2), (1, 2), (-2, 2), (-3, 2)]);
    }

    /// Pings of a clock that is 1,000 ns ahead, with delays of up to 1,000 ns.
    fn pings(random: &mut SmallRng) -> Vec<Ping> {
        let count = random.random_range(1..20);
        let ping = |_| {
            let t0_ns = random.random_range(0..10_000_000);
            let t1_ns = t0_ns + 1_000 + random.random_range(0..1_000);
            let t3_ns = t1_ns - 1_000 + random.random_range(0..1_000);
            Ping { t0_ns, t1_ns, t2_ns: t1_ns, t3_ns }
        };
        (0..count).map(ping).collect()
    }

    #[test]
    fn every_corner_satisfies_all_pings_and_the_limit_of_rates() {
        let mut corners = 0;
        for seed in 0..10_000 {
            let pings = pings(&mut SmallRng::seed_from_u64(seed));
            let region = Region::of(&pings).unwrap();
            for Line { point, rate } in region.above.iter().chain(&region.below) {
                // Above or below a line of this rate through the origin, times `run`.
                let height = |point: &Point| point.y * rate.run - rate.rise * point.x;
                for ping in &pings {
                    let (most, least) = ping.bounds().unwrap();
                    let heights = height(&least)..=height(&most);
                    assert!(heights.contains(&height(point)), "seed {seed}: {point:?}, {rate:?}");
                }
                let limit = i128::from(MAX_RATE_PPB) * rate.run;
                assert!((rate.rise * 1_000_000_000).abs() <= limit, "seed {seed}: {rate:?}");
                corners += 1;
            }
        }
        assert!(corners > 50_000, "{corners}");
    }
}
