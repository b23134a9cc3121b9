//! How soon a load stops, and in which stage a late reply counts.

use crate::common::{Called, Server, double, plan};
use regatta_load::{Arrivals, Drive, Plan, Stage, Tally, Until, WarmUp};
use regatta_testkit::machine;
use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

const MS: u64 = 1_000_000;

#[test]
fn stop_ends_the_load_at_once_up_to_the_end_of_the_window() {
    let _alone = machine::alone();
    let silent = Server::lines(|_, _| Some(String::new()));
    let right = Server::double();
    let long = Duration::from_secs(20);
    let until = Until::Elapsed(long);
    let plans = [
        Plan { connections: 2, until, ..plan(silent.address) },
        Plan { threads: 2, connections: 4, until, ..plan(right.address) },
        Plan { warm_up: WarmUp::Fixed(long), until, ..plan(right.address) },
        Plan { drive: Drive::Churn, until, ..plan(right.address) },
        Plan { until: Until::Requests(u64::MAX), ..plan(right.address) },
    ];
    for plan in plans {
        let stop = AtomicBool::new(false);
        let stopped = std::sync::Mutex::new(None);
        let mut stop_later = |progress: &regatta_load::Progress| {
            if progress.elapsed > Duration::from_millis(250) {
                stopped.lock().unwrap().get_or_insert_with(Instant::now);
                stop.store(true, SeqCst);
            }
        };
        let tally =
            regatta_load::run(&plan, &mut Called::default(), &mut stop_later, &stop).unwrap();
        let took = stopped.lock().unwrap().unwrap().elapsed();
        assert!(took < Duration::from_millis(200), "{took:?} after the stop: {plan:?}");
        assert!(tally.interrupted);
        assert!(tally.histogram.len() <= tally.replies);
    }
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
