//! An agent that is absent, different, killed or silent ends the load, and is named.

use crate::common::{
    Recorder, behind, build, connect, machine, mark, marked, plan, run_watched, with_cores,
};
use regatta_fleet::{Error, Fleet, Machine, Settings};
use regatta_load::{Phase, Plan, Progress, Until};
use regatta_testkit::deadline::until;
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

/// Refused by the leader before any agent starts a load process.
fn refused(machines: &[Machine]) -> String {
    match connect(machines) {
        Ok(_) => panic!("it connected"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_absent_agent_is_named_with_the_last_words_of_its_command() {
    let mark = mark();
    let absent = behind(
        "echo 'ssh: Could not resolve hostname gone' >&2; exit 255",
        machine("gone", "load-process", &mark),
    );
    let error = refused(&[machine("here", "load-process", &mark), absent]);
    let expected = "agent gone cannot be reached: its command ended with exit status: 255: ssh: Could not resolve \
                    hostname gone";
    assert_eq!(error, expected);
    until("the other agent exits", || marked(&mark).is_empty());
    let nowhere = Machine { name: "x".into(), program: "/nonexistent".into(), arguments: vec![] };
    let error = refused(&[nowhere]);
    assert!(error.starts_with("agent x cannot be reached: /nonexistent does not start"), "{error}");
    let missing = behind("no-such-program", machine("bare", "load-process", &mark));
    let error = refused(&[missing]);
    assert!(error.starts_with("agent bare ") && error.contains("or use --deploy"), "{error}");
}

#[test]
fn an_agent_that_says_nothing_or_something_else_is_refused() {
    let mark = mark();
    let settings = Settings { starts_within: Duration::from_millis(300), ..Settings::default() };
    let silent = behind("sleep 60", machine("mute", "load-process", &mark));
    let error = Fleet::connect(&[silent], &build(), settings).err().unwrap().to_string();
    assert_eq!(error, "agent mute cannot be reached: no answer within 300ms");
    let banner = behind("echo Welcome; $agent", machine("chatty", "load-process", &mark));
    let error = refused(&[banner]);
    assert!(error.contains("got \"Welcome\"") && error.contains("must print nothing"), "{error}");
}

#[test]
fn another_build_is_refused_with_what_to_do() {
    let other = behind(
        "$agent | sed -u 's/\"build\":\"[0-9a-f]*\"/\"build\":\"00ff\"/'",
        machine("old", "load-process", &mark()),
    );
    let error = refused(&[other]);
    let expected =
        "agent old runs another build of regatta: test with SHA-256 00ff there, test with ";
    assert!(error.starts_with(expected), "{error}");
    assert!(error.contains("use --deploy"), "{error}");
}

/// Runs a load of a minute on two agents until something that `does` to the second one ends it.
fn disturbed(settings: Settings, does: impl Fn(u32)) -> (String, Vec<u64>, Duration) {
    let (server, mark) = (Recorder::start(), mark());
    let machines = ["a", "b"].map(|name| machine(name, "load-process", &mark));
    let mut fleet = Fleet::connect(&machines, &build(), settings).unwrap();
    let is_agent = |(_, arguments): &(u32, Vec<String>)| arguments[1] == "agent";
    let mut agents = marked(&mark).into_iter().filter(is_agent).map(|(pid, _)| pid);
    // In the order of their start.
    let second = agents.next().max(agents.next()).unwrap();
    let plan = Plan {
        connections: 8,
        until: Until::Elapsed(Duration::from_secs(60)),
        ..plan(server.address)
    };
    let mut disturbed_at = None;
    let mut progress = |progress: &Progress| {
        if progress.phase == Phase::Measuring && progress.replies > 100 && disturbed_at.is_none() {
            disturbed_at = Some(Instant::now());
            does(second);
        }
    };
    let void = run_watched(&mut fleet, &plan, &mut progress).unwrap_err();
    let took = disturbed_at.unwrap().elapsed();
    let replies = void.agents.iter().map(|agent| agent.replies).collect();
    assert!(matches!(void.error, Error::Load(_)), "{:?}", void.error);
    drop(fleet);
    until("no process remains", || marked(&mark).is_empty());
    (void.error.to_string(), replies, took)
}

#[test]
fn a_killed_agent_ends_the_load_at_once_and_what_was_reported_is_kept() {
    let (error, replies, took) = disturbed(Settings::default(), |pid| signal(pid, Signal::KILL));
    assert!(error.starts_with("agent b is gone: its command ended with signal: 9"), "{error}");
    assert!(replies.len() == 2 && replies.iter().sum::<u64>() > 100, "{replies:?}");
    assert!(took < Duration::from_secs(3), "it took {took:?}");
}

#[test]
fn a_silent_agent_ends_the_load() {
    let answers_within = Duration::from_millis(1_500);
    let settings = Settings { answers_within, ..Settings::default() };
    let (error, ..) = disturbed(settings, |pid| signal(pid, Signal::STOP));
    // Its load process still reports to the agent, which does not pass that on.
    assert_eq!(error, "agent b is gone: it has not answered for 1.5s");
}

#[test]
fn a_load_process_that_dies_is_reported_by_its_agent() {
    let (server, mark) = (Recorder::start(), mark());
    let mut fleet = connect(&[machine("a", "load-process", &mark)]).unwrap();
    let plan = Plan { until: Until::Elapsed(Duration::from_secs(60)), ..plan(server.address) };
    let mut killed = false;
    let mut progress = |progress: &Progress| {
        if progress.phase == Phase::Measuring && !std::mem::replace(&mut killed, true) {
            let all = marked(&mark);
            let (pid, _) =
                all.iter().find(|(_, arguments)| arguments[1] == "load-process").unwrap();
            signal(*pid, Signal::KILL);
        }
    };
    let error = run_watched(&mut fleet, &plan, &mut progress).unwrap_err().error.to_string();
    assert!(error.starts_with("agent a lost its load process 1: it ended before"), "{error}");
    assert!(error.contains("SIGKILL"), "{error}");
}

#[test]
fn more_agents_than_connections_are_refused() {
    let mark = mark();
    let machines = ["a", "b"].map(|name| with_cores(1, machine(name, "load-process", &mark)));
    let mut fleet = connect(&machines).unwrap();
    let plan = plan("127.0.0.1:1".parse().unwrap());
    let error = run_watched(&mut fleet, &plan, &mut |_| {}).unwrap_err().error.to_string();
    assert!(error.starts_with("2 agents need at least as many connections"), "{error}");
}

#[test]
fn an_agent_that_cannot_reach_the_server_is_named_with_its_error() {
    let nobody = regatta_testkit::client::refusing();
    let mut fleet = connect(&[machine("a", "load-process", &mark())]).unwrap();
    let error = run_watched(&mut fleet, &plan(nobody.addr), &mut |_| {}).unwrap_err().error;
    let error = error.to_string();
    assert!(error.contains("refused") && error.ends_with("(agent a)"), "{error}");
}
