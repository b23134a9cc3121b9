//! A connection that switches its protocol.

use crate::{
    client::Client,
    pushes::{
        chat::checksum,
        server::{Server, Setting, alone, memory, models, together},
    },
};

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

fn masked(payload: &[u8], at: usize) -> Vec<u8> {
    payload.iter().enumerate().map(|(i, byte)| byte ^ MASK[(at + i) % 4]).collect()
}

fn frame(payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes().to_vec();
    frame.extend(MASK);
    frame.extend(masked(payload, 0));
    frame
}

fn expect_digest(client: &mut Client, length: u32, sum: u32) {
    assert_eq!(u32::from_be_bytes(client.bytes()), length);
    assert_eq!(u32::from_be_bytes(client.bytes()), sum);
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

#[test]
fn lines_before_the_upgrade_are_answered_first_and_frames_may_follow_at_once() {
    let _together = together();
    for model in models() {
        let server = Server::start(model, Setting::default());
        let (mut client, mut other) = (server.member(), server.member());
        client.send(conversation());
        expect_conversation(&mut client);
        other.expect("heard hello");
        other.ask("say to nobody", "said to nobody");
        client.end();
        client.expect_end();
    }
}

#[test]
fn bytes_may_be_cut_anywhere() {
    let _together = together();
    let bytes = conversation();
    for model in models() {
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
}

#[test]
fn a_frame_of_32_mib_is_digested_in_bounded_memory() {
    let _alone = alone();
    const CHUNK: usize = 64 * 1024;
    let chunk: Vec<u8> = (0..CHUNK).map(|i| (i % 251) as u8).collect();
    let sum = (0..512).fold(0, |sum, _| checksum(sum, &chunk));
    let sent = masked(&chunk, 0);
    for model in models() {
        let server = Server::start(model, Setting::default());
        let mut client = server.client();
        client.ask("upgrade", "upgraded");
        let before = memory();
        client.send((32_u32 << 20).to_be_bytes());
        client.send(MASK);
        let mut most = 0;
        for _ in 0..512 {
            client.send(&sent);
            most = most.max(memory());
        }
        expect_digest(&mut client, 32 << 20, sum);
        let grown = most.saturating_sub(before);
        assert!(grown < 8 << 20, "grown by {grown} bytes");
    }
}
