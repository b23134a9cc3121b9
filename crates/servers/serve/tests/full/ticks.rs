//! Alarms fire on time, and a server that waits for one uses no CPU.

use crate::{
    models::on_pushing_models,
    pushes::server::{Server, Setting},
};
use regatta_serve::Model;
use regatta_testkit::machine;
use rustix::time::{ClockId, clock_gettime};
use std::{
    io::Write,
    net::Shutdown,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

on_pushing_models!(
    ticks_come_on_time_while_nothing_else_happens,
    ticks_come_on_time_while_others_talk_and_while_the_client_itself_talks,
    input_that_exactly_fills_the_read_buffer_does_not_delay_pushes_and_ticks,
    an_alarm_set_by_a_push_fires_on_time,
    an_alarm_fires_after_the_end_of_the_input,
);

/// Tolerance.
const LATE: Duration = Duration::from_secs(2);

fn ticks_come_on_time_while_nothing_else_happens(model: Model) {
    let _alone = machine::alone();
    let server = Server::start(model, Setting::default());
    let mut client = server.client();
    let start = Instant::now();
    client.send("every 20\n");
    (0..20).for_each(|_| client.expect("tick"));
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(20 * 20), "too early: {took:?}");
    assert!(took < Duration::from_millis(20 * 20) + LATE, "too late: {took:?}");
}

fn ticks_come_on_time_while_others_talk_and_while_the_client_itself_talks(model: Model) {
    let _alone = machine::alone();
    let server = Server::start(model, Setting::default());
    let (mut member, mut talker) = (server.member(), server.client());
    let over = AtomicBool::new(false);
    member.ask("every 20\nping", "pong");
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                talker.ask("say hello", "said hello");
            }
        });
        let mut writer = member.stream.try_clone().unwrap();
        scope.spawn(move || {
            let pings = "ping\n".repeat(1000);
            while writer.write_all(pings.as_bytes()).is_ok() {}
        });
        let start = Instant::now();
        let mut ticks = 0;
        while ticks < 10 && start.elapsed() < 5 * LATE {
            match member.line().as_str() {
                "tick" => ticks += 1,
                "pong" | "heard hello" => {}
                other => panic!("{other}"),
            }
        }
        over.store(true, Relaxed);
        member.stream.shutdown(Shutdown::Both).unwrap();
        assert_eq!(ticks, 10, "in {:?}", start.elapsed());
    });
}

fn input_that_exactly_fills_the_read_buffer_does_not_delay_pushes_and_ticks(model: Model) {
    let _alone = machine::alone();
    let server = Server::start(model, Setting::default());
    let (mut member, mut talker) = (server.member(), server.member());
    // This fills read buffers of any power of two up to 64 KiB.
    let lines = format!("every 50\nping{}\n", " ".repeat(64 * 1024 - 14));
    assert_eq!(lines.len(), 64 * 1024);
    member.send(lines);
    let start = Instant::now();
    while member.line() != "pong" {}
    talker.ask("say hello", "said hello");
    while member.line() != "heard hello" {}
    member.expect("tick");
    assert!(start.elapsed() < LATE, "{:?}", start.elapsed());
}

fn an_alarm_set_by_a_push_fires_on_time(model: Model) {
    let _alone = machine::alone();
    let server = Server::start(model, Setting::default());
    let (mut member, mut talker) = (server.member(), server.member());
    member.ask("remind 50\nping", "pong");
    for _ in 0..3 {
        let start = Instant::now();
        talker.ask("say hello", "said hello");
        member.expect("heard hello");
        member.expect("tick");
        let took = start.elapsed();
        assert!(took >= Duration::from_millis(50) && took < LATE, "{took:?}");
    }
}

fn an_alarm_fires_after_the_end_of_the_input(model: Model) {
    let _alone = machine::alone();
    let server = Server::start(model, Setting::default());
    let mut client = server.member();
    client.send("linger 300\n");
    client.end();
    let before = cpu_time();
    client.expect("tick");
    client.expect_end();
    let busy = cpu_time() - before;
    assert!(busy < Duration::from_millis(150), "busy for {busy:?} while it waits");
}

/// CPU time of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
