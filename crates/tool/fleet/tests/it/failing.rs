//! An agent that is absent, different, killed or silent ends the load, and is named.

use crate::common::{
    Recorder, behind, build, connect, connect_with, machine, mark, marked, of_seconds, plan,
    run_watched, with_cores,
};
use regatta_fleet::{Error, Fleet, FleetRun, Machine, Settings};
use regatta_load::{Phase, Plan, Progress};
use regatta_testkit::deadline::until;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

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
    let error = connect_with(&[silent], settings).err().unwrap().to_string();
    assert_eq!(error, "agent mute cannot be reached: no answer within 300ms");
    let banner = behind("echo Welcome; $agent", machine("chatty", "load-process", &mark));
    let error = refused(&[banner]);
    assert!(error.contains("got \"Welcome\"") && error.contains("must print nothing"), "{error}");
}

#[test]
fn another_build_is_refused_with_what_to_do() {
    // The second one has other fields, too.
    let fields = r#"s/^{/{"fleet":1,"session":0,/; s/"cores":[0-9]*/"format":9/"#;
    for change in ["", fields] {
        let change = format!(r#"s/"build":"[0-9a-f]*"/"build":"00ff"/; {change}"#);
        let agent = machine("old", "load-process", &mark());
        let error = refused(&[behind(&format!("$agent | sed -u '{change}'"), agent)]);
        let expected =
            "agent old runs another build of regatta: test with SHA-256 00ff there, test with ";
        assert!(error.starts_with(expected), "{error}");
        assert!(error.contains("use --deploy"), "{error}");
    }
}

/// Runs a load of a minute on two agents until something that `does` to the second one ends it.
fn disturbed(settings: Settings, does: impl Fn(u32)) -> (String, Vec<u64>, Duration) {
    let (server, mark) = (Recorder::start(), mark());
    let machines = ["a", "b"].map(|name| machine(name, "load-process", &mark));
    let mut fleet = connect_with(&machines, settings).unwrap();
    let is_agent = |(_, arguments): &(u32, Vec<String>)| arguments[1] == "agent";
    let mut agents = marked(&mark).into_iter().filter(is_agent).map(|(pid, _)| pid);
    // In the order of their start.
    let second = agents.next().max(agents.next()).unwrap();
    let plan = of_seconds(60, &server);
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
    let plan = of_seconds(60, &server);
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

/// Runs a load on one agent whose messages are changed by this command of `sed`.
fn lied(change: &str) -> Result<FleetRun, String> {
    let (server, mark) = (Recorder::start(), mark());
    let liar =
        behind(&format!("$agent | sed -u '{change}'"), machine("liar", "load-process", &mark));
    let mut fleet = connect(&[liar]).map_err(|error| error.to_string())?;
    let done = run_watched(&mut fleet, &plan(server.address), &mut |_| {});
    done.map_err(|void| void.error.to_string())
}

#[test]
fn an_agent_cannot_change_when_the_leader_asked_for_its_time() {
    let lie = "s/\"clock\":{\\(\"t0_ns\":[0-9]*,\\)\\?/\"clock\":{\"t0_ns\":1,/";
    let within_ns = lied(lie).unwrap().edges_within_ns.unwrap();
    assert!(within_ns < 1_000_000_000, "{within_ns} ns");
    let error = lied("s/\"seq\":[0-9]*,\"body\":{\"clock\"/\"seq\":2000,\"body\":{\"clock\"/");
    assert_eq!(error.unwrap_err(), "agent liar answered a clock ping that was not sent");
}

#[test]
fn something_else_than_the_answer_to_a_request_is_an_error() {
    let error = lied("s/\"body\":\"pulse\"/\"body\":\"aborted\"/").unwrap_err();
    assert_eq!(error, "agent liar answered a request with something else");
}

#[test]
fn impossible_numbers_are_errors_that_name_the_agent() {
    const HUGE: &str = "18446744073709551615";
    let set = |field: &str| lied(&format!("s/\"{field}\":[0-9]*/\"{field}\":{HUGE}/")).unwrap_err();
    let cores = lied("s/\"cores\":[0-9]*/\"cores\":4097/").unwrap_err();
    assert_eq!(cores, "agent liar has 4097 CPUs: expected 1 to 4096");
    let late = set("late_by_ns");
    assert!(late.starts_with("agent liar got the order to open the window "), "{late}");
    for field in
        ["late_ns", "replies", "settled", "errors", "open", "opened", "window_ns", "requests"]
    {
        let error = set(field);
        let expected =
            ["agent liar sent a report with impossible numbers", "agent liar sent no valid "];
        assert!(expected.iter().any(|one| error.starts_with(one)), "{field}: {error}");
    }
}

#[test]
fn texts_of_an_agent_are_made_visible() {
    let mark = mark();
    let red = "\u{1b}[31m";
    let other = "$agent | sed -u 's/\"version\":\"[^\"]*\"/\"version\":\"\\\\u001b[31m\"/; s/\"build\":\"../\"build\":\"x/'";
    let silent = format!("printf '{red}gone' >&2; exit 255");
    for command in [other, &silent] {
        let error = refused(&[behind(command, machine("red", "load-process", &mark))]);
        assert!(error.contains("\\u{1b}[31m") && !error.contains(red), "{error:?}");
    }
}

#[test]
fn a_first_message_is_short() {
    let long = behind("head -c 100000000 /dev/zero | tr '\\0' a", machine("long", "x", &mark()));
    let error = refused(&[long]);
    assert!(error.contains("expected a message of less than 16384 bytes, got more"), "{error}");
}

#[test]
fn connecting_ends_soon_after_it_is_interrupted() {
    let absent = behind("exec sleep 60", machine("absent", "x", &mark()));
    let (stop, began) = (AtomicBool::new(false), Instant::now());
    let took = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(200));
            stop.store(true, Relaxed);
        });
        let machines = [absent.clone(), absent];
        let done = Fleet::connect(&machines, &build(), Settings::default(), &stop);
        assert!(matches!(done, Err(Error::Interrupted)));
        began.elapsed()
    });
    assert!(took < Duration::from_secs(1), "it took {took:?}");
}

#[test]
fn a_silent_agent_is_noticed_beside_one_that_sends_without_end() {
    let (server, mark) = (Recorder::start(), mark());
    let pulse = "{\"seq\":0,\"body\":\"pulse\"}";
    let flood = behind(
        &format!(
            "$agent | {{ IFS= read -r hello; echo \"$hello\"; IFS= read -r lease; echo \"$lease\"; exec yes '{pulse}'; }}"
        ),
        machine("flood", "load-process", &mark),
    );
    let silent = behind(
        "$agent | { IFS= read -r hello; echo \"$hello\"; IFS= read -r lease; echo \"$lease\"; exec sleep 60; }",
        machine("silent", "load-process", &mark),
    );
    let mut fleet = connect(&[silent, flood.clone(), flood.clone(), flood]).unwrap();
    let began = Instant::now();
    let plan = Plan { connections: 8, ..plan(server.address) };
    let void = run_watched(&mut fleet, &plan, &mut |_| {}).unwrap_err();
    assert_eq!(void.error.to_string(), "agent silent is gone: it has not answered for 2s");
    assert!(began.elapsed() < Duration::from_secs(8), "it took {:?}", began.elapsed());
}
