//! The verdict on what was the limit: a load without enough CPU, a server that sleeps, one busy thread
//! of a server, and both busy.

use crate::{
    support::Server,
    truth::{raced::Race, stage::turn},
};
use regatta_record::{Figure, Kind, Verdict};

/// Asserts that the load was the limit, and that only the figures that it limits are void.
#[track_caller]
fn assert_generator_bound(verdict: &Verdict) {
    assert_eq!(verdict.kind(), Kind::GeneratorBound, "{verdict:?}");
    assert!(verdict.voids(Figure::Rate) && verdict.voids(Figure::Latency), "{verdict:?}");
    assert!(!verdict.voids(Figure::Cost), "{verdict:?}");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_starved_load_is_the_limit() {
    let Some(turn) = turn() else { return };
    let seconds = 3;
    let server = turn.server("");
    let _spinners = [turn.spinner(), turn.spinner()];
    // A higher rate than a load with a third of a CPU can generate, and that is less than the server can
    // serve. The load busy-polls, because one that sleeps gets the CPU soon after each wakeup.
    let how = format!("-c 64 -r 1M -d {seconds}s --warm-up 300ms --busy-poll");
    let result = turn.load(&server, &how).result;
    let cost = result.server_cpu_ns_per_request;
    let verdict = &result.verdict;
    println!(
        "\nload beside a busy loop: {}: {}; cost {cost:?} ns",
        verdict.kind().name(),
        verdict.because()
    );
    assert_generator_bound(verdict);
    assert!(cost.is_some_and(|ns| ns > 0.0));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_starved_load_is_the_limit_in_a_race() {
    let Some(turn) = turn() else { return };
    let (rounds, window_ms) = (5, 500);
    let _spinners = [turn.spinner_at(-20), turn.spinner_at(-20)];
    let (contenders, load, more) = (&[("epoll", "")], "connections = 64\nrate = 1000000", "");
    let race = Race { contenders, null: false, load, rounds, window_ms, seed: 11, more };
    let raced = race.run(&turn);
    let cell = raced.cell("epoll");
    let verdict = &cell.verdict;
    println!("\nthe same in a race: {}: {}", verdict.kind().name(), verdict.because());
    assert_generator_bound(verdict);
    assert!(cell.cost_ns_per_request.is_some());
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_server_that_sleeps_is_idle() {
    let Some(turn) = turn() else { return };
    let seconds = 3;
    let sleeps = "--delay fixed:20ms";
    let server = turn.server(sleeps);
    let loaded = turn.load(&server, &format!("-c 16 -d {seconds}s --warm-up 300ms"));
    let verdict = &loaded.result.verdict;
    println!("\na sleep per request: {}: {}", verdict.kind().name(), verdict.because());
    assert_eq!(verdict.kind(), Kind::Idle, "{verdict:?}");
    drop(server);

    let (rounds, window_ms) = (5, 500);
    let (contenders, load, more) = (&[("sleeps", sleeps)], "connections = 16", "");
    let race = Race { contenders, null: false, load, rounds, window_ms, seed: 12, more };
    let raced = race.run(&turn);
    let verdict = &raced.cell("sleeps").verdict;
    println!("the same in a race: {}: {}", verdict.kind().name(), verdict.because());
    assert_eq!(verdict.kind(), Kind::Idle, "{verdict:?}");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn one_busy_thread_among_idle_ones_is_the_limit_on_two_cpus() {
    let Some(turn) = turn() else { return };
    // A thread per connection, one of which always computes.
    let server = Server::of("hash", "threads", &[]);
    let load = "--workload hash -c 1 -p 16 --idle 5 -d 3s --warm-up 300ms";
    let verdict = &turn.load_by("http", &server, load).result.verdict;
    println!("\none busy thread: {}: {}", verdict.kind().name(), verdict.because());
    assert_eq!(verdict.kind(), Kind::ServerBound, "{verdict:?}");
    assert!(verdict.because().contains("of 2 CPUs, its busiest thread "), "{verdict:?}");
}

#[test]
#[cfg_attr(debug_assertions, ignore = "figures of a debug build mean nothing: use --release")]
fn a_busy_server_and_a_busy_load_are_both_the_limit() {
    let Some(turn) = turn() else { return };
    let server = turn.server("");
    let result = turn.load(&server, "-c 64 -d 3s --warm-up 1s").result;
    let verdict = &result.verdict;
    println!("\n64 connections: {}: {}", verdict.kind().name(), verdict.because());
    assert_eq!(verdict.kind(), Kind::CoBound, "{verdict:?}");
    assert!(verdict.void.is_empty(), "{verdict:?}");
}
