//! Values on the command line: numbers, times, rates and names, as people write them.

use regatta_load::Plan;
use regatta_script::Workload;
use std::{num::NonZeroU32, path::Path};

/// A value of a type that has a fixed list of names.
pub fn one_of<T: Copy>(
    text: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, String> {
    all.iter().copied().find(|value| name(*value) == text).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|value| name(*value)).collect();
        format!("expected one of: {}", names.join(", "))
    })
}

/// A built-in workload by its name, or a workload file by its path.
pub fn workload(text: &str) -> Result<Workload, String> {
    if let Some(workload) = Workload::parse(text) {
        return Ok(workload);
    }
    let path = Path::new(text);
    if path.extension().is_some_and(|ending| ending == "toml") {
        return Workload::read(path).map_err(|error| error.to_string());
    }
    let names: Vec<_> = Workload::built_in().iter().map(|one| one.name().to_owned()).collect();
    let names = names.join(", ");
    Err(format!("expected one of {names}, or the path of a workload file, as mine.toml"))
}

/// A duration with its unit, at most a day: `250ms`, `10s`, `2m`.
pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    const LONGEST: std::time::Duration = std::time::Duration::from_secs(86_400);
    let parsed = humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write it as 250ms or 10s"))?;
    if parsed > LONGEST { Err("expected at most a day".into()) } else { Ok(parsed) }
}

/// A limit of time: as [`duration`], and not zero.
pub fn limit(text: &str) -> Result<std::time::Duration, String> {
    let limit = duration(text)?;
    (!limit.is_zero()).then_some(limit).ok_or_else(|| "expected a time above zero".into())
}

/// A percentage above 0 and up to 100, as a fraction: `5%` is 0.05.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|digits| digits.trim_end().parse::<f64>().ok());
    number.filter(|n| *n > 0.0 && *n <= 100.0).map(|n| n / 100.0).ok_or_else(|| {
        "expected a percentage above 0% and up to 100%, with its sign, as 5% or 2.5%".into()
    })
}

/// Requests per second: `20000`, `20k`, `20k/s`.
pub fn rate(text: &str) -> Result<NonZeroU32, String> {
    let number = count(text.strip_suffix("/s").unwrap_or(text)).ok();
    let number = number.and_then(|n| u32::try_from(n).ok()).filter(|n| *n <= Plan::MAX_RATE);
    number.and_then(NonZeroU32::new).ok_or_else(|| {
        format!("expected requests per second, at most {}, as 20000, 20k or 20k/s", Plan::MAX_RATE)
    })
}

/// As [`count`], as far as `u32` goes.
pub fn small_count(text: &str) -> Result<NonZeroU32, String> {
    let number = u32::try_from(count(text)?).ok().and_then(NonZeroU32::new);
    number.ok_or_else(|| format!("expected a number up to {}, as 5000, 200k or 1M", u32::MAX))
}

/// A number of things, with a unit if it is large: `5000`, `200k`, `1M`.
pub fn count(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => match text.strip_suffix('M') {
            Some(digits) => (digits, 1_000_000),
            None => (text, 1),
        },
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    number.filter(|n| *n > 0).ok_or_else(|| "expected a number above 0, as 5000, 200k or 1M".into())
}
