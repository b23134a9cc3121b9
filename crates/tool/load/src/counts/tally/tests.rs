use super::*;
use regatta_script::Workload;
use std::time::Duration;

const REQUESTS: &[Operation] = &[Operation::REQUESTS];

fn plan(until: Until) -> Plan {
    Plan {
        timeout: Duration::from_secs(1),
        until,
        ..Plan::closed("127.0.0.1:1".parse().unwrap(), Workload::parse("double").unwrap())
    }
}

fn outcome(from: Nanos, to: Nanos) -> RunOutcome {
    RunOutcome { window: Some((from, to)), ..RunOutcome::default() }
}

fn merge(counts: Vec<Count>, outcome: RunOutcome, plan: &Plan) -> Tally {
    let threads = counts.len();
    let part = Part::whole(threads as u32);
    let counted = count(counts, REQUESTS, part, outcome.window, plan);
    Tally::of(counted, &outcome, plan, Split { processes: 1, threads })
}

#[test]
fn merging_threads_loses_nothing() {
    let until = Until::Elapsed(Duration::from_millis(200));
    let mut all = new_histogram();
    let counts = (0..3_u64).map(|thread| {
        let mut count = Count::new(&plan(until), REQUESTS);
        count.window_opens(1_000);
        for i in 0..1_000_u64 {
            let latency = 1 + (i * i * (thread + 7)) % 120_000_000_000;
            count.record_replies(1_000 + i * 200_000, 1);
            count.record_latency(latency, 1);
            all.record(latency).unwrap();
        }
        count.record_replies(1_000 + 201 * MS, 4);
        count.record_latency(50, 4);
        all.record_n(50, 4).unwrap();
        count
    });
    let tally = merge(counts.collect(), outcome(1_000, 1_000 + 200 * MS), &plan(until));
    assert_eq!(tally.histogram, all);
    assert_eq!(tally.requests, 3 * 1_004);
    assert_eq!((tally.slices.len(), tally.slice_ns), (10, 20 * MS));
    assert_eq!(tally.slices.iter().sum::<u64>(), tally.requests);
    assert_eq!(tally.slices[0], 300);
    assert_eq!(tally.window_ns, 200 * MS);
}

#[test]
fn a_counted_window_ends_with_the_last_reply_and_has_only_complete_slices() {
    let until = Until::Requests(3);
    let mut count = Count::new(&plan(until), REQUESTS);
    count.window_opens(0);
    for at in [50 * MS, 150 * MS, 250 * MS] {
        count.record_replies(at, 1);
    }
    let tally = merge(vec![count], outcome(0, 300 * MS), &plan(until));
    assert_eq!((tally.window_ns, tally.counts.slices), (250 * MS, vec![1, 1]));
}

#[test]
fn a_latency_beyond_the_histogram_is_recorded_as_its_maximum() {
    let mut count = Count::new(&plan(Until::Requests(1)), REQUESTS);
    count.window_opens(0);
    count.record_latency(u64::MAX / 2, 1);
    assert_eq!(count.histogram.len(), 1);
}

#[test]
fn the_last_second_is_handed_over_at_the_end_of_the_run() {
    let until = Until::Elapsed(Duration::from_secs(2));
    let mut count = Count::new(&Plan { seconds: true, ..plan(until) }, REQUESTS);
    let handed = Handed::default();
    count.window_opens(0);
    for at in [100 * MS, 1_100 * MS, 1_200 * MS] {
        count.record_replies(at, 1);
        count.record_latency(50, 1);
    }
    count.hand_over_last(&handed);
    let seconds = handed.take();
    let shown: Vec<_> = seconds.iter().map(|s| (s.number, s.requests, s.latency.len())).collect();
    assert_eq!(shown, [(0, 1, 1), (1, 2, 2)]);
}
