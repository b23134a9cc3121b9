//! An agent whose leader is this test, which writes the messages itself.

use crate::common::{Recorder, mark, marked, plan};
use regatta_fleet::{Answer, FromAgent, Request, ToAgent};
use regatta_load::{
    Plan, Until,
    wire::{self, Inbox},
};
use regatta_record::Part;
use regatta_testkit::{
    child::{Killed, example},
    deadline::until_within,
};
use std::{
    io::Write,
    process::{ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

struct Leader {
    agent: Killed,
    stdin: Option<ChildStdin>,
    inbox: Inbox<ChildStdout>,
    mark: String,
    seq: u64,
}

impl Leader {
    /// Starts an agent with a lease, and a load of a minute on it.
    fn start(lease_ms: u64, server: &Recorder) -> Leader {
        let mark = mark();
        let mut command = Command::new(example("fleet_test_helper"));
        command.args(["agent", "load-process", &mark]);
        let agent = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut agent = Killed(agent.unwrap());
        let (stdin, stdout) = (agent.stdin.take(), agent.stdout.take().unwrap());
        let mut leader = Leader { agent, stdin, inbox: Inbox::new(stdout), mark, seq: 0 };
        let FromAgent { body: Answer::Hello(hello), .. } = leader.next() else {
            panic!("no hello")
        };
        assert!(hello.cores > 0 && hello.build.len() == 64 && hello.version == "test");
        leader.send(Request::Lease { ms: lease_ms });
        assert_eq!(leader.next(), FromAgent { seq: 1, body: Answer::Pulse });
        let until = Until::Elapsed(Duration::from_secs(60));
        let plan = Plan { until, threads: 1, ..plan(server.address) };
        leader.send(Request::Prepare { plan: Box::new(plan), parts: vec![Part::whole(1)] });
        let FromAgent { body: Answer::Prepared { pids }, seq: 2, .. } = leader.next() else {
            panic!("not prepared")
        };
        assert_eq!(pids.len(), 1);
        // A process that has just been started has no arguments for a moment.
        until_within(Duration::from_secs(10), "the load process has its arguments", || {
            marked(&leader.mark).len() == 2
        });
        leader
    }

    fn send(&mut self, body: Request) {
        self.seq += 1;
        let message = ToAgent { seq: self.seq, body };
        wire::send(self.stdin.as_mut().unwrap(), &message).unwrap();
    }

    fn next(&mut self) -> FromAgent {
        self.inbox.receive().unwrap().expect("the agent lives")
    }

    fn nothing_remains_within(&mut self, limit: Duration) {
        until_within(limit, "nothing remains", || {
            self.agent.try_wait().unwrap().is_some() && marked(&self.mark).is_empty()
        });
    }
}

#[test]
fn nothing_remains_after_the_lease_of_a_silent_leader() {
    let server = Recorder::start();
    let mut leader = Leader::start(1_000, &server);
    let began = Instant::now();
    // Longer than the lease, which each message renews.
    while began.elapsed() < Duration::from_millis(1_500) {
        leader.send(Request::Renew);
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(marked(&leader.mark).len(), 2);
    leader.nothing_remains_within(Duration::from_secs(3));
}

#[test]
fn a_message_that_takes_longer_than_the_lease_to_come_is_carried_out() {
    let server = Recorder::start();
    let mut leader = Leader::start(1_000, &server);
    let renew = ToAgent { seq: 3, body: Request::Renew };
    let line = serde_json::to_string(&renew).unwrap() + "\n";
    for part in line.as_bytes().chunks(line.len() / 20) {
        leader.stdin.as_mut().unwrap().write_all(part).unwrap();
        std::thread::sleep(Duration::from_millis(150));
    }
    while !matches!(leader.next(), FromAgent { seq: 3, body: Answer::Pulse, .. }) {}
    leader.nothing_remains_within(Duration::from_secs(3));
}

#[test]
fn a_leader_that_reads_nothing_is_not_heard_for_long() {
    let server = Recorder::start();
    let mut leader = Leader::start(1_000, &server);
    let mut stdin = leader.stdin.take().unwrap();
    let clock = |seq| ToAgent { seq, body: Request::Clock };
    let sent = (3..200_000).take_while(|seq| wire::send(&mut stdin, &clock(*seq)).is_ok()).count();
    // What fits into the pipes and the agent.
    assert!(sent < 10_000, "it took {sent} requests");
    leader.nothing_remains_within(Duration::from_secs(3));
}

#[test]
fn nothing_remains_when_the_leader_is_gone() {
    let server = Recorder::start();
    let mut leader = Leader::start(60_000, &server);
    leader.stdin = None;
    leader.nothing_remains_within(Duration::from_secs(3));
}

#[test]
fn an_invalid_message_ends_the_agent() {
    let server = Recorder::start();
    let mut leader = Leader::start(60_000, &server);
    wire::send(leader.stdin.as_mut().unwrap(), &"sail").unwrap();
    leader.nothing_remains_within(Duration::from_secs(3));
}

#[test]
fn a_killed_agent_leaves_no_load_process() {
    let server = Recorder::start();
    let mut leader = Leader::start(60_000, &server);
    leader.agent.kill().unwrap();
    leader.nothing_remains_within(Duration::from_secs(3));
}
