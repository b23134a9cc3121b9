//! How soon a load stops, and in which stage a late reply counts.

use crate::common::{Server, assert_stops_within, double, plan};
use regatta_load::{Arrivals, Plan, Stage, Tally, WarmUp};
use regatta_testkit::machine;
use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    thread,
    time::Duration,
};

const MS: u64 = 1_000_000;

#[test]
fn stop_ends_the_load_at_once_up_to_the_end_of_the_window() {
    let _alone = machine::alone();
    assert_stops_within(Duration::from_millis(200));
}

fn stages(stages: &[(u64, u32)]) -> Vec<Stage> {
    let stage =
        |&(ms, rate): &(u64, u32)| Stage { ns: ms * MS, rate: NonZeroU32::new(rate).unwrap() };
    stages.iter().map(stage).collect()
}

fn due(tally: &Tally) -> Vec<u64> {
    tally.stages.iter().map(|stage| stage.open_loop.as_ref().unwrap().due).collect()
}

/// From its 500th request on, the server answers after 150 ms: the requests of the second stage, of which
/// half are answered in the third.
#[test]
fn a_late_reply_counts_in_the_stage_in_which_its_request_was_due() {
    let _alone = machine::alone();
    let answered = AtomicU64::new(0);
    let server = Server::lines(move |i, line| {
        let slow = (300..330).contains(&answered.fetch_add(u64::from(i > 0), SeqCst));
        thread::sleep(Duration::from_millis(if slow { 150 } else { 0 }));
        Some(double(line))
    });
    let plan =
        Plan { connections: 100, warm_up: WarmUp::Fixed(Duration::ZERO), ..plan(server.address) };
    let plan =
        plan.in_stages(stages(&[(300, 1_000), (300, 100), (300, 1_000)]), Arrivals::Constant);
    let tally = crate::common::run(&plan).unwrap();
    assert_eq!(tally.errors.total(), 0, "{:?}", tally.errors);
    assert_eq!(due(&tally), [300, 30, 300]);
    // A thread may send one request in a warm-up of length zero.
    let slow = |stage: &Tally| {
        let service = &stage.open_loop.as_ref().unwrap().service;
        service.count_between(149 * MS, u64::MAX)
    };
    let slow: Vec<u64> = tally.stages.iter().map(slow).collect();
    assert!(slow[0] <= 1 && slow[1] >= 28 && slow[1] + slow[2] <= 30, "{slow:?}");
    // The load received them in the stage in which they came.
    assert!(tally.stages[1].requests < 30 && tally.stages[2].requests > 300);
}
