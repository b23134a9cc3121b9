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
        latency,
        answered: 2_000,
        unanswered: 0,
        rate_per_s: 9_000.0,
        errors: 3,
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
            let latency = Latency { p99: None, max: None, ..figures.latency.clone() };
            let figures = Figures { latency, unanswered: 40, ..figures };
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
        ("p98>10ms", "p50, p90, p95, p99, p99.9, mean, max, rate, errors, refused, cost"),
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
    assert!(threshold("across-mean>1ms").unwrap_err().contains("across-pN"));
}
