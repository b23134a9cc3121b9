//! Members that read slowly, or never.

use crate::{
    DEADLINE,
    client::Client,
    pushes::server::{Server, Setting, alone, memory, models},
};
use std::{
    io::Write,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

/// Maximum growth of the process in bytes.
const GROWTH: usize = 96 << 20;

#[test]
fn a_member_that_never_reads_is_closed_in_bounded_memory_without_loss_for_the_others() {
    let _alone = alone();
    for model in models() {
        let server = Server::start(model, Setting::default());
        let before = memory();
        let mut stuck = Client::connect_small(server.addr);
        stuck.join();
        let mut talker = server.member();
        let mut others = server.members(3);
        assert_eq!(server.sessions(), 5);
        let padding = "x".repeat(1000);
        let (mut said, start) = (0, Instant::now());
        while server.sessions() == 5 {
            assert!(start.elapsed() < DEADLINE, "still open after {said} messages");
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
            let grown = memory().saturating_sub(before);
            assert!(grown < GROWTH, "grown by {grown} bytes after {said} messages");
        }
        stuck.expect_gone();
        others.iter_mut().for_each(Client::expect_nothing);
    }
}

#[test]
fn a_member_that_does_not_read_its_replies_is_not_read_and_loses_nothing() {
    let _alone = alone();
    for model in models() {
        let server = Server::start(model, Setting::default());
        let before = memory();
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
            let grown = memory().saturating_sub(before);
            assert!(last < 32 * 1024 && grown < 16 << 20, "grown by {grown} bytes");
            let reply = format!("said {}", "x".repeat(995));
            (0..32 * 1024).for_each(|_| client.expect(&reply));
        });
    }
}

#[test]
fn a_member_that_reads_slowly_but_steadily_loses_nothing() {
    let _alone = alone();
    const MESSAGES: usize = 3000;
    for model in models() {
        let server = Server::start(model, Setting::default());
        let mut slow = Client::connect_small(server.addr);
        slow.join();
        let mut talker = server.member();
        let read = AtomicUsize::new(0);
        let padding = "x".repeat(1000);
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..MESSAGES {
                    slow.expect(&format!("heard {number} {padding}"));
                    read.store(number + 1, Relaxed);
                    thread::sleep(Duration::from_micros(300));
                }
                slow.expect_nothing();
            });
            let start = Instant::now();
            for number in 0..MESSAGES {
                // Less than the limit is pending at any time.
                while number > read.load(Relaxed) + 200 {
                    assert!(start.elapsed() < DEADLINE, "it lost something");
                    thread::sleep(Duration::from_micros(100));
                }
                talker.ask(&format!("say {number} {padding}"), &format!("said {number} {padding}"));
            }
        });
    }
}
