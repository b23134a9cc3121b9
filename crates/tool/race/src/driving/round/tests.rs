use super::*;
use regatta_load::{Burst, Drive, Moment, Until};
use regatta_script::Workload;
use std::net::TcpListener;

/// A burst on a server that never answers: its connections wait in the listener's queue. Returns the limit at
/// which it ended.
fn burst(stop: bool, limit: Duration) -> Option<Duration> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let plan = Plan {
        connections: 4,
        drive: Drive::Burst(Burst { instances: 2, requests: 1 }),
        timeout: Plan::MAX_TIMEOUT,
        patience: Plan::MAX_TIMEOUT,
        until: Until::Done,
        ..Plan::closed(listener.local_addr().unwrap(), Workload::parse("double").unwrap())
    };
    let how = load_processes(std::path::Path::new("/nonexistent"), 1);
    let (stop, end) = (AtomicBool::new(stop), AtomicBool::new(false));
    let mut limit = TimeLimit::new(Some(limit), &stop);
    let mut look = |now: &Progress| end.store(limit.is_reached(now), Ordering::Relaxed);
    let ran = run_in_processes(&plan, &how, &mut |_: Moment| {}, &mut look, &end);
    assert!(ran.is_ok_and(|tally| tally.interrupted));
    limit.too_long()
}

#[test]
fn stops_a_burst_at_its_time_limit() {
    let limit = Duration::from_millis(150);
    assert_eq!(burst(false, limit), Some(limit));
}

#[test]
fn an_interrupted_burst_is_not_late() {
    assert_eq!(burst(true, Plan::MAX_TIMEOUT), None);
    assert_eq!(burst(true, Duration::ZERO), None);
}
