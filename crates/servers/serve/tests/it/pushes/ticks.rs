//! Alarms fire on time, also in the full tier, where each of these tests runs alone on the machine.

use crate::{IS_ALONE, models::on_pushing_models, pushes::server::Server, server::Setting};
use regatta_serve::Model;
use regatta_testkit::machine;
use rustix::time::{ClockId, clock_gettime};
use std::{
    io::Write,
    net::{Shutdown, TcpStream},
    sync::atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

on_pushing_models!(
    ticks_come_on_time_while_nothing_else_happens,
    ticks_come_on_time_while_others_talk_and_while_the_client_itself_talks,
    input_that_exactly_fills_the_read_buffer_does_not_delay_pushes_and_ticks,
    an_alarm_set_by_a_push_fires_on_time,
    an_alarm_fires_after_the_end_of_the_input,
    a_half_closed_member_receives_pushes_until_its_session_ends,
);

/// Tolerance. Long enough for a machine that runs other tests, if it does.
const LATE: Duration = Duration::from_secs(if IS_ALONE { 2 } else { 10 });

fn ticks_come_on_time_while_nothing_else_happens(model: Model) {
    let _alone = IS_ALONE.then(machine::alone);
    let server = Server::start(model, Setting::default());
    let mut client = server.client();
    let start = Instant::now();
    client.send("every 20\n");
    (0..20).for_each(|_| client.expect("tick"));
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(20 * 20), "too early: {took:?}");
    assert!(took < Duration::from_millis(20 * 20) + LATE, "too late: {took:?}");
}

/// Ends the threads of a test, also if it fails.
struct End<'a>(&'a AtomicBool, TcpStream);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
        // The server may have closed it.
        let _ = self.1.shutdown(Shutdown::Both);
    }
}

fn ticks_come_on_time_while_others_talk_and_while_the_client_itself_talks(model: Model) {
    let _alone = IS_ALONE.then(machine::alone);
    /// The member may be this many messages behind: fewer than the server keeps for it.
    const BEHIND: usize = 1000;
    let server = Server::start(model, Setting::default());
    let (mut member, mut talker) = (server.member(), server.client());
    let (over, heard) = (AtomicBool::new(false), AtomicUsize::new(0));
    member.ask("every 20\nping", "pong");
    thread::scope(|scope| {
        let _end = End(&over, member.stream.try_clone().unwrap());
        scope.spawn(|| {
            let mut said = 0;
            while !over.load(SeqCst) {
                match said < heard.load(Relaxed) + BEHIND {
                    true => {
                        talker.ask("say hello", "said hello");
                        said += 1;
                    }
                    false => thread::yield_now(),
                }
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
                "heard hello" => drop(heard.fetch_add(1, Relaxed)),
                "pong" => {}
                other => panic!("{other}"),
            }
        }
        assert_eq!(ticks, 10, "in {:?}", start.elapsed());
    });
}

fn input_that_exactly_fills_the_read_buffer_does_not_delay_pushes_and_ticks(model: Model) {
    let _alone = IS_ALONE.then(machine::alone);
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
    let _alone = IS_ALONE.then(machine::alone);
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
    let _alone = IS_ALONE.then(machine::alone);
    let server = Server::start(model, Setting::default());
    let mut client = server.member();
    client.send("linger 300\n");
    client.end();
    let before = cpu_time();
    client.expect("tick");
    client.expect_end();
    let busy = cpu_time() - before;
    assert!(!IS_ALONE || busy < Duration::from_millis(150), "busy for {busy:?} while it waits");
}

/// CPU time of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn a_half_closed_member_receives_pushes_until_its_session_ends(model: Model) {
    let _alone = IS_ALONE.then(machine::alone);
    let server = Server::start(model, Setting::default());
    let (mut member, mut talker) = (server.member(), server.member());
    member.send("linger 500\nping\n");
    member.expect("pong");
    member.end();
    talker.ask("say hello", "said hello");
    member.expect("heard hello");
    member.expect("tick");
    member.expect_end();
}
