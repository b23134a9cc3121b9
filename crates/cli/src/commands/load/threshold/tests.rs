//! Tests of thresholds: their forms, and what passes.

use super::*;
use regatta_record::Kind;

/// The figures of 2,000 replies after 1 to 2 ms, by a load of this kind.
fn with(kind: Kind, of: impl Fn(Figures<'_>) -> Option<LoadThreshold>) -> LoadThreshold {
    let verdict = Verdict::new(kind, "because");
    let latency = Latency {
        min: Some(1_000_000),
        mean: Some(1_500_000.0),
        p50: Some(1_500_000),
        p90: Some(1_800_000),
        p95: Some(1_900_000),
        p99: Some(1_990_000),
        p99_9: None,
        p99_99: None,
        max: Some(2_000_000),
    };
    let figures = Figures {
        across: None,
        stage: None,
        times: Times { latency, answered: 2_000, unanswered: 0 },
        streams: None,
        rate_per_s: 9_000.0,
        errors: 3,
        error_share: Some(3.0 / 2_003.0),
        requests: 2_003,
        refused: 20,
        cost_ns: Some(5_000.0),
        cost_is_least: false,
        verdict: &verdict,
    };
    of(figures).expect("a threshold")
}

fn judged(kind: Kind, text: &str) -> LoadThreshold {
    with(kind, |figures| Some(threshold(text).unwrap().judged(&figures)))
}

#[test]
fn values_within_their_limits_pass_and_values_beyond_them_fail() {
    for (text, passes) in [
        ("p50>1.6ms", true),
        ("p50>1.4ms", false),
        ("p90=1.8ms", true),
        ("p90>=1.8ms", false),
        ("p95 > 1ms", false),
        ("p99=10ms", true),
        ("p99=1ms", false),
        ("mean>1.6ms", true),
        ("mean>1.4ms", false),
        ("max>2ms", true),
        ("max>1999us", false),
        ("rate<8k/s", true),
        ("rate<10k/s", false),
        ("rate=10k", false),
        ("rate<=9000", false),
        ("refused>20", true),
        ("refused>19", false),
        ("refused>1%", true),
        ("refused>0.9%", false),
        ("errors>3", true),
        ("errors>2", false),
        ("errors>0", false),
        ("errors>1%", true),
        ("errors>0.1%", false),
        ("errors>0%", false),
        ("cost>6us", true),
        ("cost>4us", false),
    ] {
        let outcome = judged(Kind::Idle, text);
        assert_eq!(outcome.passed, passes, "{text}: {outcome:?}");
        assert_eq!(outcome.because, None, "{text}");
        assert!(outcome.value.is_some(), "{text}");
    }
}

#[test]
fn void_figures_never_pass() {
    for (kind, text) in [
        (Kind::GeneratorBound, "p99>1h"),
        (Kind::GeneratorBound, "mean>1h"),
        (Kind::GeneratorBound, "max>1h"),
        (Kind::GeneratorBound, "rate<1"),
        (Kind::Noisy, "p50>1h"),
        (Kind::ServerNotObserved, "cost>1h"),
    ] {
        let outcome = judged(kind, text);
        let because = outcome.because.expect("a reason");
        assert!(!outcome.passed && because.contains(kind.name()), "{text}: {because}");
    }
    assert!(judged(Kind::GeneratorBound, "errors>1%").passed, "a share of errors is never void");
    assert!(judged(Kind::Noisy, "rate<1").passed, "noise voids only latencies");
}

#[test]
fn figures_that_are_not_known_never_pass() {
    let outcome = judged(Kind::Idle, "p99.9>1h");
    assert!(!outcome.passed && outcome.value.is_none());
    let because = outcome.because.unwrap();
    assert_eq!(because, "too few samples: p99.9 needs 10,000, but there are 2,000");

    let lost = |text: &str| {
        with(Kind::Idle, |figures| {
            let latency = Latency { p99: None, max: None, ..figures.times.latency.clone() };
            let times = Times { latency, unanswered: 40, ..figures.times };
            let figures = Figures { times, ..figures };
            Some(threshold(text).unwrap().judged(&figures))
        })
    };
    for text in ["p99>1h", "mean>1h", "max>1h"] {
        let outcome = lost(text);
        let because = outcome.because.expect("a reason");
        assert!(!outcome.passed && because.contains("got no reply"), "{text}: {because}");
    }
    let unmeasured = with(Kind::Idle, |figures| {
        Some(threshold("cost>1h").unwrap().judged(&Figures { cost_ns: None, ..figures }))
    });
    assert!(!unmeasured.passed && unmeasured.because.is_some());
}

#[test]
fn a_cost_that_is_a_lower_bound_can_only_fail() {
    let least = |text: &str| {
        with(Kind::Idle, |figures| {
            let figures = Figures { cost_is_least: true, ..figures };
            Some(threshold(text).unwrap().judged(&figures))
        })
    };
    let within = least("cost>6us");
    assert!(!within.passed && within.because.unwrap().contains("lower bound"));
    assert!(!least("cost>4us").passed && least("cost>4us").because.is_none());
}

#[test]
fn refuses_other_forms_with_a_reason() {
    for (text, said) in [
        ("p99", "the shell redirected the output to a file named 10ms"),
        ("", "e.g. 'p99>10ms'"),
        ("p99>", "expected a number and a unit"),
        ("p99>10", "unit"),
        ("p99>0ms", "above zero"),
        (
            "p98>10ms",
            "p50, p90, p95, p99, p99.9, mean, max, rate, errors, refused, cost, message-rate",
        ),
        ("gap-p98>10ms", "first-p50, "),
        ("first-rate>10ms", "gap-max, across-p50, "),
        ("gap-p99<10ms", "write it as 'gap-p99>10ms'"),
        ("message-rate>10k", "write it as 'message-rate<10k'"),
        ("message-rate<10ms", "expected messages per second"),
        ("message-rate<0", "expected messages per second"),
        ("p99<10ms", "write it as 'p99>10ms'"),
        ("rate>10k/s", "write it as 'rate<10k/s'"),
        ("rate<0", "requests per second"),
        ("errors>-1", "e.g. 0, 10 or 0.1%"),
        ("errors>101%", "0% to 100%"),
        ("errors<1", "write it as 'errors>1'"),
        ("cost>5", "unit"),
    ] {
        let error = threshold(text).unwrap_err();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn an_error_limit_above_zero_tolerates_that_share() {
    let of = |text: &str| threshold(text).unwrap().tolerates();
    assert_eq!((of("errors>0.5%"), of("errors>3")), (Some(0.005), Some(1.0)));
    assert_eq!((of("errors>0%"), of("errors>0"), of("p99>1ms")), (None, None, None));
}

#[test]
fn each_line_has_the_condition_the_value_and_the_outcome() {
    let thresholds: Vec<_> =
        ["p99>10ms", "rate<10k/s", "p99.9>10ms"].map(|text| threshold(text).unwrap()).into();
    let judged: Vec<_> = thresholds
        .iter()
        .map(|one| {
            with(Kind::Idle, |figures| Some(one.judged(&Figures { stage: Some(2), ..figures })))
        })
        .collect();
    let lines = lines(&thresholds, &judged);
    assert_eq!(lines[0], "stage 2: p99 > 10ms      1.99 ms  passed");
    assert_eq!(lines[1], "stage 2: rate < 10k/s    9,000/s  FAILED");
    assert!(lines[2].starts_with("stage 2: p99.9 > 10ms  not known  FAILED: too few samples"));
}

/// Deliveries between agents, half of which took up to 4 ms, to within 100 µs.
fn across(impossible: u64) -> LoadAcross {
    LoadAcross {
        deliveries: 2_000,
        impossible,
        unchecked: 0,
        bound_ns: 100_000,
        latency_ns: Latency { p50: Some(4_000_000), ..Latency::default() },
        histogram: String::new(),
        pairs: Vec::new(),
    }
}

#[test]
fn deliveries_between_agents_pass_if_the_highest_possible_value_does() {
    let of = |text: &str, across: Option<&LoadAcross>| {
        with(Kind::ServerBound, |figures| {
            Some(threshold(text).unwrap().judged(&Figures { across, ..figures }))
        })
    };
    let right = across(0);
    assert!(of("across-p50>4.11ms", Some(&right)).passed);
    let near = of("across-p50>4.05ms", Some(&right));
    assert_eq!((near.passed, near.value), (false, Some(4_100_000.0)));
    let because = |judged: LoadThreshold| judged.because.unwrap();
    assert!(!of("across-p50>1m", Some(&across(1))).passed, "a clock has failed");
    let few = because(of("across-p99>1m", Some(&right)));
    assert_eq!(few, "too few samples for p99: there are 2,000");
    let none = because(of("across-p50>1m", None));
    assert_eq!(none, "there are no deliveries between agents");
    let closed = LoadAcross { unchecked: 1, ..across(0) };
    let closed = because(of("across-p50>1m", Some(&closed)));
    assert!(closed.starts_with("the value is void: the connections of 1 members"), "{closed}");
    assert!(threshold("across-mean>1ms").unwrap_err().contains("across-p99.9"));
}

/// Streams whose first messages came after 2 to 4 ms and whose longest gaps were 10 to 20 ms, a thousand of each,
/// beside those without a reply.
fn of_streams(text: &str, unanswered: u64) -> LoadThreshold {
    let times = |from: u64| {
        let mut histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap();
        (0..1_000).for_each(|i| histogram.record(from * (1_000 + i)).unwrap());
        Times::of(&histogram, unanswered)
    };
    let streams = Streams { messages_per_s: 50_000.0, first: times(2_000), gaps: times(10_000) };
    with(Kind::ServerBound, |figures| {
        Some(
            threshold(text).unwrap().judged(&Figures { streams: Some(streams.clone()), ..figures }),
        )
    })
}

#[test]
fn messages_of_streams_are_compared_by_their_rate_and_their_times() {
    for (text, passes) in [
        ("message-rate<50k/s", true),
        ("message-rate<=50k/s", false),
        ("message-rate=50001", false),
        ("first-p50>3.1ms", true),
        ("first-p50>2.9ms", false),
        ("first-p99=4.1ms", true),
        ("first-mean>3.1ms", true),
        ("first-mean>2.9ms", false),
        ("first-max>4.1ms", true),
        ("first-max>3.9ms", false),
        ("gap-p50>15.1ms", true),
        ("gap-p50>14.9ms", false),
        ("gap-p99>19ms", false),
        ("gap-mean>15.1ms", true),
        ("gap-max>20.1ms", true),
        ("gap-max>19.9ms", false),
        // Those of the requests are others.
        ("p99>1.99ms", true),
    ] {
        let outcome = of_streams(text, 0);
        assert_eq!(outcome.passed, passes, "{text}: {outcome:?}");
        assert_eq!(outcome.because, None, "{text}");
    }
}

/// A server must not pass because the streams that it delays the longest never end.
#[test]
fn streams_without_a_reply_count_as_those_with_the_longest_times() {
    for (text, unanswered, because) in [
        ("gap-p99>1h", 20, "20 of 1,020 requests got no reply"),
        ("first-p99>1h", 20, "20 of 1,020 requests got no reply"),
        ("gap-max>1h", 1, "1 requests got no reply in time"),
        ("first-mean>1h", 1, "1 requests got no reply in time"),
        ("gap-p99.9>1h", 0, "too few samples: p99.9 needs 10,000, but there are 1,000"),
    ] {
        let outcome = of_streams(text, unanswered);
        assert_eq!((outcome.passed, outcome.because.as_deref()), (false, Some(because)), "{text}");
    }
    assert!(of_streams("gap-p90>19.3ms", 20).passed);
}

#[test]
fn messages_that_are_void_or_not_known_never_pass() {
    let none = || {
        let empty = Histogram::new_with_bounds(1, 60_000_000_000, 3).unwrap();
        Times::of(&empty, 0)
    };
    let of = |kind, text| {
        with(kind, |figures| {
            let streams = Some(Streams { messages_per_s: 1e6, first: none(), gaps: none() });
            Some(threshold(text).unwrap().judged(&Figures { streams, ..figures }))
        })
    };
    for (kind, text, because) in [
        (Kind::ServerBound, "first-p50>1h", "no stream had a message"),
        (Kind::ServerBound, "gap-max>1h", "no stream had two messages"),
        (Kind::GeneratorBound, "message-rate<1", "the value is void"),
    ] {
        let outcome = of(kind, text);
        assert!(!outcome.passed && outcome.because.unwrap().starts_with(because), "{text}");
    }
    assert!(of(Kind::ServerBound, "message-rate<1").passed);
    assert!(!judged(Kind::ServerBound, "message-rate<1").passed, "there are no streams");
}

#[test]
fn what_is_about_streams_says_how_many_messages_they_need() {
    let needs = |text: &str| threshold(text).unwrap().needs_messages();
    assert_eq!(
        ["message-rate<1", "first-p99>1ms", "gap-p99>1ms"].map(needs),
        [Some(1), Some(1), Some(2)]
    );
    assert_eq!(
        ["p99>1ms", "rate<1", "errors>1", "cost>1us", "across-p99>1ms"].map(needs),
        [None; 5]
    );
    let line =
        lines(&[threshold("message-rate<60k/s").unwrap()], &[of_streams("message-rate<60k/s", 0)]);
    assert_eq!(line, ["message-rate < 60k/s   50,000/s  FAILED"]);
}
