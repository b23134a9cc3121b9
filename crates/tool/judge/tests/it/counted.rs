//! Judging counted loads, small requests beside large ones, and the cost of silent connections, on
//! simulated races.

use crate::simulated::{
    QUIET, asked,
    counted::{COUNTED, FAIR, beside, count},
    rounds, truth,
};
use regatta_judge::{due, judge};
use regatta_record::{Cell, Figure, HistoricResult, Kind, LoadShape, Over, Relation, Summary};

const NAMES: [&str; 3] = ["epoll", "epoll-twin", "threads"];

fn cell<'a>(summary: &'a Summary, name: &str) -> &'a Cell {
    summary.cells.iter().find(|c| c.contender == name).unwrap()
}

#[test]
fn a_counted_load_is_measured_in_milliseconds_per_request() {
    let contenders = [truth("epoll", 4e7), truth("epoll-twin", 4e7), truth("threads", 5e7)];
    let mut rounds = rounds(&contenders, &[COUNTED], 7, QUIET, 3);
    rounds.iter_mut().for_each(count);
    let mut asked = asked(&NAMES, 7, &[COUNTED]);
    let (note, loads) = (Some("far back".to_owned()), vec![COUNTED]);
    asked.then = vec![HistoricResult { contender: "threads".into(), figure: None, note, loads }];
    let s = judge(&asked, &rounds);
    let threads = cell(&s, "threads");
    let (ms, rate) = (threads.ms_per_request.unwrap(), threads.rate_per_s.unwrap());
    assert!((ms.mean / 51.0 - 1.0).abs() < 0.1, "{ms:?}");
    assert!((ms.mean * rate.mean / 1e3 - 1.0).abs() < 1e-9 && ms.low < ms.mean, "{ms:?}");
    assert_eq!(threads.verdict.kind(), Kind::ServerBound, "slow edges: {:?}", threads.verdict);
    assert_eq!(threads.relation, Some(Relation::Costlier));
    assert_eq!(threads.little_residual, None);
    assert_eq!((threads.then.clone(), threads.then_in_words.as_deref()), (None, Some("far back")));
    assert_eq!(cell(&s, "epoll").then_in_words, None);
}

#[test]
fn beside_a_load_there_is_no_cost_and_cells_are_ordered_by_latency() {
    let contenders = NAMES.map(|name| truth(name, 5_000.0));
    let mut rounds = rounds(&contenders, &[FAIR], 7, QUIET, 3);
    for round in &mut rounds {
        let blocks = round.contender != "threads";
        beside(round, if blocks { 50 } else { 48 }, if blocks { 300_000_000 } else { 0 });
    }
    let mut asked = asked(&NAMES, 7, &[FAIR]);
    let s = judge(&asked, &rounds);
    assert_eq!(s.cells[0].contender, "threads", "its small requests wait least");
    let large = s.cells[0].beside_per_s.unwrap();
    assert!((large.mean - 24.0).abs() < 1e-9, "{large:?}");
    for cell in &s.cells {
        assert_eq!(cell.verdict.void, [Figure::Cost], "{:?}", cell.verdict);
        assert!(cell.verdict.is(Kind::AtAskedRate), "{:?}", cell.verdict);
        assert!(cell.verdict.because().contains("large requests per second"), "{:?}", cell.verdict);
        assert_eq!((cell.ratio_to_baseline, cell.band), (None, None));
        assert!(cell.latency_ns.p50.is_some());
    }
    assert!(cell(&s, "epoll").latency_ns.p50 > Some(300_000_000));
    let of_cost = |doubt: &String| doubt.contains("no cost") || doubt.contains("noise floor");
    assert!(!s.doubts.iter().any(of_cost), "{:?}", s.doubts);
    // There is no ratio to become narrow, and none is reported missing.
    (asked.precision, asked.rounds) = (Some(0.02), 50);
    assert!(due(&asked, &rounds, 5).loads.is_empty());
    assert!(judge(&asked, &rounds).precision.unwrap().missing.is_empty());
}

#[test]
fn each_silent_connection_has_a_cost() {
    let idle = |idle| LoadShape { idle, ..LoadShape::closed(10, 1) };
    let loads = [idle(10), idle(90), idle(990), idle(9_990)];
    let mut rounds = rounds(&NAMES.map(|name| truth(name, 5_000.0)), &loads, 7, QUIET, 5);
    for round in rounds.iter_mut().filter(|r| r.contender == "threads") {
        let factor = 1.0 + f64::from(round.load.idle) * 20.0 / 5_000.0;
        round.requests = (round.requests as f64 / factor) as u64;
        round.load_cpu_ns = (round.load_cpu_ns as f64 / factor) as u64;
    }
    let s = judge(&asked(&NAMES, 7, &loads), &rounds);
    let of = |name: &str| {
        let curve = s.curves.iter().find(|curve| curve.contender == name).unwrap();
        let Over::Idle { points, cost } = &curve.over else { panic!("{curve:?}") };
        assert_eq!(points.iter().map(|p| p.idle).collect::<Vec<_>>(), [10, 90, 990, 9_990]);
        assert!(points.iter().all(|p| p.cost_ns.is_some()));
        cost.unwrap()
    };
    let (threads, epoll) = (of("threads"), of("epoll"));
    assert!(threads.each_ns.low > 17.0 && threads.each_ns.high < 23.0, "{threads:?}");
    assert!(threads.alone_ns.low < 5_000.0 && threads.alone_ns.high > 4_500.0, "{threads:?}");
    assert!(epoll.each_ns.mean.abs() < 0.1, "{epoll:?}");
    // With fewer costs there is no line.
    rounds.retain(|r| r.load.idle < 100);
    let s = judge(&asked(&NAMES, 7, &loads), &rounds);
    assert!(s.curves.is_empty(), "{:?}", s.curves);
}
