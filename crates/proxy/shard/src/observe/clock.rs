//! The time of a turn as a small number.

use std::time::Instant;

/// The time of a turn as a small number, computed once per turn.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// The first time that was asked for.
    start: Option<Instant>,
    /// The last one, and its number.
    turn: Option<Instant>,
    at_us: u32,
}

impl Clock {
    /// Microseconds from some moment to `now`, the start of the present turn. The number wraps after 71 minutes, so
    /// only the difference of two moments that are closer is right. A reply takes longer only with a node timeout
    /// above that, or to a blocking command, whose start is kept elsewhere.
    #[inline]
    pub(crate) fn at_us(&mut self, now: Instant) -> u32 {
        if self.turn != Some(now) {
            self.turn = Some(now);
            let start = *self.start.get_or_insert(now);
            self.at_us = now.saturating_duration_since(start).as_micros() as u32;
        }
        self.at_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn differences_are_right_when_the_number_wraps() {
        let (mut clock, start) = (Clock::default(), Instant::now());
        assert_eq!(clock.at_us(start), 0);
        let later = start + Duration::from_micros(u64::from(u32::MAX) - 5);
        let before = clock.at_us(later);
        assert_eq!(clock.at_us(later), before);
        let after = clock.at_us(later + Duration::from_micros(2000));
        assert!(after < before);
        assert_eq!(after.wrapping_sub(before), 2000);
    }
}
