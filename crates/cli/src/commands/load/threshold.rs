//! The thresholds of `--fail-if`: how they are written, and how a result is compared with them. A figure
//! that is void or not known never passes, because nothing shows that it is within its limit.

use crate::options::values::{count, limit, rate};
use hdrhistogram::Histogram;
use indicatif::HumanCount;
use regatta_record::{Figure, Latency, LoadAcross, LoadThreshold, Percentile, Verdict};
use std::fmt;

/// The form of a threshold, for messages.
const FORM: &str = "expected a figure and its limit in quotes, e.g. 'p99>10ms', 'rate<10k/s' or \
                    'errors>0.1%'";

/// What the names of percentiles of deliveries between agents begin with.
const ACROSS: &str = "across-";

/// What the names of times of streams begin with.
const OF_STREAMS: [(&str, Of); 2] = [("first-", Of::First), ("gap-", Of::Gap)];

/// A figure of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metric {
    Time(Of, Statistic),
    /// Of deliveries between agents.
    Across(Percentile),
    Rate,
    /// Messages of right streams per second.
    MessageRate,
    /// A number of errors.
    Errors,
    /// The share of requests, or of deliveries, with an error.
    ErrorShare,
    /// A number of refusals.
    Refused,
    /// The share of requests that were refused.
    RefusedShare,
    /// Server CPU per request.
    Cost,
}

/// What a time is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// Requests, or deliveries of a hub.
    Limited,
    /// First messages of streams.
    First,
    /// Longest gaps of streams.
    Gap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statistic {
    Percentile(Percentile),
    Mean,
    Max,
}

/// A condition that fails the load.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// As printed, e.g. `p99 > 10ms`.
    text: String,
    metric: Metric,
    /// In nanoseconds, per second, a number, or a fraction.
    limit: f64,
    /// Whether the limit itself already fails.
    inclusive: bool,
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The figures that are compared with thresholds: of a whole load, or of one stage.
#[derive(Clone, Debug)]
pub struct Figures<'a> {
    /// The number of the stage, counted from 1.
    pub stage: Option<u32>,
    /// Latencies of the limited operation.
    pub times: Times,
    /// The messages of streams, if there are some.
    pub streams: Option<Streams>,
    /// Operations per second.
    pub rate_per_s: f64,
    /// Wrong or missing replies and deliveries, failed connections, and scheduled requests that were not sent.
    pub errors: u64,
    /// The share of the requests, or of the deliveries if that is more, with such an error; `None` without any.
    pub error_share: Option<f64>,
    /// Requests, including the failed ones, without the refused ones.
    pub requests: u64,
    /// Requests that the server refused, as it may.
    pub refused: u64,
    /// Server CPU per request in nanoseconds, if it was measured.
    pub cost_ns: Option<f64>,
    /// Whether that cost is only a lower bound.
    pub cost_is_least: bool,
    /// Deliveries between agents, if there are some.
    pub across: Option<&'a LoadAcross>,
    pub verdict: &'a Verdict,
}

/// Times of one kind.
#[derive(Clone, Debug)]
pub struct Times {
    /// Requests without a reply count as slower than all others.
    pub latency: Latency,
    /// Number of these times.
    pub answered: u64,
    /// Requests that have no such time because their reply did not arrive in time, or deliveries that are missing.
    pub unanswered: u64,
}

impl Times {
    /// Those of a histogram.
    pub fn of(histogram: &Histogram<u64>, unanswered: u64) -> Times {
        let latency = Latency::of_censored(histogram, unanswered);
        Times { latency, answered: histogram.len(), unanswered }
    }
}

/// The messages of right streams.
#[derive(Clone, Debug)]
pub struct Streams {
    pub messages_per_s: f64,
    /// Until the first message of each stream.
    pub first: Times,
    /// The longest gap of each stream. A stream without an end counts as a longer one.
    pub gaps: Times,
}

/// Parses a threshold such as `p99>10ms`, `rate<10k/s` or `errors>0.1%`.
pub fn threshold(text: &str) -> Result<Threshold, String> {
    let Some(at) = text.find(['<', '>', '=']) else { return Err(without_limit(text)) };
    let (name, rest) = (text[..at].trim(), &text[at..]);
    let (operator, value) = match rest.as_bytes() {
        [_, b'=', ..] => rest.split_at(2),
        _ => rest.split_at(1),
    };
    let value = value.trim();
    let metric = metric(name).ok_or_else(|| {
        format!("{name:?} is not one of the figures {}; {FORM}", names().join(", "))
    })?;
    let metric = match metric {
        Metric::Errors if value.ends_with('%') => Metric::ErrorShare,
        Metric::Refused if value.ends_with('%') => Metric::RefusedShare,
        metric => metric,
    };
    let is_rate = metric.is_rate();
    let sign = if is_rate { '<' } else { '>' };
    if !operator.starts_with([sign, '=']) {
        let good = if is_rate { "high rate" } else { "low value" };
        return Err(format!(
            "{name}{operator}{value} would fail the load because of a {good}; write it as \
             '{name}{sign}{value}'"
        ));
    }
    let limit = parse(metric, value).map_err(|error| format!("{value:?}: {error}"))?;
    let inclusive = matches!(operator, ">=" | "<=");
    let equal = if inclusive { "=" } else { "" };
    Ok(Threshold { text: format!("{name} {sign}{equal} {value}"), metric, limit, inclusive })
}

fn metric(name: &str) -> Option<Metric> {
    if let Some(name) = name.strip_prefix(ACROSS) {
        return percentile(name).map(Metric::Across);
    }
    Some(match name {
        "rate" => Metric::Rate,
        "message-rate" => Metric::MessageRate,
        "errors" => Metric::Errors,
        "refused" => Metric::Refused,
        "cost" => Metric::Cost,
        _ => {
            let of_stream = |(prefix, of)| Some((name.strip_prefix(prefix)?, of));
            let (name, of) =
                OF_STREAMS.into_iter().find_map(of_stream).unwrap_or((name, Of::Limited));
            Metric::Time(of, statistic(name)?)
        }
    })
}

fn statistic(name: &str) -> Option<Statistic> {
    match name {
        "mean" => Some(Statistic::Mean),
        "max" => Some(Statistic::Max),
        _ => percentile(name).map(Statistic::Percentile),
    }
}

fn percentile(name: &str) -> Option<Percentile> {
    Percentile::ALL.into_iter().find(|percentile| percentile.name() == name)
}

/// All names of figures.
fn names() -> Vec<String> {
    let percentiles = Percentile::ALL.map(Percentile::name);
    let times = || percentiles.into_iter().chain(["mean", "max"]);
    let of_streams = OF_STREAMS
        .into_iter()
        .flat_map(|(prefix, _)| times().map(move |name| format!("{prefix}{name}")));
    let of_agents = percentiles.map(|name| format!("{ACROSS}{name}"));
    let others = ["rate", "errors", "refused", "cost", "message-rate"];
    times().chain(others).map(str::to_owned).chain(of_streams).chain(of_agents).collect()
}

/// The message for a figure without a limit: an unquoted `>` reached the shell, not this program.
pub fn without_limit(text: &str) -> String {
    format!(
        "{text:?} has no limit; {FORM}, or without quotes p99=10ms. If you wrote p99>10ms without \
         quotes, the shell redirected the output to a file named 10ms: remove that file"
    )
}

fn parse(metric: Metric, value: &str) -> Result<f64, String> {
    match metric {
        Metric::Time(..) | Metric::Across(_) | Metric::Cost => {
            limit(value).map(|time| time.as_nanos() as f64)
        }
        Metric::Rate => rate(value).map(|rate| f64::from(rate.get())),
        Metric::MessageRate => count(value.strip_suffix("/s").unwrap_or(value))
            .map(|rate| rate as f64)
            .map_err(|_| "expected messages per second, e.g. 20000, 20k or 20k/s".to_owned()),
        Metric::Errors | Metric::Refused if value == "0" => Ok(0.0),
        Metric::Errors | Metric::Refused => count(value)
            .map(|count| count as f64)
            .map_err(|_| "expected a number or a share, e.g. 0, 10 or 0.1%".to_owned()),
        Metric::ErrorShare | Metric::RefusedShare => {
            let number = value.trim_end_matches('%').trim_end().parse::<f64>().ok();
            let number = number.filter(|n| (0.0..=100.0).contains(n));
            number.map(|n| n / 100.0).ok_or_else(|| "expected 0% to 100%, e.g. 0.1%".to_owned())
        }
    }
}

impl Metric {
    /// Whether a lower value is worse.
    fn is_rate(self) -> bool {
        matches!(self, Metric::Rate | Metric::MessageRate)
    }
}

impl Threshold {
    /// The share of errors that this threshold permits: the load continues after a wrong reply until
    /// more of them are certain. `None` if it permits none, or is not about errors.
    pub fn tolerates(&self) -> Option<f64> {
        match self.metric {
            _ if self.limit == 0.0 => None,
            Metric::ErrorShare => Some(self.limit),
            Metric::Errors => Some(1.0),
            _ => None,
        }
    }

    /// Whether it limits errors or refusals, which occur outside the stages of a load, too.
    pub fn is_of_errors(&self) -> bool {
        matches!(self.metric, Metric::Errors | Metric::ErrorShare) || self.is_of_refusals()
    }

    /// Whether it limits refusals.
    pub fn is_of_refusals(&self) -> bool {
        matches!(self.metric, Metric::Refused | Metric::RefusedShare)
    }

    /// Whether it is about deliveries between machines.
    pub fn is_across(&self) -> bool {
        matches!(self.metric, Metric::Across(_))
    }

    /// How many messages a stream needs for it; `None` if it is not about streams.
    pub fn needs_messages(&self) -> Option<u32> {
        match self.metric {
            Metric::MessageRate | Metric::Time(Of::First, _) => Some(1),
            Metric::Time(Of::Gap, _) => Some(2),
            _ => None,
        }
    }

    /// Whether it is compared with the whole load only, and not with its stages.
    pub fn is_of_whole(&self) -> bool {
        self.is_across() || self.needs_messages().is_some()
    }

    /// Whether it needs the cost of an observed server.
    pub fn needs_cost(&self) -> bool {
        self.metric == Metric::Cost
    }

    /// Compares the figures with this threshold.
    pub fn judged(&self, figures: &Figures<'_>) -> LoadThreshold {
        let value = self.value(figures);
        let exceeded = value.is_some_and(|value| self.is_exceeded(value));
        let because = match value {
            None => Some(self.not_known(figures)),
            Some(_) if self.figure().is_some_and(|figure| figures.verdict.voids(figure)) => {
                let kind = figures.verdict.kind().name();
                Some(format!("the value is void, because the load is {kind}: see the verdict"))
            }
            Some(_)
                if self.is_across() && figures.across.is_some_and(|all| all.void().is_some()) =>
            {
                let void = figures.across.and_then(LoadAcross::void).unwrap_or_default();
                Some(format!("the value is void: {void}"))
            }
            Some(_) if self.needs_cost() && figures.cost_is_least && !exceeded => {
                Some("the cost is only a lower bound: short-lived processes may be missing".into())
            }
            Some(_) => None,
        };
        LoadThreshold {
            fail_if: self.text.clone(),
            stage: figures.stage,
            value,
            limit: self.limit,
            passed: !exceeded && because.is_none(),
            because,
        }
    }

    fn is_exceeded(&self, value: f64) -> bool {
        match self.metric {
            _ if self.inclusive && value == self.limit => true,
            metric if metric.is_rate() => value < self.limit,
            _ => value > self.limit,
        }
    }

    /// The figure, in the unit of the limit; `None` if it is not known.
    fn value(&self, figures: &Figures<'_>) -> Option<f64> {
        let Figures { errors, requests, refused, .. } = figures;
        match self.metric {
            Metric::Time(of, statistic) => {
                let Times { latency, unanswered, .. } = figures.times(of)?;
                match statistic {
                    Statistic::Percentile(percentile) => {
                        percentile.pooled(latency).map(|ns| ns as f64)
                    }
                    Statistic::Mean => latency.mean.filter(|_| *unanswered == 0),
                    Statistic::Max => latency.max.map(|ns| ns as f64),
                }
            }
            // The highest value that is possible by the clocks.
            Metric::Across(percentile) => {
                let across = figures.across?;
                let ns = percentile.pooled(&across.latency_ns)?;
                Some((ns + across.bound_ns) as f64)
            }
            Metric::Rate => Some(figures.rate_per_s),
            Metric::MessageRate => figures.streams.as_ref().map(|all| all.messages_per_s),
            Metric::Errors => Some(*errors as f64),
            Metric::ErrorShare => figures.error_share,
            Metric::Refused => Some(*refused as f64),
            Metric::RefusedShare => {
                let all = *requests + *refused;
                (all > 0).then(|| *refused as f64 / all as f64)
            }
            Metric::Cost => figures.cost_ns,
        }
    }

    /// The figure whose validity the verdict judges.
    fn figure(&self) -> Option<Figure> {
        match self.metric {
            Metric::Time(..) | Metric::Across(_) => Some(Figure::Latency),
            Metric::Rate | Metric::MessageRate => Some(Figure::Rate),
            Metric::Cost => Some(Figure::Cost),
            Metric::Errors | Metric::ErrorShare | Metric::Refused | Metric::RefusedShare => None,
        }
    }

    /// Explains why the figure is not known.
    fn not_known(&self, figures: &Figures<'_>) -> String {
        let count = |n: u64| HumanCount(n).to_string();
        match self.metric {
            Metric::Cost => "the server's CPU could not be measured".into(),
            Metric::Across(percentile) => match figures.across {
                Some(across) => format!(
                    "too few samples for {}: there are {}",
                    percentile.name(),
                    count(across.deliveries)
                ),
                None => "there are no deliveries between agents".into(),
            },
            Metric::Time(of, statistic) => match figures.times(of) {
                Some(times) if times.answered > 0 => times.not_known(statistic),
                _ => match of {
                    Of::Limited => "no reply has a latency".into(),
                    Of::First => "no stream had a message".into(),
                    Of::Gap => "no stream had two messages".into(),
                },
            },
            _ => "no reply was counted".into(),
        }
    }

    /// Formats a value of this threshold's figure.
    pub fn shown(&self, value: f64) -> String {
        match self.metric {
            Metric::Time(..) | Metric::Across(_) | Metric::Cost => regatta_report::time(value),
            Metric::Rate | Metric::MessageRate => format!("{}/s", HumanCount(value.round() as u64)),
            Metric::Errors | Metric::Refused => HumanCount(value as u64).to_string(),
            Metric::ErrorShare | Metric::RefusedShare => {
                format!("{}%", (value * 1e5).round() / 1e3)
            }
        }
    }
}

impl Figures<'_> {
    fn times(&self, of: Of) -> Option<&Times> {
        let streams = self.streams.as_ref();
        match of {
            Of::Limited => Some(&self.times),
            Of::First => streams.map(|streams| &streams.first),
            Of::Gap => streams.map(|streams| &streams.gaps),
        }
    }
}

impl Times {
    /// Explains why a statistic of them is not known.
    fn not_known(&self, statistic: Statistic) -> String {
        let count = |n: u64| HumanCount(n).to_string();
        let (unanswered, all) = (self.unanswered, self.answered + self.unanswered);
        let Statistic::Percentile(percentile) = statistic else {
            return format!("{} requests got no reply in time", count(unanswered));
        };
        let beyond = 1.0 - percentile.quantile();
        let needed = (Latency::SAMPLES_BEYOND as f64 / beyond).round() as u64;
        if all < needed {
            let name = percentile.name();
            return format!(
                "too few samples: {name} needs {}, but there are {}",
                count(needed),
                count(all)
            );
        }
        format!("{} of {} requests got no reply", count(unanswered), count(all))
    }
}

/// A line for each threshold, with its value and outcome.
pub fn lines(thresholds: &[Threshold], judged: &[LoadThreshold]) -> Vec<String> {
    let conditions = judged.iter().map(|one| match one.stage {
        Some(stage) => format!("stage {stage}: {}", one.fail_if),
        None => one.fail_if.clone(),
    });
    let conditions: Vec<String> = conditions.collect();
    let width = conditions.iter().map(|condition| condition.chars().count()).max().unwrap_or(0);
    let each = conditions.iter().zip(judged);
    each.map(|(condition, judged)| {
        let outcome = if judged.passed { "passed" } else { "FAILED" };
        let because = judged.because.iter().map(|because| format!(": {because}"));
        let threshold = thresholds.iter().find(|threshold| threshold.text == judged.fail_if);
        let value = threshold.zip(judged.value).map(|(threshold, value)| threshold.shown(value));
        let value = value.unwrap_or_else(|| "not known".into());
        format!("{condition:width$}  {value:>9}  {outcome}{}", because.collect::<String>())
    })
    .collect()
}

#[cfg(test)]
mod tests;
