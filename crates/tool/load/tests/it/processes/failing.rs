//! A process that fails ends the whole load, and the error names the process.

use crate::{
    common::{Server, double, plan},
    processes::{marked, pids_of},
};
use regatta_load::{Error, LoadProcessConfig, Phase, Plan, Until};
use regatta_testkit::{child::example, client::refusing, deadline::until};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    process::Command,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::{Duration, Instant},
};

fn long(plan: Plan) -> Plan {
    Plan { until: Until::Elapsed(Duration::from_secs(40)), ..plan }
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn a_killed_process_ends_the_load_in_the_warm_up_and_in_the_window() {
    let server = Server::double();
    for phase in [Phase::WarmingUp, Phase::Measuring] {
        let mut plan = long(Plan { connections: 6, ..plan(server.address) });
        if phase == Phase::WarmingUp {
            plan.warm_up = regatta_load::WarmUp::Fixed(Duration::from_secs(40));
        }
        let (marked, mut killed) = (marked(3), false);
        let mut progress = |progress: &regatta_load::Progress| {
            if progress.phase == phase && !std::mem::replace(&mut killed, true) {
                kill(marked.pids()[1]);
            }
        };
        let (result, called) = marked.run_watched(&plan, &mut progress, &AtomicBool::new(false));
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with("load process 2 of 3 ended before its counts"), "{error}");
        assert!(error.contains("SIGKILL"), "{error}");
        let expected: &[&str] = if phase == Phase::Measuring { &["opens", "closes"] } else { &[] };
        assert_eq!(called, expected);
    }
}

/// It has not lost its patience yet: it knows that all of them are refused.
#[test]
fn a_server_that_refuses_every_process_is_dead_after_seconds() {
    let mut server = Server::double();
    let patience = Duration::from_secs(60);
    let plan = long(Plan { connections: 6, patience, ..plan(server.address) });
    let mut progress = |progress: &regatta_load::Progress| {
        if progress.phase == Phase::Measuring {
            server.die();
        }
    };
    let (result, called) = marked(3).run_watched(&plan, &mut progress, &AtomicBool::new(false));
    let tally = result.unwrap();
    assert!(tally.server_died && tally.errors.connect > 0, "{:?}", tally.errors);
    assert_eq!(called, ["opens", "closes"]);
}

#[test]
fn invalid_counts_are_refused_with_the_number_of_the_process() {
    let server = Server::double();
    for (lie, expected) in [
        ("precision", "reported counts of another load: a histogram of 1 to"),
        ("requests", "reported wrong counts: "),
        ("slices", "reported counts of another load: "),
        ("format", "reported wrong counts: format 3, expected format 2"),
        ("instances", "reported wrong counts: burst instances of another process"),
        ("words", "sent no valid report: expected a message, got \"all is well\""),
        ("silent", "ended before its counts were reported: exit status: 7"),
    ] {
        let result = lied(&server, lie);
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with(&format!("load process 2 of 3 {expected}")), "{lie}: {error}");
    }
    lied(&server, "nothing").unwrap();
}

fn lied(server: &Server, lie: &str) -> Result<regatta_load::Tally, Error> {
    let arguments = vec!["lie".into(), lie.into()];
    let processes = LoadProcessConfig { program: example("load_test_helper"), arguments, least: 3 };
    let plan = Plan { connections: 6, ..plan(server.address) };
    let (mut called, never) = (crate::common::Called::default(), AtomicBool::new(false));
    regatta_load::run_in_processes(&plan, &processes, &mut called, &mut |_| {}, &never)
}

#[test]
fn a_wrong_reply_to_one_process_ends_all_and_is_reported() {
    let server = Server::numbered(|number, stream, n| {
        crate::common::answer_lines(stream, n, |i, line| {
            Some(if number == 4 && i == 200 { "wrong\n".into() } else { double(line) })
        });
    });
    let began = Instant::now();
    let plan = long(Plan { connections: 6, ..plan(server.address) });
    let (tally, called) = marked(3).run_watched(&plan, &mut |_| {}, &AtomicBool::new(false));
    let tally = tally.unwrap();
    assert_eq!(tally.errors.wrong_reply, 1);
    assert_eq!(tally.first_wrong.clone().unwrap().received, "wrong\\n");
    assert_eq!(called, ["opens", "closes"]);
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_stop_ends_all_processes_with_the_results_so_far() {
    let server = Server::double();
    let stop = AtomicBool::new(false);
    let mut stops = |progress: &regatta_load::Progress| {
        stop.store(progress.phase == Phase::Measuring && progress.replies > 1_000, SeqCst);
    };
    let plan = long(Plan { connections: 6, ..plan(server.address) });
    let began = Instant::now();
    let (tally, called) = marked(3).run_watched(&plan, &mut stops, &stop);
    let tally = tally.unwrap();
    assert!(tally.interrupted && tally.requests > 500, "{}", tally.requests);
    assert_eq!(called, ["opens", "closes"]);
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn refused_connections_are_reported_with_the_process_that_tried() {
    let nobody = refusing();
    match marked(3).run(&Plan { connections: 6, ..plan(nobody.addr) }) {
        Err(Error::NotOpened { opened: 0, wanted: 6, last }) => {
            assert!(last.contains("refused") && last.contains("(load process "), "{last}");
        }
        other => panic!("expected refused connections, got {other:?}"),
    }
}

#[test]
fn a_program_that_cannot_be_started_is_an_error_of_the_machine() {
    let processes =
        LoadProcessConfig { program: "/nonexistent".into(), arguments: vec![], least: 2 };
    let plan = Plan { connections: 2, ..plan("127.0.0.1:1".parse().unwrap()) };
    let (mut called, never) = (crate::common::Called::default(), AtomicBool::new(false));
    let result =
        regatta_load::run_in_processes(&plan, &processes, &mut called, &mut |_| {}, &never);
    assert!(matches!(result, Err(Error::Machine { .. })), "{result:?}");
    assert_eq!(called.names(), [""; 0]);
}

#[test]
fn load_processes_die_with_their_leader() {
    let server = Server::double();
    let mark = format!("led-{}", std::process::id());
    let target = server.address.to_string();
    let mut leader =
        Command::new(example("load_test_helper")).args(["lead", &target, &mark]).spawn().unwrap();
    let processes = || {
        let mut pids = pids_of(&mark);
        pids.retain(|pid| *pid != leader.id());
        pids
    };
    until("both processes load", || processes().len() == 2 && server.requests() > 100);
    leader.kill().unwrap();
    leader.wait().unwrap();
    until("no process remains", || pids_of(&mark).is_empty());
}
