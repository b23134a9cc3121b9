//! Every message reaches all other members exactly once, in the order of its sender.

use crate::{client::Client, models::on_pushing_models, pushes::server::Server, server::Setting};
use regatta_serve::Model;
use std::{fmt::Write, thread};

on_pushing_models!(
    all_members_receive_each_message_once_and_in_the_order_of_its_sender,
    a_burst_of_many_senders_disconnects_no_member_that_reads,
    joining_twice_has_no_effect_and_rejoining_after_leaving_works,
    a_member_receives_nothing_after_the_reply_to_its_leave,
    a_session_may_post_when_its_input_ends,
    the_last_message_of_a_disconnected_client_is_delivered,
);

/// Reads `each` messages of each of the `senders`, in the order of each sender. For its own
/// messages, the client receives confirmations instead.
fn hear_all(client: &mut Client, senders: usize, each: usize, own: Option<usize>) {
    let mut next = vec![0; senders];
    for _ in 0..senders * each {
        let line = client.line();
        let mut words = line.split(' ');
        let word = words.next().unwrap();
        let mut number = || words.next().unwrap().parse::<usize>().unwrap();
        let (sender, number) = (number(), number());
        assert_eq!(word, if own == Some(sender) { "said" } else { "heard" }, "{line}");
        assert_eq!(number, next[sender], "wrong number from sender {sender}");
        next[sender] += 1;
    }
    client.expect_nothing();
}

/// The first `senders` members concurrently send `each` messages with `padding`, and all members
/// receive them.
fn all_talk(members: Vec<Client>, senders: usize, each: usize, padding: &str) {
    thread::scope(|scope| {
        for (index, mut client) in members.into_iter().enumerate() {
            let own = (index < senders).then_some(index);
            if let Some(sender) = own {
                let mut writer = client.stream.try_clone().unwrap();
                scope.spawn(move || {
                    let mut text = String::new();
                    for number in 0..each {
                        writeln!(text, "say {sender} {number} {padding}").unwrap();
                    }
                    std::io::Write::write_all(&mut writer, text.as_bytes()).expect("in time");
                });
            }
            scope.spawn(move || hear_all(&mut client, senders, each, own));
        }
    });
}

fn all_members_receive_each_message_once_and_in_the_order_of_its_sender(model: Model) {
    let server = Server::start(model, Setting::default());
    let mut outsiders = [server.client(), server.member(), server.client()];
    outsiders[1].ask("leave", "left");
    outsiders[2].send("join\nleave\n");
    outsiders[2].expect("joined");
    outsiders[2].expect("left");
    // All models are tested at once in this process, and select takes only descriptors below 1,024.
    all_talk(server.members(30), 4, 500, "");
    outsiders.iter_mut().for_each(Client::expect_nothing);
}

fn a_burst_of_many_senders_disconnects_no_member_that_reads(model: Model) {
    let server = Server::start(model, Setting::default());
    // More than the backlog of a session, but less than the kernel buffers for a client.
    all_talk(server.members(12), 12, 34, &"x".repeat(1000));
}

fn joining_twice_has_no_effect_and_rejoining_after_leaving_works(model: Model) {
    let server = Server::start(model, Setting::default());
    let (mut a, mut b) = (server.member(), server.member());
    b.join();
    a.ask("say one", "said one");
    b.expect("heard one");
    b.ask("leave", "left");
    a.ask("say two", "said two");
    b.join();
    b.expect_nothing();
    a.ask("say three", "said three");
    b.expect("heard three");
    b.expect_nothing();
}

fn a_member_receives_nothing_after_the_reply_to_its_leave(model: Model) {
    let server = Server::start(model, Setting::default());
    let (mut talker, mut member) = (server.client(), server.client());
    let mut reader = server.member();
    let text: String = (0..2000).map(|number| format!("say {number}\n")).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            talker.send(&text);
            (0..2000).for_each(|number| talker.expect(&format!("said {number}")));
        });
        scope.spawn(|| (0..2000).for_each(|n| reader.expect(&format!("heard {n}"))));
        for _ in 0..100 {
            member.send("join\nping\nleave\nping\n");
            member.expect("joined");
            while member.line() != "left" {}
            member.expect("pong");
        }
    });
}

fn a_session_may_post_when_its_input_ends(model: Model) {
    let server = Server::start(model, Setting::default());
    let (mut first, mut second) = (server.member(), server.member());
    second.send("farewell went\n");
    second.end();
    first.expect("heard went");
    second.expect_end();
}

fn the_last_message_of_a_disconnected_client_is_delivered(model: Model) {
    let server = Server::start(model, Setting::default());
    let mut member = server.member();
    for _ in 0..20 {
        let mut client = server.client();
        client.expect_nothing();
        client.send("say last words\n");
        client.end();
        drop(client); // its reply is answered with a reset
        member.expect("heard last words");
    }
}
