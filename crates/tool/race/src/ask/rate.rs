//! `rate` of a race file: requests per second, or a share of what the contenders of the race can do,
//! which a pilot pass turns into a number.

use regatta_load::Plan;
use regatta_record::{Asked, Extreme, LoadShape, PilotRate};
use serde::Deserialize;

/// A rate as written.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Rate {
    /// Requests per second.
    Number(u32),
    /// A share of what the contenders can do, e.g. `50% of slowest`.
    Text(String),
}

/// A share of what a contender can do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share {
    percent: f64,
    of: Extreme,
}

/// Maximum share: ten times what a contender can do is enough to overload it.
const MOST_PERCENT: f64 = 1_000.0;

impl Rate {
    /// Parses a share of what the contenders can do, e.g. `50% of slowest`. The error says what is
    /// permitted.
    pub fn of_share(text: &str) -> Result<Rate, String> {
        let rate = Rate::Text(text.to_owned());
        rate.contradiction().map_or(Ok(rate), Err)
    }

    /// Returns what is wrong with it and what is permitted, if it is wrong.
    pub(crate) fn contradiction(&self) -> Option<String> {
        match self {
            Rate::Number(0) => Some(
                "a `rate` must be at least 1 request per second; leave it out for a closed loop"
                    .to_owned(),
            ),
            Rate::Number(rate) => (*rate > Plan::MAX_RATE)
                .then(|| format!("a `rate` can be at most {} requests per second", Plan::MAX_RATE)),
            Rate::Text(text) => share(text).is_none().then(|| {
                format!(
                    "the `rate` {text:?} is not valid; write a number of requests per second, or a \
                     share of what the contenders can do, above 0% and up to {MOST_PERCENT}%, e.g. \
                     \"50% of slowest\" or \"90% of fastest\""
                )
            }),
        }
    }

    /// Whether it depends on a pilot pass.
    pub(crate) fn is_share(&self) -> bool {
        matches!(self, Rate::Text(_))
    }

    /// Returns which contender it is a share of; `None` if it is a number.
    pub(crate) fn extreme(&self) -> Option<Extreme> {
        let Rate::Text(text) = self else { return None };
        share(text).map(|share| share.of)
    }

    /// Returns requests per second; `None` if it is a share and there is no pilot under `closed`.
    pub(crate) fn resolve(&self, closed: &LoadShape, paces: &Paces) -> Option<u32> {
        match self {
            Rate::Number(rate) => Some(*rate),
            Rate::Text(text) => paces.resolve(closed, share(text)?),
        }
    }
}

fn share(text: &str) -> Option<Share> {
    let (percent, of) = text.split_once('%')?;
    let percent: f64 = percent.trim_end().parse().ok()?;
    let of = match of.split_whitespace().collect::<Vec<_>>()[..] {
        ["of", "slowest"] => Extreme::Slowest,
        ["of", "fastest"] => Extreme::Fastest,
        _ => return None,
    };
    (percent > 0.0 && percent <= MOST_PERCENT).then_some(Share { percent, of })
}

/// How fast the slowest and the fastest contender were under each load of the pilot pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Paces(Vec<(LoadShape, [f64; 2])>);

impl Paces {
    /// Takes the pilot's rates. The null server, the twin and contenders that did not finish do not
    /// count.
    pub fn of(asked: &Asked, pilot: &[PilotRate]) -> Self {
        let mut paces: Vec<(LoadShape, [f64; 2])> = Vec::new();
        let counts = |p: &&PilotRate| p.rate_per_s > 0.0 && !asked.is_reference(&p.contender);
        for PilotRate { load, rate_per_s, .. } in pilot.iter().filter(counts) {
            match paces.iter_mut().find(|(of, _)| of == load) {
                Some((_, [slowest, fastest])) => {
                    (*slowest, *fastest) = (slowest.min(*rate_per_s), fastest.max(*rate_per_s));
                }
                None => paces.push((*load, [*rate_per_s; 2])),
            }
        }
        Paces(paces)
    }

    /// Returns assumed paces under these closed-loop loads, to count the loads that result from the
    /// shares in a race file.
    pub fn assumed(pilot_loads: &[LoadShape]) -> Self {
        Paces(pilot_loads.iter().map(|load| (*load, [100_000.0, 137_000.0])).collect())
    }

    /// Whether any contender finished under this load.
    pub fn has(&self, closed: &LoadShape) -> bool {
        self.0.iter().any(|(load, _)| load == closed)
    }

    fn resolve(&self, closed: &LoadShape, share: Share) -> Option<u32> {
        let (_, [slowest, fastest]) = self.0.iter().find(|(load, _)| load == closed)?;
        let whole = match share.of {
            Extreme::Slowest => slowest,
            Extreme::Fastest => fastest,
        };
        Some(two_digits(whole * share.percent / 100.0))
    }
}

/// Rounds to two significant digits, because a short pilot is no more precise. Returns at least 1 and
/// at most the maximum rate of a load.
fn two_digits(rate: f64) -> u32 {
    let step = 10f64.powf((rate.max(1.0).log10().floor() - 1.0).max(0.0));
    ((rate / step).round() * step).clamp(1.0, f64::from(Plan::MAX_RATE)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: LoadShape = LoadShape::closed(64, 1);

    fn resolved(text: &str, slowest: f64, fastest: f64) -> Option<u32> {
        Rate::Text(text.into()).resolve(&LOAD, &Paces(vec![(LOAD, [slowest, fastest])]))
    }

    #[test]
    fn shares_are_taken_of_the_slowest_or_the_fastest() {
        assert_eq!(resolved("50% of slowest", 87_300.0, 203_000.0), Some(44_000));
        assert_eq!(resolved("110 %  of fastest", 87_300.0, 203_000.0), Some(220_000));
        assert_eq!(resolved("0.5% of slowest", 100.0, 100.0), Some(1));
        assert_eq!(resolved("50% of slowest", 17.0, 17.0), Some(9));
        assert_eq!(resolved("1000% of fastest", 5.0, 2e6), Some(Plan::MAX_RATE), "the most");
        assert_eq!(Rate::Number(7).resolve(&LOAD, &Paces::default()), Some(7));
        assert_eq!(Rate::Text("5% of slowest".into()).resolve(&LOAD, &Paces::default()), None);
    }

    #[test]
    fn rates_have_two_significant_digits() {
        assert_eq!([99_600.0, 99_400.0, 1_234.0, 0.2].map(two_digits), [100_000, 99_000, 1_200, 1]);
    }

    #[test]
    fn invalid_rates_are_errors() {
        for text in [
            "50 of slowest",
            "% of slowest",
            "50% of epoll",
            "0% of slowest",
            "-5% of fastest",
            "50%",
            "1001% of fastest",
            "inf% of fastest",
            "NaN% of fastest",
            "fast",
        ] {
            let error = Rate::Text(text.into()).contradiction();
            assert!(
                error.is_some_and(|t| t.contains(text) && t.contains("50% of slowest")),
                "{text}"
            );
        }
        assert_eq!(Rate::Text("12.5% of fastest".into()).contradiction(), None);
    }
}
