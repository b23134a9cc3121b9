//! Members that leave: by closing, by a reset, or because another one dismisses them.

use crate::{
    DEADLINE, client::Client, models::on_pushing_models, pushes::server::Server, server::Setting,
};
use regatta_serve::Model;
use regatta_testkit::deadline::until_within;
use std::thread;

on_pushing_models!(
    a_half_closed_client_gets_its_pending_pushes,
    reset_members_do_not_disturb_the_others_and_free_their_places,
    a_member_closed_by_a_push_gets_its_last_line_and_an_orderly_close,
    a_client_that_sends_end_gets_an_orderly_close,
);

fn a_half_closed_client_gets_its_pending_pushes(model: Model) {
    let server = Server::start(model, Setting::default());
    let mut member = Client::connect_small(server.addr);
    member.join();
    let mut talker = server.member();
    let padding = "x".repeat(1000);
    for number in 0..200 {
        talker.ask(&format!("say {number} {padding}"), &format!("said {number} {padding}"));
    }
    if matches!(model, Model::Percore | Model::Uring) {
        until_within(DEADLINE, "the other core receives the pushes", || server.heard() == 200);
    }
    member.end();
    (0..200).for_each(|number| member.expect(&format!("heard {number} {padding}")));
    member.expect_end();
    talker.expect_nothing();
}

fn reset_members_do_not_disturb_the_others_and_free_their_places(model: Model) {
    const MESSAGES: usize = 1000;
    let setting = Setting { connections: 32, ..Setting::default() };
    let server = Server::start(model, setting);
    let mut talker = server.client();
    let mut members = server.members(20);
    for round in 0..3 {
        let doomed = server.members(11);
        let text: String = (0..MESSAGES).map(|number| format!("say {number}\n")).collect();
        thread::scope(|scope| {
            scope.spawn(|| {
                talker.send(&text);
                (0..MESSAGES).for_each(|number| talker.expect(&format!("said {number}")));
            });
            for member in &mut members {
                scope.spawn(move || {
                    (0..MESSAGES).for_each(|n| member.expect(&format!("heard {n}")));
                });
            }
            for (index, mut client) in doomed.into_iter().enumerate() {
                scope.spawn(move || {
                    (0..index * 50).for_each(|n| client.expect(&format!("heard {n}")));
                    client.reset();
                });
            }
        });
        members.iter_mut().for_each(Client::expect_nothing);
        until_within(DEADLINE, "the sessions end", || server.sessions() == 21);
        eprintln!("round {round} is over");
    }
    // All places can be taken again.
    server.members(11).iter_mut().for_each(Client::expect_nothing);
}

fn a_member_closed_by_a_push_gets_its_last_line_and_an_orderly_close(model: Model) {
    let server = Server::start(model, Setting::default());
    let (mut talker, mut members) = (server.member(), server.members(4));
    let mut outsider = server.client();
    talker.ask("say hello", "said hello");
    talker.ask("dismiss", "done");
    for member in &mut members {
        member.expect("heard hello");
        member.expect("dismissed");
        member.expect_end();
    }
    outsider.expect_nothing();
    talker.ask("say anybody", "said anybody");
    drop(members);
    until_within(DEADLINE, "the sessions end", || server.sessions() == 2);
}

fn a_client_that_sends_end_gets_an_orderly_close(model: Model) {
    let server = Server::start(model, Setting::default());
    let (mut a, mut b) = (server.member(), server.member());
    a.send("say bye\nend\nsay never\n");
    a.expect("said bye");
    a.expect("bye");
    a.expect_end();
    b.expect("heard bye");
    b.expect_nothing();
    drop(a);
    until_within(DEADLINE, "the session ends", || server.sessions() == 1);
}
