//! A connection that switches its protocol.

use crate::{
    client::Client,
    models::on_pushing_models,
    pushes::{
        chat::checksum,
        server::Server,
        unread::{self, MASK, expect_digest, masked},
    },
    server::Setting,
};
use regatta_serve::Model;

on_pushing_models!(
    lines_before_the_upgrade_are_answered_first_and_frames_may_follow_at_once,
    bytes_may_be_cut_anywhere,
    a_frame_of_32_mib_is_digested,
);

fn frame(payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes().to_vec();
    frame.extend(MASK);
    frame.extend(masked(payload, 0));
    frame
}

/// Input of a client: lines, the upgrade, and frames. [`expect_conversation`] checks the replies.
fn conversation() -> Vec<u8> {
    let mut bytes = b"ping\nsay hello\nupgrade\n".to_vec();
    for payload in [&b"Hello"[..], b"", b"a longer payload\n"] {
        bytes.extend(frame(payload));
    }
    bytes
}

fn expect_conversation(client: &mut Client) {
    ["pong", "said hello", "upgraded"].into_iter().for_each(|line| client.expect(line));
    for payload in [&b"Hello"[..], b"", b"a longer payload\n"] {
        expect_digest(client, payload.len() as u32, checksum(0, payload));
    }
}

fn lines_before_the_upgrade_are_answered_first_and_frames_may_follow_at_once(model: Model) {
    let server = Server::start(model, Setting::default());
    let (mut client, mut other) = (server.member(), server.member());
    client.send(conversation());
    expect_conversation(&mut client);
    other.expect("heard hello");
    other.ask("say to nobody", "said to nobody");
    client.end();
    client.expect_end();
}

fn bytes_may_be_cut_anywhere(model: Model) {
    let bytes = conversation();
    let server = Server::start(model, Setting::default());
    let mut client = server.client();
    bytes.iter().for_each(|byte| client.send([*byte]));
    expect_conversation(&mut client);
    for cut in 1..bytes.len() {
        let mut client = server.client();
        client.send(&bytes[..cut]);
        // The server reads the first line before the rest is sent, if it is complete.
        if cut >= 5 {
            client.expect("pong");
            client.send(&bytes[cut..]);
            ["said hello", "upgraded"].into_iter().for_each(|line| client.expect(line));
            for payload in [&b"Hello"[..], b"", b"a longer payload\n"] {
                expect_digest(&mut client, payload.len() as u32, checksum(0, payload));
            }
        } else {
            client.send(&bytes[cut..]);
            expect_conversation(&mut client);
        }
    }
}

fn a_frame_of_32_mib_is_digested(model: Model) {
    unread::a_client_sends_32_mib(model, || ());
}
