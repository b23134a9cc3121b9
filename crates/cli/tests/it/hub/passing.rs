//! Members of the load that come and go while others broadcast, on every model.

use crate::support::{Server, hub::on_hub_models, json, regatta, run};
use regatta_testkit::child::Ended;
use serde_json::Value;
use std::fs;

fn load(url: &str, options: &[&str]) -> Ended {
    run(regatta!("load {url} -c 8 --warm-up 500ms").args(options))
}

/// Returns the number of operations of one kind in the whole run.
fn count(result: &Value, name: &str) -> u64 {
    let all = result["operations"].as_array().unwrap();
    let one = all.iter().find(|one| one["operation"]["name"] == name).unwrap();
    one["whole_run"].as_u64().unwrap()
}

on_hub_models!(no_delivery_is_lost_while_members_come_and_go);

fn no_delivery_is_lost_while_members_come_and_go(model: &str) {
    let server = Server::of("hub", model, &["--cores", "2"]);
    let url = format!("ws://{}/ws", server.addr);
    let churn = ["--in-flight", "4", "--passing", "40", "-d", "800ms", "--json", "-"];
    let result = json(&load(&url, &churn).with_status(0));
    let errors = result["errors"].as_object().unwrap();
    assert!(errors.values().all(|count| *count == 0), "{model}: {errors:?}");
    let (deliveries, last) = (count(&result, "deliveries"), count(&result, "last_deliveries"));
    assert!(deliveries > 1_000 && deliveries > 8 * last, "{model}: {deliveries} of {last}");
    let passed = result["passed"].as_u64().unwrap();
    assert!(passed > 10, "{model}: {passed}");
    assert_eq!(result["passing"], 40, "{model}");
    println!("{model}: {deliveries} deliveries, {passed} came and went");
}

#[test]
fn members_come_and_go_with_several_load_processes() {
    let server = Server::of("hub", "percore", &["--cores", "2"]);
    let url = format!("ws://{}/ws", server.addr);
    let more = ["--rate", "300/s", "--passing", "30", "--processes", "3", "-d", "2s"];
    let printed = load(&url, &more).with_status(0).stdout;
    assert!(printed.contains("8 connections + 30 passing, × 1"), "{printed}");
    assert!(printed.contains("members joined and left"), "{printed}");
}

#[test]
fn other_workloads_refuse_passing_and_suggest_churn() {
    for (url, workload) in [("line://127.0.0.1:1", "double"), ("http://127.0.0.1:1/", "hello")] {
        let said = load(url, &["--workload", workload, "--passing", "5"]).with_status(2).stderr;
        let why = format!("this load runs {workload}. To open a connection per request, use churn");
        assert!(said.contains(&why), "{said}");
    }
    load("ws://127.0.0.1:1/ws", &["--churn", "--passing", "5"]).with_status(2);
}

#[test]
fn a_race_counts_the_members_that_came_and_went() {
    let dir = tempfile::tempdir().unwrap();
    let race = "name = \"churn\"\nworkload = \"hub\"\ncontenders = [\"epoll\"]\nbaseline = \"epoll\"\n\
                rounds = 2\nwindow = \"500ms\"\n\n[[load]]\nconnections = 8\nrate = 200\npassing = 20\n";
    fs::write(dir.path().join("race.toml"), race).unwrap();
    let mut race =
        regatta!("race race.toml --debug-build --load-sleeps --settle 0s --out out --json -");
    let summary = json(&run(race.current_dir(dir.path())));
    let cell = &summary["cells"][0];
    assert!(cell["passed"].as_u64().is_some_and(|passed| passed > 5), "{cell}");
    let doubts = summary["doubts"].to_string();
    assert!(!doubts.contains("joined and left"), "{doubts}");
}
