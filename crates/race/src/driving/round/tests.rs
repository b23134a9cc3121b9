use super::*;
use crate::fixtures::entrant;
use regatta_load::{Burst, Moment};
use std::{
    io::{Read, Write},
    net::TcpListener,
};

/// A server that never answers: its connections wait in the listener's queue.
fn burst(stop: bool, within: Duration) -> bool {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let plan = Plan {
        connections: 4,
        drive: Drive::Burst(Burst { instances: 2, requests: 1 }),
        timeout: COUNTED_WITHIN,
        patience: COUNTED_WITHIN,
        until: Until::Done,
        ..Plan::closed(listener.local_addr().unwrap(), Workload::parse("double").unwrap())
    };
    let how = load_processes(std::path::Path::new("/nonexistent"), 1);
    run_counted(&plan, &how, &mut |_: Moment| {}, &mut |_| (), &AtomicBool::new(stop), within).1
}

#[test]
fn stops_a_burst_at_its_time_limit() {
    assert!(burst(false, Duration::from_millis(150)));
}

#[test]
fn an_interrupted_burst_is_not_late() {
    assert!(!burst(true, COUNTED_WITHIN));
}

/// A server that answers wrongly.
fn wrong_tally() -> Tally {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut input = [0; 4096];
        while stream.read(&mut input).is_ok_and(|read| read > 0) {
            if stream.write_all(b"7\n").is_err() {
                return;
            }
        }
    });
    let double = Workload::parse("double").unwrap();
    let plan = Plan { until: Until::Requests(10), ..Plan::closed(address, double) };
    let stop = AtomicBool::new(false);
    let tally = regatta_load::run(&plan, &mut |_: Moment| {}, &mut |_| (), &stop).unwrap();
    server.join().unwrap();
    tally
}

#[test]
fn a_wrong_reply_counts_although_the_server_died_and_its_death_explains_missing_ones() {
    let entrant = entrant("x");
    let tally = wrong_tally();
    let died = || Some("it died".to_owned());
    let of_wrong = outcome(&entrant, &tally, died());
    assert!(matches!(of_wrong, Outcome::Disqualified { exchange: Some(_), .. }), "{of_wrong:?}");
    let tally = Tally { first_wrong: None, ..tally };
    assert_eq!(outcome(&entrant, &tally, died()), Outcome::Failed { because: "it died".into() });
}
