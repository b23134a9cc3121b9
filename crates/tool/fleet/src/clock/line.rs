//! Points, rates and lines of exact integers.
//!
//! `x` is a time of the leader's clock and `y` an offset, in nanoseconds. Both are below 2^63, and times of a region
//! are less than 2^48 apart. So no product here reaches 2^127.

use std::cmp::Ordering;

/// An offset at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    /// Time of the leader's clock.
    pub x: i128,
    /// Offset.
    pub y: i128,
}

/// A change of the offset over time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// Change of the offset.
    pub rise: i128,
    /// Time. Never negative; 0 is a step, if `rise` is positive.
    pub run: i128,
}

impl Rate {
    /// From one point to another one that is not before it.
    pub(super) fn between(from: Point, to: Point) -> Rate {
        Rate { rise: to.y - from.y, run: to.x - from.x }
    }

    /// The order of two rates. A step is above all others.
    pub(super) fn order(self, other: Rate) -> Ordering {
        (self.rise * other.run).cmp(&(other.rise * self.run))
    }

    /// Rounded down, in parts per billion. For a rate that is not a step.
    pub(super) fn floor_ppb(self) -> i128 {
        (self.rise * 1_000_000_000).div_euclid(self.run)
    }

    /// Rounded up, in parts per billion. For a rate that is not a step.
    pub(super) fn ceil_ppb(self) -> i128 {
        -(-self.rise * 1_000_000_000).div_euclid(self.run)
    }
}

/// An offset that changes at a constant rate, which is not a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// A point on it.
    pub point: Point,
    /// Its rate.
    pub rate: Rate,
}

impl Line {
    /// The offset at a time, rounded down.
    pub(super) fn floor_at(&self, x: i128) -> i128 {
        self.point.y + (self.rate.rise * (x - self.point.x)).div_euclid(self.rate.run)
    }

    /// The offset at a time, rounded up.
    pub(super) fn ceil_at(&self, x: i128) -> i128 {
        self.point.y - (-self.rate.rise * (x - self.point.x)).div_euclid(self.rate.run)
    }

    /// The leader's time when the agent's clock reads `agent`, rounded down: the solution of
    /// `x + y + rate · (time − x) + (time − x) = agent`. For rates above −1.
    pub(super) fn floor_when(&self, agent: i128) -> i128 {
        let since = agent - self.point.x - self.point.y;
        self.point.x + (since * self.rate.run).div_euclid(self.rate.run + self.rate.rise)
    }

    /// As [`Line::floor_when`], rounded up.
    pub(super) fn ceil_when(&self, agent: i128) -> i128 {
        let since = agent - self.point.x - self.point.y;
        self.point.x - (-since * self.rate.run).div_euclid(self.rate.run + self.rate.rise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(x: i128, y: i128, rise: i128, run: i128) -> Line {
        Line { point: Point { x, y }, rate: Rate { rise, run } }
    }

    #[test]
    fn offsets_are_rounded_outwards() {
        let rising = line(10, -5, 1, 3);
        assert_eq!((rising.floor_at(10), rising.ceil_at(10)), (-5, -5));
        assert_eq!((rising.floor_at(11), rising.ceil_at(11)), (-5, -4));
        assert_eq!((rising.floor_at(9), rising.ceil_at(9)), (-6, -5));
        let falling = line(10, 0, -1, 3);
        assert_eq!((falling.floor_at(11), falling.ceil_at(11)), (-1, 0));
    }

    #[test]
    fn the_time_of_an_agent_time_is_rounded_outwards() {
        // The agent's clock reads 100 at 0 and runs at 4/3 of the leader's rate: 102 is at 1.5.
        let line = line(0, 100, 1, 3);
        assert_eq!((line.floor_when(102), line.ceil_when(102)), (1, 2));
        assert_eq!((line.floor_when(104), line.ceil_when(104)), (3, 3));
        assert_eq!((line.floor_when(99), line.ceil_when(99)), (-1, 0));
    }

    #[test]
    fn a_step_is_above_every_rate() {
        let step = Rate { rise: 1, run: 0 };
        for rate in [Rate { rise: 1 << 62, run: 1 }, Rate { rise: -1, run: 1 }] {
            assert_eq!((step.order(rate), rate.order(step)), (Ordering::Greater, Ordering::Less));
        }
        let third = Rate { rise: 1, run: 3 };
        assert_eq!(third.order(Rate { rise: 2, run: 6 }), Ordering::Equal);
        assert_eq!((third.floor_ppb(), third.ceil_ppb()), (333_333_333, 333_333_334));
    }
}
