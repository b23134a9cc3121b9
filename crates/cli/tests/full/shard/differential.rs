//! Every command of the table against a single server, with many more requests.

use crate::support::shard::{
    differential::{LONG, compare_all},
    on_shard_models,
};

on_shard_models!(every_command_is_answered_like_one_server_or_refused_with_a_reason: epoll, uring, threads);

/// Takes a minute for each model. `DIFFERENTIAL_SEED=n` repeats a run.
fn every_command_is_answered_like_one_server_or_refused_with_a_reason(model: &str) {
    let given = std::env::var("DIFFERENTIAL_SEED").ok();
    let seed = given.map_or_else(rand::random, |seed| seed.parse().expect("a number"));
    println!("DIFFERENTIAL_SEED={seed}");
    compare_all(model, &LONG, seed);
}
