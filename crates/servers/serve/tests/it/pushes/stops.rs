//! A stop drains the connections.

use crate::{
    DEADLINE, client::Client, models::on_pushing_models, pushes::server::Server, server::Setting,
};
use regatta_serve::Model;
use std::time::{Duration, Instant};

on_pushing_models!(
    a_stop_closes_members_without_waiting_even_with_alarms,
    a_stop_ends_within_its_grace_with_members_that_do_not_read,
    a_stop_ends_within_its_grace_with_a_member_whose_pushes_are_pending,
);

fn a_stop_closes_members_without_waiting_even_with_alarms(model: Model) {
    let server = Server::start(model, Setting::default());
    let (mut members, mut ticking) = (server.members(5), server.members(5));
    ticking.iter_mut().for_each(|client| client.send("every 60000\n"));
    ticking.iter_mut().for_each(Client::expect_nothing);
    members[0].ask("say hello", "said hello");
    members[1..].iter_mut().chain(&mut ticking).for_each(|c| c.expect("heard hello"));
    let start = Instant::now();
    server.stop();
    members.iter_mut().chain(&mut ticking).for_each(Client::expect_end);
    drop((members, ticking));
    server.join();
    assert!(start.elapsed() < DEADLINE / 2, "it stops without waiting");
}

fn a_stop_ends_within_its_grace_with_members_that_do_not_read(model: Model) {
    let grace = Duration::from_millis(500);
    let server = Server::start(model, Setting { grace, ..Setting::default() });
    let mut stuck = Client::connect_small(server.addr);
    stuck.join();
    // Its own replies exceed what the kernel buffers, so the server stops reading.
    let text = format!("say {}\n", "x".repeat(1000));
    stuck.stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    while std::io::Write::write_all(&mut stuck.stream, text.as_bytes()).is_ok() {}
    let start = Instant::now();
    server.stop();
    server.join();
    let took = start.elapsed();
    assert!(took < grace + Duration::from_secs(5), "{took:?}");
    stuck.expect_gone();
}

fn a_stop_ends_within_its_grace_with_a_member_whose_pushes_are_pending(model: Model) {
    let grace = Duration::from_millis(500);
    let server = Server::start(model, Setting { grace, ..Setting::default() });
    let mut stuck = Client::connect_small(server.addr);
    stuck.join();
    let mut talker = server.client();
    let text = "x".repeat(1000);
    for _ in 0..200 {
        talker.ask(&format!("say {text}"), &format!("said {text}"));
    }
    let start = Instant::now();
    server.stop();
    talker.expect_end();
    server.join();
    let took = start.elapsed();
    assert!(took < grace + Duration::from_secs(5), "{took:?}");
    stuck.expect_gone();
}
