//! Our models and a few peers that are quick to start give the same answers to the transcripts. `tests/full` has the
//! other peers.

use crate::support::conformance::{
    Peers, answers_the_transcripts, answers_the_transcripts_of_hash, delivers_every_message,
    spreads_keys_over_all_nodes, stops_reading_from_a_client_that_does_not_read,
};
use regatta_testkit::child::in_own_process;
use std::time::Duration;

/// Starting a contender makes its process adopt the orphans of all tests, hence a process for each test.
const LIMIT: Duration = Duration::from_secs(600);

#[test]
fn every_contender_answers_the_transcripts_of_double() {
    in_own_process(LIMIT, || answers_the_transcripts("double", Peers::Quick));
}

#[test]
fn every_contender_answers_the_transcripts_of_the_dialogue() {
    in_own_process(LIMIT, || answers_the_transcripts("dialogue", Peers::Quick));
}

#[test]
fn every_contender_answers_the_transcripts_of_hello() {
    in_own_process(LIMIT, || answers_the_transcripts("hello", Peers::Quick));
}

#[test]
fn every_contender_answers_the_transcripts_of_hash() {
    in_own_process(LIMIT, || answers_the_transcripts_of_hash(Peers::Quick));
}

#[test]
fn every_contender_answers_the_transcripts_of_shard() {
    in_own_process(LIMIT, || answers_the_transcripts("shard", Peers::Quick));
}

#[test]
fn every_proxy_spreads_keys_over_all_its_nodes() {
    in_own_process(LIMIT, || spreads_keys_over_all_nodes(Peers::Quick));
}

#[test]
fn every_contender_stops_reading_from_a_client_that_does_not_read() {
    in_own_process(LIMIT, || stops_reading_from_a_client_that_does_not_read(Peers::Quick));
}

#[test]
fn every_hub_delivers_every_message_to_its_members() {
    in_own_process(LIMIT, || delivers_every_message(Peers::Quick));
}
