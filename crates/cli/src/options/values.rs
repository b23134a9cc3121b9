//! Parsers for values on the command line: numbers, durations, rates and names.

use regatta_load::{Plan, Stage};
use regatta_record::Schedule;
use regatta_script::{Workload, dialects::http::rules};
use regatta_serve::Policy;
use std::{
    num::{NonZeroU32, NonZeroUsize},
    path::Path,
};

/// Parses a value of a type with a fixed list of names.
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

/// Parses a destination of ssh.
pub fn host(text: &str) -> Result<String, String> {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
    match !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("expected a destination of ssh, e.g. gen1 or bench@10.0.0.7".into()),
    }
}

/// Parses what happens to slow members of a hub.
pub fn policy(text: &str) -> Result<Policy, String> {
    one_of(text, &[Policy::Close, Policy::Skip, Policy::Conflate], policy_name)
}

/// The name of what happens to slow members of a hub.
pub fn policy_name(policy: Policy) -> &'static str {
    match policy {
        Policy::Close => "close",
        Policy::Skip => "skip",
        Policy::Conflate => "conflate",
    }
}

/// Finds a built-in workload by name, or reads a workload file by path.
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
    Err(format!("expected one of {names}, or the path of a workload file, e.g. mine.toml"))
}

/// Parses the name of a column of a table. An unknown name is an error with the names, and the nearest.
pub fn columns() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(regatta_report::COLUMNS)
}

/// Parses a path with its query into the workload of GET requests of it. The workload has the text of a
/// workload file, so that a result directory contains it.
pub fn http_path(path: &str) -> Result<Workload, String> {
    rules::check_path(path)?;
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let words = path.split(|c| !is_good(c)).filter(|word| !word.is_empty());
    let name = ["http"].into_iter().chain(words).collect::<Vec<_>>().join("-");
    // A name that ends in .toml would be that of a file.
    let name: String = name.chars().take(40).collect();
    let name = name.trim_end_matches(".toml");
    // A path contains neither a brace, which would start a placeholder, nor a quote or a backslash.
    let text =
        format!("name = \"{name}\"\nprotocol = \"http\"\n\n[[request]]\npath = \"{path}\"\n");
    Workload::from_text(&text, name).map_err(|error| error.to_string())
}

/// Parses a duration with its unit, at most a day: `250ms`, `10s`, `2m`.
pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    const LONGEST: std::time::Duration = std::time::Duration::from_secs(86_400);
    let parsed = humantime::parse_duration(text)
        .map_err(|error| format!("{error}; expected a number and a unit, e.g. 250ms or 10s"))?;
    if parsed > LONGEST { Err("expected at most a day".into()) } else { Ok(parsed) }
}

/// Parses how long a hub keeps messages: like [`duration`], but at least a second.
pub fn history_time(text: &str) -> Result<std::time::Duration, String> {
    let time = duration(text)?;
    (time.as_secs() > 0).then_some(time).ok_or_else(|| "expected a time from 1s to 1d".into())
}

/// Parses a time limit: like [`duration`], but not zero.
pub fn limit(text: &str) -> Result<std::time::Duration, String> {
    let limit = duration(text)?;
    (!limit.is_zero()).then_some(limit).ok_or_else(|| "expected a time above zero".into())
}

/// Parses a percentage above 0 and up to 100 into a fraction: `5%` is 0.05.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|digits| digits.trim_end().parse::<f64>().ok());
    number.filter(|n| *n > 0.0 && *n <= 100.0).map(|n| n / 100.0).ok_or_else(|| {
        "expected a percentage above 0% and up to 100%, with the % sign, e.g. 5% or 2.5%".into()
    })
}

/// Parses how contenders take turns.
pub fn schedule(text: &str) -> Result<Schedule, String> {
    match text {
        "duels" => Ok(Schedule::Duels),
        "rounds" => Ok(Schedule::Rounds),
        _ => Err("expected duels or rounds".into()),
    }
}

/// Parses requests per second: `20000`, `20k`, `20k/s`.
pub fn rate(text: &str) -> Result<NonZeroU32, String> {
    let number = count(text.strip_suffix("/s").unwrap_or(text)).ok();
    let number = number.and_then(|n| u32::try_from(n).ok()).filter(|n| *n <= Plan::MAX_RATE);
    number.and_then(NonZeroU32::new).ok_or_else(|| {
        let max = Plan::MAX_RATE;
        format!("expected requests per second, at most {max}, e.g. 20000, 20k or 20k/s")
    })
}

/// Parses a stage of a load, e.g. `10s:1k/s`.
pub fn stage(text: &str) -> Result<Stage, String> {
    const FORM: &str = "expected a time and a rate, e.g. 10s:1k/s";
    let (length, per_second) = text.split_once(':').ok_or(FORM)?;
    let length = limit(length.trim()).map_err(|error| format!("{FORM}; {error}"))?;
    if length < Plan::SHORTEST_STAGE {
        return Err(format!("{FORM}; a stage must last at least {:?}", Plan::SHORTEST_STAGE));
    }
    let rate = rate(per_second.trim()).map_err(|error| format!("{FORM}; {error}"))?;
    Ok(Stage { ns: length.as_nanos() as u64, rate })
}

/// Parses a number of connections, at least 1.
pub fn connections(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| format!("expected a number of connections from 1 on, got {text:?}"))
}

/// Parses a number like [`count`], at most `u32::MAX`.
pub fn small_count(text: &str) -> Result<NonZeroU32, String> {
    let number = u32::try_from(count(text)?).ok().and_then(NonZeroU32::new);
    number.ok_or_else(|| format!("expected a number up to {}, e.g. 5000, 200k or 1M", u32::MAX))
}

/// Parses a positive number with an optional suffix `k` or `M`: `5000`, `200k`, `1M`.
pub fn count(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => match text.strip_suffix('M') {
            Some(digits) => (digits, 1_000_000),
            None => (text, 1),
        },
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    let number = number.filter(|n| *n > 0);
    number.ok_or_else(|| "expected a number above 0, e.g. 5000, 200k or 1M".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_destination_of_ssh() {
        assert_eq!(host("bench@10.0.0.7"), Ok("bench@10.0.0.7".into()));
        for wrong in ["", "-oProxyCommand=x", "a b", "a\n"] {
            assert!(host(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_path_is_a_workload_with_the_text_of_its_file() {
        for (path, name) in [
            ("/", "http"),
            ("/items/7?all=1", "http-items-7-all-1"),
            ("/a/x.toml", "http-a-x"),
            ("/it's/100%25", "http-it-s-100-25"),
        ] {
            let workload = http_path(path).unwrap();
            assert_eq!(workload.name(), name);
            assert!(workload.text().unwrap().contains(&format!("path = \"{path}\"")), "{path}");
        }
        assert!(http_path(&format!("/{}.toml/x", "a".repeat(34))).is_ok(), "cut after .toml");
        for wrong in ["items", "/a b", "/{n}", "/\"", "/a\\", "/#a", "/%"] {
            assert!(http_path(wrong).is_err(), "{wrong}");
        }
    }
}
