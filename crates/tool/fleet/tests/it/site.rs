//! The site of an agent, which echoes in these tests.

use crate::common::{behind, build, machine, mark, marked};
use regatta_fleet::{Machine, RemoteSite, Settings};
use regatta_testkit::deadline::until;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

fn connect(machine: &Machine) -> (RemoteSite, Arc<AtomicBool>) {
    let stop = Arc::new(AtomicBool::new(false));
    let site = RemoteSite::connect(machine, &build(), Settings::default(), &stop).unwrap();
    (site, stop)
}

#[test]
fn a_site_answers_and_refuses_and_ends_with_its_session() {
    let mark = mark();
    let (site, stop) = connect(&machine("sut", "load-process", &mark));
    assert_eq!(site.ask(7.into()).unwrap(), 7);
    let refused = site.ask("refuse".into()).unwrap_err().to_string();
    assert_eq!(refused, "agent sut it was asked to refuse");
    assert_eq!(site.ask("sleep".into()).unwrap(), "sleep");
    drop(site);
    assert!(!stop.load(SeqCst), "nothing was lost");
    until("the agent ends", || marked(&mark).is_empty());
}

#[test]
fn an_answer_that_comes_again_is_not_taken_for_that_to_the_next_request() {
    let agent = machine("sut", "load-process", &mark());
    let (site, _) = connect(&behind("$agent | sed -u '/\"site\"/p'", agent));
    for number in 1..=3_i32 {
        assert_eq!(site.ask(number.into()).unwrap(), number);
    }
}

#[test]
fn an_agent_without_a_site_refuses() {
    let (site, stop) = connect(&machine("gen", "scripted", &mark()));
    assert_eq!(site.ask(7.into()).unwrap_err().to_string(), "agent gen runs no contenders");
    assert!(!stop.load(SeqCst) && site.lost().is_none(), "it is alive");
}

#[test]
fn a_request_that_takes_long_ends_when_the_caller_stops() {
    let mark = mark();
    let (site, stop) = connect(&machine("sut", "load-process", &mark));
    stop.store(true, SeqCst);
    assert_eq!(site.ask_until_stopped("sleep".into()).unwrap_err().to_string(), "interrupted");
    assert_eq!(site.ask(8.into()).unwrap(), 8, "other requests are still answered");
    assert!(site.lost().is_none());
}

#[test]
fn an_agent_that_ends_or_falls_silent_stops_the_caller_within_3_s() {
    let mark = mark();
    let agent = machine("sut", "load-process", &mark);
    let (site, stop) = connect(&agent);
    let error = site.ask("die".into()).unwrap_err().to_string();
    assert!(
        error.starts_with("agent sut is gone: its command ended with exit status: 3"),
        "{error}"
    );
    assert!(stop.load(SeqCst) && site.lost().unwrap().to_string() == error);
    assert_eq!(site.ask(1.into()).unwrap_err().to_string(), "interrupted");

    // After its introduction and its first answers it says nothing.
    let silent = behind("$agent | { sed -u 3q; sleep 100; }", agent);
    let (site, stop) = connect(&silent);
    assert_eq!(site.ask(1.into()).unwrap(), 1);
    let began = Instant::now();
    while !stop.load(SeqCst) {
        assert!(began.elapsed() < Duration::from_secs(5), "it does not notice");
        thread::sleep(Duration::from_millis(5));
    }
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let lost = site.lost().unwrap().to_string();
    assert_eq!(lost, "agent sut is gone: it has not answered for 2s");
}
