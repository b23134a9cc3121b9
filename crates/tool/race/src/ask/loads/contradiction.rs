//! Finds contradictions in a `[[load]]` that hold on every machine, and describes them in sentences.

use super::{CoreCount, Loads, OneOrMany};
use crate::ask::rate::Rate;
use regatta_record::Burst;

/// Maximum number of times that `hash` hashes the file for one request. `service::hash` has the same
/// constant; it is repeated here because this crate links no server.
const MOST_N: u32 = 100_000;

impl Loads {
    /// Returns the first contradiction, if there is one, as a sentence.
    pub fn contradiction(&self) -> Option<String> {
        let (rated, idle) = (self.rate.is_some(), self.idle.values().iter().any(|n| *n > 0));
        let counts = self.cores.iter().flat_map(OneOrMany::values);
        let sentence = |what: &str| Some(what.to_owned());
        if self.connections.is_none_or_zero() || self.pipeline.is_none_or_zero() {
            return sentence("`connections` and `pipeline` must be at least 1");
        }
        if let Some(because) = self.contradiction_of_in_flight() {
            return Some(because);
        }
        let rates = self.rate.iter().flat_map(OneOrMany::values);
        let when_shared = self.rate_when_shared.map(Rate::Number);
        if let Some(because) = rates.clone().chain(&when_shared).find_map(Rate::contradiction) {
            return Some(because);
        }
        if rated && rates.count() == 0 {
            return Rate::Number(0).contradiction();
        }
        if counts.clone().any(|count| *count == CoreCount::Count(0)) {
            return sentence("`cores` must be at least 1");
        }
        if self.churn && self.pipeline.values().iter().any(|n| *n > 1) {
            return sentence(
                "`churn` is a connection per request; it cannot be combined with `pipeline`",
            );
        }
        if self.churn && rated {
            return sentence("`churn` runs as fast as it can; it cannot be combined with `rate`");
        }
        if self.churn && idle {
            return sentence("`churn` keeps no connection open; it cannot be combined with `idle`");
        }
        let stalled = self.stalled.values().iter().max();
        if stalled.is_none() {
            return sentence(
                "`stalled` must be a number or a list of numbers; leave it out for none",
            );
        }
        if self.idle.values().iter().any(|idle| Some(idle) < stalled) {
            return sentence(
                "`stalled` counts some of the `idle` connections, so it cannot exceed `idle`",
            );
        }
        if self.passing.values().iter().any(|n| *n > 0) && (self.churn || self.is_counted()) {
            return sentence(
                "`passing` members come and go beside those that stay, during a window of time; it \
                 cannot be combined with `churn`, `burst` or `requests`",
            );
        }
        if self.rate_when_shared.is_some() && (rated || self.cores.is_none()) {
            return sentence(
                "`rate_when_shared` is for `cores` that server and load must share; it needs \
                 `cores`, and cannot be combined with `rate`",
            );
        }
        // If server and load must share cores, the load has a rate even if the file names none.
        let may_have_rate = rated || self.cores.is_some() && !self.churn && !self.is_counted();
        if self.arrivals.is_some() && !may_have_rate {
            return sentence(
                "`arrivals` says how requests at a rate arrive, but this load has no rate; give it \
                 a `rate`, or leave `arrivals` out",
            );
        }
        self.contradiction_of_requests(rated, idle)
            .or_else(|| self.contradiction_of_hash())
            .or_else(|| {
                self.burst.and_then(|burst| self.contradiction_of_burst(burst, rated, idle))
            })
    }

    fn contradiction_of_in_flight(&self) -> Option<String> {
        let in_flight = self.in_flight.as_ref()?;
        if in_flight.is_none_or_zero() {
            return Some("`in_flight` must be at least 1".into());
        }
        let others = [
            (self.churn, "churn"),
            (self.rate.is_some(), "rate"),
            (self.rate_when_shared.is_some(), "rate_when_shared"),
            (self.burst.is_some(), "burst"),
        ];
        others.into_iter().find(|(given, _)| *given).map(|(_, what)| {
            format!("`in_flight` bounds a closed loop; it cannot be combined with `{what}`")
        })
    }

    fn contradiction_of_requests(&self, rated: bool, idle: bool) -> Option<String> {
        let requests = self.requests.as_ref()?;
        if requests.is_none_or_zero() {
            return Some("`requests` must be at least 1".into());
        }
        let others = [
            (rated, "rate"),
            (self.rate_when_shared.is_some(), "rate_when_shared"),
            (idle, "idle"),
            (self.burst.is_some(), "burst"),
        ];
        others.into_iter().find(|(given, _)| *given).map(|(_, what)| {
            format!(
                "`requests` are sent once, as fast as possible; they cannot be combined with \
                 `{what}`"
            )
        })
    }

    fn contradiction_of_hash(&self) -> Option<String> {
        let all = self.n.iter().flat_map(OneOrMany::values).copied();
        let all = all.chain(self.beside.map(|beside| beside.n));
        let none = self.n.as_ref().is_some_and(|n| n.values().is_empty());
        if none || all.into_iter().any(|n| !(1..=MOST_N).contains(&n)) {
            return Some(format!("`n` must be from 1 to {MOST_N}"));
        }
        let beside = self.beside?;
        if beside.connections == 0 {
            return Some("`connections` of `beside` must be at least 1".into());
        }
        let rates = self.rate.iter().flat_map(OneOrMany::values);
        if self.rate.is_none() || rates.into_iter().any(Rate::is_share) {
            return Some(
                "`beside` is for requests that arrive at a rate; give it a `rate`, as a number"
                    .into(),
            );
        }
        None
    }

    /// Returns the first key given that applies only to the workload `hash`.
    pub(crate) fn hash_only_key(&self) -> Option<&'static str> {
        match (&self.n, self.beside) {
            (Some(_), _) => Some("n"),
            (None, Some(_)) => Some("beside"),
            (None, None) => None,
        }
    }

    /// Returns the first key given that applies only to the workloads of hubs.
    pub(crate) fn hub_only_key(&self) -> Option<&'static str> {
        let named = |values: &OneOrMany<u32>| values.values().iter().any(|n| *n > 0);
        [(&self.passing, "passing"), (&self.stalled, "stalled")]
            .into_iter()
            .find_map(|(values, name)| named(values).then_some(name))
    }

    pub(super) fn is_counted(&self) -> bool {
        self.burst.is_some() || self.requests.is_some()
    }

    fn contradiction_of_burst(&self, burst: Burst, rated: bool, idle: bool) -> Option<String> {
        let Burst { instances, requests } = burst;
        for (given, what) in [
            (self.churn, "churn"),
            (rated, "rate"),
            (self.rate_when_shared.is_some(), "rate_when_shared"),
            (idle, "idle"),
        ] {
            if given {
                return Some(format!(
                    "a `burst` is sent once, as fast as possible; it cannot be combined with \
                     `{what}`"
                ));
            }
        }
        if instances == 0 || requests == 0 {
            return Some("`instances` and `requests` of a burst must be at least 1".into());
        }
        let uneven = self.connections.values().iter().find(|n| !n.is_multiple_of(instances))?;
        Some(format!(
            "the {uneven} connections of a burst cannot be split evenly among {instances} \
             instances; `connections` counts those of all instances"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(text: &str) -> Loads {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn contradictions_are_errors() {
        let burst = |requests| format!("burst = {{ instances = 10, requests = {requests} }}");
        for (text, said) in [
            ("pipeline = 0".to_owned(), "at least 1"),
            ("rate = 0".to_owned(), "at least 1 request per second"),
            ("rate = [100, 10000001]".to_owned(), "at most 10000000"),
            ("cores = 1\nrate_when_shared = 10000001".to_owned(), "at most 10000000"),
            ("arrivals = \"constant\"".to_owned(), "give it a `rate`"),
            ("churn = true\ncores = 1\narrivals = \"constant\"".to_owned(), "leave `arrivals` out"),
            ("rate = []".to_owned(), "at least 1 request per second"),
            ("rate = [5, \"half\"]".to_owned(), "\"50% of slowest\" or \"90% of fastest\""),
            ("cores = [1, 0]".to_owned(), "`cores` must be at least 1"),
            ("churn = true\npipeline = [1, 2]".to_owned(), "cannot be combined with `pipeline`"),
            ("churn = true\nrate = 5".to_owned(), "cannot be combined with `rate`"),
            ("churn = true\nidle = [0, 5]".to_owned(), "cannot be combined with `idle`"),
            ("idle = [1, 5]\nstalled = 2".to_owned(), "some of the `idle` connections"),
            ("stalled = 1".to_owned(), "some of the `idle` connections"),
            ("idle = 1\nstalled = [0, 2]".to_owned(), "some of the `idle` connections"),
            ("stalled = []".to_owned(), "leave it out for none"),
            ("passing = 5\nchurn = true".to_owned(), "`passing` members come and go beside"),
            ("passing = [0, 5]\nrequests = 9".to_owned(), "`passing` members come and go beside"),
            (format!("passing = 5\n{}", burst(10)), "`passing` members come and go beside"),
            ("rate_when_shared = 5".to_owned(), "needs `cores`"),
            (
                "rate = 5\ncores = 1\nrate_when_shared = 5".to_owned(),
                "cannot be combined with `rate`",
            ),
            (format!("churn = true\n{}", burst(10)), "cannot be combined with `churn`"),
            (format!("rate = 5\n{}", burst(10)), "cannot be combined with `rate`"),
            (format!("idle = 5\n{}", burst(10)), "cannot be combined with `idle`"),
            (burst(0), "must be at least 1"),
            ("in_flight = [4, 0]".to_owned(), "`in_flight` must be at least 1"),
            ("in_flight = 4\nchurn = true".to_owned(), "cannot be combined with `churn`"),
            ("in_flight = 4\nrate = 5".to_owned(), "cannot be combined with `rate`"),
            (format!("in_flight = 4\n{}", burst(10)), "cannot be combined with `burst`"),
            ("requests = 0".to_owned(), "`requests` must be at least 1"),
            ("requests = 5\nrate = 5".to_owned(), "cannot be combined with `rate`"),
            ("requests = 5\nidle = 5".to_owned(), "cannot be combined with `idle`"),
            (format!("requests = 5\n{}", burst(10)), "cannot be combined with `burst`"),
            ("n = [1, 0]".to_owned(), "from 1 to 100000"),
            ("n = 100001".to_owned(), "from 1 to 100000"),
            ("rate = 5\nbeside = { connections = 1, n = 0 }".to_owned(), "from 1 to 100000"),
            (
                "rate = 5\nbeside = { connections = 0, n = 1 }".to_owned(),
                "`connections` of `beside`",
            ),
            ("beside = { connections = 8, n = 1 }".to_owned(), "give it a `rate`, as a number"),
            (
                "rate = \"50% of slowest\"\nbeside = { connections = 8, n = 1 }".to_owned(),
                "give it a `rate`, as a number",
            ),
        ] {
            let error = loads(&format!("connections = 60\n{text}")).contradiction();
            assert!(error.as_ref().is_some_and(|e| e.contains(said)), "{text}: {error:?}");
        }
        let uneven = loads(&format!("connections = 64\n{}", burst(10))).contradiction().unwrap();
        assert!(uneven.contains("64 connections") && uneven.contains("10 instances"), "{uneven}");
        assert_eq!(loads(&format!("connections = 60\n{}", burst(10))).contradiction(), None);
        assert_eq!(loads("connections = 10\nidle = [10, 10000]").contradiction(), None);
        assert_eq!(loads("connections = 10\nidle = [1, 10]\nstalled = 1").contradiction(), None);
        assert_eq!(loads("connections = 10\npassing = [0, 5]").contradiction(), None);
        let error = toml::from_str::<Loads>("connections = 1\ncores = \"some\"").unwrap_err();
        assert!(error.to_string().contains("in cores also \"all\""), "{error}");
    }
}
