//! What a stop waits for, and what it abandons.

use super::{
    connecting_to, expect_given_up, send_until_full, start, start_patient, start_with, unanswering,
};
use crate::{
    DEADLINE,
    engines::upstream::{Closed, Upstream},
    models::on_engine_models,
    server::Setting,
};
use regatta_serve::Model;
use std::{
    thread,
    time::{Duration, Instant},
};

on_engine_models!(
    a_stop_waits_for_replies_to_forwarded_requests_and_closes_the_upstream,
    a_stop_waits_for_an_unanswered_request_only_within_its_grace,
    a_stop_abandons_an_upstream_that_does_not_read_after_its_grace,
    a_stop_abandons_an_unanswered_connect_after_its_grace,
    an_upstream_without_a_client_does_not_outlive_a_stop,
);

fn a_stop_waits_for_replies_to_forwarded_requests_and_closes_the_upstream(model: Model) {
    let upstream = Upstream::new();
    let server = start(model, upstream.addr);
    let (mut client, mut idle) = (server.client(), server.client());
    let mut link = upstream.accept();
    client.send("1\n2\n");
    assert_eq!(link.lines(2), ["1", "2"]);
    server.stop();
    idle.expect_end();
    link.send("one\n");
    assert_eq!(client.line(), "one");
    link.send("two\n");
    assert_eq!(client.line(), "two");
    client.expect_end();
    server.join();
    link.expect_gone();
}

fn a_stop_waits_for_an_unanswered_request_only_within_its_grace(model: Model) {
    let upstream = Upstream::new();
    let grace = Duration::from_millis(200);
    let server = start_with(model, upstream.addr, Setting { grace, ..Setting::default() });
    let mut client = server.client();
    let mut link = upstream.accept();
    client.send("1\n");
    assert_eq!(link.line(), "1");
    server.stop();
    server.join();
    client.expect_gone();
    link.expect_gone();
}

fn a_stop_abandons_an_upstream_that_does_not_read_after_its_grace(model: Model) {
    let upstream = Closed::new().small().listen();
    let grace = Duration::from_millis(200);
    let server = start_with(model, upstream.addr, Setting { grace, ..Setting::default() });
    let mut client = server.client();
    let mut link = upstream.accept();
    let request = format!("{}\n", "x".repeat(16 * 1024 - 1));
    send_until_full(&mut client, &request, &server.seen);
    server.stop();
    server.join();
    client.expect_gone();
    link.expect_gone();
}

fn a_stop_abandons_an_unanswered_connect_after_its_grace(model: Model) {
    let (upstream, _queued) = unanswering();
    let grace = Duration::from_millis(200);
    let setting = Setting { grace, ..Setting::default() };
    let server = start_patient(model, upstream.addr, setting);
    let mut client = server.client();
    client.send("x\n");
    let start = Instant::now();
    while connecting_to(upstream.addr) == 0 {
        assert!(start.elapsed() < DEADLINE, "it does not connect");
        thread::sleep(Duration::from_millis(1));
    }
    server.stop();
    server.join();
    client.expect_gone();
    expect_given_up(upstream.addr);
}

fn an_upstream_without_a_client_does_not_outlive_a_stop(model: Model) {
    let upstream = Upstream::new();
    let server = start(model, upstream.addr);
    let mut client = server.client();
    let mut link = upstream.accept();
    client.end();
    client.expect_end();
    drop(client);
    server.stop();
    server.join();
    link.expect_gone();
}
