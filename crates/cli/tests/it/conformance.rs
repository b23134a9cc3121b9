//! Our models and a few peers that are quick to start give the same answers to the transcripts. `tests/full` has the
//! other peers.

use crate::support::conformance::{
    Peers, answers_calls, answers_the_transcripts, answers_the_transcripts_of_hash,
    delivers_every_message, serves_hello_over_http2, spreads_keys_over_all_nodes,
    stops_reading_from_a_client_that_does_not_read,
};
use regatta_testkit::child::in_own_process;
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Runs a test in a process of its own, because starting a contender makes its process adopt the orphans of all
/// tests. One at a time, because a process does not know the ports that another one has chosen for its contenders.
fn one_at_a_time(test: impl FnOnce()) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    in_own_process(Duration::from_secs(600), test);
}

#[test]
fn every_contender_answers_the_transcripts_of_double() {
    one_at_a_time(|| answers_the_transcripts("double", Peers::Quick));
}

#[test]
fn every_contender_answers_the_transcripts_of_the_dialogue() {
    one_at_a_time(|| answers_the_transcripts("dialogue", Peers::Quick));
}

#[test]
fn every_contender_answers_the_transcripts_of_hello() {
    one_at_a_time(|| answers_the_transcripts("hello", Peers::Quick));
}

#[test]
fn every_contender_that_speaks_http2_answers_hello_over_it() {
    one_at_a_time(|| serves_hello_over_http2(Peers::Quick));
}

#[test]
fn every_contender_that_speaks_grpc_answers_calls() {
    one_at_a_time(|| answers_calls(Peers::Quick));
}

#[test]
fn every_contender_answers_the_transcripts_of_hash() {
    one_at_a_time(|| answers_the_transcripts_of_hash(Peers::Quick));
}

#[test]
fn every_contender_answers_the_transcripts_of_shard() {
    one_at_a_time(|| answers_the_transcripts("shard", Peers::Quick));
}

#[test]
fn every_proxy_spreads_keys_over_all_its_nodes() {
    one_at_a_time(|| spreads_keys_over_all_nodes(Peers::Quick));
}

#[test]
fn every_contender_stops_reading_from_a_client_that_does_not_read() {
    one_at_a_time(|| stops_reading_from_a_client_that_does_not_read(Peers::Quick));
}

#[test]
fn every_hub_delivers_every_message_to_its_members() {
    one_at_a_time(|| delivers_every_message(Peers::Quick));
}
