//! The same samples give the same counts, regardless of how many processes recorded them and of the
//! order in which their messages are merged.

use hdrhistogram::Histogram;
use proptest::prelude::*;
use regatta_record::{
    ArrivalsSeen, Counted, Errors, Exchange, FirstWrong, Mismatch, OpenCounted, Operation,
    OperationCounted, TlsSpoken,
};

const SLICE_NS: u64 = 1_000;
const SLICES: usize = 10;
const LONGEST: u64 = 240_000_000_000;
const KINDS: &[Operation] = &[
    Operation::new("deliveries", "delivery", "deliveries"),
    Operation::new("results", "result", "results"),
];

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 3).unwrap()
}

/// One request of a load.
#[derive(Clone, Copy, Debug)]
struct Sample {
    latency: u64,
    slice: usize,
    /// One outcome: 0 to 5 for answered, unsent, timed out, lost, a wrong reply, refused.
    fate: u8,
    /// Index of its stride's quantile.
    place: usize,
    length: u64,
}

fn samples() -> impl Strategy<Value = Vec<(Sample, usize)>> {
    let latency = prop_oneof![1..3_000_u64, 1..10_000_000_u64, 1..=LONGEST];
    let one = (latency, 0..SLICES, 0..6_u8, 0..=1_000_usize, 0..(50_u64 << 20)).prop_map(
        |(latency, slice, fate, place, length)| Sample { latency, slice, fate, place, length },
    );
    prop::collection::vec((one, 0..3_usize), 0..400)
}

fn nothing(open_loop: bool) -> Counted {
    let mut counted = Counted::nothing(histogram(), SLICE_NS, KINDS);
    counted.open_loop = open_loop.then(|| {
        let parts = [histogram(), histogram(), histogram()];
        OpenCounted::nothing(parts, ArrivalsSeen::nothing(7, 1_001))
    });
    counted
}

/// Records a sample as a load thread does; `i` is its chronological number.
fn record(counted: &mut Counted, i: u64, sample: Sample) {
    let Sample { latency, slice, fate, place, length } = sample;
    if counted.slices.len() <= slice {
        counted.slices.resize(slice + 1, 0);
    }
    counted.window_ns = SLICE_NS * SLICES as u64;
    counted.load_cpu_ns += latency % 5_000;
    counted.spun_ns += latency % 50;
    counted.connections_opened += 1;
    counted.replies += 1;
    counted.run_delay_ns = counted.run_delay_ns.map(|ns| ns + latency % 11);
    counted.turns = counted.turns.map(|turns| turns + 1);
    counted.instances_ns.insert(i as u32, latency);
    if let Some(open) = &mut counted.open_loop {
        open.due += 1;
        open.late += latency % 2;
        open.unsent += u64::from(fate == 1);
        open.timed_out += u64::from(fate == 2);
        open.lost += u64::from(fate == 3 || fate == 4);
        open.refused += u64::from(fate == 5);
        let arrivals = &mut open.arrivals;
        arrivals.places[place] += 1;
        arrivals.strides += 1;
        arrivals.sum += u128::from(length);
        arrivals.squares += u128::from(length) * u128::from(length);
        arrivals.pairs += 1;
        arrivals.products += u128::from(length) * 3;
        arrivals.tenths[slice] += 1;
    }
    for (kind, each) in counted.operations.iter_mut().enumerate() {
        // Some of them are outside the window.
        let (inside, outside) = (latency % (kind as u64 + 3), u64::from(fate));
        each.count += inside;
        each.whole_run += inside + outside;
        if inside > 0 {
            each.histogram.record_n(1 + latency / (kind as u64 + 1), inside).unwrap();
        }
    }
    match fate {
        0 => {
            counted.requests += 1;
            counted.slices[slice] += 1;
            counted.histogram.record(latency).unwrap();
            if let Some(open) = &mut counted.open_loop {
                open.wait.record(1 + latency / 3).unwrap();
                open.lag.record(1 + latency / 7).unwrap();
                open.service.record(1 + latency / 2).unwrap();
            }
        }
        4 => {
            counted.errors.wrong_reply += 1;
            let text_of = |text: &str| format!("{text} {i}");
            let exchange = Exchange {
                sent: text_of("sent"),
                expected: text_of("expected"),
                received: text_of("received"),
                reply_index: i,
            };
            counted.first_wrong.get_or_insert(FirstWrong { after_ns: i, exchange });
        }
        _ => {
            counted.errors.add(&Errors { timeout: 1, ..Errors::default() });
            counted.timeouts_in_window += 1;
        }
    }
}

/// The counts as another process receives them.
fn sent(counted: &Counted) -> Counted {
    let line = serde_json::to_string(counted).unwrap();
    assert!(!line.contains('\n'));
    serde_json::from_str(&line).unwrap()
}

proptest! {
    // Each case creates and reads a dozen histograms of 27,000 buckets.
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn one_and_three_processes_count_identically(
        samples in samples(),
        open_loop: bool,
        order in Just([0, 1, 2]).prop_shuffle(),
    ) {
        let mut one = nothing(open_loop);
        let mut three = [nothing(open_loop), nothing(open_loop), nothing(open_loop)];
        for (i, (sample, process)) in samples.into_iter().enumerate() {
            record(&mut one, i as u64, sample);
            record(&mut three[process], i as u64, sample);
        }
        let mut all = nothing(open_loop);
        for process in order {
            let received = sent(&three[process]);
            prop_assert_eq!(&received, &three[process]);
            prop_assert_eq!(received.check(open_loop), Ok(()));
            all.add(received).unwrap();
        }
        // Both have slices up to that of the last sample.
        all.slices.resize(one.slices.len(), 0);
        let buckets = |counted: &Counted| -> Vec<Vec<(u64, u64)>> {
            let further = counted.operations.iter().map(|each| &each.histogram);
            let all = [&counted.histogram].into_iter().chain(further);
            let filled = |histogram: &Histogram<u64>| {
                let recorded = histogram.iter_recorded();
                recorded.map(|at| (at.value_iterated_to(), at.count_at_value())).collect()
            };
            all.map(filled).collect()
        };
        prop_assert_eq!(buckets(&all), buckets(&one));
        prop_assert_eq!(all, one);
    }
}

#[test]
fn rejects_counts_of_another_load_and_stays_unchanged() {
    let with = |change: &dyn Fn(&mut Counted)| {
        let mut other = nothing(true);
        record(&mut other, 3, SAMPLE);
        change(&mut other);
        let mut sum = nothing(true);
        record(&mut sum, 4, SAMPLE);
        let before = sum.clone();
        let error = sum.add(other).map_err(|Mismatch { .. }| ()).err();
        assert_eq!(sum == before, error.is_some());
        error.is_none()
    };
    assert!(with(&|_| ()));
    let digits = || Histogram::new_with_bounds(1, LONGEST, 2).unwrap();
    let range = || Histogram::new_with_bounds(1, LONGEST / 2, 3).unwrap();
    assert!(!with(&|other| other.histogram = digits()));
    assert!(!with(&|other| other.histogram = range()));
    assert!(!with(&|other| other.open_loop.as_mut().unwrap().lag = range()));
    assert!(!with(&|other| other.open_loop.as_mut().unwrap().arrivals.gaps = 8));
    assert!(!with(&|other| other.slice_ns += 1));
    assert!(!with(&|other| other.format += 1));
    assert!(!with(&|other| other.instances_ns.extend([(4, 1)])));
    assert!(!with(&|other| other.operations.reverse()), "another order");
    assert!(!with(&|other| other.operations.truncate(1)));
    assert!(!with(&|other| other.operations.clear()));
    assert!(!with(&|other| other.operations[1].histogram = digits()));
    assert!(!with(&|other| other.operations[0].operation.several = "presents".into()));
}

const SAMPLE: Sample = Sample { latency: 5_000, slice: 2, fate: 0, place: 3, length: 1 << 20 };

#[test]
fn rejects_inconsistent_counts() {
    let error = |open_loop: bool, change: &dyn Fn(&mut Counted)| {
        let mut counted = nothing(open_loop);
        record(&mut counted, 0, SAMPLE);
        change(&mut counted);
        counted.check(open_loop).map_err(|error| error.to_string()).err().unwrap_or_default()
    };
    for open_loop in [false, true] {
        assert_eq!(error(open_loop, &|_| ()), "");
        assert!(error(open_loop, &|c| c.format = 99).contains("format 99"));
        assert!(error(open_loop, &|c| c.requests = 2).contains("2 requests, but 1 in the slices"));
        assert!(error(open_loop, &|c| c.spun_ns = 1 << 40).contains("more CPU time spun"));
        let other = nothing(!open_loop).open_loop;
        assert!(error(open_loop, &|c| c.open_loop = other.clone()).contains("of an open loop for"));
    }
    assert!(error(false, &|c| c.replies = 0).contains("0 replies, but 1 latencies"));
    let kind = |open_loop, change: &dyn Fn(&mut OperationCounted)| {
        error(open_loop, &|counted| change(&mut counted.operations[0]))
    };
    assert!(kind(false, &|each| each.count += 1).contains("deliveries"));
    assert!(kind(true, &|each| each.whole_run = 0).contains("0 in the whole run"));
    assert_eq!(kind(true, &|each| each.histogram.clear()), "", "they only arrived in the window");
    assert!(kind(false, &|each| each.operation = Operation::REQUESTS).contains("counted twice"));
    let open =
        |change: &dyn Fn(&mut OpenCounted)| error(true, &|c| change(c.open_loop.as_mut().unwrap()));
    assert!(open(&|open| open.wait.clear()).contains("three parts"));
    assert!(open(&|open| open.due = 5).contains("5 requests due, but 1 outcomes"));
}

#[test]
fn keeps_the_earliest_wrong_exchange_and_drops_figures_unknown_to_a_process() {
    let wrong = |after_ns, sent: &str| FirstWrong {
        after_ns,
        exchange: Exchange {
            sent: sent.into(),
            expected: String::new(),
            received: String::new(),
            reply_index: 0,
        },
    };
    let counted = |first_wrong| Counted { first_wrong, ..nothing(false) };
    let mut sum = counted(Some(wrong(20, "later")));
    sum.add(counted(None)).unwrap();
    sum.add(counted(Some(wrong(10, "sooner")))).unwrap();
    sum.add(counted(Some(wrong(15, "between")))).unwrap();
    assert_eq!(sum.first_wrong.as_ref().unwrap().exchange.sent, "sooner");
    assert_eq!(sum.run_delay_ns, Some(0));
    let spoken = TlsSpoken { version: "1.3".into(), cipher: "c".into(), checked: true };
    let tls = Some(spoken.clone());
    sum.add(Counted { run_delay_ns: None, turns: None, tls, ..nothing(false) }).unwrap();
    assert_eq!((sum.run_delay_ns, sum.turns, sum.tls), (None, None, Some(spoken)));
}

#[test]
fn counts_without_further_kinds_have_no_new_key() {
    let plain = Counted::nothing(histogram(), SLICE_NS, &[]);
    let line = serde_json::to_string(&plain).unwrap();
    assert!(!line.contains("operations"), "{line}");
    assert_eq!(sent(&plain), plain);
}

/// Counts of a window whose stages have so many answered requests each.
fn in_stages(answered: &[u64]) -> Counted {
    let of = |answered: u64, open_loop| {
        let mut counted = Counted { operations: Vec::new(), ..nothing(open_loop) };
        counted.histogram.record_n(7, answered).unwrap();
        (counted.requests, counted.replies, counted.slices) = (answered, answered, vec![answered]);
        if let Some(open) = &mut counted.open_loop {
            open.due = answered;
            for part in [&mut open.wait, &mut open.lag, &mut open.service] {
                part.record_n(7, answered).unwrap();
            }
        }
        counted
    };
    let stages = answered.iter().map(|answered| of(*answered, true)).collect();
    Counted { stages, ..of(answered.iter().sum(), false) }
}

#[test]
fn stages_are_merged_one_by_one() {
    let mut sum = in_stages(&[10, 20]);
    sum.add(sent(&in_stages(&[1])).clone()).unwrap();
    sum.add(in_stages(&[1, 2, 3])).unwrap();
    sum.check(true).unwrap();
    let each: Vec<u64> = sum.stages.iter().map(|stage| stage.requests).collect();
    assert_eq!((each, sum.requests), (vec![12, 22, 3], 37));
    let due = |stage: &Counted| stage.open_loop.as_ref().unwrap().due;
    assert_eq!(sum.stages.iter().map(due).sum::<u64>(), 37);
    let before = sum.clone();
    let mut other = in_stages(&[1, 1]);
    other.stages[1].slice_ns += 1;
    sum.add(other).unwrap_err();
    assert_eq!(sum, before, "it is unchanged after an error");
}

#[test]
fn stages_must_add_up_to_the_window() {
    in_stages(&[1, 2]).check(true).unwrap();
    assert!(in_stages(&[1, 2]).check(false).is_err(), "a closed loop has no stages");
    for change in [
        (|counted| counted.stages[1].requests += 1) as fn(&mut Counted),
        |counted| (counted.requests, counted.slices[0]) = (4, 4),
        |counted| counted.histogram.record(7).unwrap(),
        |counted| counted.stages[0].stages = in_stages(&[1]).stages,
        |counted| counted.stages[0].open_loop = None,
        |counted| counted.stages[0].open_loop.as_mut().unwrap().due += 1,
    ] {
        let mut counted = in_stages(&[1, 2]);
        change(&mut counted);
        counted.check(true).unwrap_err();
    }
}
