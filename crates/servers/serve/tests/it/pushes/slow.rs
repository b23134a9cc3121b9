//! Members that read slowly, or never. `full/memory.rs` measures the memory of the server meanwhile.

use crate::{
    DEADLINE,
    client::Client,
    models::on_pushing_models,
    pushes::{server::Server, unread},
    server::Setting,
};
use regatta_serve::Model;
use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

on_pushing_models!(
    a_member_that_never_reads_is_closed_without_loss_for_the_others,
    a_member_that_does_not_read_its_replies_is_not_read_and_loses_nothing,
    a_member_that_reads_slowly_but_steadily_loses_nothing,
);

fn a_member_that_never_reads_is_closed_without_loss_for_the_others(model: Model) {
    unread::a_member_never_reads(model, |_| ());
}

fn a_member_that_does_not_read_its_replies_is_not_read_and_loses_nothing(model: Model) {
    unread::a_member_does_not_read_its_replies(model, || ());
}

fn a_member_that_reads_slowly_but_steadily_loses_nothing(model: Model) {
    const MESSAGES: usize = 3000;
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
