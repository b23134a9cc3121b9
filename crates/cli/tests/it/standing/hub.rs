//! The members of a hub on the agents of a standing fleet: the same checks as over SSH, and the agents' own limits.

use super::{Fleet, regatta};
use crate::{
    agents::hub::{Fault, relay},
    support::Server,
};
use regatta_testkit::child::Ended;
use std::{fs, net::SocketAddr};

/// Limits of each agent. Both together may do more.
const LIMITS: [&str; 4] = ["--max-rate", "120/s", "--max-connections", "12"];

/// A fleet of two agents with these limits.
fn fleet(limits: &[&str]) -> Fleet {
    let mut fleet = Fleet::new();
    for name in ["gen1", "gen2"] {
        fleet.agent(name, &[&["--targets", "127.0.0.1:1-65535"], limits].concat());
    }
    fleet
}

/// A load of a hub from both agents.
fn load(fleet: &Fleet, hub: SocketAddr, more: &[&str]) -> Ended {
    let (url, leader) = (format!("ws://{hub}/ws"), fleet.leader());
    let args = ["load", &url, "--on", "gen1,gen2", "--fleet", &leader, "--json", "-"];
    let length = ["-d", "400ms", "--warm-up", "200ms", "--timeout", "3s"];
    regatta(&[&args, &length[..], more].concat())
}

fn json(ended: &Ended) -> serde_json::Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// A load of two members, one on each agent, through a relay that makes an error: it is found.
#[track_caller]
fn is_found(fault: Fault, expected: &str) {
    let hub = Server::of("hub", "epoll", &[]);
    let relay = relay(hub.addr, fault);
    let done = load(&fleet(&[]), relay, &["-c", "2", "--rate", "100/s"]);
    let result = json(&done);
    let wrong = &result["first_wrong"];
    assert_eq!(
        (done.code(), &result["verdict"]["kind"]),
        (1, &"disqualified".into()),
        "{result:#}"
    );
    let exchange = format!("{} / {}", wrong["expected"], wrong["received"]);
    assert!(exchange.contains(expected), "{exchange}: {result:#}");
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_copy_that_is_dropped_between_agents_is_found() {
    is_found(Fault::Drops, "1 of these are missing, although the load has waited");
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn a_copy_that_is_doubled_between_agents_is_found() {
    is_found(Fault::Doubles, "each broadcast once; this one was delivered before");
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn members_within_the_limits_get_each_broadcast_of_both_agents() {
    let fleet = fleet(&LIMITS);
    let hub = Server::of("hub", "epoll", &[]);
    let log = fleet.log("latencies").display().to_string();
    let members = ["-c", "12", "--idle", "4", "--rate", "200/s", "--hdr-log", &log];
    let done = load(&fleet, hub.addr, &members);
    assert_eq!(done.code(), 0, "{done:?}");
    let result = json(&done);
    let whole_run = result["operations"][0]["whole_run"].as_u64().unwrap();
    assert!(whole_run > 0 && whole_run.is_multiple_of(16), "a copy for each: {result:#}");
    let across = &result["agents"]["across"];
    assert_eq!((&across["impossible"], &across["unchecked"]), (&0.into(), &0.into()), "{across:#}");
    let pairs = across["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 2, "{across:#}");
    assert!(pairs.iter().all(|pair| pair["deliveries"].as_u64().unwrap() > 0), "{across:#}");
    let log = fs::read_to_string(log).unwrap();
    let count = |tag: &str| log.lines().filter(|line| line.starts_with(tag)).count();
    assert_eq!((count("Tag=deliveries,"), count("Tag=across,")), (1, 1), "{log}");
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn members_beyond_the_limits_of_an_agent_are_refused() {
    let fleet = fleet(&LIMITS);
    let hub = Server::of("hub", "epoll", &[]);
    for (members, because) in [
        (
            &["--idle", "20", "--rate", "200/s"][..],
            " connections, more than 12 (--max-connections)",
        ),
        (&["--rate", "400/s"], " requests per second, more than 120 (--max-rate)"),
        (&[], "so the load needs a rate: use --rate or --stages"),
        (&["--in-flight", "4"], "so the load needs a rate: use --rate or --stages"),
    ] {
        let done = load(&fleet, hub.addr, &[&["-c", "12"], members].concat());
        assert_eq!(done.code(), 2, "{done:?}");
        assert!(done.stderr.contains(" refused: its "), "{}", done.stderr);
        assert!(done.stderr.contains(because), "{}", done.stderr);
    }
}

#[test]
#[cfg_attr(not(has_nats_server), ignore = "nats-server is not installed (scripts/setup)")]
fn the_agents_carry_out_the_steps_of_a_search_for_the_capacity() {
    let (fleet, hub) = (fleet(&[]), Server::of("hub", "epoll", &[]));
    let (url, leader) = (format!("ws://{}/ws", hub.addr), fleet.leader());
    let args = ["capacity", &url, "--on", "gen1,gen2", "--fleet", &leader, "--limit", "p50=500ms"];
    let levels = ["--by", "rate", "-c", "4", "--step", "100", "--max", "100"];
    let times = ["--warm-up", "100ms", "--window", "500ms", "--json", "-"];
    let found = json(&regatta(&[&args[..], &levels, &times].concat()));
    assert_eq!(found["agents"], serde_json::json!(["gen1", "gen2"]), "{found:#}");
    let steps = found["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["reply_rate_per_s"].as_f64().unwrap() > 0.0), "{found:#}");
    assert!(!steps.is_empty(), "{found:#}");
}
