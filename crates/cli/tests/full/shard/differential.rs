//! Every command of the table against a single server, with many more requests.

use crate::support::shard::{
    differential::{LONG, compare_all},
    on_shard_models,
};

on_shard_models!(every_command_is_answered_like_one_server_or_refused_with_a_reason: epoll, uring, threads);

/// Takes a minute for each model.
fn every_command_is_answered_like_one_server_or_refused_with_a_reason(model: &str) {
    let seed = rand::random();
    println!("seed {seed}");
    compare_all(model, &LONG, seed);
}
