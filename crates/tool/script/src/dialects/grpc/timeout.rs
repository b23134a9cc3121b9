//! The deadline of a call, as its server gets it: `grpc-timeout`.
//!
//! Source: the gRPC repository, `doc/PROTOCOL-HTTP2.md`: at most eight digits and a unit.

use std::time::Duration;

/// Maximum value of the digits.
const MOST: u128 = 99_999_999;

/// The units and their lengths in nanoseconds, the longest first.
const UNITS: [(char, u128); 6] = [
    ('H', 3_600_000_000_000),
    ('M', 60_000_000_000),
    ('S', 1_000_000_000),
    ('m', 1_000_000),
    ('u', 1_000),
    ('n', 1),
];

/// Writes a timeout: in the longest unit that is exact, and otherwise in the shortest one with enough digits,
/// rounded up.
pub(super) fn in_header(timeout: Duration) -> String {
    let nanos = timeout.as_nanos();
    let exact =
        |(_, length): &&(char, u128)| nanos.is_multiple_of(*length) && nanos / length <= MOST;
    let exact = UNITS.iter().find(exact);
    let long_enough = || UNITS.iter().rev().find(|(_, length)| nanos.div_ceil(*length) <= MOST);
    let (unit, length) = exact.or_else(long_enough).unwrap_or(&UNITS[0]);
    format!("{}{unit}", nanos.div_ceil(*length).min(MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_have_at_most_eight_digits_and_are_never_shortened() {
        for (timeout, expected) in [
            (Duration::ZERO, "0H"),
            (Duration::from_nanos(1), "1n"),
            (Duration::from_millis(1_500), "1500m"),
            (Duration::from_secs(5), "5S"),
            (Duration::from_secs(120), "2M"),
            (Duration::from_secs(7_200), "2H"),
            (Duration::from_nanos(99_999_999), "99999999n"),
            (Duration::from_nanos(100_000_001), "100001u"),
            // 100,000,001 µs and 100,000,001 ms have nine digits.
            (Duration::new(100, 1), "100001m"),
            (Duration::new(100_000, 1), "100001S"),
            (Duration::MAX, "99999999H"),
        ] {
            assert_eq!(in_header(timeout), expected, "{timeout:?}");
        }
    }
}
