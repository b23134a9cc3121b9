//! Formats figures for people: with units, and with no more digits than the interval supports.

use chrono::DateTime;
use regatta_record::{Estimate, ShownPercentile};

/// The text of a missing value.
pub const NONE: &str = "–";

/// A unit, and its size in the unit of the record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// The printed name.
    pub name: &'static str,
    /// Its size in the unit of the record.
    pub size: f64,
}

const TIMES: [Unit; 4] = [
    Unit { name: "ns", size: 1.0 },
    Unit { name: "µs", size: 1e3 },
    Unit { name: "ms", size: 1e6 },
    Unit { name: "s", size: 1e9 },
];
const RATES: [Unit; 3] = [
    Unit { name: "/s", size: 1.0 },
    Unit { name: "k/s", size: 1e3 },
    Unit { name: "M/s", size: 1e6 },
];
const MEMORIES: [Unit; 4] = [
    Unit { name: "B", size: 1.0 },
    Unit { name: "KiB", size: 1024.0 },
    Unit { name: "MiB", size: 1_048_576.0 },
    Unit { name: "GiB", size: 1_073_741_824.0 },
];

/// The unit for a column of costs in nanoseconds: microseconds, unless all are 10 ms or more.
pub fn cost_unit(costs_ns: impl Iterator<Item = f64>) -> Unit {
    if costs_ns.fold(f64::INFINITY, f64::min) < 1e7 { TIMES[1] } else { TIMES[2] }
}

/// The unit for a column of times in seconds: the largest in which the smallest time is at least 1. Its
/// size is in seconds.
pub fn seconds_unit(times_s: impl Iterator<Item = f64>) -> Unit {
    let least = times_s.fold(f64::INFINITY, f64::min);
    let fits = |u: &&Unit| least * 1e9 >= u.size;
    let unit = TIMES.iter().rev().find(fits).unwrap_or(&TIMES[0]);
    Unit { size: unit.size / 1e9, ..*unit }
}

/// The unit for a column of rates per second: the largest in which the smallest rate is at least 10.
pub fn rate_unit(rates: impl Iterator<Item = f64>) -> Unit {
    let least = rates.fold(f64::INFINITY, f64::min);
    let fits = |u: &&Unit| least.is_finite() && least >= 10.0 * u.size;
    RATES.iter().rev().find(fits).copied().unwrap_or(RATES[0])
}

/// The unit for a column of times in nanoseconds (see [`column_unit`]).
pub fn time_unit(times_ns: impl Iterator<Item = f64>) -> Unit {
    column_unit(times_ns, &TIMES)
}

/// The unit for a column of memory in bytes (see [`column_unit`]).
pub fn memory_unit(bytes: impl Iterator<Item = f64>) -> Unit {
    column_unit(bytes, &MEMORIES)
}

/// The largest unit in which the smallest value is at least 1; a larger one if the largest value would
/// have more than four digits.
fn column_unit(values: impl Iterator<Item = f64>, units: &[Unit]) -> Unit {
    let positive: Vec<f64> = values.filter(|value| *value > 0.0).collect();
    let least = positive.iter().copied().fold(f64::INFINITY, f64::min);
    let most = positive.iter().copied().fold(0.0, f64::max);
    let fits = |unit: &&Unit| least >= unit.size && least.is_finite();
    let by_least = units.iter().rposition(|unit| fits(&unit)).unwrap_or(0);
    let is_short = |unit: &&Unit| most < 10_000.0 * unit.size;
    *units[by_least..].iter().find(is_short).unwrap_or(&units[by_least])
}

/// `61.2 k/s`, `400/s`: a rate per second with at most three digits.
pub fn rate(per_s: f64) -> String {
    let unit = RATES.iter().rev().find(|unit| per_s >= unit.size).unwrap_or(&RATES[0]);
    let value = short(three_digits(per_s / unit.size).parse().unwrap_or(per_s));
    let gap = if unit.size > 1.0 { " " } else { "" };
    format!("{value}{gap}{}", unit.name)
}

/// Formats a time in nanoseconds, with its unit.
pub fn time(ns: f64) -> String {
    with_unit(ns, &TIMES)
}

/// `511 µs [498–524]`: a time in nanoseconds with its interval, in the unit of its mean.
pub fn time_estimate(e: &Estimate) -> String {
    let unit = TIMES.iter().rev().find(|unit| e.mean >= unit.size).unwrap_or(&TIMES[0]);
    let text = estimate(e, unit.size);
    text.replacen(" [", &format!(" {} [", unit.name), 1)
}

/// A latency percentile with its interval, if it has one, as in every report.
pub fn percentile(shown: &ShownPercentile) -> String {
    shown.interval.map_or_else(|| time(shown.ns), |interval| time_estimate(&interval))
}

/// A latency percentile in `unit`, without its name, with its interval if it has one.
pub fn percentile_in(shown: &ShownPercentile, unit: f64) -> String {
    shown.interval.map_or_else(|| three_digits(shown.ns / unit), |e| estimate(&e, unit))
}

/// Removes the interval from a text.
pub fn brief(text: &str) -> String {
    match text.find(" [").zip(text.find(']')) {
        Some((from, to)) if from < to => format!("{}{}", &text[..from], &text[to + 1..]),
        _ => text.to_owned(),
    }
}

/// Formats memory in bytes, with its unit.
pub fn memory(bytes: u64) -> String {
    with_unit(bytes as f64, &MEMORIES)
}

fn with_unit(value: f64, units: &[Unit]) -> String {
    let unit = units.iter().rev().find(|u| value >= u.size).unwrap_or(&units[0]);
    format!("{} {}", three_digits(value / unit.size), unit.name)
}

/// Formats a value with three significant digits, but at most four decimals. Digits before the decimal
/// point are never cut.
pub fn three_digits(value: f64) -> String {
    let decimals = if value == 0.0 { 0 } else { 2 - value.abs().log10().floor() as i32 };
    format!("{value:.*}", decimals.clamp(0, 4) as usize)
}

/// Formats a value with at most four significant digits and no trailing zeros after the decimal point.
pub fn short(value: f64) -> String {
    let decimals = if value == 0.0 { 0 } else { 3 - value.abs().log10().floor() as i32 };
    let power = 10f64.powi(decimals);
    format!("{}", (value * power).round() / power)
}

/// `4.41 [4.38–4.45]`, in `unit`; `1 [-2 to 4]` if the interval contains negative values.
pub fn estimate(e: &Estimate, unit: f64) -> String {
    let decimals = decimals(e, unit);
    let [mean, low, high] = [e.mean, e.low, e.high].map(|v| {
        let text = format!("{:.decimals$}", v / unit);
        // A negative value that rounds to zero has no sign.
        if text.parse() == Ok(0.0) { text.replace('-', "") } else { text }
    });
    let to = if low.starts_with('-') { " to " } else { "–" };
    format!("{mean} [{low}{to}{high}]")
}

/// `1.40× [1.36–1.45]`. Three decimals if the half-width is below 0.005, and up to three if an interval
/// that excludes 1 would otherwise be printed with 1 as a bound.
pub fn ratio(e: &Estimate) -> String {
    let mut decimals = if e.high - e.low < 0.01 { 3 } else { decimals(e, 1.0).min(2) };
    let reads_as_1 = |bound: f64, decimals: usize| format!("{bound:.decimals$}").parse() == Ok(1.0);
    let excludes = |decimals: usize| {
        (e.low <= 1.0 || !reads_as_1(e.low, decimals))
            && (e.high >= 1.0 || !reads_as_1(e.high, decimals))
    };
    while decimals < 3 && !excludes(decimals) {
        decimals += 1;
    }
    let [mean, low, high] = [e.mean, e.low, e.high].map(|v| format!("{v:.decimals$}"));
    format!("{mean}× [{low}–{high}]")
}

/// The same without `×`, for a column whose title says that it has ratios.
pub fn bare_ratio(e: &Estimate) -> String {
    ratio(e).replacen('×', "", 1)
}

/// Half of the interval of a ratio, as a fraction of the ratio.
pub fn half_width(ratio: &Estimate) -> f64 {
    (ratio.high / ratio.low).sqrt() - 1.0
}

/// `1.36–1.45×`: only the interval of a ratio.
pub fn ratio_range(e: &Estimate) -> String {
    let text = ratio(e);
    let range = text.split_once('[').and_then(|(_, range)| range.strip_suffix(']'));
    format!("{}×", range.unwrap_or(&text))
}

/// The number of decimals such that the last digit is at most half of the half-width, with at most 4
/// significant digits of the mean.
fn decimals(e: &Estimate, unit: f64) -> usize {
    let half = (e.high - e.low) / 2.0 / unit;
    let magnitude = (e.mean / unit).abs().max(1e-9).log10().floor() as i32;
    let by_interval = if half > 0.0 { -(half / 2.0).log10().floor() as i32 } else { 3 };
    by_interval.min(3 - magnitude).clamp(0, 6) as usize
}

/// A fraction as a percentage, with two decimals below 1%, one below 10%, and otherwise none: `0.84%`,
/// `3.1%`, `12%`.
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let decimals = if percent >= 10.0 {
        0
    } else if percent >= 1.0 {
        1
    } else {
        2
    };
    format!("{percent:.decimals$}%")
}

/// `1,048,576`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats seconds since 1970 as `2026-09-21 14:13:20 UTC`.
pub fn date(unix_s: u64) -> String {
    let time = i64::try_from(unix_s).ok().and_then(|s| DateTime::from_timestamp(s, 0));
    match time {
        Some(time) => time.format("%Y-%m-%d %H:%M:%S UTC").to_string(),
        None => format!("{unix_s} s after 1970"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_limits_the_digits() {
        let e = |mean, low, high| Estimate { mean, low, high };
        assert_eq!(estimate(&e(4411.3, 4378.2, 4447.9), 1e3), "4.41 [4.38–4.45]");
        assert_eq!(estimate(&e(4411.3, 3900.0, 5000.0), 1e3), "4.4 [3.9–5.0]");
        assert_eq!(estimate(&e(222_512.0, 221_000.0, 224_100.0), 1e3), "222.5 [221.0–224.1]");
        assert_eq!(estimate(&e(222_512.0, 201_000.0, 244_100.0), 1e3), "223 [201–244]");
        assert_eq!(estimate(&e(9.0, -0.3, 17.0), 1.0), "9 [0–17]");
        assert_eq!(estimate(&e(9.0, -2.3, 17.0), 1.0), "9 [-2 to 17]");
        assert_eq!(estimate(&e(5.0, 5.0, 5.0), 1.0), "5.000 [5.000–5.000]");
        assert_eq!(ratio(&e(1.4, 1.364, 1.447)), "1.40× [1.36–1.45]");
        assert_eq!(ratio(&e(1.0012, 0.9987, 1.0031)), "1.001× [0.999–1.003]");
        assert_eq!(ratio(&e(1.015, 1.0047, 1.0259)), "1.015× [1.005–1.026]");
        assert_eq!(ratio(&e(24.0, 12.0, 48.0)), "24× [12–48]");
    }

    #[test]
    fn an_interval_that_excludes_1_is_not_printed_as_if_it_contained_1() {
        let e = |mean, low, high| Estimate { mean, low, high };
        assert_eq!(ratio(&e(0.693, 0.50, 0.96)), "0.69× [0.50–0.96]");
        assert_eq!(ratio(&e(1.5, 1.03, 2.2)), "1.50× [1.03–2.20]");
        assert_eq!(ratio(&e(8.0, 1.2, 53.0)), "8.0× [1.2–53.0]");
        assert_eq!(ratio(&e(1.3, 1.002, 1.7)), "1.300× [1.002–1.700]");
        assert_eq!(ratio(&e(1.3, 1.0001, 1.7)), "1.300× [1.000–1.700]", "three digits at most");
        assert_eq!(ratio(&e(1.3, 0.97, 1.7)), "1.3× [1.0–1.7]", "it contains 1");
    }

    #[test]
    fn short_numbers_have_no_trailing_zeros() {
        let all = [0.0, 40.0, 52.5, 52.54321, 123_456.0, 0.25, 1e6].map(short);
        assert_eq!(all, ["0", "40", "52.5", "52.54", "123500", "0.25", "1000000"]);
    }

    #[test]
    fn a_time_and_its_interval_share_a_unit() {
        let e = |mean, low, high| Estimate { mean, low, high };
        let text = time_estimate(&e(511_400.0, 498_200.0, 524_900.0));
        assert_eq!(text, "511 µs [498–525]");
        assert_eq!(brief(&text), "511 µs");
        assert_eq!(brief(&format!("({text})")), "(511 µs)");
        assert_eq!(time_estimate(&e(1_110_000.0, 900_000.0, 1_400_000.0)), "1.1 ms [0.9–1.4]");
        assert_eq!(brief("511 µs"), "511 µs");
    }

    #[test]
    fn picks_readable_units() {
        assert_eq!(time(312.0), "312 ns");
        assert_eq!(time(282_000.0), "282 µs");
        assert_eq!(time(1_240_000.0), "1.24 ms");
        assert_eq!(time(12_300_000_000.0), "12.3 s");
        assert_eq!(memory(3 * 1_048_576), "3.00 MiB");
        assert_eq!(memory(0), "0 B");
        assert_eq!(rate_unit([9_000.0, 90_000.0].into_iter()).name, "/s");
        assert_eq!(
            [61_000.0, 61_234.0, 400.0, 1.25e6].map(rate),
            ["61 k/s", "61.2 k/s", "400/s", "1.25 M/s"]
        );
        assert_eq!(rate_unit([10_000.0, 90_000.0].into_iter()).name, "k/s");
        assert_eq!(seconds_unit([0.9, 2.0].into_iter()), Unit { name: "ms", size: 1e-3 });
        assert_eq!(seconds_unit([1.1, 2.0].into_iter()), Unit { name: "s", size: 1.0 });
        assert_eq!(rate_unit(std::iter::empty()).name, "/s");
        assert_eq!(cost_unit([4_000.0, 9e7].into_iter()).name, "µs");
        assert_eq!([percent(0.0084), percent(0.031), percent(0.12)], ["0.84%", "3.1%", "12%"]);
        assert_eq!([grouped(0), grouped(999), grouped(1_048_576)], ["0", "999", "1,048,576"]);
    }

    #[test]
    fn a_column_has_one_unit() {
        let name = |values: &[f64]| time_unit(values.iter().copied()).name;
        assert_eq!(name(&[282e3, 1_100e3]), "µs");
        assert_eq!(name(&[282e3, 11e6]), "ms", "11000 is too long");
        assert_eq!(name(&[1.2e6, 9e6]), "ms");
        assert_eq!(name(&[0.0, 12.0]), "ns");
        assert_eq!(name(&[]), "ns");
        assert_eq!(memory_unit([3.1e6, 61e6].into_iter()).name, "MiB");
        assert_eq!(memory_unit([312.0, 7_424.0].into_iter()).name, "B");
    }

    #[test]
    fn formats_dates() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(date(1_790_000_000), "2026-09-21 14:13:20 UTC");
    }
}
