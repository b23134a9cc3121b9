//! Races over gRPC.

use crate::support::race::{course::Course, started::Ended};
use regatta_race::Contender;
use regatta_record::{Kind, Summary};
use regatta_testkit::skip;
use std::path::{Path, PathBuf};

/// The workload file of the bundled race.
const CALLS: &str = include_str!("../../../../../../workloads/grpc.toml");

/// The same with one call, for the name "a".
const ONE_CALL: &str = "protocol = 'grpc'\n[[request]]\npath = '/helloworld.Greeter/SayHello'\n\
                        message_hex = '0a0161'\nexpect_hex = '0a0748656c6c6f2061'\n";

/// A contender of these tests.
fn contender(name: &str, how: &str) -> String {
    format!("{name}=sh -c 'exec \"$STREAMS\" {{port}} {how}'")
}

/// 4 calls on each of 2 connections.
const AT_A_RATE: &str = "connections = 2\npipeline = 4\nrate = 1000\n";

/// Races the null server, an honest contender and one under the name `one`.
fn race(course: &Course, workload: &str, load: &str, how: &str) -> Ended {
    course.write("calls.toml", workload);
    let race = format!(
        "name = 'test'\nworkload = 'calls.toml'\ncontenders = ['null']\ntwin_of = 'nobody'\n\
         rounds = 1\nwindow = '1s'\nwarm_up = '0s'\n[[load]]\n{load}"
    );
    course.write("race.toml", &race);
    let (honest, one) = (contender("honest", "greets"), contender("one", how));
    let contenders = ["--contender", &honest, "--contender", &one];
    course.race(&[&["race.toml", "--out", "out", "--json", "-"][..], &contenders].concat())
}

fn assert_raced(summary: &Summary) {
    for cell in &summary.cells {
        let kind = cell.verdict.kind();
        let failed = matches!(kind, Kind::Failed | Kind::Disqualified | Kind::CannotHold);
        assert!(cell.requests > 0 && !failed, "{cell:?}");
    }
}

#[test]
fn two_contenders_race_beside_the_null_server() {
    let course = Course::new();
    let summary = race(&course, CALLS, AT_A_RATE, "greets").raced().summary();
    course.assert_nothing_left();
    assert_eq!(summary.asked.contenders, ["null", "honest", "one"]);
    assert_eq!(summary.cells.len(), 3);
    assert_raced(&summary);
}

#[test]
fn a_contender_that_answers_another_call_is_disqualified_with_the_cause() {
    let course = Course::new();
    let ended = race(&course, CALLS, AT_A_RATE, "greets-all bc").with_status(1);
    ended.assert_verdict("one", Kind::Disqualified, &["a message", "SayHello"]);
    course.assert_nothing_left();
}

#[test]
fn a_contender_that_answers_before_it_has_the_message_is_disqualified() {
    let course = Course::new();
    let ended = race(&course, ONE_CALL, "connections = 2\n", "greets-early a").with_status(1);
    let early = "the last byte of the request had not been sent";
    ended.assert_verdict("one", Kind::Disqualified, &[early]);
}

#[test]
fn a_contender_whose_manifest_does_not_name_the_calls_is_refused() {
    let course = Course::new();
    let file = course.path("grpc.toml");
    course.write("grpc.toml", CALLS);
    let file = file.to_str().unwrap();
    let args = ["race", "epoll", "percore", "--workload", file, "--dry-run"];
    let ended = course.started(course.regatta(&args)).ended().with_status(2);
    ended.assert_printed(&["epoll cannot race: it does not serve grpc; these do: null, "]);
    // A file of another name asks for other calls.
    course.write("items.toml", CALLS);
    let args = ["race", "epoll", "percore", "--workload", "items.toml", "--dry-run"];
    let ended = course.started(course.regatta(&args)).ended().with_status(2);
    ended.assert_printed(&["epoll cannot race: it does not serve items"]);
    // It has a null server of its own.
    let (one, other) = ("one=sh {port}", "other=sh -e {port}");
    let args = ["race", one, other, "--workload", "items.toml", "--dry-run", "--json", "-"];
    let plan = course.started(course.regatta(&args)).ended().stdout;
    assert!(plan.contains("--on-streams"), "{plan}");
}

/// The peers in this checkout that speak gRPC and are installed.
fn installed() -> Vec<String> {
    let peers: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers");
    let mut all = Contender::find_all(&peers).unwrap();
    all.retain(|peer| peer.manifest.workloads.iter().any(|workload| workload == "grpc"));
    assert_eq!(all.len(), 4);
    all.retain(|peer| peer.missing().is_none());
    all.into_iter().map(|peer| peer.manifest.name).collect()
}

#[test]
fn the_bundled_race_takes_the_installed_peers_and_the_null_server() {
    let peers = installed();
    if peers.len() < 2 {
        return skip("of the peers that speak gRPC, fewer than two are installed (regatta peers)");
    }
    let course = Course::new();
    let only = format!("null,{}", peers.join(","));
    let short = ["--rounds", "1", "--window", "1s"];
    let args = [
        &["grpc", "--only", &only, "--out", "out", "--json", "-", "-c", "2", "-p", "4"][..],
        &short,
    ];
    let summary = course.race(&args.concat()).raced().summary();
    course.assert_nothing_left();
    assert_eq!(summary.cells.len(), peers.len() + 1);
    assert_raced(&summary);
}
