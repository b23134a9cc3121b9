//! A load on three hubs at one broker. The full tier does the same with 3,000 members.

use crate::support::{
    hubs::{Hubs, Outcome, Shape},
    liar::Lie,
    refused, regatta,
    shard::sentinel::Park,
};
use regatta_testkit::machine;
use serde_json::{Value, json};

const SHAPE: Shape = Shape { members: 30, rate: "50/s", length: "5s", timeout: "30s" };

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn members_at_all_hubs_get_all_broadcasts_in_one_order() {
    let _turn = machine::shared();
    let outcome = Hubs::start().load(SHAPE, |_| {});
    assert!(outcome.is_right(), "{outcome:?}");
    assert_eq!(outcome.counts()[1..].iter().map(|(_, count)| count).sum::<u64>(), 0, "{outcome:?}");
    assert_eq!(outcome.deliveries, outcome.published * SHAPE.members);
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn what_is_lost_with_the_broker_is_counted_apart() {
    let _turn = machine::shared();
    // On a busy machine the hubs and the broker need some of it.
    let shape = Shape { length: "20s", ..SHAPE };
    let outcome = Hubs::start().load(shape, |hubs| {
        hubs.broker.kill();
        hubs.see_the_broker(false);
        hubs.broker.revive();
        hubs.see_the_broker(true);
        hubs.deliver(10 * SHAPE.members);
    });
    assert!(outcome.is_right(), "{outcome:?}");
    assert_eq!(outcome.gaps, SHAPE.members, "{outcome:?}");
    assert!(outcome.not_published > 0 && outcome.deliveries > 0, "{outcome:?}");
}

/// Sentinels and a cluster replace the master meanwhile, which takes them long on a busy machine.
const LONG: Shape = Shape { rate: "30/s", length: "30s", ..SHAPE };

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn what_is_lost_with_a_master_that_is_killed_is_counted_apart() {
    with_a_failover(Park::kill_master);
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn what_is_lost_with_a_master_that_an_operator_replaces_is_counted_apart() {
    with_a_failover(Park::replace);
}

fn with_a_failover(fails: fn(&mut Park)) {
    let _turn = machine::shared();
    let outcome = Hubs::start_at_sentinels().load(LONG, |hubs| {
        fails(&mut hubs.broker);
        hubs.see_the_failover();
        hubs.deliver(10 * SHAPE.members);
    });
    assert!(outcome.is_right(), "{outcome:?}");
    assert!(outcome.gaps >= SHAPE.members && outcome.deliveries > 0, "{outcome:?}");
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn what_is_lost_with_a_failover_in_a_cluster_is_counted_apart() {
    let _turn = machine::shared();
    let outcome = Hubs::start_in_cluster().load(LONG, |hubs| {
        hubs.broker.kill_master();
        hubs.see_the_failover();
        hubs.deliver(10 * SHAPE.members);
    });
    assert!(outcome.is_right(), "{outcome:?}");
    assert!(outcome.gaps >= SHAPE.members && outcome.deliveries > 0, "{outcome:?}");
}

/// Each column of the table of the full tier that must be 0.
#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn each_lie_about_one_delivery_shows_in_its_column() {
    let _turn = machine::shared();
    // Other requests must not take longer than the timeout.
    let shape = Shape { length: "2s", timeout: "5s", ..SHAPE };
    let found = |lie| {
        let outcome = Hubs::start().lie(lie).load(shape, |_| {});
        let Outcome { missing, twice, out_of_order, unaccounted, .. } = outcome;
        assert!(!outcome.is_right(), "{lie:?}: {outcome:?}");
        assert_eq!((outcome.unsent, outcome.errors, outcome.gaps), (0, 0, 0), "{lie:?}");
        (missing, twice, out_of_order, unaccounted)
    };
    // What follows a delivery that is left out comes too early; or, if it is the first of its copies, that of all others
    // comes too late. That is excused until a result says whether the missing broadcast was published.
    let drops = found(Lie::Drops);
    assert!(matches!(drops, (1, 0, _, 1)), "{drops:?}");
    assert_eq!(found(Lie::Doubles), (0, 1, 0, 0));
    // Of A, B, C, D as A, C, B, D only A has its place. C and D are excused in the same way; that B is before itself
    // is not.
    let swaps = found(Lie::Swaps);
    assert!(matches!(swaps, (0, 0, 1.., 0)), "{swaps:?}");
}

/// Broadcasts that are refused are in no rate and in no latency, also of each second.
#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn refused_broadcasts_are_counted_apart_in_all_reports() {
    let _turn = machine::shared();
    let folder = tempfile::tempdir().unwrap();
    let series = folder.path().join("series.csv");
    let more = ["--series", series.to_str().unwrap(), "--warm-up", "0s"];
    // The broker is killed in the first part of it, also on a busy machine.
    let shape = Shape { length: "15s", ..SHAPE };
    let mut hubs = Hubs::start();
    let result = hubs.result(shape, &more, |hubs| {
        hubs.deliver(40 * SHAPE.members);
        hubs.broker.kill();
        hubs.see_the_broker(false);
    });
    let of = |path: &str| result.pointer(path).and_then(Value::as_u64).expect("a count");
    let [refused, requests, due] = ["/refused", "/requests", "/open_loop/due"].map(of);
    assert!(refused > 10 && requests > 10, "{refused} refused, {requests} requests");
    assert_eq!((refused, refused + requests), (of("/open_loop/refused"), due));
    assert_eq!(refused, of("/announced/not_published") + of("/announced/unknown"));
    let series = std::fs::read_to_string(series).unwrap();
    let sum = |column: &str| -> u64 {
        let mut rows = series.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let at = rows.next().unwrap().iter().position(|name| *name == column).unwrap();
        rows.map(|row| row[at].parse::<u64>().unwrap()).sum()
    };
    // The seconds count replies that came inside the window, not requests that were due in it.
    let counted = sum("refused") + sum("requests");
    assert!(counted.abs_diff(due) <= 5, "{counted} of {due}:\n{series}");
    assert!(sum("refused") > 10, "{series}");
}

#[test]
#[cfg_attr(not(has_redis_server), ignore = "redis-server is not installed (scripts/setup)")]
fn the_cost_of_several_hubs_is_that_of_all_their_processes() {
    let _turn = machine::shared();
    let mut hubs = Hubs::start();
    let shape = Shape { length: "2s", ..SHAPE };
    let broker = hubs.broker.pid();
    let pids: Vec<u32> = hubs.pids().into_iter().chain([broker]).collect();
    let all = pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let result = hubs.result(shape, &["--pid", &all], |_| {});
    assert_eq!(result["server_pids"], json!(pids));
    let cost = |result: &Value| result["server_cpu_ns_per_request"].as_f64().unwrap();
    assert!(cost(&result) > 0.0, "{result}");
}

#[test]
fn processes_that_do_not_fit_the_servers_are_refused() {
    let own = std::process::id().to_string();
    let parent = std::os::unix::process::parent_id().to_string();
    let nodes = ["ws://127.0.0.1:1/ws", "ws://127.0.0.1:2/ws"];
    for (servers, pids, why) in [
        (2, own.clone(), "2 servers, but 1 --pid: name a process of each"),
        (1, format!("{own},{own}"), "is given twice: name each process once"),
        (1, format!("{parent},{own}"), "is a descendant of process"),
        (1, "4194305".into(), "cannot observe process 4194305"),
    ] {
        let stderr = refused(regatta!("load -c 2 --pid {pids}").args(&nodes[..servers]));
        assert!(stderr.contains(why), "{stderr}");
    }
}
