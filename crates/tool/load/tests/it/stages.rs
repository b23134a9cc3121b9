//! Stages of an open loop: each has its own rate and its own counts, on the same connections.

use crate::common::{Server, assert_undisturbed, plan, run};
use regatta_load::{Arrivals, LoadObserver, Moment, Plan, Stage, Tally};
use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
};

const MS: u64 = 1_000_000;

fn stages(stages: &[(u64, u32)]) -> Vec<Stage> {
    let stage =
        |&(ms, rate): &(u64, u32)| Stage { ns: ms * MS, rate: NonZeroU32::new(rate).unwrap() };
    stages.iter().map(stage).collect()
}

/// So many requests in flight that no disturbance of the machine leaves one unsent.
fn wide(server: &Server, of: &[(u64, u32)]) -> Plan {
    let plan = Plan { connections: 60, pipeline: 8, ..plan(server.address) };
    plan.in_stages(stages(of), Arrivals::Constant)
}

fn due(tally: &Tally) -> Vec<u64> {
    tally.stages.iter().map(|stage| stage.open_loop.as_ref().unwrap().due).collect()
}

#[test]
fn each_stage_has_exactly_the_requests_of_its_rate() {
    let server = Server::double();
    for threads in [1, 3] {
        let plan = Plan { threads, ..wide(&server, &[(200, 1_000), (100, 5_000), (300, 100)]) };
        let tally = run(&plan).unwrap();
        assert_undisturbed(&tally);
        assert_eq!(due(&tally), [200, 500, 30], "{threads} threads");
        let answered: Vec<u64> = tally.stages.iter().map(|stage| stage.histogram.len()).collect();
        assert_eq!(answered, [200, 500, 30]);
        let whole = tally.open_loop.as_ref().unwrap();
        assert_eq!((whole.due, tally.histogram.len(), whole.service.len()), (730, 730, 730));
        assert_eq!(tally.requests, tally.stages.iter().map(|stage| stage.requests).sum::<u64>());
        let cpu: u64 = tally.stages.iter().map(|stage| stage.load_cpu_ns).sum();
        assert!(cpu > 0 && cpu <= tally.load_cpu_ns, "{cpu} of {}", tally.load_cpu_ns);
        for (stage, ms) in tally.stages.iter().zip([200, 100, 300]) {
            let off = stage.window_ns.abs_diff(ms * MS);
            assert!(off < 100 * MS, "{} instead of {ms} ms", stage.window_ns);
        }
    }
    // All requests used the connections of the first stage.
    assert_eq!(run(&wide(&server, &[(100, 100); 5])).unwrap().connections_opened, 60);
}

#[test]
fn a_single_stage_sends_like_a_rate() {
    let server = Server::double();
    let of = |plan: Plan| run(&plan).unwrap().open_loop.unwrap().due;
    let one = wide(&server, &[(300, 1_000)]).stage(0);
    let poisson = |plan: Plan| Plan { drive: crate::common::at(1_000, Arrivals::Poisson), ..plan };
    assert_eq!(of(poisson(wide(&server, &[(300, 1_000)]))), of(poisson(one)));
}

/// Counts the calls at the edges.
#[derive(Default)]
struct Edged {
    opened: u32,
    ended: u32,
    closed: u32,
}

impl LoadObserver for Edged {
    fn at(&mut self, moment: Moment) {
        match moment {
            Moment::WindowOpens => self.opened += 1,
            Moment::StageEnds => {
                assert_eq!((self.opened, self.closed), (1, 0));
                self.ended += 1;
            }
            Moment::WindowCloses => self.closed += 1,
            _ => {}
        }
    }
}

#[test]
fn the_caller_is_called_at_each_end_of_a_stage_inside_the_window() {
    let server = Server::double();
    for (of, ended) in [(&[(100, 50); 4][..], 3), (&[(100, 50)], 0)] {
        let mut edges = Edged::default();
        let stop = AtomicBool::new(false);
        let plan = wide(&server, of);
        regatta_load::run(&plan, &mut edges, &mut |_| {}, &stop).unwrap();
        assert_eq!((edges.opened, edges.ended, edges.closed), (1, ended, 1));
    }
}

#[test]
fn a_load_that_is_stopped_has_the_stages_that_began() {
    let server = Server::double();
    let stop = AtomicBool::new(false);
    let mut edges = |moment: Moment| {
        if moment == Moment::StageEnds {
            stop.store(true, SeqCst);
        }
    };
    let plan = wide(&server, &[(200, 500), (60_000, 50), (100, 50)]);
    let tally = regatta_load::run(&plan, &mut edges, &mut |_| {}, &stop).unwrap();
    assert!(tally.interrupted);
    assert_eq!(tally.stages.len(), 2);
    assert_eq!(due(&tally)[0], 100);
    assert!(tally.stages[1].window_ns < 30_000 * MS);
}
