//! Every contender that is installed gives the same answers to the transcripts.

use crate::support::conformance::{
    Peers, answers_calls, answers_the_transcripts, answers_the_transcripts_of_hash,
    delivers_every_message, serves_hello_over_http2, spreads_keys_over_all_nodes,
    stops_reading_from_a_client_that_does_not_read,
};
use regatta_testkit::{child::in_own_process, machine};
use std::time::Duration;

/// Starting a contender makes its process adopt the orphans of all tests, hence a process for each test.
const LIMIT: Duration = Duration::from_secs(600);

#[test]
fn every_contender_answers_the_transcripts_of_double() {
    let _turn = machine::alone();
    in_own_process(LIMIT, || answers_the_transcripts("double", Peers::All));
}

#[test]
fn every_contender_answers_the_transcripts_of_the_dialogue() {
    let _turn = machine::alone();
    in_own_process(LIMIT, || answers_the_transcripts("dialogue", Peers::All));
}

#[test]
fn every_contender_answers_the_transcripts_of_hello() {
    let _turn = machine::alone();
    in_own_process(LIMIT, || answers_the_transcripts("hello", Peers::All));
}

#[test]
fn every_contender_that_speaks_http2_answers_hello_over_it() {
    let _turn = machine::alone();
    in_own_process(LIMIT, || serves_hello_over_http2(Peers::All));
}

#[test]
fn every_contender_that_speaks_grpc_answers_calls() {
    let _turn = machine::alone();
    in_own_process(LIMIT, || answers_calls(Peers::All));
}

#[test]
fn every_contender_answers_the_transcripts_of_hash() {
    let _turn = machine::alone();
    in_own_process(LIMIT, || answers_the_transcripts_of_hash(Peers::All));
}

#[test]
fn every_contender_answers_the_transcripts_of_shard() {
    let _turn = machine::alone();
    in_own_process(LIMIT, || answers_the_transcripts("shard", Peers::All));
}

#[test]
fn every_proxy_spreads_keys_over_all_its_nodes() {
    let _turn = machine::alone();
    in_own_process(LIMIT, || spreads_keys_over_all_nodes(Peers::All));
}

#[test]
fn every_contender_stops_reading_from_a_client_that_does_not_read() {
    let _turn = machine::alone();
    in_own_process(LIMIT, || stops_reading_from_a_client_that_does_not_read(Peers::All));
}

#[test]
fn every_hub_delivers_every_message_to_its_members() {
    let _turn = machine::alone();
    in_own_process(LIMIT, || delivers_every_message(Peers::All));
}
