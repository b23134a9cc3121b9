//! The two regimes of a race: at an equal rate, and at saturation.

use crate::{Asked, Drive, LoadShape};
use std::num::NonZeroU32;

/// The loads of a race in two regimes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Regimes {
    /// Requests per second at the equal rate.
    pub rate: NonZeroU32,
    /// The open loop: what a request costs if all contenders do the same work.
    pub equal_rate: LoadShape,
    /// The closed loop: how much a contender carries.
    pub saturation: LoadShape,
}

impl Asked {
    /// The regimes of a race whose two loads differ only in the drive: one is at a rate, the other is a
    /// closed loop.
    pub fn regimes(&self) -> Option<Regimes> {
        Regimes::of(&self.loads)
    }
}

impl Regimes {
    fn of(loads: &[LoadShape]) -> Option<Regimes> {
        let &[one, other] = loads else { return None };
        let is_first = one.drive == Drive::Closed;
        let (equal_rate, saturation) = if is_first { (other, one) } else { (one, other) };
        let rate = equal_rate.drive.rate()?;
        let is_same = LoadShape { drive: Drive::Closed, ..equal_rate } == saturation;
        let has_cost = !saturation.is_counted() && saturation.beside.is_none();
        (is_same && has_cost).then_some(Regimes { rate, equal_rate, saturation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arrivals;

    const CLOSED: LoadShape = LoadShape::closed(64, 1);

    fn at(rate: u32) -> LoadShape {
        let rate = NonZeroU32::new(rate).unwrap();
        LoadShape { drive: Drive::Open { rate, arrivals: Arrivals::Poisson }, ..CLOSED }
    }

    #[test]
    fn are_two_loads_of_one_shape() {
        let both = Regimes::of(&[at(9), CLOSED]).unwrap();
        assert_eq!((both.rate.get(), both.equal_rate, both.saturation), (9, at(9), CLOSED));
        assert_eq!(Regimes::of(&[CLOSED, at(9)]), Some(both), "in any order");
    }

    #[test]
    fn other_loads_are_not_regimes() {
        let counted = |load| LoadShape { requests: Some(9), ..load };
        let pipelined = LoadShape { pipeline: 16, ..CLOSED };
        for loads in [
            &[at(9)][..],
            &[CLOSED],
            &[CLOSED, CLOSED],
            &[at(8), at(9)],
            &[at(9), pipelined],
            &[at(9), CLOSED, pipelined],
            &[counted(at(9)), counted(CLOSED)],
        ] {
            assert_eq!(Regimes::of(loads), None, "{loads:?}");
        }
    }
}
