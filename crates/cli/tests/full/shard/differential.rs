//! Every command of the table against a single server, with many more requests.

use crate::support::shard::{
    differential::{LONG, compare_all},
    nodes::REDIS,
    on_shard_models,
};
use std::path::Path;

on_shard_models!(every_command_is_answered_like_one_server_or_refused_with_a_reason: epoll, uring, threads);

/// Compares 282,000 requests on each model; 213,000 on `threads`, which refuses transactions. Takes minutes.
/// `DIFFERENTIAL_SEED=n` repeats a run.
fn every_command_is_answered_like_one_server_or_refused_with_a_reason(model: &str) {
    let given = std::env::var("DIFFERENTIAL_SEED").ok();
    let seed = given.map_or_else(rand::random, |seed| seed.parse().expect("a number"));
    println!("DIFFERENTIAL_SEED={seed}");
    compare_all(Path::new(REDIS), model, &LONG, seed);
}
