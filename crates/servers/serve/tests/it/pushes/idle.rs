//! Idle clients: a client is idle if it sends nothing and acknowledges none of its output.

use crate::{
    DEADLINE,
    client::{Client, that_run},
    pushes::server::Server,
    server::Setting,
};
use regatta_engine::Limits;
use regatta_serve::Model;
use regatta_testkit::deadline::until_within;
use std::{
    thread,
    time::{Duration, Instant},
};

/// On a busy machine a client that is active may be silent for a part of it.
const IDLE: Duration = Duration::from_secs(2);

/// Runs a test on all models at once, because it mostly waits. Threads have the model's name, which a
/// panic shows.
fn on_all_models(test: impl Fn(Model) + Sync) {
    let test = &test;
    let all = [
        Model::Threads,
        Model::Green,
        Model::Select,
        Model::Poll,
        Model::Epoll,
        Model::Percore,
        Model::Uring,
        Model::Async,
    ];
    thread::scope(|scope| {
        for model in that_run(all) {
            let thread = thread::Builder::new().name(model.name().into());
            thread.spawn_scoped(scope, move || test(model)).unwrap();
        }
    });
}

fn setting() -> Setting {
    Setting { limits: Limits { idle: IDLE, request: 4 * IDLE }, ..Setting::default() }
}

#[test]
fn a_silent_member_that_acknowledges_pushes_is_active_until_they_end() {
    on_all_models(|model| {
        let server = Server::start(model, setting());
        let (mut member, mut outsider) = (server.member(), server.client());
        outsider.expect_nothing();
        let mut talker = server.client();
        let start = Instant::now();
        while start.elapsed() < 4 * IDLE {
            talker.ask("say hello", "said hello");
            member.expect("heard hello");
            thread::sleep(IDLE / 8);
        }
        outsider.expect_end();
        assert_eq!(server.sessions(), 2);
        let start = Instant::now();
        member.expect_end();
        let took = start.elapsed();
        assert!(took > IDLE / 2, "closed {took:?} after its last push");
        assert!(took < 5 * IDLE, "closed {took:?} after its last push");
    });
}

#[test]
fn a_silent_client_that_acknowledges_its_ticks_is_active() {
    on_all_models(|model| {
        let server = Server::start(model, setting());
        let mut client = server.client();
        client.send("every 100\n");
        let start = Instant::now();
        while start.elapsed() < 4 * IDLE {
            client.expect("tick");
        }
    });
}

#[test]
fn a_silent_member_without_acknowledgements_is_closed_while_the_kernel_accepts_pushes() {
    on_all_models(|model| {
        let server = Server::start(model, setting());
        let mut member = Client::connect_small(server.addr);
        member.join();
        let mut talker = server.client();
        let text = "x".repeat(500);
        // Less than the kernel accepts must suffice.
        let mut said = 0;
        until_within(DEADLINE, "the member is closed", || {
            talker.ask(&format!("say {text}"), &format!("said {text}"));
            said += 1;
            thread::sleep(IDLE / 40);
            server.sessions() == 1
        });
        assert!(said < 500, "{said} messages");
    });
}

#[test]
fn a_request_that_takes_too_long_times_out_despite_acknowledged_pushes() {
    on_all_models(|model| {
        let limits = Limits { idle: 20 * IDLE, request: IDLE };
        let server = Server::start(model, Setting { limits, ..Setting::default() });
        let (mut member, mut talker) = (server.member(), server.client());
        talker.expect_nothing();
        let start = Instant::now();
        member.send("pin");
        while server.sessions() == 2 {
            assert!(start.elapsed() < 10 * IDLE, "still open");
            talker.ask("say hello", "said hello");
            thread::sleep(IDLE / 20);
        }
        assert!(start.elapsed() >= IDLE, "after {:?}", start.elapsed());
        member.expect_gone();
    });
}
