//! Members that do not read, and frames that no buffer holds: for the tests of what happens, and for those of
//! the memory meanwhile.

use crate::{
    DEADLINE,
    client::Client,
    pushes::{chat::checksum, server::Server},
    server::Setting,
};
use regatta_serve::Model;
use std::{
    io::Write,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

/// A member never reads: it is closed, without loss for the others. Calls `watch` with the number of messages
/// after each hundred.
pub fn a_member_never_reads(model: Model, watch: impl Fn(usize)) {
    let server = Server::start(model, Setting::default());
    let mut stuck = Client::connect_small(server.addr);
    stuck.join();
    let mut talker = server.member();
    let mut others = server.members(3);
    assert_eq!(server.sessions(), 5);
    let padding = "x".repeat(1000);
    let (mut said, start) = (0, Instant::now());
    while server.sessions() == 5 {
        assert!(start.elapsed() < DEADLINE, "still open after {said} messages");
        if server.slow() > 0 {
            // Its connection lasts for some seconds, so that it can read its last line. Fewer messages follow.
            thread::sleep(Duration::from_millis(100));
        }
        if said < 40_000 {
            let batch = said..said + 100;
            let line = |number: usize| format!("say {number} {padding}\n");
            talker.send(batch.clone().map(line).collect::<String>());
            batch.clone().for_each(|n| talker.expect(&format!("said {n} {padding}")));
            for other in &mut others {
                batch.clone().for_each(|n| other.expect(&format!("heard {n} {padding}")));
            }
            said += 100;
        }
        watch(said);
    }
    assert_eq!(server.slow(), 1);
    stuck.expect_gone();
    others.iter_mut().for_each(Client::expect_nothing);
}

/// A member does not read its replies: it is not read, and loses nothing. Calls `watch` when the server accepts
/// nothing more.
pub fn a_member_does_not_read_its_replies(model: Model, watch: impl Fn()) {
    let server = Server::start(model, Setting::default());
    let mut client = Client::connect_small(server.addr);
    client.join();
    let mut writer = client.stream.try_clone().unwrap();
    let written = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let line = format!("say {}\n", "x".repeat(995));
            for _ in 0..32 * 1024 {
                writer.write_all(line.as_bytes()).expect("in time");
                written.fetch_add(1, Relaxed);
            }
        });
        // Until nothing more is accepted.
        let mut last = usize::MAX;
        while last != written.load(Relaxed) {
            last = written.load(Relaxed);
            thread::sleep(Duration::from_millis(300));
        }
        assert!(last < 32 * 1024, "it accepts everything");
        watch();
        let reply = format!("said {}", "x".repeat(995));
        (0..32 * 1024).for_each(|_| client.expect(&reply));
    });
}

pub const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

pub fn masked(payload: &[u8], at: usize) -> Vec<u8> {
    payload.iter().enumerate().map(|(i, byte)| byte ^ MASK[(at + i) % 4]).collect()
}

pub fn expect_digest(client: &mut Client, length: u32, sum: u32) {
    assert_eq!(u32::from_be_bytes(client.bytes()), length);
    assert_eq!(u32::from_be_bytes(client.bytes()), sum);
}

/// A client sends a frame of 32 MiB. Calls `watch` after each chunk.
pub fn a_client_sends_32_mib(model: Model, mut watch: impl FnMut()) {
    const CHUNK: usize = 64 * 1024;
    let chunk: Vec<u8> = (0..CHUNK).map(|i| (i % 251) as u8).collect();
    let sum = (0..512).fold(0, |sum, _| checksum(sum, &chunk));
    let sent = masked(&chunk, 0);
    let server = Server::start(model, Setting::default());
    let mut client = server.client();
    client.ask("upgrade", "upgraded");
    client.send((32_u32 << 20).to_be_bytes());
    client.send(MASK);
    for _ in 0..512 {
        client.send(&sent);
        watch();
    }
    expect_digest(&mut client, 32 << 20, sum);
}
