//! Starts of contenders, successful or not.

use super::common::{LIMIT, ask, helper, launch, start, under_each_containment};
use regatta_host::{Containment, NotReady, Ready, Running, StartError, Status};
use std::{net::TcpListener, time::Duration, time::Instant};

under_each_containment!(
    a_good_contender_becomes_ready_runs_and_stops,
    a_contender_that_dies_at_the_start_is_reported_at_once_with_its_last_output,
    a_failed_start_is_reported_in_a_sentence,
    a_contender_in_the_background_is_reported_with_the_remedy,
);

fn a_good_contender_becomes_ready_runs_and_stops(containment: Containment) {
    let (mut running, mut traces) = start(&launch(containment, "exec $HELPER serve $PORT"));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    traces.add(&running);
    assert!(running.is_alive());
    assert!(ask(running.port(), "burn 1").unwrap() >= 1_000_000);
    assert!(running.memory().proportional > 100_000);
    let report = running.stop(LIMIT).unwrap();
    assert_eq!(report.fault(), None, "{report:?}");
    traces.assert_gone();
}

#[test]
fn readiness_by_http_waits_for_a_good_status() {
    let (mut running, traces) = start(&launch(Containment::Best, "exec $HELPER serve $PORT"));
    running.wait_ready(&Ready::Path("/up".into()), LIMIT).unwrap();
    drop(running);
    traces.assert_gone();
}

#[test]
fn a_timeout_reports_the_last_bad_status() {
    let script = "while :; do $HELPER serve $PORT; done";
    let (mut running, traces) = start(&launch(Containment::Best, script));
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    let error = running.wait_ready(&Ready::Path("/up".into()), Duration::ZERO).unwrap_err();
    assert!(matches!(error, NotReady::Late { .. }));
    assert!(error.to_string().contains("\"HTTP/1.1 503 Not Yet\""), "{error}");
    drop(running);
    traces.assert_gone();
}

fn a_contender_that_dies_at_the_start_is_reported_at_once_with_its_last_output(
    containment: Containment,
) {
    let script = "echo Cannot find module ws >&2; exit 3";
    let (mut running, traces) = start(&launch(containment, script));
    let asked = Instant::now();
    let error = running.wait_ready(&Ready::Tcp, LIMIT * 6).unwrap_err();
    assert!(asked.elapsed() < LIMIT);
    assert!(matches!(error, NotReady::Ended { status: Status::Code(3), .. }));
    let expected = "probe exited with status 3 before it was ready; \
                    its last output: Cannot find module ws";
    assert_eq!(error.to_string(), expected);
    drop(running);
    traces.assert_gone();
}

#[test]
fn a_contender_that_never_listens_is_reported_after_the_limit() {
    let (mut running, traces) = start(&launch(Containment::Best, "exec sleep 1000"));
    let error = running.wait_ready(&Ready::Tcp, Duration::from_millis(150)).unwrap_err();
    let port = running.port();
    let expected =
        format!("probe was not ready within 0.15 s: nothing accepts on 127.0.0.1:{port}");
    assert_eq!(error.to_string(), expected);
    drop(running);
    traces.assert_gone();
}

#[test]
fn a_port_that_is_taken_is_reported_before_the_start() {
    let launch = launch(Containment::Best, "exec $HELPER serve $PORT");
    let _holder = TcpListener::bind(("127.0.0.1", launch.port)).unwrap();
    let error = Running::start(helper(), &launch).unwrap_err();
    assert!(matches!(error, StartError::PortTaken { port, .. } if port == launch.port));
}

fn a_failed_start_is_reported_in_a_sentence(containment: Containment) {
    let mut wrong = launch(containment, "");
    wrong.command = vec!["no-such-program".into()];
    let error = Running::start(helper(), &wrong).unwrap_err().to_string();
    let folder = std::env::temp_dir();
    let said = format!("`no-such-program` in {}: No such file", folder.display());
    assert!(error.contains(&said), "{error}");
    wrong.command.clear();
    let error = Running::start(helper(), &wrong).unwrap_err().to_string();
    assert!(error.contains("its start command is empty"), "{error}");
    wrong.command = vec!["true".into()];
    wrong.dir = "/no/such/place".into();
    let error = Running::start(helper(), &wrong).unwrap_err().to_string();
    assert!(error.contains("there is no directory /no/such/place"), "{error}");
}

fn a_contender_in_the_background_is_reported_with_the_remedy(containment: Containment) {
    // In another session, and listening only once the started process is gone.
    let script = "export MAIN=$$; setsid sh -c 'while kill -0 $MAIN 2>/dev/null; do \
                  sleep 0.01; done; exec $HELPER serve $PORT' & exit 0";
    let (mut running, mut traces) = start(&launch(containment, script));
    let error = running.wait_ready(&Ready::Tcp, LIMIT).unwrap_err();
    assert!(matches!(error, NotReady::Background { .. }), "{error:?}");
    assert!(error.to_string().contains("Start it in the foreground"));
    traces.add(&running);
    drop(running);
    traces.assert_gone();
}

#[test]
fn a_contender_runs_on_its_cpus_and_its_supervisor_on_any() {
    let allowed = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list:")).unwrap();
        line.split_whitespace().nth(1).unwrap().to_string()
    };
    let mut launch = launch(Containment::Best, "exec $HELPER serve $PORT");
    launch.cpus = vec![0];
    let (mut running, traces) = start(&launch);
    running.wait_ready(&Ready::Tcp, LIMIT).unwrap();
    assert_eq!(allowed(running.pid()), "0");
    assert_eq!(allowed(running.supervisor_pid()), allowed(std::process::id()));
    running.stop(LIMIT).unwrap();
    traces.assert_gone();

    launch.cpus = vec![1023];
    let error = Running::start(helper(), &launch).unwrap_err().to_string();
    assert!(error.contains("cannot run on CPUs [1023]"), "{error}");
}

#[test]
fn endless_output_neither_blocks_the_contender_nor_fills_memory() {
    // It listens only after 100 MB went through the pipe.
    let script = "head -c 100000000 /dev/zero | tr '\\0' x; echo; echo done talking; \
                  exec $HELPER serve $PORT";
    let (mut running, traces) = start(&launch(Containment::Best, script));
    running.wait_ready(&Ready::Tcp, LIMIT * 3).unwrap();
    let status = format!("/proc/{}/status", running.supervisor_pid());
    let status = std::fs::read_to_string(status).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kib: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
    assert!(peak_kib < 20_000, "the supervisor took {peak_kib} KiB");
    let report = running.stop(LIMIT).unwrap();
    assert!(report.last_words.ends_with("x\ndone talking"));
    assert!(report.last_words.len() <= 4096);
    traces.assert_gone();
}
